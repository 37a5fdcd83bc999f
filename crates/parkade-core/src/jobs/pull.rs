//! How many jobs are claimed, and when: as many as workers can begin at once, and some ahead as long as workers turn out to wait for the store.

use std::collections::BTreeMap;

use crate::bell::Bell;
use crate::context::Context;
use crate::effect::{Effect, StoreEffect};
use crate::limits::{CLAIMED_EARLY, CLAIMED_IN_VAIN, JOBS_AHEAD_COUNT_MAX};
use crate::moment::Moment;
use crate::structures::timers::Alarm;
use parkade_model::{Allowance, AppId, QueueId};

#[derive(Debug, Default)]
pub struct Pull {
    /// What the claim that is on its way was allowed. The store is asked once at a time.
    asked: Option<Vec<Allowance<QueueId>>>,
    /// The last claim left out queues because of jobs of these applications: how many of each waited here then.
    crowding: Vec<(AppId, usize)>,
    /// There may be jobs that are ready.
    is_hinted: bool,
    /// When there may be some again.
    alarm: Option<Alarm>,
    /// When the first of those that wait here has waited too long.
    in_vain: Option<Alarm>,
    /// How many of each application are claimed before a worker is free for them.
    ahead: BTreeMap<AppId, u32>,
}

/// Queues from which nothing is claimed now: too many of their jobs wait here for busy workers, and a job of another application would stand behind
/// these. Where applications have queues of their own, none keeps the jobs of another one waiting.
#[derive(Debug, Default)]
pub struct LeftOut {
    pub queues: Vec<QueueId>,
    /// Whose jobs these are, and how many of them wait here.
    pub crowding: Vec<(AppId, usize)>,
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

    /// How many jobs are to be claimed for an application. Its workers have `room` for so many; of those that were claimed before, `waiting` have not begun, the first of
    /// them since that moment.
    pub fn wanted_count(&mut self, now: Moment, app: AppId, room: u32, waiting: usize, since: Option<Moment>) -> u32 {
        let ahead = self.ahead.entry(app).or_default();
        if since.is_some_and(|since| now - since > CLAIMED_EARLY) {
            *ahead /= 2;
            return 0;
        }
        (room + *ahead).saturating_sub(u32::try_from(waiting).unwrap_or(u32::MAX))
    }

    /// So many jobs of an application wait here now. If fewer than when queues were left out, more of these may be claimed.
    pub fn note_waiting(&mut self, waiting: impl Fn(AppId) -> usize) {
        if self.crowding.iter().any(|(app, before)| waiting(*app) < *before) {
            self.crowding.clear();
            self.hint();
        }
    }

    pub fn ask(&mut self, cx: &mut Context, count: u32, allowed: Vec<Allowance<QueueId>>, left_out: &LeftOut) {
        let nothing = |queue: &QueueId| Allowance { queue: *queue, count: 0, places: None, rate: None };
        let limited = allowed.iter().copied().chain(left_out.queues.iter().map(nothing)).collect();
        self.is_hinted = false;
        self.asked = Some(allowed);
        self.crowding.clone_from(&left_out.crowding);
        cx.effects.push(Effect::Store(StoreEffect::ClaimJobs { count, limited }));
    }

    /// The store has answered. `more`: it has others. `empty`: applications of which no run waited here, so workers may have had to wait. Returns what
    /// was allowed.
    pub fn answered(&mut self, more: bool, empty: impl Iterator<Item = AppId>) -> Vec<Allowance<QueueId>> {
        if more {
            self.hint();
            for app in empty {
                let ahead = self.ahead.entry(app).or_default();
                *ahead = (*ahead * 2).clamp(1, JOBS_AHEAD_COUNT_MAX);
            }
        }
        self.asked.take().unwrap_or_default()
    }

    /// The store could not give any.
    pub fn not_answered(&mut self) {
        self.asked = None;
    }

    /// A job of this application goes back to the store.
    pub fn was_in_vain(&mut self, app: AppId) {
        self.ahead.remove(&app);
    }
}
