//! The time on the wall.

use std::time::Duration;

/// Milliseconds since 1970-01-01 UTC. Jobs outlive the process, and so what their times are counted from. The clock may be put forward or back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Wall(pub i64);

impl Wall {
    /// The time since `earlier`; zero when that lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}
