//! Something that strangers do wrong, told in the log now and then: whoever floods the server must not flood its log.

use std::time::{Duration, Instant};

/// It is told this often at most; how often it was not is told with the next.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct Complaints {
    told: Option<Instant>,
    left_out: usize,
}

impl Complaints {
    /// Whether it may be told now; then how often it was not since it was last told.
    pub fn due(&mut self) -> Option<usize> {
        if self.told.is_some_and(|told| told.elapsed() < COMPLAINT_INTERVAL) {
            self.left_out += 1;
            return None;
        }
        self.told = Some(Instant::now());
        Some(std::mem::take(&mut self.left_out))
    }
}
