//! The bounds of a turn.

use std::time::Duration;

/// The share of a turn for each of these: requests of clients, the links of workers, their frames, databases, jobs.
/// Then: the rest waits for the next turn, so that the other parts get theirs.
pub const SHARE: Duration = Duration::from_millis(2);

/// The share for deferred responses: twice as much, because the last of many clients that get the same message waits
/// for all the others.
pub const ANSWERS_SHARE: Duration = Duration::from_millis(4);

/// A longer turn is counted and logged. Five shares and that of the responses are 14 ms: a longer turn had a step that
/// is not split up.
pub const TURN_LONG: Duration = Duration::from_millis(15);

/// A turn this long is logged as a warning: clients notice it.
pub const TURN_TOO_LONG: Duration = Duration::from_millis(50);

/// The maximum age of a reading of the thread's CPU time. Then: it is read again, which takes 0.2 µs.
pub const CPU_MARK_INTERVAL: Duration = Duration::from_millis(1);

/// How often long turns are logged.
pub const TOLD_INTERVAL: Duration = Duration::from_secs(1);
