//! How many jobs are claimed, and when: as many as workers can begin at once, and some ahead as long as workers turn out to wait for the store.

use crate::bell::Bell;
use crate::context::Context;
use crate::effect::{Effect, StoreEffect};
use crate::limits::{CLAIMED_EARLY, CLAIMED_IN_VAIN, JOBS_AHEAD_COUNT_MAX};
use crate::moment::Moment;
use crate::structures::timers::Alarm;
use parkade_model::{Allowance, QueueId};

#[derive(Debug, Default)]
pub struct Pull {
    /// What the claim that is on its way was allowed. The store is asked once at a time.
    asked: Option<Vec<Allowance<QueueId>>>,
    /// There may be jobs that are ready.
    is_hinted: bool,
    /// When there may be some again.
    alarm: Option<Alarm>,
    /// When the first of those that wait here has waited too long.
    in_vain: Option<Alarm>,
    /// How many are claimed before a worker is free for them.
    ahead: u32,
}

impl Pull {
    /// There may be some now.
    pub fn hint(&mut self) {
        self.is_hinted = true;
    }

    /// Whether it is known already that there may be some.
    pub fn is_hinted(&self) -> bool {
        self.is_hinted
    }

    /// There may be some at that moment, if not before.
    pub fn expect(&mut self, cx: &mut Context, due: Moment) {
        if due <= cx.now {
            return self.hint();
        }
        if let Some(alarm) = self.alarm {
            if cx.timers.due(alarm) <= due {
                return;
            }
            cx.timers.clear(alarm);
        }
        self.alarm = Some(cx.timers.set(due, Bell::JobsReady));
    }

    /// That moment has come.
    pub fn note_alarm(&mut self) {
        self.alarm = None;
        self.hint();
    }

    /// If a run has waited here since that moment, it is looked at when it has waited too long.
    pub fn watch(&mut self, cx: &mut Context, since: Option<Moment>) {
        if let (None, Some(since)) = (self.in_vain, since) {
            let due = cx.now.max(since + CLAIMED_IN_VAIN);
            self.in_vain = Some(cx.timers.set(due, Bell::ClaimedInVain));
        }
    }

    /// It is looked at now.
    pub fn note_watch(&mut self) {
        self.in_vain = None;
    }

    /// At the exit: no alarm rings any more.
    pub fn silence(&mut self, cx: &mut Context) {
        for alarm in [self.alarm.take(), self.in_vain.take()].into_iter().flatten() {
            cx.timers.clear(alarm);
        }
    }

    pub fn may_ask(&self) -> bool {
        self.is_hinted && self.asked.is_none()
    }

    /// Whether the store has been asked and has not answered.
    pub fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// How many jobs are to be claimed. Workers have `room` for so many; of those that were claimed before, `waiting` have not begun, the first of
    /// them since that moment.
    pub fn wanted_count(&mut self, now: Moment, room: u32, waiting: usize, since: Option<Moment>) -> u32 {
        if since.is_some_and(|since| now - since > CLAIMED_EARLY) {
            self.ahead /= 2;
            return 0;
        }
        (room + self.ahead).saturating_sub(u32::try_from(waiting).unwrap_or(u32::MAX))
    }

    pub fn ask(&mut self, cx: &mut Context, count: u32, limited: Vec<Allowance<QueueId>>) {
        self.is_hinted = false;
        self.asked = Some(limited.clone());
        cx.effects.push(Effect::Store(StoreEffect::ClaimJobs { count, limited }));
    }

    /// The store has answered. `more`: it has others. `was_empty`: no run waited here, so workers may have had to wait. Returns what was allowed.
    pub fn answered(&mut self, more: bool, was_empty: bool) -> Vec<Allowance<QueueId>> {
        if more {
            self.hint();
        }
        if more && was_empty {
            self.ahead = (self.ahead * 2).clamp(1, JOBS_AHEAD_COUNT_MAX);
        }
        self.asked.take().unwrap_or_default()
    }

    /// The store could not give any.
    pub fn not_answered(&mut self) {
        self.asked = None;
    }

    /// A job goes back to the store.
    pub fn was_in_vain(&mut self) {
        self.ahead = 0;
    }
}
