//! The wall clock.

use std::time::Duration;

/// Milliseconds since 1970-01-01 UTC. Jobs outlive the process, so their times cannot be counted from its start. The
/// clock may be set forward or back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Wall(pub i64);

impl Wall {
    /// The time since `earlier`; zero if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}
