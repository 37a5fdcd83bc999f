//! The workers of one application: as many as there should be, and fresh ones for the dead and for those that have reached their limits. What
//! happens to the workers of one application changes nothing for those of another.
//!
//! Nothing here remembers steps. It looks at what is there and does what is missing, as often as it is called.

use std::time::Duration;

use crate::context::Context;
use crate::effect::KillReason;
use crate::fleet::code::{Code, ReloadEnd};
use crate::fleet::judgement::abandoned_max;
use crate::fleet::pool::WorkerPool;
use crate::fleet::queue_rate::QueueRates;
use crate::fleet::roles::{PerRole, ROLES, RoleState, workers_wanted};
use crate::fleet::worker::{Worker, WorkerStage};
use crate::limits::{EARLY_DEATH, RECYCLE_GRACE};
use crate::moment::Moment;
use parkade_model::{AppId, Role, WorkerId};

#[derive(Debug)]
pub struct Crew {
    pub app: AppId,
    pub code: Code,
    /// How fast its lines of the queue move.
    pub queue_rates: QueueRates,
    roles: PerRole<RoleState>,
}

impl Crew {
    pub fn new(app: AppId) -> Self {
        Self { app, code: Code::new(app), queue_rates: QueueRates::default(), roles: PerRole::default() }
    }

    // Exits.

    /// A worker of it has ended unexpectedly. Returns whether no worker of any code has ever loaded the application.
    pub fn note_death(&mut self, cx: &Context, workers: &WorkerPool, dead: &Worker) -> bool {
        match dead.readiness {
            None => {
                self.roles.of_mut(dead.role).back_off.failed_to_start(cx.now, dead.started);
                // Workers of jobs start only after the application has been loaded.
                dead.role == Role::Requests && self.code.start_failed()
            }
            Some(readiness) => {
                self.back_off(cx, workers, dead, readiness.at);
                false
            }
        }
    }

    /// A steady worker ends the streak: the dead one itself, or one of its role that started after the last death.
    fn back_off(&mut self, cx: &Context, workers: &WorkerPool, dead: &Worker, ready_at: Moment) {
        let is_steady = |ready_at: Moment| cx.now - ready_at >= EARLY_DEATH;
        let app = self.app;
        let back_off = &mut self.roles.of_mut(dead.role).back_off;
        let another = workers.iter().any(|other| {
            other.role == dead.role
                && other.generation.app == app
                && back_off.is_after_the_last_death(other.started)
                && other.readiness.is_some_and(|readiness| is_steady(readiness.at))
        });
        if another || is_steady(ready_at) {
            back_off.reset();
        }
        if !is_steady(ready_at) {
            back_off.died_early(cx.now, dead.started);
        }
    }

    /// A run of a job is completed: workers do not die of all of them. Returns whether that changes anything.
    pub fn note_completed_run(&mut self) -> bool {
        self.roles.jobs.back_off.survived()
    }

    /// How long no job of it begins because workers of jobs keep dying and none is left.
    pub fn jobs_put_off(&self, now: Moment, workers: &WorkerPool) -> Option<Duration> {
        let until = self.roles.jobs.back_off.holds_until(now)?;
        (!workers.iter().any(|worker| self.comes(worker, Role::Jobs))).then(|| until - now)
    }

    // Reconciling.

    /// Starts new code if that was asked for, and whatever is missing. Returns how a reload of it ended, and whether the workers have to be
    /// looked over again.
    pub fn reconcile(&mut self, cx: &mut Context, workers: &mut WorkerPool) -> (Option<ReloadEnd>, bool) {
        let reload = self.code.reconcile(cx, workers);
        let mut needs_review = reload.is_some();
        if matches!(reload, Some(ReloadEnd::Switched(_))) {
            self.roles = PerRole::default();
        }
        for role in ROLES {
            needs_review |= self.recycle(cx, workers, role);
            self.fill(cx, workers, role);
        }
        (reload, needs_review)
    }

    /// Replaces one worker of a role at a time that has reached its limits. It works on until there are enough others, then it drains. Returns
    /// whether it drains now.
    fn recycle(&mut self, cx: &mut Context, workers: &mut WorkerPool, role: Role) -> bool {
        let serving = self.code.serving();
        let is_here = |old: &WorkerId| workers.find(*old).is_some_and(|worker| worker.generation == serving);
        let mut recycling = self.roles.of(role).recycling.filter(is_here);
        let is_ready = |worker: &Worker| worker.is_of(serving, role) && worker.is_ready();
        if recycling.is_none() && !self.code.is_reloading() {
            let is_due = |worker: &&Worker| is_ready(worker) && worker.is_to_be_recycled(cx.now);
            recycling = workers.iter().find(is_due).map(|worker| worker.id);
        }
        self.roles.of_mut(role).recycling = recycling;
        let Some(old) = recycling else { return false };
        let others = workers.count_of(|worker| is_ready(worker) && worker.id != old);
        let has_enough = others >= workers_wanted(&cx.config, self.app, role, self.code.declared());
        let Some(old) = workers.find_mut(old).filter(|worker| worker.is_ready() && has_enough) else { return false };
        cx.counts.workers_recycled += 1;
        old.drain(cx, RECYCLE_GRACE);
        true
    }

