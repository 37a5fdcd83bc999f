//! Limits how fast connections are opened: as many per second as there are slots.

use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct DialPace {
    count_max: usize,
    left: usize,
    /// When the current second began.
    since: Instant,
}

const SECOND: Duration = Duration::from_secs(1);

impl DialPace {
    pub(crate) fn new(count_max: usize, now: Instant) -> Self {
        Self { count_max, left: count_max, since: now }
    }

    /// Whether another connection may be opened now.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) >= SECOND {
            *self = Self::new(self.count_max, now);
        }
        let may = self.left > 0;
        self.left -= usize::from(may);
        may
    }

    /// `None`: at once.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        (self.left == 0).then(|| self.since + SECOND)
    }
}
