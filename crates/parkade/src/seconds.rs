//! Seconds as the protocol has them.

use std::time::Duration;

/// Seconds that the protocol has checked to be finite and not negative.
pub fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}
