//! The last count. Counting a million jobs takes long, so the result is used for a while.

use std::time::{Duration, Instant};

use super::limits::COUNT_SHARE;
use crate::JobCounts;

#[derive(Debug, Default)]
pub struct CountCache {
    last: Option<(JobCounts, Instant)>,
}

impl CountCache {
    pub fn fresh(&self, now: Instant) -> Option<JobCounts> {
        self.last.as_ref().filter(|(_, until)| *until > now).map(|(counts, _)| counts.clone())
    }

    /// `began`: when counting began. The longer it took, the longer its result is used, but not longer than
    /// `pause_max`.
    pub fn put(&mut self, now: Instant, began: Instant, counts: JobCounts, pause_max: Duration) {
        let pause = now.saturating_duration_since(began).saturating_mul(COUNT_SHARE).min(pause_max);
        self.last = Some((counts, now + pause));
    }
}
