//! Queries: work that databases do for parked requests. Statements and results are opaque here.
//!
//! An execution is what a database was asked to do once. One request waits for it, or many that share a key. When the last of them has left, it
//! is cancelled. It is remembered until the database has said how it ended, and a request whose query is cancelled stays parked until then, so that
//! nobody gets a guess.
//!
//! | question | where |
//! |---|---|
//! | who waits for which execution, and cancels it by leaving (`leave`, `cancel`) | here, `waiter` |
//! | an execution, and requests that share one | `execution` |
//! | shared results that are kept for a while | `kept` |
//! | transactions: their connections; their COMMIT, and the jobs in it | `leases`; `commits`, `commit` |

mod commit;
mod commits;
mod execution;
mod kept;
mod leases;
mod waiter;

use crate::bell::Bell;
use crate::context::Context;
use crate::effect::{DatabaseEffect, Effect, HttpEffect, Outcome, StatementSource};
use crate::limits::QUERIES_END_MAX;
use crate::moment::Moment;
use crate::refused::Refused;
use crate::report::status::QueryStatus;
use crate::structures::ref_counts::RefCounts;
use crate::structures::timers::Alarm;
use crate::woken::Woken;
use commits::{CommitCancel, Commits, FailedCommit};
use execution::{ExecutionPhase, Executions, QueryIds};
use kept::{KeptResult, KeptResults};
use leases::{Leases, OpenTransaction};
use parkade_model::{LeaseId, QueryId, QueryWait, QueryWork, Reason, Refusal, RequestId, Then};
use waiter::WaiterStage;

pub use commit::{CommitAnswer, CommitAsk, CommitEffect, CommitEvent, CommitFault, PlacedJob, Probed, StoreStanding};
pub use commits::{CommittedJobs, EnqueuedJob, JobsAfterCommit};
pub use waiter::{Waiter, WaiterOutcome, fate_unknown};

#[derive(Debug, Default)]
pub struct Queries {
    ids: QueryIds,
    executions: Executions,
    commits: Commits,
    kept: KeptResults,
    leases: Leases,
    /// Results that the shell holds, and how many need each.
    results: RefCounts<QueryId>,
    stop: QueryStop,
}

/// How far the queries have come with the stop of the server.
#[derive(Debug, Default)]
struct QueryStop {
    /// Rings when queries have had their time.
    over: Option<Alarm>,
    /// They have had it: no query begins any more.
    is_closed: bool,
    /// The server ends then, even if queries still run.
    end_by: Option<Moment>,
}

/// A request that asks a database for something.
#[derive(Debug, Clone, Copy)]
pub struct NewQuery {
    pub request: RequestId,
    /// Whose transaction it is about.
    pub owner: RequestId,
    pub then: Then,
    /// Where its statement is found.
    pub source: StatementSource,
    /// Its rows are one message on a WebSocket, so they are needed whole.
    pub is_message: bool,
}

/// How a wait for a database begins.
#[derive(Debug, Clone, Copy)]
pub enum QueryBegan {
    Waits(Waiter),
    /// Another request has just had this result.
    Kept(QueryId),
}

/// What becomes of a request whose query is given up while its client is there.
#[derive(Debug, Clone, Copy)]
pub enum GivenUp {
    /// The query has been cancelled. The request waits until the database has said how it ended, but not for long.
    Waits(Waiter),
    /// It waits for that already.
    AsBefore,
    /// What became of the query will not be known in time.
    Unknown(Reason),
    /// Rows have gone out already.
    BrokenOff,
}

/// A database is done with a query. Those who waited are to be woken, then [`Queries::forget`] takes this.
#[derive(Debug)]
#[must_use]
pub struct EndedQuery {
    query: QueryId,
    waiters: Vec<RequestId>,
    completed: bool,
    bytes: usize,
    /// It was not cancelled.
    was_wanted: bool,
    jobs: Option<CommittedJobs>,
}