    /// Starts what is missing, unless workers keep dying.
    fn fill(&self, cx: &mut Context, workers: &mut WorkerPool, role: Role) {
        if !self.is_put_off(role, cx.now) {
            (0..self.missing(cx, workers, role)).for_each(|_| workers.start(cx, self.code.serving(), role));
        }
    }

    /// The server drains: no worker is replaced any more, so one that was about to be counts like any other.
    pub fn stop_replacing(&mut self, cx: &mut Context, workers: &mut WorkerPool) {
        self.code.stop_reload(cx, workers);
        for role in ROLES {
            self.roles.of_mut(role).recycling = None;
        }
    }

    /// While the server drains, a fresh worker is wanted only when somebody is queued and no other is there.
    pub fn fill_for_the_queued(&self, cx: &mut Context, workers: &mut WorkerPool, role: Role, is_queued: bool) {
        if is_queued && self.present(workers, role) == 0 && !self.is_put_off(role, cx.now) {
            workers.start(cx, self.code.serving(), role);
        }
    }

    /// While the server drains: dismisses the workers that will not be needed, so that their hooks run while others are still at work. `needed`:
    /// how many at most. Returns whether the workers have to be looked over again.
    pub fn dismiss_the_idle(
        &self,
        cx: &mut Context,
        workers: &mut WorkerPool,
        role: Role,
        (since, until): (Moment, Moment),
        mut needed: usize,
    ) -> bool {
        let abandoned_max = abandoned_max(cx);
        let mut needs_review = false;
        let app = self.app;
        for worker in workers.iter_mut().filter(|worker| worker.role == role && worker.generation.app == app) {
            let has_drained = worker.has_drained(cx.now, since, abandoned_max);
            match worker.stage {
                WorkerStage::Starting { .. } if needed == 0 => {
                    needs_review |= worker.kill(cx, KillReason::NotNeeded);
                }
                WorkerStage::Ready if has_drained && needed == 0 => worker.dismiss(cx, until),
                WorkerStage::Ready if has_drained => needed -= 1,
                WorkerStage::Starting { .. }
                | WorkerStage::Ready
                | WorkerStage::Draining { .. }
                | WorkerStage::Leaving { .. }
                | WorkerStage::Killed => {}
            }
        }
        needs_review
    }

    /// When a worker that is missing may be started, if none may before. While the server drains, it is missing only if somebody is queued and no
    /// other is there.
    pub fn fill_due(
        &self,
        cx: &Context,
        workers: &WorkerPool,
        is_open: bool,
        is_queued: PerRole<bool>,
    ) -> Option<Moment> {
        let fills = |role: Role| is_open || self.present(workers, role) == 0 && *is_queued.of(role);
        let is_missing = |role: &Role| self.missing(cx, workers, *role) > 0 && fills(*role);
        let put_off = |role| self.roles.of(role).back_off.holds_until(cx.now);
        ROLES.into_iter().filter(is_missing).filter_map(put_off).min()
    }

    fn is_put_off(&self, role: Role, now: Moment) -> bool {
        self.roles.of(role).back_off.holds_until(now).is_some()
    }

    fn missing(&self, cx: &Context, workers: &WorkerPool, role: Role) -> usize {
        let wanted = workers_wanted(&cx.config, self.app, role, self.code.declared());
        wanted.saturating_sub(self.present(workers, role))
    }

    /// Workers of the serving code that are there or coming, without the one that is being replaced.
    fn present(&self, workers: &WorkerPool, role: Role) -> usize {
        let recycling = self.roles.of(role).recycling;
        workers.count_of(|worker| self.comes(worker, role) && Some(worker.id) != recycling)
    }

    /// Whether this is a worker of the serving code that is there or coming.
    fn comes(&self, worker: &Worker, role: Role) -> bool {
        worker.is_of(self.code.serving(), role) && (worker.is_ready() || worker.is_starting())
    }

    /// Whether the application does not start, and no worker is left: requests are better refused at once than at their deadlines.
    pub fn lacks_application(&self, workers: &WorkerPool) -> bool {
        self.code.fails_to_start() && !workers.iter().any(|worker| self.comes(worker, Role::Requests))
    }

    /// When the worker reaches the limit of its age, unless another one is being replaced: its end brings the next look.
    pub fn recycling_due(&self, worker: &Worker) -> Option<Moment> {
        let is_replaced = self.roles.of(worker.role).recycling.is_some() || self.code.is_reloading();
        worker.recycle.due().filter(|_| !is_replaced)
    }
}
