//! Jobs between the application, the store and the core. What is enqueued goes to the store; what the store gives goes
//! to workers; clients and operators are told what becomes of jobs. The core decides all of it.
//!
//! | question | where |
//! |---|---|
//! | what an application declares; recurring jobs | `declarations`, `recurring`, `timetable` |
//! | opening the store, also later; commands and replies | `opening`, `store_link`, `questions` |
//! | what the log says of commands that are refused | `refusals` |
//! | runs on workers, and how they end | `runs` |
//! | `/jobs/<id>` for clients | `address`, `answers`, `response` |
//! | clients and functions that wait for a job, or follow it | `observers`, `results`, `followers` |
//! | operators | `operators`, `cancelling` |
//! | jobs of transactions | `transaction_jobs` |

mod address;
mod answers;
mod cancelling;
mod context;
mod declarations;
mod followers;
mod observers;
mod opening;
mod operators;
mod questions;
mod queues;
mod recurring;
mod refusals;
mod response;
mod results;
mod runs;
mod store_link;
mod timetable;
mod transaction_jobs;

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use parkade_core::{
    Allowance, CancelEffect, CancelEvent, ClaimedJob, Event, JobCaller, JobLookup, Moment, PressureEvent, QueueBounds,
    QueueId, RecurringEffect, RecurringEvent, RequestId, StoreFault, Verdict, WorkerId,
};
use parkade_jobs::{AttemptEnd, Claimed, Command, Fault, NewJob, Reply, Wall};
use parkade_model::{AppId, Correlation, JobId, PayloadId};
use parkade_wire::{Application, Enqueued};
use tokio::time::Instant;

use crate::admin::{JobAnswer, JobAsk};
use crate::clients::exchange::{Exchange, JobAsked};
use crate::poll::{NextTurn, Pollable};
use crate::routing::mounts::Mounts;
use crate::store::{Store, wall};
pub use declarations::AppPlace;
use declarations::{Declarations, DeclaredQueue, JobDeclarations};
use observers::Observers;
use operators::{Back, Operators};
use questions::{Enqueuer, Question};
use queues::QueueNames;
use recurring::RecurringJobs;
use runs::{AttemptRecord, Runs};
use store_link::OpenResult;

pub use address::destination;
pub use cancelling::CancelFailed;
pub use context::JobContext;
pub use opening::WaitingWorker;
pub use store_link::{StoreLink, Waited};
pub use transaction_jobs::{TransactionJobs, unstored};

/// If a stopping server's store takes longer than this to record how runs ended, the next start rescues them.
const SETTLE_MAX: Duration = Duration::from_secs(5);
/// A pause of all runs is logged if at least this much of it is left.
const PAUSE_LOGGED_MIN: Duration = Duration::from_secs(1);

pub struct Jobs {
    pub store: StoreLink,
    pub runs: Runs,
    pub observers: Observers,
    mounts: Mounts,
    declarations: Declarations,
    queues: QueueNames,
    recurring: RecurringJobs,
    operators: Operators,
    /// Jobs were found unknown, perhaps by code that no longer serves.
    are_unknown: bool,
    /// The current pause of all runs has been logged.
    is_paused: bool,
}

impl Jobs {
    /// `deadline`: the maximum time of an attempt if the application declares none.
    /// `places`: of the applications.
    pub fn new(store: Store, mounts: &Mounts, places: Vec<AppPlace>, deadline: Option<Duration>) -> Self {
        Self {
            store: StoreLink::new(store),
            runs: Runs::default(),
            observers: Observers::default(),
            mounts: mounts.clone(),
            declarations: Declarations::new(places, deadline),
            queues: QueueNames::default(),
            recurring: RecurringJobs::default(),
            operators: Operators::default(),
            are_unknown: false,
            is_paused: false,
        }
    }

    // The event loop.

