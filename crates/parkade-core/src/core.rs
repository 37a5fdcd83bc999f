//! The core: events in, effects out.

use std::time::Duration;

use crate::bell::Bell;
use crate::config::Config;
use crate::context::Context;
use crate::effect::{Effect, ExitReason, Outcome, ServerEffect, WorkerEffect};
use crate::event::{Event, Publisher};
use crate::fleet::{Consequence, Demand, Fleet, Orphans, PerRole};
use crate::jobs::{CancelEvent, Canceller, Decided, Found, Jobs, Reading, Recurring, RecurringEffect};
use crate::moment::Moment;
use crate::report::counts::Counts;
use crate::report::status::QueryStatus;
use crate::requests::{self, Components, Happening, Requests, State};
use crate::waits::{Drained, Waits};
use crate::woken::Woken;
use parkade_model::{
    ChannelName, Cursor, DeclaredJobs, JobId, MessageId, QueryId, Reason, Refusal, RequestId, Role, StoreFault,
    TableId, WorkerId,
};

/// Everything that is decided. It is told the time, and never waits, reads or writes.
#[derive(Debug)]
pub struct Core {
    pub(crate) cx: Context,
    pub(crate) requests: Requests,
    /// What requests wait for.
    pub(crate) waits: Waits,
    pub(crate) jobs: Jobs,
    pub(crate) fleet: Fleet,
}

impl Core {
    #[must_use]
    pub fn new(config: Config) -> Self {
        let cx = Context::new(config);
        Self {
            requests: Requests::default(),
            waits: Waits::new(&cx.config),
            jobs: Jobs::default(),
            fleet: Fleet::default(),
            cx,
        }
    }

    /// Starts the workers.
    pub fn begin(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        self.within(now, effects, |core| core.fleet.request_review());
    }