impl EndedQuery {
    pub fn woken(&self) -> impl Iterator<Item = Woken> {
        let outcome = Outcome::Queried { query: self.query, completed: self.completed, late: None };
        self.waiters.iter().map(move |&request| Woken { request, outcome })
    }

    /// It was a COMMIT: the jobs that the transaction has enqueued.
    pub fn take_jobs(&mut self) -> Option<CommittedJobs> {
        self.jobs.take()
    }
}

impl Queries {
    /// The request waits for a database from now on, unless it may not, or need not.
    pub fn begin(&mut self, cx: &mut Context, new: NewQuery, wait: &QueryWait) -> Result<QueryBegan, Refusal> {
        self.admit(new, wait.work)?;
        if let Some(sharing) = &wait.shared {
            if let Some(query) = self.kept.get(&sharing.key) {
                cx.counts.queries_shared += 1;
                return Ok(QueryBegan::Kept(query));
            }
            if let Some(waiter) = self.executions.join(&sharing.key, new.request) {
                cx.counts.queries_shared += 1;
                return Ok(QueryBegan::Waits(waiter));
            }
        }
        Ok(QueryBegan::Waits(self.start(cx, new, wait)))
    }

    fn admit(&self, new: NewQuery, work: QueryWork) -> Result<(), Refusal> {
        let lease = self.leases.of(new.owner);
        let is_busy = lease.is_some_and(|lease| self.executions.is_awaited(lease.statement));
        // A BEGIN that was cancelled ends with its transaction.
        let has_transaction = lease
            .is_some_and(|lease| (lease.has_begun || is_busy) && (!lease.is_ending || self.may_go_on(lease.id, work)));
        match work {
            QueryWork::Alone | QueryWork::Begin if self.stop.is_closed => Err(Refusal::Stopping),
            QueryWork::Begin | QueryWork::Commit | QueryWork::Rollback if new.then != Then::Await => {
                Err(Refusal::BadAnswer)
            }
            QueryWork::Begin if lease.is_some() => Err(Refusal::TransactionOpen),
            QueryWork::Within | QueryWork::Commit | QueryWork::Rollback if !has_transaction => {
                Err(Refusal::NoTransaction)
            }
            // A connection carries out one statement at a time, and what another one finds must not depend on which is first.
            QueryWork::Within | QueryWork::Commit | QueryWork::Rollback if is_busy => Err(Refusal::TransactionBusy),
            QueryWork::Alone | QueryWork::Begin | QueryWork::Within | QueryWork::Commit | QueryWork::Rollback => Ok(()),
        }
    }

    /// The jobs of a transaction that is being ended are stored already, or never: it can only be rolled back.
    fn may_go_on(&self, lease: LeaseId, work: QueryWork) -> bool {
        work == QueryWork::Rollback || !self.commits.has_jobs(lease)
    }

    fn start(&mut self, cx: &mut Context, new: NewQuery, wait: &QueryWait) -> Waiter {
        let NewQuery { request, owner, then, source, is_message } = new;
        let open = self.leases.of(owner);
        let (lease, database) = match (wait.work, open) {
            (QueryWork::Begin, _) => (Some(self.leases.begin(owner, wait.database)), wait.database),
            (QueryWork::Alone, _) | (_, None) => (None, wait.database),
            (_, Some(lease)) => (Some(lease.id), lease.database),
        };
        let work = wait.work;
        let query = self.ids.mint();
        let asked = (query, request, owner);
        let waiter = self.executions.begin(cx.now, asked, (database, work, lease), wait.shared.as_ref());
        let collect = then != Then::Answer || is_message || wait.shared.is_some();
        cx.counts.queries += 1;
        if lease.is_some() {
            self.leases.note_statement(owner, query);
        }
        if matches!(work, QueryWork::Commit | QueryWork::Rollback) {
            self.leases.begin_to_end(owner);
        }
        if work == QueryWork::Commit
            && let Some(lease) = open.filter(|lease| self.commits.has_jobs(lease.id))
        {
            let failed = self.commits.begin(cx, &mut self.ids, (query, owner), lease);
            self.roll_back(cx, failed);
            return waiter;
        }
        cx.effects.push(Effect::Database(DatabaseEffect::StartQuery {
            query,
            request: owner,
            source,
            database,
            work,
            lease,
            collect,
        }));
        waiter
    }

