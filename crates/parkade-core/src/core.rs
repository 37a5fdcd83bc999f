//! The core: events in, effects out.

use std::time::Duration;

use crate::barrier::Output;
use crate::bell::Bell;
use crate::config::Config;
use crate::context::Context;
use crate::effect::{Effect, Outcome, WorkerEffect};
use crate::event::Event;
use crate::fleet::{Fleet, QueueLine};
use crate::jobs::{Jobs, PressureEvent, Reading, Recurring, RecurringEffect};
use crate::moment::Moment;
use crate::report::counts::Counts;
use crate::report::reporting;
use crate::report::status::{LivesStatus, QueryStatus, RequestStatus, Status};
use crate::requests::{
    self, Components, Happening, Requests, State, branching, hearing, runs, scripts, socket_end, supervision, waking,
};
use crate::waits::Waits;
use parkade_model::{
    AppId, ChannelName, Cursor, DeclaredJobs, GroupEnd, JobId, QueryId, QueueId, Reason, Refusal, RequestId, Role,
    TableId, WorkerId,
};

/// Makes every decision. It gets the time as an argument, and never waits, reads or writes.
#[derive(Debug)]
pub struct Core {
    cx: Context,
    requests: Requests,
    /// What requests wait for.
    waits: Waits,
    jobs: Jobs,
    fleet: Fleet,
}

impl Core {
    #[must_use]
    pub fn new(config: Config) -> Self {
        let cx = Context::new(config);
        Self {
            requests: Requests::new(cx.config.apps.len()),
            waits: Waits::new(&cx.config),
            jobs: Jobs::default(),
            fleet: Fleet::new(&cx.config),
            cx,
        }
    }

    /// Starts the workers.
    pub fn begin(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        self.within(now, effects, |_, with| with.fleet.request_review());
    }

    /// Decides what follows from `event`. The effects are to be carried out in their order, before the next event.
    pub fn handle(&mut self, now: Moment, event: Event, effects: &mut Vec<Effect>) {
        match event {
            Event::Pressure(event) => self.press(now, event, effects),
            Event::BodyProgressed { request } => {
                self.within(now, effects, |requests, with| requests.feed(with.cx, request));
            }
            Event::JobsReady { after: None } if self.jobs.pull.is_hinted() => {}
            event => self.within(now, effects, |requests, with| take(requests, with, event)),
        }
    }

    /// Two of these come with each job. Hardly any changes whether a worker is heard, and nothing else follows from them.
    fn press(&mut self, now: Moment, event: PressureEvent, effects: &mut Vec<Effect>) {
        if let Some(reading) = self.jobs.pressure.handle(self.cx.now.max(now), event) {
            self.within(now, effects, |_, with| read(with, reading));
        }
    }

    /// When [`Event::Tick`] must come at the latest.
    #[must_use]
    pub fn next_due(&self) -> Option<Moment> {
        let recurring = self.jobs.recurring.next_due().filter(|_| self.fleet.is_open());
        let dues = [
            self.cx.timers.next_due(),
            self.waits.channels.sweep_due(),
            self.fleet.review_due(),
            recurring,
            self.jobs.pressure.next_due(),
            self.jobs.next_due(),
        ];
        dues.into_iter().flatten().min()
    }

    /// The route table in which new requests for this application are looked up: that of the code that serves. `None` before a worker is ready.
    #[must_use]
    pub fn table(&self, app: AppId) -> Option<TableId> {
        self.fleet.table(app)
    }

    /// Whether requests can still be looked up in this table: it is a current one, or a worker runs by it.
    #[must_use]
    pub fn uses_table(&self, table: TableId) -> bool {
        self.fleet.uses_table(table)
    }

    /// The generation of the code that serves, if this worker, which declares these jobs, serves by it or lets the others do so as soon as it is
    /// ready; else what it tells of its application is not in force.
    #[must_use]
    pub fn generation_served_with(&self, worker: WorkerId, jobs: DeclaredJobs) -> Option<u32> {
        self.fleet.generation_served_with(&self.cx.config, worker, jobs)
    }

