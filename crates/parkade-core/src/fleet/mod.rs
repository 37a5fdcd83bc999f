//! The workers: who is alive, who gets work, who is recycled; reloads and the drain.
//!
//! Nothing outside this folder sees a worker. Events of workers come in, and what follows for requests is returned: those that have
//! lost their worker, those that go to another one, runs of jobs that are handed back.
//!
//! | question | where |
//! |---|---|
//! | all workers: what they say, what they hold, which one a request goes to | `pool` |
//! | one worker, and what it holds | `worker`, `held_streams`, `held_stream`, `begun_streams` |
//! | how fast it answers; how fast the queue moves | `response_time`, `queue_rate` |
//! | whether its loop turns; what is due for it | `liveness`, `review` |
//! | cancelled requests that it still holds | `abandoned`, `judgement` |
//! | how many workers an application should have; deaths, recycling | `crew`, `back_off`, `recycle`, `roles` |
//! | whether its jobs are run, and how many could begin | `crew_jobs` |
//! | all of them: reviews, the drain | `supervisor`, `service` |
//! | which code serves; a reload | `code` |
//! | what can be seen | `status` |

mod abandoned;
mod back_off;
mod begun_streams;
mod code;
mod crew;
mod crew_jobs;
mod held_stream;
mod held_streams;
mod judgement;
mod liveness;
mod pool;
mod queue_rate;
mod recycle;
mod response_time;
mod review;
mod roles;
mod service;
mod status;
mod supervisor;
mod worker;

use std::time::Duration;

use crate::config::Config;
use crate::context::Context;
use crate::effect::{Effect, ExitReason, KillReason, WorkerEffect};
use crate::event::Manner;
use crate::limits::HOOKS_MAX;
use crate::moment::Moment;
use crate::refused::Refused;
use crate::structures::chain::Place;
use crew::Crew;
use crew_jobs::CrewJobs;
use held_stream::HeldStream;
use parkade_model::{AppId, DeclaredJobs, QueueId, Refusal, RequestId, Role, TableId, WorkerId};
use pool::WorkerPool;
use queue_rate::{QueueRate, Servers};
use recycle::RecycleLimits;
use service::ServiceState;
use supervisor::Supervisor;
use worker::{Readiness, Worker, WorkerStage};

pub use abandoned::Abandonment;
pub use pool::DueWork;
pub use roles::PerRole;
pub use status::FleetStatus;
pub use supervisor::{AppDemand, Consequence, Demand, LastMoment, Taken};

/// What concerns the workers as a whole: their number, their code, their end.
#[derive(Debug)]
pub struct Fleet {
    /// What happens to a single worker.
    pub workers: WorkerPool,
    supervisor: Supervisor,
}

/// The requests of an application that wait together: for plain functions, or for coroutines.
#[derive(Debug, Clone, Copy)]
pub struct QueueLine {
    pub app: AppId,
    pub concurrent: bool,
}

/// Where a unit of work goes.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    pub worker: WorkerId,
    /// The routes of its code.
    pub table: Option<TableId>,
}

/// What a worker leaves behind when it is gone.
#[derive(Debug, Default)]
pub struct Orphans {
    /// Their code may have begun, or waits in the worker, so they end with it.
    pub lost: Vec<RequestId>,
    /// It had not touched them: they go to another worker. In their order.
    pub untouched: Vec<RequestId>,
    /// These were over already.
    pub abandoned: Vec<RequestId>,
    /// Abandoned runs of jobs had kept places in these.
    pub queues: Vec<QueueId>,
}

/// Workers that come and go.
impl Fleet {
    pub fn new(config: &Config) -> Self {
        Self { workers: WorkerPool::default(), supervisor: Supervisor::new(config) }
    }