    /// The first rows of a query have come. Returns the request whose answer they are, if it is sent row by row.
    pub fn rows_came(&self, cx: &mut Context, query: QueryId) -> Option<RequestId> {
        let execution = self.executions.find(query);
        if execution.is_none() {
            cx.counts.refused_events.add(Refused::Unknown);
        }
        // The request may have left; the database has been told.
        execution?.only_waiter()
    }

    /// The answer of a request begins with the first rows of its query.
    pub fn begin_rows(&self, cx: &mut Context, request: RequestId, waiter: Waiter) -> Waiter {
        if waiter.stage != WaiterStage::Waiting {
            return waiter;
        }
        let query = self.executions.of(waiter).query;
        cx.effects.push(Effect::Http(HttpEffect::BeginRows { request, query }));
        waiter.at(WaiterStage::Streaming)
    }

    /// The database is done with it.
    pub fn end(&mut self, cx: &mut Context, query: QueryId, completed: bool, bytes: usize) -> Option<EndedQuery> {
        self.results.hold(query);
        self.results.release(query);
        let Some(execution) = self.executions.find_mut(query) else {
            cx.counts.refused_events.add(Refused::Unknown);
            return None;
        };
        let was_wanted = execution.phase == ExecutionPhase::Running;
        execution.phase = ExecutionPhase::Ended;
        let (waiters, owner) = (execution.waiters(), execution.owner);
        let (begun, ended) = (execution.begins_lease(completed), execution.ends_lease(completed));
        let jobs = self.commits.end(cx, query, completed);
        if let Some(lease) = ended {
            self.leases.end(owner, lease);
            self.commits.close(cx, lease);
        }
        match begun {
            Some(lease) if was_wanted => self.leases.note_begun(owner, lease),
            Some(lease) => self.release_lease(cx, owner, lease),
            None => {}
        }
        Some(EndedQuery { query, waiters, completed, bytes, was_wanted, jobs })
    }

    /// All requests that waited for it have gone on. Its result may be kept for those that come a little later.
    pub fn forget(&mut self, cx: &mut Context, ended: &EndedQuery) {
        let Some(flight) = self.executions.end(ended.query) else { return };
        if !ended.completed || !ended.was_wanted || flight.ttl.is_zero() || self.stop.is_closed {
            return;
        }
        let query = ended.query;
        self.results.hold(query);
        let alarm = cx.timers.set(cx.now + flight.ttl, Bell::KeptResult(query));
        for kept in self.kept.keep(flight.key, KeptResult { query, alarm }, ended.bytes) {
            self.drop_kept(cx, kept);
        }
    }

    /// The request waits no more. The last one to leave has the query cancelled.
    pub fn leave(&mut self, cx: &mut Context, waiter: Waiter) {
        let (execution, was_last) = self.executions.leave(waiter);
        let (query, is_unwanted) = (execution.query, was_last && execution.phase == ExecutionPhase::Running);
        // Nobody is left to end a transaction that has just been begun.
        let begins =
            execution.lease.filter(|_| execution.work == QueryWork::Begin && execution.phase != ExecutionPhase::Ended);
        let owner = execution.owner;
        if is_unwanted {
            self.cancel(cx, query);
        }
        if let Some(lease) = begins {
            self.release_lease(cx, owner, lease);
        }
    }

