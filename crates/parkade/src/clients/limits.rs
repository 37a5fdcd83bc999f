//! Bounds of what many clients are told at once.

/// Effects of one event that are carried out at once. Then: what is for clients alone is put off, in its order.
pub const EFFECTS_AT_ONCE: usize = 256;

/// Of what is put off, between two steps.
pub const ANSWERS_AT_A_TIME: usize = 32;

/// Clients who are to be told of what was put off, each as often as it is: a third of a second's work. Then: whoever publishes is not heard until it
/// is half of that.
pub const PUT_OFF_COUNT_MAX: usize = 32_768;

/// And what they are told, each message once. Then: the same.
pub const PUT_OFF_BYTES_MAX: usize = 8 * 1024 * 1024;