    /// `READY`. Returns the table in which requests of its application are looked up from now on, if that is another one than before.
    pub fn worker_ready(
        &mut self,
        cx: &mut Context,
        worker: WorkerId,
        table: TableId,
        credit: i64,
        manner: Manner,
        jobs: DeclaredJobs,
    ) -> Option<(AppId, TableId)> {
        let Some(starting) = self.workers.find_mut(worker).filter(|worker| worker.is_starting()) else {
            cx.counts.refused_events.add(Refused::OutOfTurn);
            return None;
        };
        starting.stage = WorkerStage::Ready;
        starting.readiness = Some(Readiness { at: cx.now, table });
        starting.streams.open(manner, credit);
        starting.recycle = RecycleLimits::draw(cx);
        starting.liveness.begin(cx.now + cx.config.ping_interval);
        self.supervisor.request_review();
        let generation = starting.generation;
        let crew = self.supervisor.crew_mut(generation.app);
        if !crew.code.worker_ready(generation, jobs) {
            return None;
        }
        crew.queue_rates.staffed(cx.now);
        let is_new = crew.code.make_current(table);
        if let ServiceState::Draining { until, .. } = self.supervisor.service().state() {
            cx.effects.push(Effect::Worker(WorkerEffect::DrainWorker { worker, within: until - cx.now }));
        }
        is_new.then_some((generation.app, table))
    }

    /// It cannot load the application, and will exit by itself.
    pub fn worker_failed(&mut self, cx: &mut Context, worker: WorkerId) {
        let Some(starting) = self.workers.find_mut(worker).filter(|worker| worker.is_starting()) else {
            return cx.counts.refused_events.add(Refused::OutOfTurn);
        };
        starting.stage = WorkerStage::Leaving { until: cx.now + HOOKS_MAX };
        self.note_death(cx, worker);
    }

    /// It said `GOODBYE`, and will exit by itself: a fresh one takes its place at once. One that leaves work that it has begun, or has never done any,
    /// counts as dead: otherwise workers that leave as soon as they are ready would be started without a pause. What it holds is resolved when it has
    /// exited.
    pub fn worker_left(&mut self, cx: &mut Context, worker: WorkerId) {
        let Some(leaver) = self.workers.find_mut(worker).filter(|worker| worker.is_at_work()) else { return };
        leaver.streams.note_leaving();
        if leaver.streams.are_untouched() && leaver.streams.closed() > 0 {
            cx.counts.workers_recycled += 1;
        } else {
            self.note_death(cx, worker);
        }
        self.workers.holder(worker).stage = WorkerStage::Leaving { until: cx.now + HOOKS_MAX };
        self.supervisor.request_review();
    }

    /// The process is gone, and its link is read to the end.
    pub fn worker_exited(&mut self, cx: &mut Context, worker: WorkerId) -> Orphans {
        let Some(mut dead) = self.workers.remove(worker) else {
            cx.counts.refused_events.add(Refused::Unknown);
            return Orphans::default();
        };
        if dead.is_starting() || dead.is_at_work() {
            self.supervisor.note_death(cx, &self.workers, &dead);
        }
        self.supervisor.request_review();
        orphans(cx, &mut dead)
    }

    /// Its link is closed: nothing more comes from it.
    pub fn worker_violated(&mut self, cx: &mut Context, worker: WorkerId) -> Orphans {
        let Some(violator) = self.workers.find(worker) else {
            cx.counts.refused_events.add(Refused::Unknown);
            return Orphans::default();
        };
        if violator.is_starting() || violator.is_at_work() {
            self.note_death(cx, worker);
        }
        let violator = self.workers.holder(worker);
        if violator.kill(cx, KillReason::Violation) {
            self.supervisor.request_review();
        }
        orphans(cx, violator)
    }

    fn note_death(&mut self, cx: &mut Context, worker: WorkerId) {
        if let Some(dead) = self.workers.find(worker) {
            self.supervisor.note_death(cx, &self.workers, dead);
        }
    }
}

/// What goes to workers, and comes back.
impl Fleet {
    /// The worker of the application's serving code for a queued request, if one can take it.
    pub fn pick(&self, now: Moment, app: AppId, role: Role, queued: DueWork<'_>) -> Option<Candidate> {
        let worker = self.workers.pick(now, self.crew(app).code.serving(), role, queued)?;
        Some(Candidate { worker: worker.id, table: worker.table() })
    }

