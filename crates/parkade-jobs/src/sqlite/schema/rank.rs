//! The order in which the ready jobs of a queue are claimed.

use crate::Wall;

/// Half a minute of waiting is worth one step of priority.
pub const STEP_MS: i64 = 30_000;

/// When the job became ready, less half a minute for each step of its priority: the lowest is claimed first.
pub fn rank(ready: Wall, priority: i16) -> i64 {
    ready.0.saturating_sub(i64::from(priority) * STEP_MS)
}

/// When a job of this rank became ready.
pub fn ready_since(rank: i64, priority: i16) -> Wall {
    Wall(rank + i64::from(priority) * STEP_MS)
}
