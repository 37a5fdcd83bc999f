//! Bounds, with their reasons.

/// The payload of a control frame (RFC 6455, section 5.5), in bytes. Then: the peer breaks the rules, and the socket is
/// closed with 1002.
pub const CONTROL_MAX: usize = 125;

/// The text of a close frame, in bytes: what two bytes of a code leave of it. Then: the text is cut.
pub const CLOSE_TEXT_MAX: usize = CONTROL_MAX - 2;

/// The largest head of a frame: two bytes, a length of eight, a mask of four.
pub const HEAD_MAX: usize = 14;

/// How many parameters an offer of compression may have: RFC 7692 defines four. Then: the offer is declined.
pub const PARAMETERS_MAX: usize = 8;

/// How many offers of extensions are read. Browsers make one or two. Then: those after it are ignored.
pub const OFFERS_MAX: usize = 16;

/// A compressed message is inflated while it arrives from this many bytes on: that takes 40 KB, which must not be had
/// for a few bytes. Then: a shorter one is inflated when it is whole.
pub const INFLATED_WHOLE_MAX: usize = 64 * 1024;

/// By how much the output of an inflated message grows at a time, in bytes, at the most.
pub const INFLATE_STEP: usize = 16 * 1024;