    /// The closing frame of a stream has come, and its credit is the worker's again. Something else may [begin](WorkerPool::begin_next) by that. Returns the queue in
    /// which an abandoned run of a job had kept its place.
    pub fn release(&mut self, cx: &mut Context, worker: WorkerId, place: Place) -> Option<QueueId> {
        let now = cx.now;
        let worker = self.workers.holder(worker);
        let stream = worker.streams.release(now, place);
        let crew = self.supervisor.crew_mut(worker.generation.app);
        let counts = worker.role == Role::Requests && worker.generation == crew.code.serving();
        if let Some(took) = worker.streams.took(now, &stream).filter(|_| counts) {
            // A worker without a loop takes from both lines, one at a time.
            let lines =
                if worker.streams.is_concurrent() { [Some(!stream.occupies), None] } else { [Some(false), Some(true)] };
            lines.into_iter().flatten().for_each(|concurrent| crew.queue_rates.of_mut(concurrent).answered(took));
        }
        if !worker.is_ready() || worker.is_to_be_recycled(now) || !self.supervisor.service().is_open() {
            self.supervisor.request_review();
        }
        clear_alarm(cx, &stream)
    }
}

/// Supervision.
impl Fleet {
    pub fn request_review(&mut self) {
        self.supervisor.request_review();
    }

    /// A request or a query has ended: the last one ends a drain.
    pub fn note_end(&mut self) {
        if !self.is_open() {
            self.supervisor.request_review();
        }
    }

    /// A run of a job of this application is completed: workers do not die of all of them.
    pub fn note_completed_run(&mut self, app: AppId) {
        self.supervisor.note_completed_run(app);
    }

    pub fn needs_review(&self) -> bool {
        self.supervisor.needs_review() || self.workers.needs_review()
    }

    /// When the workers must be looked over though nothing happens.
    pub fn review_due(&self) -> Option<Moment> {
        self.supervisor.due()
    }

    /// Looks over the workers one by one. Returns what is taken from them.
    pub fn review_workers(&mut self, cx: &mut Context) -> Taken {
        self.supervisor.review_workers(cx, &mut self.workers)
    }

    /// Starts the workers that are missing, and ends those that are not needed any more.
    pub fn reconcile(&mut self, cx: &mut Context, demand: &Demand) -> Vec<Consequence> {
        let consequences = self.supervisor.reconcile(cx, &mut self.workers, demand);
        for consequence in &consequences {
            if let Consequence::NewCode(app, _) = consequence {
                self.supervisor.crew_mut(*app).queue_rates.renewed(cx.now);
            }
        }
        consequences
    }

    /// Decides when the workers are looked over again.
    pub fn schedule(&mut self, cx: &Context, demand: &Demand) {
        self.supervisor.schedule(cx, &self.workers, demand);
    }

    /// SIGHUP.
    pub fn reload(&mut self) {
        self.supervisor.reload();
    }

    /// SIGTERM. Whether it is the first one.
    pub fn drain(&mut self, cx: &mut Context, grace: Duration) -> bool {
        self.supervisor.drain(cx, &mut self.workers, grace)
    }

    /// The grace of the drain is over: runs of jobs are taken from their workers.
    pub fn stop_runs(&mut self, cx: &Context) -> LastMoment {
        self.supervisor.stop_runs(cx, &mut self.workers)
    }

    /// Everything has been cancelled: all workers end. `were_left`: requests had not ended by themselves.
    pub fn end_workers(&mut self, cx: &mut Context, last: &LastMoment, were_left: bool) {
        self.supervisor.end_workers(cx, &mut self.workers, last, were_left);
    }

    /// Whether the server ends now that no request and no query is left, and why.
    pub fn exit(&mut self) -> Option<ExitReason> {
        self.supervisor.exit(&self.workers)
    }
}

/// Questions.
impl Fleet {
    /// Whether the server serves: it has not been asked to end, nor failed to start.
    pub fn is_open(&self) -> bool {
        self.supervisor.service().is_open()
    }

    /// Why nothing new is taken in.
    pub fn refusal(&self) -> Option<Refusal> {
        self.supervisor.service().refusal()
    }

    /// All applications.
    pub fn apps(&self) -> impl Iterator<Item = AppId> + use<> {
        (0..).map(AppId).take(self.supervisor.crews().len())
    }

    /// Whether no worker will take what is queued for the application, because it does not start.
    pub fn lacks_application(&self, app: AppId) -> bool {
        self.crew(app).lacks_application(&self.workers)
    }

    /// The route table of the application's code that serves.
    pub fn table(&self, app: AppId) -> Option<TableId> {
        self.crew(app).code.table()
    }

    /// Of that code. A reload makes the next.
    pub fn generation(&self, app: AppId) -> u32 {
        self.crew(app).code.serving().number
    }

