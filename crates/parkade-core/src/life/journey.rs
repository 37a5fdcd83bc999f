//! Where the time of a request goes, packed small, for there may be a million of them.

use std::time::Duration;

use crate::effect::Times;
use crate::moment::Moment;
use crate::structures::timers::Alarm;

/// What a request carries from state to state.
#[derive(Debug)]
pub(crate) struct Journey {
    /// Since when it is in its present state.
    since: Moment,
    queued_micros: u32,
    running_micros: u32,
    /// Milliseconds: a stream may live for days, and 2^32 of these are 49.
    parked_millis: u32,
    patience: Patience,
    /// Its deadline while it is queued or running, the end of its wait while it is parked.
    pub(crate) alarm: Option<Alarm>,
}

/// How long one spell of being queued and running may be. Milliseconds, rounded up; 0 is for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience(u32);

impl Journey {
    pub(crate) const fn new(now: Moment, patience: Patience, alarm: Option<Alarm>) -> Self {
        Self { since: now, queued_micros: 0, running_micros: 0, parked_millis: 0, patience, alarm }
    }

    pub(crate) const fn since(&self) -> Moment {
        self.since
    }

    pub(crate) const fn patience(&self) -> Patience {
        self.patience
    }

    pub(crate) const fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
    }

    pub(crate) const fn ending_with(mut self, alarm: Option<Alarm>) -> Self {
        self.alarm = alarm;
        self
    }

    pub(crate) fn queued(mut self, now: Moment) -> Self {
        self.queued_micros = self.queued_micros.saturating_add(clamp((now - self.since).as_micros()));
        self.since = now;
        self
    }

    pub(crate) fn ran(mut self, now: Moment) -> Self {
        self.running_micros = self.running_micros.saturating_add(clamp((now - self.since).as_micros()));
        self.since = now;
        self
    }

    pub(crate) fn waited(mut self, now: Moment) -> Self {
        self.parked_millis = self.parked_millis.saturating_add(clamp((now - self.since).as_millis()));
        self.since = now;
        self
    }

    /// Where the time went, and the alarm that is still set.
    pub(crate) fn end(self) -> (Times, Option<Alarm>) {
        let times = Times {
            queued: Duration::from_micros(self.queued_micros.into()),
            running: Duration::from_micros(self.running_micros.into()),
            parked: Duration::from_millis(self.parked_millis.into()),
        };
        (times, self.alarm)
    }
}

impl Patience {
    pub(crate) fn duration(self) -> Option<Duration> {
        (self.0 > 0).then(|| Duration::from_millis(self.0.into()))
    }
}

impl From<Option<Duration>> for Patience {
    /// No deadline and a deadline of zero are the same: none.
    fn from(deadline: Option<Duration>) -> Self {
        Self(deadline.map_or(0, |deadline| clamp(deadline.as_nanos().div_ceil(1_000_000))))
    }
}

fn clamp(count: u128) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
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
        assert_eq!((times.queued.as_millis(), times.running.as_millis(), times.parked.as_millis()), (3, 7, 90));
    }

    #[test]
    fn a_deadline_is_never_shortened_by_rounding() {
        assert_eq!(Patience::from(Some(Duration::from_micros(1))).duration(), Some(Duration::from_millis(1)));
        assert_eq!(Patience::from(Some(Duration::ZERO)).duration(), None);
    }
}
