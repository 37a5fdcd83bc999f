//! The bounds of a turn.

use std::time::Duration;

/// What each of these may take of a turn: requests of clients, the links of workers, the frames that came on them, databases, jobs. Then: the rest
/// is for the next turn, and whatever else is there goes between.
pub const SHARE: Duration = Duration::from_millis(2);

/// What answers that were put off may take: twice as much, since the last of many who are told the same waits for all the others.
pub const ANSWERS_SHARE: Duration = Duration::from_millis(4);

/// A turn that takes longer is counted and logged. Five shares and that of the answers are 14 ms: something in a longer one is not cut up.
pub const TURN_LONG: Duration = Duration::from_millis(15);

/// Nobody is promised to be served within less: then it is told as a warning.
pub const TURN_TOO_LONG: Duration = Duration::from_millis(50);

/// How old a reading of the thread's CPU time may be. Then: it is read again, for 0.2 µs.
pub const CPU_MARK_INTERVAL: Duration = Duration::from_millis(1);

/// Long turns are told this often.
pub const TOLD_INTERVAL: Duration = Duration::from_secs(1);