    /// Whether it is a current one, or a worker runs by it.
    pub fn uses_table(&self, table: TableId) -> bool {
        self.supervisor.crews().iter().any(|crew| crew.code.table() == Some(table))
            || self.workers.iter().any(|worker| worker.table() == Some(table))
    }

    /// The generation of a worker that starts, if it serves, or lets others serve, as soon as it is ready and declares these jobs.
    pub fn generation_served_with(&self, config: &Config, worker: WorkerId, jobs: DeclaredJobs) -> Option<u32> {
        let starting = self.workers.find(worker).filter(|worker| worker.is_starting())?;
        let code = &self.crew(starting.generation.app).code;
        let serves = code.serves_with(config, &self.workers, starting, jobs, self.is_open());
        serves.then_some(starting.generation.number)
    }

    /// Whether a new request would find a worker, for one application at least; and every other one has had its start.
    pub fn is_ready(&self) -> bool {
        let has_worker = |crew: &Crew| self.workers.count_of_ready(crew.code.serving(), Role::Requests) > 0;
        self.is_open() && self.have_been_tried() && self.supervisor.crews().iter().any(has_worker)
    }

    /// Whether every application has had its start: a worker has loaded it, or could not.
    pub fn have_been_tried(&self) -> bool {
        let has_started = |crew: &Crew| crew.code.table().is_some() || crew.code.fails_to_start();
        self.supervisor.crews().iter().all(has_started)
    }

    /// What can be seen of the workers and their code.
    pub fn status(&self, now: Moment) -> FleetStatus {
        status::status(&self.workers, &self.supervisor, now)
    }

    /// How it stands with the jobs of the application.
    pub fn jobs(&self, app: AppId) -> CrewJobs<'_> {
        CrewJobs::of(self.crew(app), &self.workers)
    }

    /// The earliest time at which a request that joins a line of the application now, after those `ahead`, would be given to a worker.
    pub fn soonest(&self, now: Moment, line: QueueLine, ahead: usize) -> Option<Duration> {
        let (rate, servers) = self.line(now, line)?;
        rate.soonest(now, ahead, servers)
    }

    /// Whether that is later than in `patience`.
    pub fn is_too_slow(&self, patience: Duration, now: Moment, line: QueueLine, ahead: usize) -> bool {
        self.line(now, line).is_some_and(|(rate, servers)| rate.exceeds(patience, now, ahead, servers))
    }

    /// Every request passes here: workers are counted only when there is a line.
    fn line(&self, now: Moment, line: QueueLine) -> Option<(&QueueRate, Servers)> {
        let crew = self.crew(line.app);
        let rate = Some(crew.queue_rates.of(line.concurrent)).filter(|rate| rate.has_line())?;
        Some((rate, self.workers.servers(now, crew.code.serving(), line.concurrent)))
    }

    /// A request of that line has been given to a worker.
    pub fn note_start(&mut self, now: Moment, line: QueueLine) {
        self.supervisor.crew_mut(line.app).queue_rates.of_mut(line.concurrent).started(now);
    }

    /// All requests in that line that workers could take have been given to them.
    pub fn note_queue(&mut self, now: Moment, line: QueueLine, is_empty: bool) {
        self.supervisor.crew_mut(line.app).queue_rates.of_mut(line.concurrent).settled(now, is_empty);
    }

    fn crew(&self, app: AppId) -> &Crew {
        self.supervisor.crew(app)
    }
}

/// Takes everything from a worker that is gone.
fn orphans(cx: &mut Context, dead: &mut Worker) -> Orphans {
    let mut orphans = Orphans::default();
    for stream in dead.streams.take_all() {
        if stream.abandoned.is_some() {
            orphans.abandoned.push(stream.request);
            orphans.queues.extend(clear_alarm(cx, &stream));
        } else if stream.begun.is_some() {
            orphans.lost.push(stream.request);
        } else {
            orphans.untouched.push(stream.request);
        }
    }
    orphans.lost.extend(dead.streams.awaiting());
    orphans
}

/// An abandoned stream is over. Returns the queue in which it had kept its place.
fn clear_alarm(cx: &mut Context, stream: &HeldStream) -> Option<QueueId> {
    let abandoned = stream.abandoned?;
    if let Some(alarm) = abandoned.alarm {
        cx.timers.clear(alarm);
    }
    abandoned.queue
}