    /// After the replies of a turn. Returns the workers that have waited for the store.
    pub fn end_turn(&mut self, cx: &mut JobContext<'_>, opened: Option<OpenResult>) -> Option<Waited> {
        let news = self.store.take_news();
        if news.has_jobs {
            cx.tell(Event::JobsReady { after: None });
        }
        for job in news.ended {
            observers::ended_elsewhere(cx, &mut self.store, job);
        }
        for job in news.cancelled {
            cx.tell(Event::JobCancelled { job });
        }
        self.observers.answer_unasked(cx, &self.store);
        // Last: requests that asked before the store was open have had their answer.
        let had_failed = self.store.has_failed();
        let waited = self.store.hear_opened(cx, opened?);
        if had_failed && !self.store.has_failed() {
            tracing::info!("the job store is open: accepting and running jobs again");
            self.recognise();
        }
        Some(waited)
    }

    /// About once a second: repeats what the store could not answer, and has it count its jobs.
    pub fn tick(&mut self, cx: &mut JobContext<'_>) {
        if self.store.is_open() {
            self.check_clock(cx);
        } else if self.store.has_failed() {
            let _ = self.store.ensure_open(cx);
        }
        self.queues.forget(|queue| cx.core.knows_queue(queue));
        self.log_pause(cx);
        if std::mem::take(&mut self.are_unknown) {
            self.recognise();
        }
        self.observers.ask_again(cx, &mut self.store);
        self.store.count_jobs();
    }

    /// A step of a stopping server: has the store record how the last runs ended, then closes it. Returns whether that
    /// is done. `began`: the time of the first step.
    pub fn settle(&mut self, began: Instant) -> bool {
        for (request, record) in self.runs.take_all_unrecorded() {
            self.record(request, record);
        }
        let is_settled = self.store.is_settled() && self.runs.are_recorded();
        let waits = !is_settled && began.elapsed() < SETTLE_MAX;
        !waits && self.store.end()
    }

    fn check_clock(&mut self, cx: &mut JobContext<'_>) {
        if let Some(jump) = self.store.clock_jump(cx.now) {
            tracing::info!(
                "the wall clock has jumped by {jump} ms; checking again which delayed and recurring jobs are due"
            );
            cx.tell(Event::JobsReady { after: None });
            cx.tell(Event::Recurring(RecurringEvent::ClockJumped));
        }
    }

    /// Logs each pause of all runs once. Short ones are over before anyone could look.
    fn log_pause(&mut self, cx: &JobContext<'_>) {
        let left = cx.core.jobs_put_off(cx.now).filter(|left| *left >= PAUSE_LOGGED_MIN);
        if let Some(left) = left
            && !self.is_paused
        {
            tracing::warn!(
                "workers keep dying while they run jobs; no job will be started for the next {:.1} s",
                left.as_secs_f64()
            );
        }
        self.is_paused = left.is_some();
    }

    /// Handles a reply of the store. If it could not cancel a job, the reason has to go with the event of the core.
    pub fn hear(&mut self, cx: &mut JobContext<'_>, reply: Reply) -> Option<CancelFailed> {
        match self.store.take_question(&reply, cx.now)? {
            Question::Enqueue { id, request, by } => enqueued(cx, id, request, by, reply),
            Question::Claim => self.claimed(cx, reply),
            Question::End { request, record } => self.recorded(cx, request, *record, reply),
            Question::LookUp { request, caller } => {
                self.observers.found(cx, (&self.runs, &self.declarations), (request, caller), reply);
            }
            Question::EndedElsewhere { job } => self.observers.ending_found(cx, job, reply),
            Question::Announce { job, request } => self.observers.announced(cx, &self.runs, (job, request), reply),
            Question::Cancel { job } => return cancelling::cancelled(cx, &mut self.observers, job, reply),
            Question::Cancelled { job } => return cancelling::found(cx, job, reply),
            Question::Operator(back) => operators::pass_on(back, reply),
            Question::Retry(back) => {
                hint(cx, &reply);
                operators::pass_on(back, reply);
            }
            Question::Drop { job, back } => {
                if has_changed(&reply) {
                    observers::dropped(cx, job);
                }
                operators::pass_on(back, reply);
            }
            Question::Recognise => hint(cx, &reply),
            Question::Schedules => cx.tell(Event::Recurring(recurring::schedules(reply))),
            Question::Recur { name, at, .. } => {
                hint(cx, &reply);
                cx.tell(Event::Recurring(recurring::recorded(name, at, &reply)));
            }
            Question::Count => {
                if let Reply::Counted { counts, .. } = reply {
                    self.store.set_counts(counts);
                }
            }
        }
        None
    }

