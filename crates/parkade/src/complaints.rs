//! Throttles log lines about clients that do something wrong: a client that floods the server must not flood its log.

use std::time::{Duration, Instant};

/// The minimum time between two lines. Each line counts the events since the one before.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct Complaints {
    told: Option<Instant>,
    left_out: usize,
}

impl Complaints {
    /// Whether to log now. Returns how many events were not logged since the last line.
    pub fn due(&mut self) -> Option<usize> {
        if self.told.is_some_and(|told| told.elapsed() < COMPLAINT_INTERVAL) {
            self.left_out += 1;
            return None;
        }
        self.told = Some(Instant::now());
        Some(std::mem::take(&mut self.left_out))
    }
}
