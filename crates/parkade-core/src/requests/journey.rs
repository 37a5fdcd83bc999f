//! What a request carries from state to state: its times and its alarm. It is packed small, because there may be a million of them.

use std::time::Duration;

use super::times::Times;
use crate::bell::Bell;
use crate::context::Context;
use crate::moment::Moment;
use crate::structures::timers::Alarm;
use parkade_model::RequestId;

#[derive(Debug)]
pub struct Journey {
    /// Since when it is in its present state.
    since: Moment,
    times: Times,
    patience: Patience,
    /// Its deadline while it is queued or running, the end of its wait while it is parked.
    alarm: Option<Alarm>,
}

/// How long a request may be queued and running at a time, in milliseconds, rounded up. 0: for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience(u32);

impl Journey {
    pub fn new(now: Moment, patience: Patience) -> Self {
        Self { since: now, times: Times::default(), patience, alarm: None }
    }

    pub const fn since(&self) -> Moment {
        self.since
    }

    pub const fn times(&self) -> Times {
        self.times
    }

    pub const fn patience(&self) -> Patience {
        self.patience
    }

    pub const fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
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

    pub const fn has_alarm(&self) -> bool {
        self.alarm.is_some()
    }

    /// The deadline of a new spell of being queued and running counts from now, unless one counts already.
    pub fn start_spell(&mut self, cx: &mut Context, request: RequestId) {
        if let (None, Some(patience)) = (self.alarm, self.patience.duration()) {
            self.alarm = Some(cx.timers.set(cx.now + patience, Bell::Life(request)));
        }
    }

    /// The deadline of this spell counts from now.
    pub fn restart_spell(&mut self, cx: &mut Context, request: RequestId) {
        if self.alarm.is_some() {
            self.silence(cx);
            self.start_spell(cx, request);
        }
    }

    /// Sets how long this spell may take in total. Another route may have another deadline; the beginning of the spell stays the same.
    pub fn bound_spell(&mut self, cx: &mut Context, request: RequestId, patience: Patience) {
        let before = std::mem::replace(&mut self.patience, patience);
        if self.alarm.is_some() && patience == before {
            return;
        }
        let began = match (self.alarm, before.duration()) {
            (Some(alarm), Some(before)) => cx.timers.due(alarm) - before,
            (Some(_) | None, _) => self.since,
        };
        self.silence(cx);
        self.alarm = patience.duration().map(|patience| cx.timers.set(began + patience, Bell::Life(request)));
    }

    /// It waits until that moment, if anything bounds the wait.
    pub fn wait_until(&mut self, cx: &mut Context, request: RequestId, until: Option<Moment>) {
        self.silence(cx);
        self.alarm = until.map(|until| cx.timers.set(until, Bell::Life(request)));
    }

    /// Clears the alarm, if one is set.
    pub fn silence(&mut self, cx: &mut Context) {
        if let Some(alarm) = self.alarm.take() {
            cx.timers.clear(alarm);
        }
    }

    /// The alarm has rung: its handle is void.
    pub fn note_alarm(&mut self) {
        self.alarm = None;
    }

    /// Gives the alarm away, still set.
    pub fn take_alarm(&mut self) -> Option<Alarm> {
        self.alarm.take()
    }

    /// Clears the alarm. Returns where the time went.
    pub fn end(mut self, cx: &mut Context) -> Times {
        self.silence(cx);
        self.times
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
    use crate::config::Config;

    const REQUEST: RequestId = RequestId { slot: 0, generation: 1 };

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn patience(millis: u64) -> Patience {
        Patience::from(Some(Duration::from_millis(millis)))
    }

    #[test]
    fn each_spell_is_counted_where_it_was_spent() {
        let journey = Journey::new(at(1), Patience::from(None));
        let times = journey.queued(at(3)).ran(at(10)).waited(at(100)).queued(at(101)).times;
        assert_eq!((times.queued().as_millis(), times.running().as_millis(), times.parked().as_millis()), (3, 7, 90));
    }

    #[test]
    fn a_deadline_is_never_shortened_by_rounding() {
        assert_eq!(Patience::from(Some(Duration::from_micros(1))).duration(), Some(Duration::from_millis(1)));
        assert_eq!(Patience::from(Some(Duration::ZERO)).duration(), None);
    }

    #[test]
    fn another_deadline_counts_from_where_the_spell_began() {
        let mut cx = Context::new(Config::default());
        let mut journey = Journey::new(at(10), patience(50));
        journey.bound_spell(&mut cx, REQUEST, patience(50));
        assert_eq!(cx.timers.next_due(), Some(at(60)));
        cx.now = at(40);
        journey.bound_spell(&mut cx, REQUEST, patience(80));
        assert_eq!((cx.timers.next_due(), cx.timers.count()), (Some(at(90)), 1));
        journey.start_spell(&mut cx, REQUEST);
        assert_eq!(cx.timers.next_due(), Some(at(90)), "a spell that counts is not begun again");
        journey.bound_spell(&mut cx, REQUEST, Patience::from(None));
        assert_eq!(cx.timers.count(), 0);
    }

    #[test]
    fn a_spell_that_begins_again_counts_from_then() {
        let mut cx = Context::new(Config::default());
        let mut journey = Journey::new(at(0), patience(50));
        journey.restart_spell(&mut cx, REQUEST);
        assert_eq!(cx.timers.count(), 0, "none had begun");
        journey.start_spell(&mut cx, REQUEST);
        cx.now = at(40);
        journey.restart_spell(&mut cx, REQUEST);
        assert_eq!((cx.timers.next_due(), cx.timers.count()), (Some(at(90)), 1));
    }

    #[test]
    fn nothing_is_left_set_when_it_ends() {
        let mut cx = Context::new(Config::default());
        let mut journey = Journey::new(at(0), patience(50));
        journey.start_spell(&mut cx, REQUEST);
        journey.wait_until(&mut cx, REQUEST, Some(at(7)));
        assert_eq!((cx.timers.next_due(), cx.timers.count()), (Some(at(7)), 1));
        journey.end(&mut cx);
        assert_eq!(cx.timers.count(), 0);
    }
}