    // What the application declares.

    /// What an application declares about jobs. If that is anything, the store is opened.
    pub fn read(
        &mut self,
        cx: &mut JobContext<'_>,
        app: AppId,
        application: &mut Application,
    ) -> Result<JobDeclarations, Unfit> {
        let folder = self.declarations.folder(app);
        let declarations = JobDeclarations::read(app, folder, application).map_err(Unfit::Alone)?;
        let recurring = || self.recurring.taken(app, &declarations.recurring);
        if let Some((name, other)) = self.declarations.taken(&declarations).or_else(recurring) {
            return Err(Unfit::Together(twice_declared(name, self.mounts.name(other))));
        }
        if !declarations.are_empty() && !self.store.is_open() {
            self.store.open(cx).map_err(|error| Unfit::Alone(error.to_string()))?;
        }
        Ok(declarations)
    }

    /// For `parkade serve --check`: whether it could be served next to those that were checked before.
    pub fn check(&mut self, cx: &mut JobContext<'_>, app: AppId, application: &mut Application) -> Result<(), String> {
        let mut declarations = self.read(cx, app, application).map_err(|unfit| unfit.why().to_owned())?;
        self.declarations.replace(1, &mut declarations);
        self.recurring.replace(cx, app, declarations.recurring);
        Ok(())
    }

    /// A worker is about to be ready. If its code serves from now on, these declarations take effect.
    pub fn take_over(&mut self, cx: &mut JobContext<'_>, worker: WorkerId, mut new: JobDeclarations) {
        let Some(generation) = cx.core.generation_served_with(worker, new.declared()) else { return };
        let may_know_more = self.declarations.replace(generation, &mut new);
        let bounds = |DeclaredQueue { name, concurrency, rate }| QueueBounds {
            queue: self.queues.number(&name),
            concurrency,
            rate,
        };
        let queues = self.declarations.queues().into_iter().map(bounds).collect();
        cx.tell(Event::QueuesConfigured { queues });
        if may_know_more {
            self.recognise();
        }
        self.recurring.replace(cx, new.app, new.recurring);
    }

    /// Jobs that were unknown become ready if they are known now.
    fn recognise(&mut self) {
        if self.store.is_open() {
            let names = self.declarations.names().map(Into::into).collect();
            self.store.ask(Question::Recognise, |tag| Command::Recognise { tag, names });
        }
    }

    // Enqueueing.

    /// `ENQUEUE`.
    pub fn worker_enqueued(
        &mut self,
        cx: &mut JobContext<'_>,
        worker: WorkerId,
        request: Option<RequestId>,
        job: Enqueued,
    ) {
        let request = request.map(|request| (request, cx.core.awaits_write(worker, request)));
        if let Some((request, true)) = request {
            cx.tell(Event::JobEnqueued { request });
        }
        if let Err(fault) = self.store.ensure_open(cx) {
            if let Some((request, true)) = request {
                cx.tell(Event::JobStored { request, fault: Some(store_fault(&fault)) });
            }
            return;
        }
        let correlation = request.map(|(request, _)| cx.clients.correlation(request));
        let job = self.new_job(job, correlation);
        self.enqueue_for(cx, Some(worker), request, job);
    }

    /// Gives the job to the store. It is durable only when the store has replied. `request`: for which it is enqueued,
    /// and whether that waits for it. `worker`: none if a script enqueues it.
    pub fn enqueue_for(
        &mut self,
        cx: &mut JobContext<'_>,
        worker: Option<WorkerId>,
        request: Option<(RequestId, bool)>,
        job: NewJob,
    ) {
        let (id, bytes) = (job.id, job.arguments.len());
        let by = worker.map_or(Enqueuer::Script, |worker| Enqueuer::Worker { worker, bytes });
        self.store.enqueue(Question::Enqueue { id, request, by }, job);
        if let Some(worker) = worker {
            cx.tell(Event::Pressure(PressureEvent::WriteBegan { worker, bytes }));
        }
    }

