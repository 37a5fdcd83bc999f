//! Bounds of responses to many clients at once.

/// Effects of one event that are carried out at once. Then: those that only concern clients are put off, in their
/// order.
pub const EFFECTS_AT_ONCE: usize = 256;

/// The state of a function that is compared with those of other requests, to be kept once if they are equal. A larger one
/// is rarely equal to another, and comparing it costs time.
pub const SHARED_STATE_BYTES_MAX: usize = 256;

/// Values of one kind that are known, to be kept once for all requests that have them. Then: others are kept for each
/// request, as they come. The set is small because it is looked through in one turn.
pub const EQUAL_ONES_COUNT_MAX: usize = 1_024;

/// Deferred responses that are sent in one step.
pub const ANSWERS_AT_A_TIME: usize = 32;

/// The number of deferred responses: a third of a second's work. Then: workers that publish are not read until only
/// half of them are left.
pub const PUT_OFF_COUNT_MAX: usize = 32_768;

/// The bytes of deferred responses, each message counted once. Then: the same.
pub const PUT_OFF_BYTES_MAX: usize = 8 * 1024 * 1024;
