//! The core: events in, effects out.

use std::time::Duration;

use crate::config::Config;
use crate::context::Context;
use crate::effect::{Effect, Outcome, WorkerEffect};
use crate::event::{Event, Publisher};
use crate::jobs::{Jobs, Reading, Recurring, RecurringEffect};
use crate::life::lives::Lives;
use crate::life::machine::Happening;
use crate::life::{Bell, State};
use crate::moment::Moment;
use crate::queue::Queue;
use crate::report::counts::Counts;
use crate::report::status::QueryStatus;
use crate::staff::Staff;
use crate::structures::chain::Chain;
use crate::waits::{Drained, Waits};
use crate::woken::Woken;
use crate::workers::queue_rate::QueueRates;
use crate::workers::roster::Roster;
use parkade_model::{ChannelName, Cursor, JobId, MessageId, QueryId, Reason, Refusal, RequestId, TableId, WorkerId};

/// Everything that is decided. It is told the time, and never waits, reads or writes.
#[derive(Debug)]
pub struct Core {
    pub(crate) cx: Context,
    pub(crate) lives: Lives,
    /// Accepted requests whose place is not known.
    pub(crate) unrouted: Chain<RequestId>,
    /// Routed requests that no worker has.
    pub(crate) queue: Queue,
    pub(crate) queue_rates: QueueRates,
    /// What requests wait for.
    pub(crate) waits: Waits,
    pub(crate) jobs: Jobs,
    pub(crate) roster: Roster,
    pub(crate) staff: Staff,
    /// Coroutines woken by the event in hand: told at its end, many in one effect.
    pub(crate) resumed: Vec<(WorkerId, Outcome, RequestId)>,
}

impl Core {
    #[must_use]
    pub fn new(config: Config) -> Self {
        let cx = Context::new(config);
        Self {
            lives: Lives::default(),
            unrouted: Chain::default(),
            queue: Queue::default(),
            queue_rates: QueueRates::default(),
            waits: Waits::new(&cx.config),
            jobs: Jobs::default(),
            roster: Roster::default(),
            staff: Staff::new(),
            resumed: Vec::new(),
            cx,
        }
    }

    /// Starts the workers.
    pub fn begin(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        self.within(now, effects, |core| core.staff.attention = true);
    }

    /// Decides what follows from `event`. The effects are to be carried out in their order, before the next event.
    pub fn handle(&mut self, now: Moment, event: Event, effects: &mut Vec<Effect>) {
        self.within(now, effects, |core| core.take(event));
    }

    /// When [`Event::Tick`] must come at the latest.
    #[must_use]
    pub fn next_due(&self) -> Option<Moment> {
        let recurring = self.jobs.recurring.next_due().filter(|_| self.staff.is_open());
        let dues = [
            self.cx.timers.next_due(),
            self.waits.channels.sweep_due(),
            self.staff.due,
            recurring,
            self.jobs.pressure.next_due(),
        ];
        dues.into_iter().flatten().min()
    }

    /// The route table in which new requests are looked up: that of the code that serves. `None` before a worker is ready.
    #[must_use]
    pub fn table(&self) -> Option<TableId> {
        self.staff.table
    }

    /// Whether requests can still be looked up in this table: it is the current one, or a worker runs by it.
    #[must_use]
    pub fn uses_table(&self, table: TableId) -> bool {
        self.staff.table == Some(table) || self.roster.iter().any(|worker| worker.table() == Some(table))
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
        self.soonest(now, concurrent)
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
        self.lives.state(request)
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

    /// Whether no request is on its way, cancelled ones in workers included.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.lives.count() == 0
            && self.waits.queries.count() == 0
            && self.roster.iter().all(|worker| worker.held.is_empty())
    }

