//! Coarse time for connections: four bytes, a tenth of a second.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Tick(u32);

impl Tick {
    /// From the time since the server began. Wraps after 13 years.
    pub fn at(elapsed: Duration) -> Self {
        Self(u32::try_from(elapsed.as_millis() / 100 % u128::from(u32::MAX)).unwrap_or(0))
    }

    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::from(self.0.saturating_sub(earlier.0)) * 100)
    }
}
