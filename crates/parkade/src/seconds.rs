//! Seconds as the protocol has them.

use std::time::Duration;

/// Seconds that the protocol has checked to be finite and not negative.
pub fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// As people write a time: `2 min`, `90 s`.
pub fn in_words(seconds: f64) -> String {
    for (unit, name) in [(86_400.0, "d"), (3_600.0, "h"), (60.0, "min")] {
        if seconds >= unit && seconds % unit == 0.0 {
            return format!("{} {name}", seconds / unit);
        }
    }
    format!("{seconds} s")
}
