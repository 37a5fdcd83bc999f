//! Supervision of all workers: the reviews of each, a reload of all applications, and the end of everything. How many workers an application
//! should have is decided in [`crew`](super::crew).
//!
//! Nothing here remembers steps. It looks at what is there and does what is missing, as often as it is called.

use std::time::Duration;

use crate::config::Config;
use crate::context::Context;
use crate::effect::{Effect, ExitReason, KillReason, ServerEffect, WorkerEffect};
use crate::fleet::code::ReloadEnd;
use crate::fleet::crew::Crew;
use crate::fleet::judgement::abandoned_max;
use crate::fleet::liveness::was_core_paused;
use crate::fleet::pool::WorkerPool;
use crate::fleet::review::{self, Finding};
use crate::fleet::roles::{PerRole, ROLES};
use crate::fleet::service::{DrainStep, Service, ServiceState};
use crate::fleet::worker::{Worker, WorkerStage};
use crate::moment::Moment;
use parkade_model::{AppId, RequestId, TableId, WorkerId};

#[derive(Debug)]
pub struct Supervisor {
    crews: Vec<Crew>,
    service: Service,
    reload: Option<JointReload>,
    /// Something has happened that requires a review of the workers.
    needs_review: bool,
    /// When the next review is due even if nothing happens.
    due: Option<Moment>,
}

/// All applications load new code. One that cannot keeps its old code.
#[derive(Debug, Default)]
struct JointReload {
    /// One of them has given up.
    is_partial: bool,
    /// Another one has been asked for meanwhile: the code may have changed since this one began.
    again: bool,
}

/// What requests, and runs of jobs, still need of workers.
#[derive(Debug)]
pub struct Demand {
    /// Of the workers of each application: those of another one are of no use to them.
    pub apps: Vec<AppDemand>,
    /// When the server stops waiting for queries and ends.
    pub queries_end: Option<Moment>,
}

#[derive(Debug)]
pub struct AppDemand {
    /// An upper bound of those that may still come to a worker of each role, now or when their waits are over.
    pub to_come: PerRole<usize>,
    /// Whether the queue for its workers of that role is not empty.
    pub is_queued: PerRole<bool>,
}

/// What the supervision of workers leads to for requests.
#[derive(Debug, PartialEq, Eq)]
pub enum Consequence {
    /// Other code of the application serves. Its table, if it is another one than before.
    NewCode(AppId, Option<TableId>),
    /// No worker will take what is queued for the application.
    NoApplication(AppId),
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
    pub fn new(config: &Config) -> Self {
        let apps = (0..).map(AppId).take(config.apps.len());
        let crews = apps.map(Crew::new).collect();
        Self { crews, service: Service::default(), reload: None, needs_review: false, due: None }
    }

    /// The workers of each application.
    pub fn crews(&self) -> &[Crew] {
        &self.crews
    }

    pub fn crew(&self, app: AppId) -> &Crew {
        &self.crews[usize::from(app.0)]
    }

    pub fn crew_mut(&mut self, app: AppId) -> &mut Crew {
        &mut self.crews[usize::from(app.0)]
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
        let crew = self.crew_mut(dead.generation.app);
        if crew.code.fail_reload(dead.generation) || drained || dead.generation != crew.code.serving() {
            return;
        }
        if crew.note_death(cx, workers, dead) {
            self.end_if_nothing_loads(cx);
        }
    }

    /// If no application loads at the very first start, no client is being served yet, and the server exits to tell the operator. It never exits
    /// after a worker of any code has loaded one: that, or new code, may be about to serve.
    fn end_if_nothing_loads(&mut self, cx: &Context) {
        let loads_nothing = self.crews.iter().all(|crew| crew.code.has_never_loaded());
        if loads_nothing && cx.config.exit_when_the_first_start_fails && self.service.is_open() {
            self.service.fail(cx.now, ExitReason::ApplicationFailed);
        }
    }

    /// A run of a job of this application is completed: workers do not die of all of them.
    pub fn note_completed_run(&mut self, app: AppId) {
        self.needs_review |= self.crew_mut(app).note_completed_run();
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
    pub fn reconcile(&mut self, cx: &mut Context, workers: &mut WorkerPool, demand: &Demand) -> Vec<Consequence> {
        match self.service.state() {
            ServiceState::Open => self.reconcile_open(cx, workers),
            ServiceState::Draining { until, .. } if until <= cx.now => vec![Consequence::GraceOver],
            ServiceState::Draining { since, until } => {
                for (crew, AppDemand { to_come, is_queued }) in self.crews.iter().zip(&demand.apps) {
                    for role in ROLES {
                        self.needs_review |=
                            crew.dismiss_the_idle(cx, workers, role, (since, until), *to_come.of(role));
                        crew.fill_for_the_queued(cx, workers, role, *is_queued.of(role));
                    }
                }
                Vec::new()
            }
            ServiceState::Ending(_) | ServiceState::Ended => Vec::new(),
        }
    }

    fn reconcile_open(&mut self, cx: &mut Context, workers: &mut WorkerPool) -> Vec<Consequence> {
        let mut consequences = Vec::new();
        for crew in &mut self.crews {
            let (reload, needs_review) = crew.reconcile(cx, workers);
            self.needs_review |= needs_review;
            if let Some(ReloadEnd::Switched(table)) = reload {
                consequences.push(Consequence::NewCode(crew.app, table));
            } else if crew.lacks_application(workers) {
                consequences.push(Consequence::NoApplication(crew.app));
            }
            if let Some(joint) = self.reload.as_mut().filter(|_| reload == Some(ReloadEnd::GivenUp)) {
                joint.is_partial = true;
            }
        }
        self.end_reload(cx);
        consequences
    }

    /// A reload is over when no application loads new code any more.
    fn end_reload(&mut self, cx: &mut Context) {
        if self.crews.iter().any(|crew| crew.code.is_reloading()) {
            return;
        }
        let Some(JointReload { is_partial, again }) = self.reload.take() else { return };
        let ended = if is_partial { &mut cx.counts.reloads_given_up } else { &mut cx.counts.reloads_done };
        *ended += 1;
        if again {
            self.reload();
        }
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

    /// When the worker is to be replaced because of its age.
    fn recycling_due(&self, worker: &Worker) -> Option<Moment> {
        self.crew(worker.generation.app).recycling_due(worker).filter(|_| self.service.is_open())
    }

    /// When a worker that is missing may be started.
    fn fill_due(&self, cx: &Context, workers: &WorkerPool, demand: &Demand) -> Option<Moment> {
        let is_open = self.service.is_open();
        let crews = self.crews.iter().zip(&demand.apps);
        crews.filter_map(|(crew, demand)| crew.fill_due(cx, workers, is_open, demand.is_queued)).min()
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
        if !self.service.is_open() {
            return;
        }
        self.needs_review = true;
        if let Some(reload) = &mut self.reload {
            reload.again = true;
        } else {
            self.reload = Some(JointReload::default());
            self.crews.iter_mut().for_each(|crew| crew.code.begin_reload());
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
        self.reload = None;
        self.crews.iter_mut().for_each(|crew| crew.stop_replacing(cx, workers));
        for worker in workers.iter().filter(|worker| worker.is_at_work()) {
            cx.effects.push(Effect::Worker(WorkerEffect::DrainWorker { worker: worker.id, within: grace }));
        }
        true
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
                worker.dismiss(cx, cx.now);
            } else if !is_leaving || last.is_at_once && !has_failed {
                worker.kill(cx, why);
            } else {
                worker.hurry(cx.now);
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