    /// `correlation`: that of the request that enqueues it, if there is one.
    pub fn new_job(&self, job: Enqueued, correlation: Option<Correlation>) -> NewJob {
        self.declarations.new_job(job, correlation, self.store.time())
    }

    // Runs.

    pub fn claim(&mut self, cx: &mut JobContext<'_>, count: u32, limited: &[Allowance<QueueId>]) {
        if !self.store.is_open() {
            return cx.tell(Event::JobsNotClaimed);
        }
        let named = |&Allowance { queue, count, places, rate }: &Allowance<QueueId>| Allowance {
            queue: self.queues.name(queue).into(),
            count,
            places,
            rate,
        };
        let limited = limited.iter().map(named).collect();
        self.store.ask(Question::Claim, |tag| Command::Claim { tag, count, limited });
    }

    fn claimed(&mut self, cx: &mut JobContext<'_>, reply: Reply) {
        let Reply::Claimed { jobs, more, next, .. } = reply else { return cx.tell(Event::JobsNotClaimed) };
        let jobs = jobs.into_iter().map(|job| self.begin_run(cx, job)).collect();
        cx.tell(Event::JobsClaimed { jobs, more, next: next.map(until) });
    }

    fn begin_run(&mut self, cx: &mut JobContext<'_>, mut job: Claimed) -> ClaimedJob {
        let request = cx.clients.http.insert_clientless();
        cx.traces.job_claimed(request, &mut job, cx.now);
        let queue = self.queues.number(&job.queue);
        let policy = self.declarations.policy(&job.name);
        let claimed = ClaimedJob { request, job: job.id, attempt: job.attempt, queue, policy };
        cx.clients.exchanges.insert(request, Exchange::of_run(job.correlation.clone()));
        self.runs.begin(request, job, policy.and_then(|policy| policy.deadline));
        claimed
    }

    /// The run is over: the store records it.
    pub fn end_run(&mut self, request: RequestId, verdict: Verdict, now: Moment) {
        let record = self.runs.end(request, verdict, now, |name| self.declarations.have(name));
        if let Some(record) = record {
            self.record(request, record);
        }
    }

    /// Has the store record what it could not record before.
    pub fn record_again(&mut self, request: RequestId) {
        if let Some(record) = self.runs.take_unrecorded(request) {
            self.record(request, record);
        }
    }

    fn record(&mut self, request: RequestId, record: AttemptRecord) {
        let AttemptRecord { job, claim, end: verdict, is_again } = record.clone();
        let question = Question::End { request, record: Box::new(record) };
        self.store.ask(question, |tag| Command::End { tag, job, claim, verdict, is_again });
    }

    fn recorded(&mut self, cx: &mut JobContext<'_>, request: RequestId, record: AttemptRecord, reply: Reply) {
        let Reply::AttemptEnded { ended, is_stale, due, .. } = reply else {
            self.runs.keep_unrecorded(request, record);
            return cx.tell(Event::RunNotNoted { request });
        };
        cx.tell(Event::RunNoted { request, is_stale });
        if is_stale {
            tracing::warn!(job = %record.job, "a job run finished after it had been marked lost; its outcome is ignored");
        }
        match record.end {
            AttemptEnd::Unknown => self.are_unknown = true,
            // It is ready for other workers: those of the new code, during a reload.
            AttemptEnd::HandedBack => cx.tell(Event::JobsReady { after: None }),
            _ => {}
        }
        if let Some(due) = due {
            cx.tell(Event::JobsReady { after: Some(until(due)) });
        }
        if let Some(ended) = ended {
            self.observers.ended(cx, ended);
        }
    }

