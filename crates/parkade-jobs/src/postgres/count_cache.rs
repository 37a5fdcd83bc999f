//! What the last count came to. Counting a million jobs takes long, so its result is used for a while.

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

    /// `began`: when the count was begun. The longer it took, the longer it is used, but for no longer than `pause_max`.
    pub fn put(&mut self, now: Instant, began: Instant, counts: JobCounts, pause_max: Duration) {
        let pause = now.saturating_duration_since(began).saturating_mul(COUNT_SHARE).min(pause_max);
        self.last = Some((counts, now + pause));
    }
}
