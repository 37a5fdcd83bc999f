//! The bounds of a turn.

use std::time::Duration;

/// What clients, workers, databases, jobs and answers to many at once may each take of a turn: with all of them busy a turn ends in about ten
/// milliseconds. Then: the rest is for the next turn, and whatever else is there goes between.
pub const SHARE: Duration = Duration::from_millis(2);

/// A turn that takes longer is counted and told: something in it is not cut up.
pub const TURN_LONG: Duration = Duration::from_millis(10);

/// Nobody is promised to be served within less: then it is told as a warning.
pub const TURN_TOO_LONG: Duration = Duration::from_millis(50);

/// How old a reading of the thread's CPU time may be. Then: it is read again, for 0.2 µs.
pub const CPU_MARK_INTERVAL: Duration = Duration::from_millis(1);

/// Long turns are told this often.
pub const TOLD_INTERVAL: Duration = Duration::from_secs(1);

/// Effects of one event that are carried out at once. Then: what is for clients alone is put off, in its order.
pub const EFFECTS_AT_ONCE: usize = 256;

/// Between two looks at the clock.
pub const ANSWERS_AT_A_TIME: usize = 32;
