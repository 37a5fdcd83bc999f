//! When a heartbeat is due, and whether it may declare others dead.

use std::time::{Duration, Instant};

/// The store's answer to a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatAnswer {
    /// Whether this instance is still a member: it has not been declared dead.
    pub is_member: bool,
    /// How many others this heartbeat has declared dead.
    pub declared_dead: u64,
    /// The store's clock when the heartbeat was carried out, in ms since 1970.
    pub now_ms: i64,
}

#[derive(Debug)]
pub(super) struct Heartbeat {
    /// When the next one is due, if the last is answered by then.
    due: Option<Instant>,
    /// When the unanswered heartbeat was sent, if there is one.
    unanswered: Option<Instant>,
    /// When the last answer came, by this process's clock.
    answered: Option<Instant>,
    /// The store's clock in the last answer.
    answered_ms: i64,
    /// Since when heartbeats have been answered without a gap.
    steady_since: Option<Instant>,
}

impl Heartbeat {
    pub const fn new() -> Self {
        Self { due: None, unanswered: None, answered: None, answered_ms: 0, steady_since: None }
    }

    /// `patience`: a heartbeat that has not been answered for this long is abandoned, and another one is due.
    pub fn due(&self, patience: Duration) -> Option<Instant> {
        self.unanswered.map(|sent| sent + patience).or(self.due)
    }

    pub fn sent(&mut self, now: Instant, next: Instant) {
        (self.unanswered, self.due) = (Some(now), Some(next));
    }

    pub fn failed(&mut self, now: Instant) {
        (self.unanswered, self.due) = (None, Some(now));
    }

    /// The last known time of the store's clock, in ms since 1970.
    pub fn answered_ms(&self) -> i64 {
        self.answered_ms
    }

    /// Continues under a new name: heartbeats under the last one have no meaning any more.
    pub fn joined(&mut self, now: Instant, next: Instant) {
        (self.unanswered, self.due) = (None, Some(next));
        self.steady_since = Some(now);
    }

    /// The heartbeat after which the next one may declare others dead: the store does so only if that is still the last
    /// that it knows of this server. `None`: it may not. After an outage of the store all servers have been silent, and
    /// the first one that comes back knows nothing about the others.
    pub fn judges_after(&self, now: Instant, dead_after: Duration) -> Option<i64> {
        let is_steady = self.steady_since.is_some_and(|since| now.duration_since(since) >= dead_after);
        is_steady.then_some(self.answered_ms)
    }

    pub fn answered(&mut self, now: Instant, now_ms: i64, dead_after: Duration) {
        self.unanswered = None;
        let passed = self.answered.map(|answered| now.duration_since(answered));
        let is_gapless = passed.is_some_and(|passed| {
            let stored = Duration::from_millis(now_ms.saturating_sub(self.answered_ms).unsigned_abs());
            passed < dead_after / 2 && stored.abs_diff(passed) < dead_after / 2
        });
        if !is_gapless {
            self.steady_since = Some(now);
        }
        (self.answered, self.answered_ms) = (Some(now), now_ms);
    }
}
