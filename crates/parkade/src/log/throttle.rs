//! Logs a repeated event at most once a second.

use std::time::Duration;

use parkade_core::Moment;

/// Prevents a flood of faults from flooding the log.
const LINE_INTERVAL: Duration = Duration::from_secs(1);

/// Events that were not logged.
#[derive(Debug, Default)]
pub struct LineThrottle {
    count: u64,
    logged_at: Option<Moment>,
}

impl LineThrottle {
    pub fn note(&mut self) {
        self.count += 1;
    }

    /// The number of events since the last line, if that line is at least a second old.
    pub fn take(&mut self, now: Moment) -> Option<u64> {
        let may_log = self.logged_at.is_none_or(|logged| now.since(logged) >= LINE_INTERVAL);
        if self.count == 0 || !may_log {
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_line_a_second_and_none_is_left_out() {
        let mut throttle = LineThrottle::default();
        let mut lines = Vec::new();
        for millis in 0..2500 {
            throttle.note();
            lines.extend(throttle.take(Moment::default() + Duration::from_millis(millis)));
        }
        assert_eq!(lines, [1, 1000, 1000]);
        assert_eq!(throttle.take(Moment::default() + Duration::from_secs(3)), Some(499));
        assert_eq!(throttle.take(Moment::default() + Duration::from_secs(9)), None);
    }
}
