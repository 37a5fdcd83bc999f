//! When a worker is replaced by a fresh one: each draws its own limits, so that not all of them are replaced at once.

use std::time::Duration;

use crate::context::Context;
use crate::moment::Moment;

#[derive(Debug, Clone, Copy, Default)]
pub struct RecycleLimits {
    requests: Option<u64>,
    at: Option<Moment>,
    resident_bytes: Option<u64>,
}

impl RecycleLimits {
    pub fn draw(cx: &mut Context) -> Self {
        let recycle = cx.config.recycle;
        let percent = recycle.jitter_percent.min(100);
        let requests = recycle.requests.map(|requests| cx.random.jitter(requests, percent).max(1));
        let age = recycle.age.map(|age| u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
        let at = age.map(|age| cx.now + Duration::from_nanos(cx.random.jitter(age, percent)));
        Self { requests, at, resident_bytes: recycle.resident_bytes }
    }

    /// Whatever the limits are, this worker is to be replaced.
    pub fn reach(&mut self, now: Moment) {
        self.at = Some(now);
    }

    /// When the limit of its age is reached.
    pub fn due(&self) -> Option<Moment> {
        self.at
    }

    pub fn are_reached(&self, now: Moment, requests: u64, resident_bytes: Option<u64>) -> bool {
        self.requests.is_some_and(|most| requests >= most)
            || self.at.is_some_and(|at| at <= now)
            || self.resident_bytes.zip(resident_bytes).is_some_and(|(most, resident)| resident > most)
    }
}