    /// The client is still there, so it is told what became of the query: as soon as the database has said so.
    pub fn give_up(&mut self, cx: &mut Context, waiter: Waiter, reason: Reason) -> GivenUp {
        match waiter.stage {
            WaiterStage::Streaming => GivenUp::BrokenOff,
            WaiterStage::Ending(_) => GivenUp::AsBefore,
            WaiterStage::Waiting => {
                let execution = self.executions.of(waiter);
                if execution.phase == ExecutionPhase::Running && execution.waiters_count() > 1 {
                    // It goes on for the others.
                    return GivenUp::Unknown(reason);
                }
                self.cancel(cx, execution.query);
                GivenUp::Waits(waiter.at(WaiterStage::Ending(reason)))
            }
        }
    }

    /// The time of the wait is over.
    pub fn expire(&mut self, cx: &mut Context, waiter: Waiter) -> GivenUp {
        match waiter.stage {
            WaiterStage::Ending(reason) => GivenUp::Unknown(reason),
            WaiterStage::Waiting | WaiterStage::Streaming => self.give_up(cx, waiter, Reason::Deadline),
        }
    }

    /// An operator ends it. Returns the requests that have to give it up. The end of a transaction is not cancelled.
    pub fn cancel_by_operator(&mut self, cx: &mut Context, query: QueryId) -> Vec<RequestId> {
        match self.executions.find(query) {
            None => {
                cx.counts.refused_events.add(Refused::Unknown);
                Vec::new()
            }
            Some(execution) if execution.ends_a_transaction() => Vec::new(),
            Some(_) => self.cancel_for_all(cx, query),
        }
    }

    /// Returns the requests that wait for it, and have to give it up.
    pub fn cancel_for_all(&mut self, cx: &mut Context, query: QueryId) -> Vec<RequestId> {
        let Some(execution) = self.executions.find(query) else { return Vec::new() };
        let waiters = execution.waiters();
        self.cancel(cx, query);
        waiters
    }

    fn cancel(&mut self, cx: &mut Context, query: QueryId) {
        let Some(execution) =
            self.executions.find_mut(query).filter(|execution| execution.phase == ExecutionPhase::Running)
        else {
            return;
        };
        execution.phase = ExecutionPhase::Cancelled;
        let (database, key) = (execution.database, execution.key());
        cx.counts.queries_cancelled += 1;
        match self.commits.cancel(cx, query) {
            CommitCancel::AsAQuery => {
                cx.effects.push(Effect::Database(DatabaseEffect::CancelQuery { query, database }));
            }
            CommitCancel::Ends => {}
            CommitCancel::Failed(failed) => self.roll_back(cx, Some(failed)),
        }
        if let Some(key) = key {
            self.executions.land(&key, query);
        }
    }

    /// The request has ended: what its transaction did not commit is undone.
    pub fn end_transaction(&mut self, cx: &mut Context, request: RequestId) {
        if let Some(lease) = self.leases.remove(request) {
            self.end_lease(cx, lease);
        }
    }

    /// The transaction of a `begin` that was given up: the request that asked for it will never end it.
    fn release_lease(&mut self, cx: &mut Context, request: RequestId, lease: LeaseId) {
        if let Some(lease) = self.leases.end(request, lease) {
            self.end_lease(cx, lease);
        }
    }

    fn end_lease(&mut self, cx: &mut Context, OpenTransaction { id, database, .. }: OpenTransaction) {
        cx.effects.push(Effect::Database(DatabaseEffect::EndLease { lease: id, database }));
        self.commits.close(cx, id);
    }

    // Jobs that a transaction enqueues.

    /// A job is enqueued within the request's transaction. Returns whether one is open, and its end was not asked for.
    pub fn enqueue(&mut self, cx: &mut Context, request: RequestId, job: EnqueuedJob) -> bool {
        let lease = self.leases.of(request).filter(|lease| !lease.is_ending);
        lease.map(|lease| self.commits.keep(cx, lease.id, job)).is_some()
    }

    pub fn store_stands(&mut self, cx: &mut Context, standing: StoreStanding) {
        for failed in self.commits.store_stands(cx, &mut self.ids, standing) {
            self.roll_back(cx, Some(failed));
        }
    }