    /// Decides what follows from `event`. The effects are to be carried out in their order, before the next event.
    pub fn handle(&mut self, now: Moment, event: Event, effects: &mut Vec<Effect>) {
        self.within(now, effects, |core| core.take(event));
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

    /// The route table in which new requests are looked up: that of the code that serves. `None` before a worker is ready.
    #[must_use]
    pub fn table(&self) -> Option<TableId> {
        self.fleet.table()
    }

    /// Whether requests can still be looked up in this table: it is the current one, or a worker runs by it.
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

    /// What a worker is for.
    #[must_use]
    pub fn role(&self, worker: WorkerId) -> Option<Role> {
        self.fleet.role(worker)
    }

    /// Where a channel stands; `None` when nobody waits on it and it holds nothing.
    #[must_use]
    pub fn cursor(&self, channel: &ChannelName) -> Option<Cursor> {
        self.waits.channels.cursor(channel)
    }

    /// How long a request that arrives now would be queued, at the soonest, in the slower line; `None` when nothing is known of that.
    #[must_use]
    pub fn queue_wait(&self, now: Moment) -> Option<Duration> {
        self.queue_wait_of(now, false).max(self.queue_wait_of(now, true))
    }

    /// The same for plain functions, or for coroutines.
    #[must_use]
    pub fn queue_wait_of(&self, now: Moment, concurrent: bool) -> Option<Duration> {
        self.requests.soonest(&self.fleet, now, concurrent)
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

    /// Whether the request has begun a transaction that has not ended.
    #[must_use]
    pub fn has_transaction(&self, request: RequestId) -> bool {
        self.waits.queries.has_transaction(request)
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

    /// Whether something that the request has enqueued is not stored yet.
    #[must_use]
    pub fn is_unstored(&self, request: RequestId) -> bool {
        self.waits.enqueued.are_pending(request)
    }

    /// Why something that the request has enqueued could not be stored.
    #[must_use]
    pub fn store_fault(&self, request: RequestId) -> Option<StoreFault> {
        self.waits.enqueued.fault(request)
    }

    /// Whether no request is on its way, cancelled ones in workers included.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.requests.count() == 0 && self.waits.queries.count() == 0 && self.fleet.is_idle()
    }

    /// Every event begins by knowing the moment, and ends by giving workers what is queued and telling what was gathered.
    fn within(&mut self, now: Moment, effects: &mut Vec<Effect>, happens: impl FnOnce(&mut Self)) {
        self.cx.now = self.cx.now.max(now);
        std::mem::swap(&mut self.cx.effects, effects);
        happens(self);
        self.with_requests(requests::dispatch);
        while self.fleet.needs_review() {
            self.supervise();
            self.with_requests(requests::dispatch);
        }
        for concurrent in [false, true] {
            self.fleet.note_queue(self.cx.now, concurrent, self.requests.is_line_empty(concurrent));
        }
        self.watch_the_waiting();
        self.pull_jobs();
        self.requests.tell_resumed(&mut self.cx);
        self.waits.drop_unheld(&mut self.cx);
        std::mem::swap(&mut self.cx.effects, effects);
    }

    /// What requests do is lent all that their moves may use.
    pub(crate) fn with_requests<T>(&mut self, act: impl FnOnce(&mut Requests, &mut Components<'_>) -> T) -> T {
        let Self { cx, requests, waits, jobs, fleet } = self;
        act(requests, &mut Components { cx, waits, jobs, fleet })
    }

    /// Something happened to a request.
    pub(crate) fn turn(&mut self, request: RequestId, happening: Happening) {
        self.with_requests(|requests, with| requests.turn(with, request, happening));
    }

    /// A frame of `worker` about `request`.
    fn frame(&mut self, worker: WorkerId, request: RequestId, happening: Happening) {
        self.with_requests(|requests, with| requests.frame(with, worker, request, happening));
    }

    /// Those whose waits are over go on.
    pub(crate) fn wake(&mut self, woken: impl IntoIterator<Item = Woken>) {
        self.with_requests(|requests, with| requests.wake(with, woken));
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Arrived { request, destination } => {
                self.with_requests(|requests, with| requests.arrive(with, request, destination));
            }
            Event::RouteFound { request, destination } => self.turn(request, Happening::Routed(destination)),
            Event::Left { request } => self.turn(request, Happening::Cancelled(Reason::ClientLeft)),
            Event::CancelledByOperator { request } => self.turn(request, Happening::Cancelled(Reason::Operator)),
            Event::WorkerReady { worker, table, credit, manner, jobs } => {
                if let Some(table) = self.fleet.worker_ready(&mut self.cx, worker, table, credit, manner, jobs) {
                    self.with_requests(|requests, with| requests.reroute(with, table));
                }
            }
            Event::WorkerFailed { worker } => self.fleet.worker_failed(&mut self.cx, worker),
            Event::WorkerExited { worker } => {
                let orphans = self.fleet.worker_exited(&mut self.cx, worker);
                self.resolve(orphans);
            }
            Event::WorkerViolated { worker } => {
                let orphans = self.fleet.worker_violated(&mut self.cx, worker);
                self.resolve(orphans);
            }
            Event::Credit { worker, delta } => {
                self.fleet.credit(&mut self.cx, worker, delta);
                self.requests.begin_next(&mut self.cx, &mut self.fleet, worker);
            }
            Event::Began { worker, request } => {
                if self.fleet.begin(&mut self.cx, worker, request) {
                    self.requests.begin_code(&mut self.cx, request);
                }
            }
            Event::Pong { worker, token } => self.fleet.pong(&mut self.cx, worker, token),
            Event::Pressure(event) => {
                if let Some(reading) = self.jobs.pressure.handle(self.cx.now, event) {
                    self.read(reading);
                }
            }
            Event::Measured { worker, resident_bytes } => self.fleet.measure(&mut self.cx, worker, resident_bytes),
            Event::Answered { worker, request, payload, whole } => {
                self.frame(worker, request, Happening::Answered(payload, whole));
            }
            Event::AnswerEnded { worker, request } => self.frame(worker, request, Happening::AnswerEnded),
            Event::Errored { worker, request, error } => self.frame(worker, request, Happening::Errored(error)),
            Event::Parked { worker, request, wait, then, payload } => {
                self.frame(worker, request, Happening::Parked(wait, then, payload));
            }
            Event::Unparked { worker, request } => {
                self.with_requests(|requests, with| requests.unpark(with, worker, request));
            }
            Event::QueryBegan { query } => self.query_began(query),
            Event::QueryEnded { query, completed, bytes } => self.query_ended(query, completed, bytes),
            Event::QueryCancelledByOperator { query } => self.cancel_query(query),
            Event::JobsReady { after } => self.jobs_ready(after),
            Event::JobsClaimed { jobs, more, next } => self.jobs_claimed(&jobs, more, next),
            Event::JobsNotClaimed => self.jobs_not_claimed(),
            Event::QueuesConfigured { queues } => {
                self.jobs.queues.configure(&queues);
                self.jobs.pull.hint();
            }
            Event::RunNoted { request, is_stale } => {
                let decided = self.jobs.run_noted(&mut self.cx, request, is_stale);
                self.end_as_decided(decided);
            }
            Event::RunNotNoted { request } => self.jobs.run_not_noted(&mut self.cx, request),
            Event::Cancel(event) => self.cancel(event),
            Event::Recurring(event) => self.recur(|recurring, now, effects| recurring.handle(now, event, effects)),
            Event::JobEnqueued { worker, request } => {
                // One of a request that has ended is stored all the same; nobody waits for it.
                if self.requests.is_held_by(worker, request) {
                    self.waits.enqueued.add(request);
                }
            }
            Event::JobStored { request, fault } => {
                self.with_requests(|requests, with| requests.stored(with, request, fault));
            }
            Event::JobReturned { worker, request } => self.frame(worker, request, Happening::JobReturned),
            Event::JobEnded { job } => {
                let woken = self.waits.jobs.ended(job);
                self.wake(woken);
            }
            Event::JobDropped { job } => self.wake(self.waits.jobs.dropped(job)),
            Event::JobFound { request, standing } => match self.waits.jobs.found(&mut self.cx, request, standing) {
                Some(Found::Woken(woken)) => self.wake([woken]),
                Some(Found::Ends { request, job }) => self.cancel_for(request, job),
                None => {}
            },
            Event::JobNotLookedUp { request } => {
                let woken = self.waits.jobs.not_found(&mut self.cx, request);
                self.wake(woken);
            }
            Event::JobGuarded { request, route, concurrent } => {
                if self.waits.jobs.guarded(&mut self.cx, request) {
                    self.turn(request, Happening::Guarded { route, concurrent });
                }
            }
            Event::JobCancelled { job } => self.job_cancelled(job),
            Event::Published { channel, message, bytes, by } => self.publish(&channel, message, bytes, by),
            Event::PublishedNothing { by } => self.hold_against(by, Refusal::BadAnswer),
            Event::ChannelConfigured { pattern, limits } => {
                self.waits.channels.configure(self.cx.now, &pattern, limits);
            }
            Event::MessagesLost { channel } => self.waits.channels.lose(&mut self.cx, &channel),
            Event::ChannelEnded { channel } => self.end_streams(&channel),
            Event::Tick => self.tick(),
            Event::Reload => self.fleet.reload(),
            Event::Drain { grace } => self.drain(grace),
        }
    }

    fn tick(&mut self) {
        self.waits.channels.sweep(self.cx.now);
        while let Some(bell) = self.cx.timers.ring(self.cx.now) {
            match bell {
                Bell::Life(request) => self.turn(request, Happening::Due),
                Bell::Abandoned(worker, place) => self.fleet.abandoned_due(&mut self.cx, worker, place),
                Bell::KeptResult(query) => self.waits.queries.forget_kept(query),
                Bell::JobsReady => self.jobs_due(),
                Bell::ClaimedInVain => self.claimed_in_vain(),
                Bell::QueriesOver => self.end_queries(),
            }
        }
        self.recur(Recurring::look);
        let decided = self.jobs.look(&mut self.cx);
        self.end_as_decided(decided);
        for reading in self.jobs.pressure.look(self.cx.now) {
            self.read(reading);
        }
        if self.fleet.review_due().is_some_and(|due| due <= self.cx.now) {
            self.fleet.request_review();
        }
    }

    fn read(&mut self, reading: Reading) {
        let (is_there, effect) = match reading {
            Reading::Paused(worker) => {
                (self.fleet.pause_reading(self.cx.now, worker), WorkerEffect::PauseReading { worker })
            }
            Reading::Resumed(worker) => {
                (self.fleet.resume_reading(self.cx.now, worker), WorkerEffect::ResumeReading { worker })
            }
        };
        if is_there {
            self.cx.effects.push(Effect::Worker(effect));
        }
    }

    /// A worker is gone: what it may have begun is lost, what it did not touch goes to another one.
    fn resolve(&mut self, orphans: Orphans) {
        for queue in orphans.queues {
            self.jobs.leave(queue);
        }
        for request in orphans.lost {
            self.turn(request, Happening::Cancelled(Reason::WorkerDied));
        }
        for request in orphans.untouched.into_iter().rev() {
            self.turn(request, Happening::Returned);
        }
    }

    /// The workers are looked over, and requests hear what that means for them.
    fn supervise(&mut self) {
        for run in self.fleet.review_workers(&mut self.cx) {
            self.turn(run, Happening::Cancelled(Reason::Stopping));
        }
        let demand = self.demand();
        match self.fleet.reconcile(&mut self.cx, &demand) {
            Some(Consequence::NewCode(Some(table))) => {
                self.with_requests(|requests, with| requests.reroute(with, table));
            }
            Some(Consequence::NoApplication) => self.with_requests(Requests::refuse_queued),
            Some(Consequence::GraceOver) => self.end_by_force(),
            Some(Consequence::NewCode(None)) | None => {}
        }
        if self.requests.count() == 0
            && self.waits.queries.have_ended(self.cx.now)
            && let Some(reason) = self.fleet.exit()
        {
            self.exit(reason);
        }
        let demand = self.demand();
        self.fleet.schedule(&self.cx, &demand);
    }

    fn demand(&self) -> Demand {
        let (all, runs) = (self.requests.count(), self.jobs.runs_count());
        // What runs is in its worker.
        let outside = all - self.requests.running_count();
        let to_come = PerRole { requests: all.saturating_sub(runs).min(outside), jobs: runs.min(outside) };
        let is_queued = PerRole { requests: self.requests.are_queued(), jobs: self.requests.are_runs_resuming() };
        Demand { to_come, is_queued, queries_end: self.waits.queries.end_due(self.cx.now) }
    }

    /// The end of the server: politely within its grace, then at once.
    fn drain(&mut self, grace: Duration) {
        if !self.fleet.drain(&mut self.cx, grace) {
            return;
        }
        self.drain_waits();
        self.with_requests(Requests::hand_back_waiting);
        let over = self.cx.now + grace.min(self.cx.config.query_grace);
        self.waits.queries.stop_at(&mut self.cx, over);
    }

    /// The grace is over.
    fn end_by_force(&mut self) {
        let mut last = self.fleet.stop_runs(&self.cx);
        for run in std::mem::take(&mut last.runs) {
            self.turn(run, Happening::Cancelled(Reason::Stopping));
        }
        let were_left = self.with_requests(|requests, with| requests.cancel_all(with, Reason::Stopping));
        self.fleet.end_workers(&mut self.cx, &last, were_left);
        self.waits.queries.bound_the_end(self.cx.now);
    }

    fn exit(&mut self, reason: ExitReason) {
        self.waits.queries.forget_all(&mut self.cx);
        self.expect_no_jobs();
        let decided = self.jobs.stop(&mut self.cx);
        self.end_as_decided(decided);
        self.waits.drop_unheld(&mut self.cx);
        self.cx.effects.push(Effect::Server(ServerEffect::Exit { reason }));
    }

    /// A server that stops enqueues nothing by itself.
    fn recur(&mut self, happens: impl FnOnce(&mut Recurring, Moment, &mut Vec<RecurringEffect>)) {
        if self.fleet.is_open() {
            let mut effects = Vec::new();
            happens(&mut self.jobs.recurring, self.cx.now, &mut effects);
            self.cx.effects.extend(effects.into_iter().map(Effect::Recurring));
        }
    }

    // What components return is carried to the requests that it concerns.

    fn publish(&mut self, channel: &ChannelName, message: MessageId, bytes: usize, by: Option<Publisher>) {
        let Ok(publication) = self.waits.channels.publish(&mut self.cx, channel, message, bytes) else {
            if let Some(by) = by {
                self.hold_against(by, Refusal::NotPublished);
            }
            return;
        };
        // Their alarms were mostly set in the order of arrival: from the last one back each is at the bottom of the heap, where it is
        // taken out in one step instead of fifteen.
        for woken in publication.woken().rev() {
            self.requests.silence(&mut self.cx, woken.request);
        }
        self.wake(publication.woken());
    }

    /// A client that gets the answer of this request would believe that its message is in the channel.
    fn hold_against(&mut self, by: Publisher, refusal: Refusal) {
        let Publisher { worker, request } = by;
        if self.requests.is_held_by(worker, request) || self.requests.is_awaited_by(worker, request) {
            self.waits.channels.hold_against(request, refusal);
        }
    }

    /// They have had all that there is.
    fn end_streams(&mut self, channel: &ChannelName) {
        let streams = self.waits.channels.streams_of(channel);
        self.wake(streams.into_iter().map(|request| Woken { request, outcome: Outcome::Elapsed }));
    }

    fn query_began(&mut self, query: QueryId) {
        if let Some(request) = self.waits.queries.rows_came(&mut self.cx, query) {
            self.turn(request, Happening::RowsBegan);
        }
    }

    fn query_ended(&mut self, query: QueryId, completed: bool, bytes: usize) {
        let Some(ended) = self.waits.queries.end(&mut self.cx, query, completed, bytes) else { return };
        self.wake(ended.woken());
        self.waits.queries.forget(&mut self.cx, &ended);
        // The last one ends a drain.
        self.fleet.note_end();
    }

    fn cancel_query(&mut self, query: QueryId) {
        let waiters = self.waits.queries.cancel_by_operator(&mut self.cx, query);
        self.give_query_up(waiters, Reason::Operator);
    }

    /// The server stops: queries have had their time.
    fn end_queries(&mut self) {
        for query in self.waits.queries.close() {
            let waiters = self.waits.queries.cancel_for_all(&mut self.cx, query);
            self.give_query_up(waiters, Reason::Stopping);
        }
    }

    fn give_query_up(&mut self, waiters: Vec<RequestId>, reason: Reason) {
        for request in waiters {
            self.turn(request, Happening::QueryGivenUp(reason));
        }
    }

    /// Somebody wants a job to end, or the store says what it can do about that.
    fn cancel(&mut self, event: CancelEvent) {
        let decided = self.jobs.cancel(&mut self.cx, event);
        self.end_as_decided(decided);
    }

    /// A client wants a job to end, and may.
    fn cancel_for(&mut self, request: RequestId, job: JobId) {
        let decided = self.jobs.want_to_end(&mut self.cx, job, Canceller::Client(request));
        self.end_as_decided(decided);
    }

    /// Runs of jobs that somebody wants to end are ended, and clients told what becomes of theirs.
    pub(crate) fn end_as_decided(&mut self, decided: Decided) {
        for request in decided.runs {
            self.turn(request, Happening::Cancelled(Reason::Operator));
        }
        for (request, will_end) in decided.clients {
            let woken = self.waits.jobs.cancel_decided(&mut self.cx, request, will_end);
            self.wake(woken);
        }
    }

    /// The server stops.
    pub(crate) fn drain_waits(&mut self) {
        for (request, drained) in self.waits.drain() {
            let happening = match drained {
                Drained::Over(outcome) => Happening::Woken(outcome),
                Drained::Cancelled(reason) => Happening::Cancelled(reason),
            };
            self.turn(request, happening);
        }
    }
}