    /// The generation of the application's code that serves.
    #[must_use]
    pub fn generation(&self, app: AppId) -> u32 {
        self.fleet.generation(app)
    }

    /// The request that this is a branch of, or itself.
    #[must_use]
    pub fn owner_of(&self, request: RequestId) -> RequestId {
        self.waits.branches.owner_of(request)
    }

    /// What a worker is for.
    #[must_use]
    pub fn role(&self, worker: WorkerId) -> Option<Role> {
        self.fleet.workers.role(worker)
    }

    /// Whose code a worker runs.
    #[must_use]
    pub fn app(&self, worker: WorkerId) -> Option<AppId> {
        self.fleet.workers.app(worker)
    }

    /// The application of a request that has not ended.
    #[must_use]
    pub fn app_of(&self, request: RequestId) -> AppId {
        self.requests.app(request)
    }

    /// Where a channel stands; `None` when nobody waits on it and it holds nothing.
    #[must_use]
    pub fn cursor(&self, channel: &ChannelName) -> Option<Cursor> {
        self.waits.channels.cursor(channel)
    }

    /// How long a request for this application that arrives now would be queued, at the soonest, in the slower line; `None` when nothing is known of
    /// that.
    #[must_use]
    pub fn queue_wait(&self, now: Moment, app: AppId) -> Option<Duration> {
        reporting::queue_wait_of(now, app, &self.requests, &self.fleet)
    }

