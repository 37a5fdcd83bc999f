//! Supervision: as many workers as there should be, fresh ones for the dead, for those that have reached their limits, and for new code; and
//! the end of all of them.
//!
//! Nothing here remembers steps. It looks at what is there and does what is missing, as often as it is called.

use std::time::Duration;

use crate::context::Context;
use crate::effect::{Effect, ExitReason, KillReason, ServerEffect, WorkerEffect};
use crate::fleet::code::{Code, ReloadEnd};
use crate::fleet::judgement::abandoned_max;
use crate::fleet::liveness::was_core_paused;
use crate::fleet::pool::WorkerPool;
use crate::fleet::review::{self, Finding};
use crate::fleet::roles::{PerRole, ROLES, RoleState, workers_wanted};
use crate::fleet::service::{DrainStep, Service, ServiceState};
use crate::fleet::worker::{Worker, WorkerStage};
use crate::limits::{EARLY_DEATH, RECYCLE_GRACE};
use crate::moment::Moment;
use parkade_model::{RequestId, Role, TableId, WorkerId};

#[derive(Debug, Default)]
pub struct Supervisor {
    code: Code,
    roles: PerRole<RoleState>,
    service: Service,
    /// Something has happened that requires a review of the workers.
    needs_review: bool,
    /// When the next review is due even if nothing happens.
    due: Option<Moment>,
}

/// What requests, and runs of jobs, still need of workers.
#[derive(Debug)]
pub struct Demand {
    /// An upper bound of those that may still come to a worker of each role, now or when their waits are over.
    pub to_come: PerRole<usize>,
    /// Whether the queue for workers of that role is not empty.
    pub is_queued: PerRole<bool>,
    /// When the server stops waiting for queries and ends.
    pub queries_end: Option<Moment>,
}

/// What the supervision of workers leads to for requests.
#[derive(Debug, PartialEq, Eq)]
pub enum Consequence {
    /// Other code serves. Its table, if it is another one than before.
    NewCode(Option<TableId>),
    /// No worker will take what is queued.
    NoApplication,
    /// The grace of the drain is over.
    GraceOver,
}

/// The grace is over: which workers have a moment to end the runs that are taken from them, and which had nothing left to do.
#[derive(Debug)]
pub struct LastMoment {
    pub runs: Vec<RequestId>,
    stopping: Vec<WorkerId>,
    idle: Vec<WorkerId>,
    is_at_once: bool,
}

/// What a look at the workers takes from them.
#[derive(Debug, Default)]
pub struct Taken {
    /// Runs of jobs that are handed back.
    pub runs: Vec<RequestId>,
    /// WebSockets that are closed.
    pub sockets: Vec<RequestId>,
}

impl Supervisor {
    pub fn code(&self) -> &Code {
        &self.code
    }

    pub fn code_mut(&mut self) -> &mut Code {
        &mut self.code
    }

    pub fn service(&self) -> &Service {
        &self.service
    }

    pub fn due(&self) -> Option<Moment> {
        self.due
    }

    pub fn request_review(&mut self) {
        self.needs_review = true;
    }

    pub fn needs_review(&self) -> bool {
        self.needs_review
    }

    // Exits.

    /// A worker has ended unexpectedly.
    pub fn note_death(&mut self, cx: &mut Context, workers: &WorkerPool, dead: &Worker) {
        cx.counts.workers_died += 1;
        self.needs_review = true;
        let drained = matches!(dead.stage, WorkerStage::Draining { .. });
        if self.code.fail_reload(dead.generation) || drained || dead.generation != self.code.serving() {
            return;
        }
        match dead.readiness {
            None => self.start_failed(cx, dead),
            Some(readiness) => self.back_off(cx, workers, dead, readiness.at),
        }
    }

    /// If the very first start fails, no client is being served yet, and the server exits to tell the operator. It never exits after a worker of any
    /// code has loaded the application: new code may be about to serve. Workers of jobs start only after that.
    fn start_failed(&mut self, cx: &Context, dead: &Worker) {
        self.roles.of_mut(dead.role).back_off.failed_to_start(cx.now, dead.started);
        if dead.role == Role::Jobs {
            return;
        }
        let has_never_loaded = self.code.start_failed();
        if has_never_loaded && cx.config.exit_when_the_first_start_fails && self.service.is_open() {
            self.service.fail(cx.now, ExitReason::ApplicationFailed);
        }
    }