    /// A statement of a COMMIT has ended.
    pub fn commit_answered(&mut self, cx: &mut Context, statement: QueryId, answer: CommitAnswer) {
        let failed = self.commits.answered(cx, &mut self.ids, statement, answer);
        self.roll_back(cx, failed);
    }

    fn roll_back(&mut self, cx: &mut Context, failed: Option<FailedCommit>) {
        let Some(FailedCommit { commit, request, lease, why }) = failed else { return };
        self.release_lease(cx, request, lease);
        cx.effects.push(Effect::Commit(CommitEffect::Fail { commit, why }));
    }

    // The end of the server.

    /// Queries have time until then.
    pub fn stop_at(&mut self, cx: &mut Context, due: Moment) {
        self.stop.over = Some(cx.timers.set(due, Bell::QueriesOver));
    }

    /// They have had it. Returns the queries to be cancelled. Open transactions may still be ended.
    pub fn close(&mut self) -> Vec<QueryId> {
        self.stop.over = None;
        self.stop.is_closed = true;
        self.executions
            .iter()
            .filter(|execution| matches!(execution.work, QueryWork::Alone | QueryWork::Within | QueryWork::Begin))
            .map(|execution| execution.query)
            .collect()
    }

    /// From now on only the ends of queries are waited for, and not for long.
    pub fn bound_the_end(&mut self, now: Moment) {
        self.stop.is_closed = true;
        self.stop.end_by = Some(now + QUERIES_END_MAX);
    }

    /// Nothing of a query is waited for any more.
    pub fn have_ended(&self, now: Moment) -> bool {
        self.count() == 0 || self.stop.end_by.is_some_and(|by| by <= now)
    }

    /// When the ends of queries are waited for no longer, if any is.
    pub fn end_due(&self, now: Moment) -> Option<Moment> {
        self.stop.end_by.filter(|by| self.count() > 0 && *by > now)
    }

    /// At the exit: no alarm rings any more, no result is kept.
    pub fn forget_all(&mut self, cx: &mut Context) {
        if let Some(alarm) = self.stop.over.take() {
            cx.timers.clear(alarm);
        }
        for kept in self.kept.take() {
            self.drop_kept(cx, kept);
        }
    }

    // Results.

    /// Somebody needs the result.
    pub fn hold_result(&mut self, query: QueryId) {
        self.results.hold(query);
    }

    pub fn release_result(&mut self, query: QueryId) {
        self.results.release(query);
    }

    /// The time of a kept result is over.
    pub fn forget_kept(&mut self, query: QueryId) {
        if self.kept.remove_query(query).is_some() {
            self.results.release(query);
        }
    }

    fn drop_kept(&mut self, cx: &mut Context, kept: KeptResult) {
        cx.timers.clear(kept.alarm);
        self.results.release(kept.query);
    }

    /// At the end of an event: results that nobody needs any more.
    pub fn drop_results(&mut self, cx: &mut Context) {
        let effects = &mut cx.effects;
        self.results.drop_unheld(|query| effects.push(Effect::Database(DatabaseEffect::DropResult { query })));
    }

    // What can be seen.

    pub fn count(&self) -> usize {
        self.executions.count()
    }

    pub fn results_count(&self) -> usize {
        self.results.count()
    }

    /// Whether the request has a transaction open.
    pub fn has_transaction(&self, request: RequestId) -> bool {
        self.leases.of(request).is_some()
    }

    pub fn transactions_count(&self) -> usize {
        self.leases.count()
    }

    /// The query that a request waits for.
    pub fn awaited_by(&self, waiter: Waiter) -> QueryId {
        self.executions.of(waiter).query
    }

    /// Transactions that have enqueued jobs.
    pub fn transactions_with_jobs_count(&self) -> usize {
        self.commits.count()
    }

    pub fn statuses(&self) -> impl Iterator<Item = QueryStatus> {
        self.executions.iter().map(execution::Execution::status)
    }

    pub fn status(&self, query: QueryId) -> Option<QueryStatus> {
        self.executions.find(query).map(execution::Execution::status)
    }
}