    /// The same for plain functions, or for coroutines.
    #[must_use]
    pub fn queue_wait_of(&self, now: Moment, app: AppId, concurrent: bool) -> Option<Duration> {
        self.requests.soonest(&self.fleet, now, QueueLine { app, concurrent })
    }

    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.cx.counts
    }

    #[must_use]
    pub fn config(&self) -> &Config {
        &self.cx.config
    }

    /// In which state a request is; `None` when there is no such request any more.
    #[must_use]
    pub fn state(&self, request: RequestId) -> Option<State> {
        self.requests.state(request)
    }

    /// Who waits for a query, and whether it was cancelled; `None` when there is no such query.
    #[must_use]
    pub fn query(&self, query: QueryId) -> Option<QueryStatus> {
        self.waits.queries.status(query)
    }

    /// Whether somebody waits for it here.
    #[must_use]
    pub fn is_watched(&self, job: JobId) -> bool {
        self.waits.jobs.is_watched(job)
    }

    /// Whether somebody here is still to be told how the job ended.
    #[must_use]
    pub fn holds_result(&self, job: JobId) -> bool {
        self.waits.jobs.is_result_held(job)
    }

    /// Whether the request waits for what this worker writes on behalf of it: then [`Event::JobEnqueued`] follows, and [`Event::JobStored`] for each.
    /// Its worker holds it, or has a coroutine of it that waits, next to which another task may write. Whatever is written for a request that is
    /// somewhere else, or has ended, is stored all the same; nobody waits for it.
    #[must_use]
    pub fn awaits_write(&self, worker: WorkerId, request: RequestId) -> bool {
        self.requests.is_with(worker, request)
    }

    /// Whether this has to wait until the writes of the request are durable: then [`Event::OutputHeld`] follows. What a worker says of a request
    /// that it does not hold is late, and waits for nothing.
    #[must_use]
    pub fn holds_output(&self, worker: WorkerId, request: RequestId, output: Output) -> bool {
        self.waits.barrier.holds(request, output) && self.requests.place_in(worker, request).is_some()
    }

    /// What has come of the waits of a group, each with its place; and when the group is over.
    #[must_use]
    pub fn group(&self, request: RequestId) -> Option<(GroupEnd, Vec<(usize, Outcome)>)> {
        Some((self.waits.groups.until(request)?, self.waits.groups.outcomes(request)))
    }

    /// How long no job begins here because workers of jobs keep dying and none is left.
    #[must_use]
    pub fn jobs_put_off(&self, now: Moment) -> Option<Duration> {
        reporting::jobs_put_off(now, &self.fleet)
    }

    /// Whether the queue has bounds, or jobs of it run.
    #[must_use]
    pub fn knows_queue(&self, queue: QueueId) -> bool {
        self.jobs.queues.knows(queue)
    }

    /// Whether this core runs that job, or is about to.
    #[must_use]
    pub fn runs_job(&self, job: JobId) -> bool {
        self.jobs.run_of(job).is_some()
    }

    /// Looks at every request: for pages that people read, not for each request.
    #[must_use]
    pub fn status(&self, now: Moment) -> Status {
        let Self { cx, requests, waits, jobs, fleet } = self;
        reporting::status(now, cx, (requests, waits), jobs, fleet)
    }

    /// How many there are in each state, requests and runs of jobs.
    #[must_use]
    pub fn lives(&self) -> LivesStatus {
        self.requests.count_by_state(&self.waits)
    }

    /// The oldest requests that are queued, that run, and of each kind of wait, and runs of jobs: at most so many of each. Looks at every
    /// request: for pages that people read.
    #[must_use]
    pub fn oldest(&self, now: Moment, count_max: usize) -> Vec<RequestStatus> {
        requests::oldest(&self.requests, &self.waits, &self.jobs, (now, count_max))
    }

    /// Every query that a database has been asked for and that has not ended.
    pub fn queries(&self) -> impl Iterator<Item = QueryStatus> {
        self.waits.queries.statuses()
    }

    /// Whether a new request would find a worker, for one application at least; and every other one has had its start.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.fleet.is_ready()
    }

    /// Whether the server stops.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        !self.fleet.is_open()
    }

    /// Whether no request is on its way, cancelled ones in workers included.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.requests.count() == 0 && self.waits.queries.count() == 0 && self.fleet.workers.is_idle()
    }

    /// Every event begins by knowing the moment, and ends by giving workers what is queued and telling what was gathered.
    fn within(
        &mut self,
        now: Moment,
        effects: &mut Vec<Effect>,
        happens: impl FnOnce(&mut Requests, &mut Components<'_>),
    ) {
        self.cx.now = self.cx.now.max(now);
        std::mem::swap(&mut self.cx.effects, effects);
        let Self { cx, requests, waits, jobs, fleet } = self;
        let with = &mut Components { cx, waits, jobs, fleet };
        happens(requests, with);
        settle(requests, with);
        std::mem::swap(&mut self.cx.effects, effects);
    }
}