    /// `PROGRESS`.
    pub fn worker_progressed(
        &mut self,
        cx: &mut JobContext<'_>,
        request: RequestId,
        fraction: Option<f64>,
        text: &str,
    ) {
        if let Some((job, state)) = self.runs.keep_progress(request, fraction, text) {
            followers::tell(cx, job, &state);
        }
    }

    // Jobs that others wait for.

    /// Asks the store for the state of a job.
    pub fn look_up(&mut self, request: RequestId, job: JobId, caller: JobCaller) {
        self.observers.look_up(&mut self.store, request, job, caller);
    }

    /// The response to a client that asked for the state of a job, or its result.
    pub fn answer(&mut self, cx: &mut JobContext<'_>, request: RequestId, job: JobId, standing: JobLookup) {
        match standing {
            JobLookup::Ended => answers::result(cx, request, job, &mut self.observers.results),
            JobLookup::Pending => {
                let (state, location) =
                    (self.runs.state_of(job), self.declarations.location(cx.core.app_of(request), job));
                answers::pending(cx.clients, request, job, state, location);
            }
            JobLookup::Missing => answers::missing(cx.clients, request),
        }
    }

    /// The response to a client that wanted to cancel a job.
    pub fn answer_cancel(
        &mut self,
        cx: &mut JobContext<'_>,
        request: RequestId,
        (job, standing): (JobId, JobLookup),
        will_end: bool,
    ) {
        match standing {
            JobLookup::Ended => answers::too_late_to_cancel(cx, request, job, &self.observers.results),
            JobLookup::Pending if !will_end => answers::not_cancellable(cx.clients, request),
            JobLookup::Pending | JobLookup::Missing => self.answer(cx, request, job, standing),
        }
    }

    /// A stream of events has been opened. If it is that of a job, it begins with the current state: nobody knows when
    /// that will change.
    pub fn stream_opened(&mut self, cx: &JobContext<'_>, request: RequestId) {
        if let Some(JobAsked::Events(job)) = cx.clients.exchanges.peek(request).map(Exchange::job_asked) {
            observers::announce(&mut self.store, job, request);
        }
    }

    // Cancelling.

    /// `take_fault`: the payload that says why the store refused.
    pub fn cancel(&mut self, effect: CancelEffect, take_fault: impl FnOnce(PayloadId) -> Option<Fault>) {
        match effect {
            CancelEffect::Ask { job } => {
                self.store.ask(Question::Cancel { job }, |tag| Command::Cancel { tag, job });
            }
            CancelEffect::LookUp { job } => self.store.find(Question::Cancelled { job }, job),
            CancelEffect::Tell { operators, outcome } => self.operators.answer(operators, outcome, take_fault),
        }
    }

    // Recurring jobs.

    pub fn recur(&mut self, cx: &mut JobContext<'_>, effect: RecurringEffect) {
        self.recurring.carry_out(cx, &mut self.store, &self.declarations, effect);
    }

    // Operators.

    /// Answers an operator or a script; nearly always with the store's reply.
    pub fn answer_operator(&mut self, cx: &mut JobContext<'_>, ask: JobAsk, back: Back) {
        if let JobAsk::EnqueueKnown(job) = &ask
            && self.declarations.lack(&job.name)
        {
            let names = self.declarations.names().map(ToOwned::to_owned).collect();
            return operators::send(back, JobAnswer::Undeclared(names));
        }
        if ask == JobAsk::Place {
            return operators::send(back, operators::place(self.store.within()));
        }
        if !self.store.takes_commands()
            && let Some(answer) = self.answer_without_store(cx, &ask)
        {
            return operators::send(back, answer);
        }
        match ask {
            JobAsk::Enqueue(job) | JobAsk::EnqueueKnown(job) => {
                let job = self.new_job(*job, None);
                self.store.enqueue(Question::Enqueue { id: job.id, request: None, by: Enqueuer::Operator(back) }, job);
            }
            JobAsk::Cancel(job) => {
                let by = self.operators.wait(back);
                cx.tell(Event::Cancel(CancelEvent::Wanted { job, by }));
            }
            JobAsk::Retry(job) => self.store.ask(Question::Retry(back), |tag| Command::Retry { tag, job }),
            JobAsk::Drop(job) => self.store.ask(Question::Drop { job, back }, |tag| Command::Drop { tag, job }),
            JobAsk::Show(job) => self.store.find(Question::Operator(back), job),
            JobAsk::List(filter) => self.store.ask(Question::Operator(back), |tag| Command::List { tag, filter }),
            JobAsk::Place => {}
        }
    }

