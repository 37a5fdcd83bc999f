//! What a request carries from state to state, packed small, for there may be a million of them.

use std::time::Duration;

use super::times::Times;
use crate::moment::Moment;
use crate::structures::timers::Alarm;

#[derive(Debug)]
pub struct Journey {
    /// Since when it is in its present state.
    since: Moment,
    times: Times,
    patience: Patience,
    /// Its deadline while it is queued or running, the end of its wait while it is parked.
    pub alarm: Option<Alarm>,
}

/// How long one spell of being queued and running may be. Milliseconds, rounded up; 0 is for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience(u32);

impl Journey {
    pub fn new(now: Moment, patience: Patience, alarm: Option<Alarm>) -> Self {
        Self { since: now, times: Times::default(), patience, alarm }
    }

    pub const fn since(&self) -> Moment {
        self.since
    }

    pub const fn patience(&self) -> Patience {
        self.patience
    }

    pub const fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
    }

    pub const fn ending_with(mut self, alarm: Option<Alarm>) -> Self {
        self.alarm = alarm;
        self
    }

    pub fn queued(mut self, now: Moment) -> Self {
        self.times.add_queued(now - self.since);
        self.since = now;
        self
    }

    pub fn ran(mut self, now: Moment) -> Self {
        self.times.add_running(now - self.since);
        self.since = now;
        self
    }

    pub fn waited(mut self, now: Moment) -> Self {
        self.times.add_parked(now - self.since);
        self.since = now;
        self
    }

    /// Where the time went, and the alarm that is still set.
    pub fn end(self) -> (Times, Option<Alarm>) {
        (self.times, self.alarm)
    }
}

impl Patience {
    pub fn duration(self) -> Option<Duration> {
        (self.0 > 0).then(|| Duration::from_millis(self.0.into()))
    }
}

impl From<Option<Duration>> for Patience {
    /// No deadline and a deadline of zero are the same: none.
    fn from(deadline: Option<Duration>) -> Self {
        Self(deadline.map_or(0, |deadline| u32::try_from(deadline.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_spell_is_counted_where_it_was_spent() {
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        let journey =
            Journey::new(at(1), Patience::from(None), None).queued(at(3)).ran(at(10)).waited(at(100)).queued(at(101));
        let (times, _) = journey.end();
        assert_eq!((times.queued().as_millis(), times.running().as_millis(), times.parked().as_millis()), (3, 7, 90));
    }

    #[test]
    fn a_deadline_is_never_shortened_by_rounding() {
        assert_eq!(Patience::from(Some(Duration::from_micros(1))).duration(), Some(Duration::from_millis(1)));
        assert_eq!(Patience::from(Some(Duration::ZERO)).duration(), None);
    }
}