/// Carries an event to whom it concerns, and to requests what follows from it.
fn take(requests: &mut Requests, with: &mut Components<'_>, event: Event) {
    match event {
        Event::Arrived { request, app, destination } => requests.arrive(with, request, app, destination),
        Event::RouteFound { request, destination } => requests.turn(with, request, Happening::Routed(destination)),
        Event::Served { request } => requests.turn(with, request, Happening::Served),
        Event::Left { request } => requests.turn(with, request, Happening::Cancelled(Reason::ClientLeft)),
        Event::ScriptCame { script } => scripts::begin(requests, with, script),
        Event::ScriptAsked { script, wait, payload } => requests.turn(with, script, Happening::Asked(wait, payload)),
        Event::Said { socket, call } => hearing::begin(requests, with, socket, call),
        Event::CancelledByOperator { request } => requests.cancel_by_operator(with, request),
        Event::WorkerReady { worker, table, credit, manner, jobs } => {
            if let Some((app, table)) = with.fleet.worker_ready(with.cx, worker, table, credit, manner, jobs) {
                requests.reroute(with, app, table);
            }
        }
        Event::WorkerFailed { worker } => with.fleet.worker_failed(with.cx, worker),
        Event::WorkerLeft { worker } => with.fleet.worker_left(with.cx, worker),
        Event::WorkerExited { worker } => supervision::worker_exited(requests, with, worker),
        Event::WorkerViolated { worker } => supervision::worker_violated(requests, with, worker),
        Event::Credit { worker, delta } => {
            with.fleet.workers.credit(with.cx, worker, delta);
            requests.begin_next(with.cx, with.fleet, worker);
        }
        Event::Began { worker, request } => {
            if with.fleet.workers.begin(with.cx, worker, (request, requests.place_in(worker, request))) {
                requests.begin_code(with.cx, request);
            }
        }
        Event::Pong { worker, token } => with.fleet.workers.pong(with.cx, worker, token),
        // `Core::handle` has these.
        Event::Pressure(_) | Event::BodyProgressed { .. } => {}
        Event::Measured { worker, resident_bytes } => with.fleet.workers.measure(with.cx, worker, resident_bytes),
        Event::Answered { worker, request, payload, extent } => {
            requests.frame(with, worker, request, Happening::Answered(payload, extent));
        }
        Event::AnswerEnded { worker, request, trailers } => {
            requests.frame(with, worker, request, Happening::AnswerEnded(trailers));
        }
        Event::SocketClosed { request } => requests.turn(with, request, Happening::SocketClosed(None)),
        Event::Errored { worker, request, error } => requests.frame(with, worker, request, Happening::Errored(error)),
        Event::Parked { worker, request, wait, then, payload } => {
            requests.frame(with, worker, request, Happening::Parked(wait, then, payload));
        }
        Event::Branched { worker, owner, branch, wait, payload } => {
            branching::begin(requests, with, (worker, owner), branch, (wait, payload));
        }
        Event::Joined { owner, member, wait, payload } => {
            branching::join(requests, with, owner, member, (wait, payload));
        }
        Event::Unparked { worker, request } => requests.unpark(with, worker, request),
        Event::QueryBegan { query } => waking::begin_rows(requests, with, query),
        Event::QueryEnded { query, completed, bytes } => waking::end_query(requests, with, query, completed, bytes),
        Event::FileBegan { request } => requests.turn(with, request, Happening::ContentBegan),
        Event::FileEnded { request, end } => waking::end_file(requests, with, request, end),
        Event::QueryCancelledByOperator { query } => waking::cancel_query(requests, with, query),
        Event::JobsReady { after } => runs::expect(with, with.cx.now + after.unwrap_or_default()),
        Event::JobsClaimed { jobs, more, next } => runs::claimed(requests, with, &jobs, more, next),
        Event::JobsNotClaimed => runs::not_claimed(requests, with),
        Event::QueuesConfigured { queues } => {
            with.jobs.queues.configure(&queues);
            with.jobs.pull.hint();
        }
        Event::RunNoted { request, is_stale } => {
            let decided = with.jobs.run_noted(with.cx, request, is_stale);
            runs::carry_out(requests, with, decided);
        }
        Event::RunNotNoted { request } => with.jobs.run_not_noted(with.cx, request),
        Event::Cancel(event) => {
            let decided = with.jobs.cancel(with.cx, event);
            runs::carry_out(requests, with, decided);
        }
        Event::Recurring(event) => recur(with, |recurring, now, effects| recurring.handle(now, event, effects)),
        Event::Commit(event) => waking::commit(requests, with, event),
        Event::JobEnqueued { request } => requests.write(with, request),
        Event::JobStored { request, fault } => requests.written(with, request, fault.map(Refusal::from)),
        Event::OutputHeld { worker, request, output } => requests.hold_output(with, worker, request, output),
        Event::JobReturned { worker, request } => requests.frame(with, worker, request, Happening::JobReturned),
        Event::JobEnded { job } => waking::end_job(requests, with, job),
        Event::JobDropped { job } => waking::drop_job(requests, with, job),
        Event::JobFound { request, standing } => waking::find_job(requests, with, request, standing),
        Event::JobNotLookedUp { request } => waking::miss_job(requests, with, request),
        Event::JobGuarded { request, route, concurrent } => {
            if with.waits.jobs.guarded(with.cx, request) {
                requests.turn(with, request, Happening::Guarded { route, concurrent });
            }
        }
        Event::JobCancelled { job } => runs::cancel(requests, with, job),
        Event::Published { channel, message, bytes, by } => {
            waking::publish(requests, with, &channel, (message, bytes), by);
        }
        Event::PublishedNothing { by } => waking::hold_against(requests, with, by, Refusal::BadAnswer),
        Event::ChannelConfigured { pattern, limits } => with.waits.channels.configure(with.cx.now, &pattern, limits),
        Event::MessagesLost { channel } => with.waits.channels.lose(with.cx, &channel),
        Event::ChannelEnded { channel } => waking::end_streams(requests, with, &channel),
        Event::Tick => tick(requests, with),
        Event::Reload => with.fleet.reload(),
        Event::Drain { grace } => supervision::drain(requests, with, grace),
        Event::Arriving { count } => supervision::note_arriving(requests, with, count),
    }
}