    /// A steady worker ends the streak: the dead one itself, or one of its role that started after the last death.
    fn back_off(&mut self, cx: &Context, workers: &WorkerPool, dead: &Worker, ready_at: Moment) {
        let is_steady = |ready_at: Moment| cx.now - ready_at >= EARLY_DEATH;
        let back_off = &mut self.roles.of_mut(dead.role).back_off;
        let another = workers.iter().any(|other| {
            other.role == dead.role
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

    /// A run of a job is completed: workers do not die of all of them.
    pub fn note_completed_run(&mut self) {
        self.needs_review |= self.roles.jobs.back_off.survived();
    }

    /// How long no job begins here because workers of jobs keep dying and none is left.
    pub fn jobs_put_off(&self, now: Moment, workers: &WorkerPool) -> Option<Duration> {
        let until = self.roles.jobs.back_off.holds_until(now)?;
        (!workers.iter().any(|worker| self.comes(worker, Role::Jobs))).then(|| until - now)
    }

    // Reconciling.

    /// Looks over the workers one by one. Returns what is taken from them.
    pub fn review_workers(&mut self, cx: &mut Context, workers: &mut WorkerPool) -> Taken {
        self.needs_review = false;
        workers.begin_review();
        if was_core_paused(cx.now, self.due) {
            workers.iter_mut().for_each(|worker| review::forgive_a_pause(worker, cx.now));
        }
        let (mut taken, mut too_slow) = (Taken::default(), Vec::new());
        let sockets_end = self.sockets_end();
        for worker in workers.iter_mut() {
            let finding = review::review(worker, cx, sockets_end);
            self.needs_review |= finding != Finding::Nothing;
            match finding {
                Finding::Nothing | Finding::Changed => {}
                Finding::StartedTooSlowly => too_slow.push(worker.id),
                Finding::RunsStopped(runs) => taken.runs.extend(runs),
                Finding::SocketsEnd(sockets) => taken.sockets.extend(sockets),
            }
        }
        for dead in too_slow.into_iter().filter_map(|id| workers.find(id)) {
            self.note_death(cx, workers, dead);
        }
        taken
    }

    /// When WebSockets are closed because the server stops. Until then applications can close them in their own way; idle ones do not hold up the stop.
    fn sockets_end(&self) -> Option<Moment> {
        match self.service.state() {
            ServiceState::Draining { since, until } => Some(since + review::notice(until - since)),
            ServiceState::Open | ServiceState::Ending(_) | ServiceState::Ended => None,
        }
    }

    /// Starts what is missing, and ends what is not needed any more.
    pub fn reconcile(&mut self, cx: &mut Context, workers: &mut WorkerPool, demand: &Demand) -> Option<Consequence> {
        match self.service.state() {
            ServiceState::Open => self.reconcile_open(cx, workers),
            ServiceState::Draining { until, .. } if until <= cx.now => Some(Consequence::GraceOver),
            ServiceState::Draining { since, .. } => {
                for role in ROLES {
                    self.dismiss_the_idle(cx, workers, role, since, *demand.to_come.of(role));
                    if self.fills(workers, role, demand) && !self.is_put_off(role, cx.now) {
                        workers.start(cx, self.code.serving(), role);
                    }
                }
                None
            }
            ServiceState::Ending(_) | ServiceState::Ended => None,
        }
    }

    fn reconcile_open(&mut self, cx: &mut Context, workers: &mut WorkerPool) -> Option<Consequence> {
        let reload = self.code.reconcile(cx, workers);
        self.needs_review |= reload.is_some();
        if matches!(reload, Some(ReloadEnd::Switched(_))) {
            self.roles = PerRole::default();
        }
        for role in ROLES {
            self.recycle(cx, workers, role);
            self.fill(cx, workers, role);
        }
        match reload {
            Some(ReloadEnd::Switched(table)) => Some(Consequence::NewCode(table)),
            Some(ReloadEnd::GivenUp) | None => self.lacks_application(workers).then_some(Consequence::NoApplication),
        }
    }

    /// Replaces one worker of a role at a time that has reached its limits. It works on until there are enough others, then it drains.
    fn recycle(&mut self, cx: &mut Context, workers: &mut WorkerPool, role: Role) {
        let serving = self.code.serving();
        let is_here = |old: &WorkerId| workers.find(*old).is_some_and(|worker| worker.generation == serving);
        let mut recycling = self.roles.of(role).recycling.filter(is_here);
        let is_ready = |worker: &Worker| worker.is_of(serving, role) && worker.is_ready();
        if recycling.is_none() && !self.code.is_reloading() {
            let is_due = |worker: &&Worker| is_ready(worker) && worker.is_to_be_recycled(cx.now);
            recycling = workers.iter().find(is_due).map(|worker| worker.id);
        }
        self.roles.of_mut(role).recycling = recycling;
        let Some(old) = recycling else { return };
        let others = workers.count_of(|worker| is_ready(worker) && worker.id != old);
        let has_enough = others >= workers_wanted(&cx.config, role, self.code.declared());
        if let Some(old) = workers.find_mut(old).filter(|worker| worker.is_ready() && has_enough) {
            cx.counts.workers_recycled += 1;
            old.drain(cx, RECYCLE_GRACE);
            self.needs_review = true;
        }
    }

    /// Starts what is missing, unless workers keep dying.
    fn fill(&mut self, cx: &mut Context, workers: &mut WorkerPool, role: Role) {
        if !self.is_put_off(role, cx.now) {
            (0..self.missing(cx, workers, role)).for_each(|_| workers.start(cx, self.code.serving(), role));
        }
    }

    fn is_put_off(&self, role: Role, now: Moment) -> bool {
        self.roles.of(role).back_off.holds_until(now).is_some()
    }

    fn missing(&self, cx: &Context, workers: &WorkerPool, role: Role) -> usize {
        workers_wanted(&cx.config, role, self.code.declared()).saturating_sub(self.present(workers, role))
    }

    /// While the server drains, a fresh worker is wanted only when somebody is queued and no other is there.
    fn fills(&self, workers: &WorkerPool, role: Role, demand: &Demand) -> bool {
        self.service.is_open() || self.present(workers, role) == 0 && *demand.is_queued.of(role)
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

    /// Decides when the workers are looked over again though nothing happens.
    pub fn schedule(&mut self, cx: &Context, workers: &WorkerPool, demand: &Demand) {
        let sockets_end = self.sockets_end();
        let due = |worker| review::due(worker, cx, self.recycling_due(worker), sockets_end);
        let one_by_one = workers.iter().filter_map(due);
        let service = match self.service.state() {
            ServiceState::Open => self.fill_due(cx, workers, demand),
            ServiceState::Draining { until, .. } => {
                Some(self.fill_due(cx, workers, demand).map_or(until, |due| due.min(until)))
            }
            ServiceState::Ending(_) => demand.queries_end,
            ServiceState::Ended => None,
        };
        self.due = one_by_one.chain(service).chain(self.abandoned_end_due(cx, workers)).min();
    }

    /// When the worker reaches the limit of its age, unless another one is being replaced: its end brings the next look.
    fn recycling_due(&self, worker: &Worker) -> Option<Moment> {
        let is_replaced = self.roles.of(worker.role).recycling.is_some() || self.code.is_reloading();
        worker.recycle.due().filter(|_| self.service.is_open() && !is_replaced)
    }

    fn fill_due(&self, cx: &Context, workers: &WorkerPool, demand: &Demand) -> Option<Moment> {
        let is_missing = |role: &Role| self.missing(cx, workers, *role) > 0 && self.fills(workers, *role, demand);
        let put_off = |role| self.roles.of(role).back_off.holds_until(cx.now);
        ROLES.into_iter().filter(is_missing).filter_map(put_off).min()
    }

    /// When ready workers that hold nothing but abandoned streams are no longer waited for.
    fn abandoned_end_due(&self, cx: &Context, workers: &WorkerPool) -> Option<Moment> {
        let ServiceState::Draining { since, .. } = self.service.state() else { return None };
        let is_abandoned =
            |worker: &Worker| worker.is_ready() && !worker.streams.is_empty() && worker.streams.are_all_abandoned();
        let due = Some(since + abandoned_max(cx)).filter(|due| *due > cx.now);
        due.filter(|_| workers.iter().any(is_abandoned))
    }

    // Reload and drain.

    /// SIGHUP.
    pub fn reload(&mut self) {
        if self.service.is_open() {
            self.needs_review = true;
            self.code.request_reload();
        }
    }

    /// SIGTERM. Workers hear of it before anybody else does; a second one can only shorten the grace. Whether this is the first.
    pub fn drain(&mut self, cx: &mut Context, workers: &mut WorkerPool, grace: Duration) -> bool {
        self.needs_review = true;
        match self.service.drain(cx.now, grace) {
            DrainStep::Begins => {}
            DrainStep::AtOnce => {
                for worker in workers.iter_mut() {
                    worker.kill(cx, KillReason::GraceOver);
                }
                return false;
            }
            DrainStep::GoesOn | DrainStep::IsOver => return false,
        }
        cx.effects.push(Effect::Server(ServerEffect::StopAccepting));
        self.code.stop_reload(cx, workers);
        for worker in workers.iter().filter(|worker| worker.is_at_work()) {
            cx.effects.push(Effect::Worker(WorkerEffect::DrainWorker { worker: worker.id, within: grace }));
        }
        true
    }

    /// Dismisses the workers that will not be needed, so that their hooks run while others are still at work.
    fn dismiss_the_idle(
        &mut self,
        cx: &mut Context,
        workers: &mut WorkerPool,
        role: Role,
        since: Moment,
        mut needed: usize,
    ) {
        let abandoned_max = abandoned_max(cx);
        for worker in workers.iter_mut().filter(|worker| worker.role == role) {
            let has_drained = worker.has_drained(cx.now, since, abandoned_max);
            match worker.stage {
                WorkerStage::Starting { .. } if needed == 0 => {
                    self.needs_review |= worker.kill(cx, KillReason::NotNeeded);
                }
                WorkerStage::Ready if has_drained && needed == 0 => worker.dismiss(cx),
                WorkerStage::Ready if has_drained => needed -= 1,
                WorkerStage::Starting { .. }
                | WorkerStage::Ready
                | WorkerStage::Draining { .. }
                | WorkerStage::Leaving { .. }
                | WorkerStage::Killed => {}
            }
        }
    }

    /// The grace is over: runs of jobs are handed back, and their code has a moment to end, unless the server is to stop at once.
    pub fn stop_runs(&mut self, cx: &Context, workers: &mut WorkerPool) -> LastMoment {
        let moment = match self.service.state() {
            ServiceState::Draining { since, until } => cx.config.kill_grace.min(until - since),
            ServiceState::Open | ServiceState::Ending(_) | ServiceState::Ended => Duration::ZERO,
        };
        let is_at_once = moment.is_zero();
        let mut last = LastMoment { runs: Vec::new(), stopping: Vec::new(), idle: Vec::new(), is_at_once };
        for worker in workers.iter_mut().filter(|worker| worker.is_at_work()) {
            let runs = review::stop_runs(worker, cx, moment);
            if !runs.is_empty() {
                last.stopping.push(worker.id);
                last.runs.extend(runs);
            } else if worker.streams.is_empty() && !is_at_once {
                last.idle.push(worker.id);
            }
        }
        self.needs_review |= !last.stopping.is_empty();
        last
    }

    /// Everything has been cancelled: all workers end. `were_left`: requests had not ended by themselves.
    pub fn end_workers(&mut self, cx: &mut Context, workers: &mut WorkerPool, last: &LastMoment, were_left: bool) {
        let has_failed = self.service.has_failed();
        let why = if has_failed { KillReason::NotNeeded } else { KillReason::GraceOver };
        for worker in workers.iter_mut().filter(|worker| !last.stopping.contains(&worker.id)) {
            let is_leaving = matches!(worker.stage, WorkerStage::Leaving { .. });
            if last.idle.contains(&worker.id) {
                worker.dismiss(cx);
            } else if !is_leaving || last.is_at_once && !has_failed {
                // The end of one that leaves is bounded.
                worker.kill(cx, why);
            }
        }
        self.service.force(were_left || !last.stopping.is_empty());
        self.needs_review = true;
    }

    /// Whether the server ends now that nothing else is left, and why.
    pub fn exit(&mut self, workers: &WorkerPool) -> Option<ExitReason> {
        if workers.is_empty() { self.service.end() } else { None }
    }
}