    /// The store does not take commands. Only an enqueued job opens it: if there had been any jobs, it would have been
    /// opened at the start.
    fn answer_without_store(&mut self, cx: &mut JobContext<'_>, ask: &JobAsk) -> Option<JobAnswer> {
        match ask {
            JobAsk::Enqueue(_) | JobAsk::EnqueueKnown(_) | JobAsk::Place => {}
            _ if self.store.has_failed() => {}
            JobAsk::List(_) => return Some(JobAnswer::Listed(Vec::new())),
            JobAsk::Show(_) => return Some(JobAnswer::Shown(None)),
            JobAsk::Cancel(_) | JobAsk::Retry(_) | JobAsk::Drop(_) => return Some(JobAnswer::Changed(false)),
        }
        self.store.ensure_open(cx).err().map(JobAnswer::Refused)
    }
}

impl Pollable for Jobs {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.store.poll_ready(cx)
    }

    fn next_turn(&self) -> NextTurn {
        if self.observers.has_unasked() { NextTurn::AtOnce } else { self.store.next_turn() }
    }

    fn look(&mut self) {
        self.store.look();
    }
}

/// What an application declares cannot be served.
#[derive(Debug)]
pub enum Unfit {
    /// Whatever else is served.
    Alone(String),
    /// Next to the other applications.
    Together(String),
}

impl Unfit {
    pub fn why(&self) -> &str {
        let (Self::Alone(why) | Self::Together(why)) = self;
        why
    }
}

/// Jobs are shared, and a name says which application runs one.
fn twice_declared(name: &str, mount: Option<&str>) -> String {
    let mount = mount.unwrap_or("/");
    format!(
        "the application at {mount} also declares a job {name:?}, with another function. The applications of a server \
         share their jobs: rename one of them, or import the same function in both"
    )
}

/// The store has the job, or could not store it.
fn enqueued(cx: &mut JobContext<'_>, id: JobId, request: Option<(RequestId, bool)>, by: Enqueuer, reply: Reply) {
    let fault = match &reply {
        Reply::Enqueued { job, due, .. } => {
            if let Some((request, _)) = request {
                cx.clients.exchanges.note_stored(request, id, *job);
            }
            cx.tell(Event::JobsReady { after: due.map(until) });
            None
        }
        Reply::Refused { fault, .. } => Some(store_fault(fault)),
        _ => Some(StoreFault::Unavailable),
    };
    if let Some((request, true)) = request {
        cx.tell(Event::JobStored { request, fault });
    }
    match by {
        Enqueuer::Worker { worker, bytes } => {
            cx.tell(Event::Pressure(PressureEvent::WriteEnded { worker, bytes }));
        }
        Enqueuer::Script => {}
        Enqueuer::Operator(back) => operators::pass_on(back, reply),
    }
}

/// Jobs may have become ready.
fn hint(cx: &mut JobContext<'_>, reply: &Reply) {
    if has_changed(reply) {
        cx.tell(Event::JobsReady { after: None });
    }
}

fn has_changed(reply: &Reply) -> bool {
    matches!(reply, Reply::Changed { changed: true, .. })
}

/// The time until then.
fn until(due: Wall) -> Duration {
    Duration::from_millis(u64::try_from(due.0 - wall().0).unwrap_or(0))
}

fn store_fault(fault: &Fault) -> StoreFault {
    match fault {
        Fault::Full(_) => StoreFault::Full,
        Fault::Unavailable(_) | Fault::QueueFull | Fault::Failed(_) => StoreFault::Unavailable,
    }
}