    /// Every event begins by knowing the moment, and ends by giving workers what is queued and telling what was gathered.
    fn within(&mut self, now: Moment, effects: &mut Vec<Effect>, happens: impl FnOnce(&mut Self)) {
        self.cx.now = self.cx.now.max(now);
        std::mem::swap(&mut self.cx.effects, effects);
        happens(self);
        self.dispatch();
        while self.staff.attention {
            self.tend();
            self.dispatch();
        }
        for concurrent in [false, true] {
            self.queue_rates.of_mut(concurrent).settled(self.cx.now, self.queue.count_of(concurrent) == 0);
        }
        self.watch_the_waiting();
        self.pull_jobs();
        self.tell_resumed();
        self.tell_dropped();
        std::mem::swap(&mut self.cx.effects, effects);
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Arrived { request, destination } => self.arrive(request, destination),
            Event::RouteFound { request, destination } => self.turn(request, Happening::Routed(destination)),
            Event::Left { request } => self.turn(request, Happening::Cancelled(Reason::ClientLeft)),
            Event::CancelledByOperator { request } => self.turn(request, Happening::Cancelled(Reason::Operator)),
            Event::WorkerReady { worker, table, credit, manner, jobs } => {
                self.worker_ready(worker, table, credit, manner, jobs);
            }
            Event::WorkerFailed { worker } => self.worker_failed(worker),
            Event::WorkerExited { worker } => self.worker_exited(worker),
            Event::WorkerViolated { worker } => self.worker_violated(worker),
            Event::Credit { worker, delta } => self.credit(worker, delta),
            Event::Began { worker, request } => self.unit_began(worker, request),
            Event::Pong { worker, token } => self.pong(worker, token),
            Event::Pressure(event) => {
                if let Some(reading) = self.jobs.pressure.handle(self.cx.now, event) {
                    self.read(reading);
                }
            }
            Event::Measured { worker, resident_bytes } => self.measured(worker, resident_bytes),
            Event::Answered { worker, request, payload, whole } => {
                self.frame(worker, request, Happening::Answered(payload, whole));
            }
            Event::AnswerEnded { worker, request } => self.frame(worker, request, Happening::AnswerEnded),
            Event::Errored { worker, request, error } => self.frame(worker, request, Happening::Errored(error)),
            Event::Parked { worker, request, wait, then, payload } => {
                self.frame(worker, request, Happening::Parked(wait, then, payload));
            }
            Event::Unparked { worker, request } => self.unparked(worker, request),
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
            Event::Recurring(event) => self.recur(|recurring, now, effects| recurring.handle(now, event, effects)),
            Event::JobEnqueued { worker, request } => self.job_enqueued(worker, request),
            Event::JobStored { request, fault } => self.job_stored(request, fault),
            Event::JobReturned { worker, request } => self.frame(worker, request, Happening::JobReturned),
            Event::JobEnded { job } => {
                let woken = self.waits.jobs.ended(job);
                self.carry(woken);
            }
            Event::JobDropped { job } => self.carry(self.waits.jobs.dropped(job)),
            Event::JobFound { request, standing } => {
                let woken = self.waits.jobs.found(&mut self.cx, request, standing);
                self.carry(woken);
            }
            Event::JobNotLookedUp { request } => {
                let woken = self.waits.jobs.not_found(&mut self.cx, request);
                self.carry(woken);
            }
            Event::JobGuarded { request, route, concurrent } => self.job_guarded(request, route, concurrent),
            Event::JobCancelled { job } => self.job_cancelled(job),
            Event::Published { channel, message, bytes, by } => self.publish(&channel, message, bytes, by),
            Event::PublishedNothing { by } => self.hold_against(by, Refusal::BadAnswer),
            Event::ChannelConfigured { pattern, limits } => {
                self.waits.channels.configure(self.cx.now, &pattern, limits);
            }
            Event::MessagesLost { channel } => self.waits.channels.lose(&mut self.cx, &channel),
            Event::ChannelEnded { channel } => self.end_streams(&channel),
            Event::Tick => self.tick(),
            Event::Reload => self.reload(),
            Event::Drain { grace } => self.drain(grace),
        }
    }

    fn tick(&mut self) {
        self.waits.channels.sweep(self.cx.now);
        while let Some(bell) = self.cx.timers.ring(self.cx.now) {
            match bell {
                Bell::Life(request) => self.turn(request, Happening::Due),
                Bell::Ghost(worker, place) => self.ghost_due(worker, place),
                Bell::KeptResult(query) => self.waits.queries.forget_kept(query),
                Bell::JobsReady => self.jobs_due(),
                Bell::ClaimedInVain => self.claimed_in_vain(),
                Bell::QueriesOver => self.end_queries(),
            }
        }
        self.recur(Recurring::look);
        for reading in self.jobs.pressure.look(self.cx.now) {
            self.read(reading);
        }
        self.staff.attention |= self.staff.due.is_some_and(|due| due <= self.cx.now);
    }

    fn read(&mut self, reading: Reading) {
        let (Reading::Paused(worker) | Reading::Resumed(worker)) = reading;
        // It may be gone: what it enqueued is answered all the same.
        if self.roster.find_mut(worker).is_none() {
            return;
        }
        match reading {
            Reading::Paused(worker) => {
                self.held_up(worker);
                self.cx.effects.push(Effect::Worker(WorkerEffect::PauseReading { worker }));
            }
            Reading::Resumed(worker) => {
                self.let_on(worker);
                self.cx.effects.push(Effect::Worker(WorkerEffect::ResumeReading { worker }));
            }
        }
    }

    /// A server that stops enqueues nothing by itself.
    fn recur(&mut self, happens: impl FnOnce(&mut Recurring, Moment, &mut Vec<RecurringEffect>)) {
        if self.staff.is_open() {
            let mut effects = Vec::new();
            happens(&mut self.jobs.recurring, self.cx.now, &mut effects);
            self.cx.effects.extend(effects.into_iter().map(Effect::Recurring));
        }
    }

    /// One effect for all coroutines of a worker that go on with the same outcome.
    pub(crate) fn tell_resumed(&mut self) {
        if self.resumed.is_empty() {
            return;
        }
        self.resumed.sort_by_key(|(worker, _, _)| *worker);
        for together in self.resumed.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)) {
            let (worker, outcome, _) = together[0];
            let requests = together.iter().map(|(_, _, request)| *request).collect();
            self.cx.effects.push(Effect::Worker(WorkerEffect::Resume { worker, outcome, requests }));
        }
        self.resumed = Vec::new();
    }

    pub(crate) fn tell_dropped(&mut self) {
        self.waits.drop_unheld(&mut self.cx);
    }

    // What components return is carried to the requests that it concerns.

    /// Those whose waits are over go on.
    pub(crate) fn carry(&mut self, woken: impl IntoIterator<Item = Woken>) {
        for Woken { request, outcome } in woken {
            self.turn(request, Happening::Woken(outcome));
        }
    }

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
            self.silence_parked(woken.request);
        }
        self.carry(publication.woken());
    }

    /// They have had all that there is.
    fn end_streams(&mut self, channel: &ChannelName) {
        let streams = self.waits.channels.streams_of(channel);
        self.carry(streams.into_iter().map(|request| Woken { request, outcome: Outcome::Elapsed }));
    }

    fn query_began(&mut self, query: QueryId) {
        if let Some(request) = self.waits.queries.rows_came(&mut self.cx, query) {
            self.turn(request, Happening::RowsBegan);
        }
    }

    fn query_ended(&mut self, query: QueryId, completed: bool, bytes: usize) {
        let Some(ended) = self.waits.queries.end(&mut self.cx, query, completed, bytes) else { return };
        self.carry(ended.woken());
        self.waits.queries.forget(&mut self.cx, &ended);
        // The last one ends a drain.
        self.staff.attention |= !self.staff.is_open();
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