fn tick(requests: &mut Requests, with: &mut Components<'_>) {
    with.waits.channels.sweep(with.cx.now);
    while let Some(bell) = with.cx.timers.ring(with.cx.now) {
        match bell {
            Bell::Life(request) => requests.turn(with, request, Happening::Due),
            Bell::Abandoned(worker, place) => with.fleet.workers.abandoned_due(with.cx, worker, place),
            Bell::KeptResult(query) => with.waits.queries.forget_kept(query),
            Bell::JobsReady => with.jobs.pull.note_alarm(),
            Bell::ClaimedInVain => runs::hand_back_late(requests, with),
            Bell::QueriesOver => waking::end_queries(requests, with),
        }
    }
    recur(with, Recurring::look);
    let decided = with.jobs.look(with.cx);
    runs::carry_out(requests, with, decided);
    for reading in with.jobs.pressure.look(with.cx.now) {
        read(with, reading);
    }
    if with.fleet.review_due().is_some_and(|due| due <= with.cx.now) {
        with.fleet.request_review();
    }
}

/// What follows every event.
fn settle(requests: &mut Requests, with: &mut Components<'_>) {
    dispatch(requests, with);
    while with.fleet.needs_review() {
        supervision::supervise(requests, with);
        dispatch(requests, with);
    }
    for app in with.fleet.apps() {
        for line in [false, true].map(|concurrent| QueueLine { app, concurrent }) {
            with.fleet.note_queue(with.cx.now, line, requests.queue().requests(app).count_of(line.concurrent) == 0);
        }
    }
    runs::pull(requests, with);
    requests.tell_resumed(with.cx);
    with.waits.drop_unheld(with.cx);
}

/// The ends of WebSockets find their places in the queue when those before them have left it.
fn dispatch(requests: &mut Requests, with: &mut Components<'_>) {
    requests::dispatch(requests, with);
    while socket_end::call_next(requests, with) {
        requests::dispatch(requests, with);
    }
}

fn read(with: &mut Components<'_>, reading: Reading) {
    let (is_there, effect) = match reading {
        Reading::Paused(worker) => {
            (with.fleet.workers.pause_reading(with.cx.now, worker), WorkerEffect::PauseReading { worker })
        }
        Reading::Resumed(worker) => {
            (with.fleet.workers.resume_reading(with.cx.now, worker), WorkerEffect::ResumeReading { worker })
        }
    };
    if is_there {
        with.cx.effects.push(Effect::Worker(effect));
    }
}

/// A server that stops enqueues nothing by itself.
fn recur(with: &mut Components<'_>, happens: impl FnOnce(&mut Recurring, Moment, &mut Vec<RecurringEffect>)) {
    if with.fleet.is_open() {
        let mut effects = Vec::new();
        happens(&mut with.jobs.recurring, with.cx.now, &mut effects);
        with.cx.effects.extend(effects.into_iter().map(Effect::Recurring));
    }
}
