//! Queries as the world knows them: who waits for which, what is kept, whose transaction is open.

use std::collections::{BTreeMap, BTreeSet};

use parkade_core::limits::{KEPT_RESULTS_BYTES_MAX, QUERY_END_MAX};
use parkade_core::{
    DatabaseEffect, DatabaseId, Effect, HttpEffect, LeaseId, Moment, Outcome, QueryId, QueryWait, QueryWork, Reason,
    Refusal, RequestId, SharedKey, StatementSource, Then, Wait,
};

use crate::model::{Answer, Model, Place, Waiting};

#[derive(Debug, Default)]
pub struct Databases {
    /// Those that have not ended.
    pub running: BTreeMap<QueryId, Query>,
    /// What the shell holds.
    pub results: BTreeSet<QueryId>,
    pub kept: Vec<Kept>,
    pub leases: BTreeMap<LeaseId, Lease>,
    pub past: Vec<QueryId>,
    /// From then on nothing new is begun.
    pub closed_at: Option<Moment>,
    /// What the step in hand told.
    pub began: Option<QueryId>,
    pub ended: Option<(Query, bool)>,
    pub operated: Option<QueryId>,
    /// What it led to.
    pub cancelled: Vec<QueryId>,
    pub released: Vec<Lease>,
}

#[derive(Debug, Clone)]
pub struct Query {
    pub id: QueryId,
    pub wait: QueryWait,
    pub lease: Option<LeaseId>,
    pub collect: bool,
    pub began: bool,
    pub cancelled: Option<Moment>,
    pub since: Moment,
}

#[derive(Debug)]
pub struct Kept {
    pub key: SharedKey,
    pub query: QueryId,
    pub bytes: usize,
    pub until: Moment,
}

#[derive(Debug, Clone)]
pub struct Lease {
    pub request: RequestId,
    pub database: DatabaseId,
    pub begin: QueryId,
    /// Whoever asked for it does not know that it is there, or it was rolled back instead of its COMMIT.
    pub given_up: bool,
    /// Its COMMIT or ROLLBACK was asked for.
    pub is_ending: bool,
}

/// What a request knows of the query that it waits for.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "a model notes facts that have nothing to do with each other")]
pub struct Asked {
    pub query: Option<QueryId>,
    pub until: Option<Moment>,
    /// Since when it is cancelled, and what that may be for.
    pub ending: Option<(Moment, Vec<Reason>)>,
    pub rows: bool,
    /// A transaction was open.
    pub open: bool,
    /// Its BEGIN had ended, and so well that it was open then.
    pub begun: bool,
    /// It was executing another statement, which somebody waited for.
    pub busy: bool,
    /// It has enqueued jobs, and was being ended.
    pub over: bool,
}

impl Databases {
    pub fn is_closed(&self, now: Moment) -> bool {
        self.closed_at.is_some_and(|at| at <= now)
    }

    pub fn lease_of(&self, request: RequestId) -> Option<LeaseId> {
        self.leases.iter().find(|(_, lease)| lease.request == request).map(|(id, _)| *id)
    }

    fn has_begun(&self, lease: LeaseId) -> bool {
        self.leases.get(&lease).is_some_and(|open| !self.running.contains_key(&open.begin))
    }

    /// What a request with this key gets without another execution.
    fn shared(&self, key: &SharedKey) -> Option<QueryId> {
        let kept = self.kept.iter().find(|kept| kept.key == *key).map(|kept| kept.query);
        kept.or_else(|| self.running.values().find(|query| query.is_wanted_by(key)).map(|query| query.id))
    }

    /// Whether it was carried out, told in this step or before.
    fn outcome(&self, query: QueryId) -> bool {
        assert!(self.results.contains(&query), "a dropped result is told");
        match &self.ended {
            Some((ended, completed)) if ended.id == query => *completed,
            _ => self.kept.iter().any(|kept| kept.query == query) || panic!("{query:?} is told before it has ended"),
        }
    }

    /// The database says how it ended; the shell has its result.
    pub fn end(&mut self, now: Moment, id: QueryId, completed: bool, bytes: usize) {
        let query = self.running.remove(&id).expect("it runs");
        self.results.insert(id);
        let ends = match query.wait.work {
            QueryWork::Begin => !completed,
            QueryWork::Commit | QueryWork::Rollback => true,
            QueryWork::Alone | QueryWork::Within => false,
        };
        if let Some(lease) = query.lease.filter(|_| ends) {
            self.leases.remove(&lease);
        }
        if let Some(sharing) = query.wait.shared.clone().filter(|sharing| !sharing.ttl.is_zero())
            && completed
            && query.cancelled.is_none()
            && !self.is_closed(now)
        {
            self.kept.push(Kept { key: sharing.key, query: id, bytes, until: now + sharing.ttl });
            while self.kept.iter().map(|kept| kept.bytes).sum::<usize>() > KEPT_RESULTS_BYTES_MAX {
                self.kept.remove(0);
            }
        }
        self.past.push(id);
        self.ended = Some((query, completed));
    }
}

impl Query {
    pub fn is_wanted_by(&self, key: &SharedKey) -> bool {
        self.cancelled.is_none() && self.wait.shared.as_ref().is_some_and(|sharing| sharing.key == *key)
    }
}

impl Model {
    pub(crate) fn apply_of_databases(&mut self, effect: &Effect) {
        match effect {
            Effect::Database(DatabaseEffect::StartQuery { query, request, source, database, work, lease, collect }) => {
                if let StatementSource::Payload(payload) = source {
                    self.has_come(*payload);
                }
                self.start_query(*request, *query, *database, *lease, *collect);
                assert_eq!(self.databases.running[query].wait.work, *work);
            }
            Effect::Database(DatabaseEffect::CancelQuery { query, .. }) => self.cancel_query(*query),
            Effect::Http(HttpEffect::BeginRows { request, query }) => self.begin_rows(*request, *query),
            Effect::Http(HttpEffect::AnswerQuery { request, query, late }) => {
                self.answer_query(*request, *query, *late);
            }
            Effect::Database(DatabaseEffect::EndLease { lease, database }) => self.end_lease(*lease, *database),
            Effect::Database(DatabaseEffect::DropResult { query }) => {
                assert!(self.databases.results.remove(query), "dropped twice");
            }
            _ => panic!("not for databases: {effect:?}"),
        }
    }

    /// What a request will know that begins this wait now.
    pub fn ask(&self, id: RequestId, wait: &Wait) -> Asked {
        if *wait == Wait::File {
            let until = self.requests[&id].deadline.map(|deadline| self.now + deadline);
            return Asked { until, ..Asked::default() };
        }
        let Wait::Query(wait) = wait else { return Asked::default() };
        let deadline = wait.deadline.or(self.requests[&id].deadline).filter(|deadline| !deadline.is_zero());
        let query = wait.shared.as_ref().and_then(|sharing| self.databases.shared(&sharing.key));
        Asked {
            query: query.filter(|_| !self.databases.is_closed(self.now)),
            until: deadline.map(|deadline| self.now + deadline),
            open: self.databases.lease_of(self.owner_of(id)).is_some(),
            begun: self.databases.lease_of(self.owner_of(id)).is_some_and(|lease| self.databases.has_begun(lease)),
            busy: self.is_transaction_busy(id),
            over: self.databases.lease_of(self.owner_of(id)).is_some_and(|lease| self.is_ending_with_jobs(lease)),
            ..Asked::default()
        }
    }

    /// It can only be rolled back.
    fn is_ending_with_jobs(&self, lease: LeaseId) -> bool {
        self.databases.leases.get(&lease).is_some_and(|open| open.is_ending) && self.commits.has_jobs(lease)
    }

    pub(crate) fn start_query(
        &mut self,
        id: RequestId,
        query: QueryId,
        database: DatabaseId,
        lease: Option<LeaseId>,
        collect: bool,
    ) {
        let (now, owner) = (self.now, id);
        // What it is begun for may be a branch.
        let id = self.branching.filter(|branch| self.owner_of(*branch) == owner).unwrap_or(owner);
        let is_over = lease.is_some_and(|lease| self.is_ending_with_jobs(lease));
        let is_message = self.request(id).call_of.is_some();
        let Place::Waiting(waiting) = &mut self.request(id).place else { panic!("a query for nobody") };
        let Wait::Query(wait) = waiting.wait.clone() else { panic!("a query that was not asked for") };
        assert_eq!(waiting.asked.query.replace(query), None, "two executions for one key, or one request");
        assert_eq!(collect, waiting.then != Then::Answer || wait.shared.is_some() || is_message);
        let databases = &mut self.databases;
        if matches!(wait.work, QueryWork::Alone | QueryWork::Begin) {
            assert!(!databases.is_closed(now), "begun when their grace was over");
        }
        let known = lease.and_then(|lease| databases.leases.get(&lease));
        match (wait.work, lease) {
            (QueryWork::Alone, None) => assert_eq!(database, wait.database),
            (QueryWork::Begin, Some(lease)) => {
                assert!(known.is_none() && databases.lease_of(owner).is_none(), "two transactions at a time");
                let begun = Lease { request: owner, database, begin: query, given_up: false, is_ending: false };
                databases.leases.insert(lease, begun);
            }
            (QueryWork::Within | QueryWork::Commit | QueryWork::Rollback, Some(_)) => {
                let known = known.expect("the transaction is open");
                assert_eq!((known.request, known.database), (owner, database), "in the transaction of another");
                assert!(!databases.running.contains_key(&known.begin), "in a transaction that has not begun");
                assert!(
                    wait.work == QueryWork::Rollback || !is_over,
                    "in a transaction whose jobs will never be stored"
                );
            }
            (work, lease) => panic!("{work:?} with {lease:?}"),
        }
        if let (QueryWork::Commit | QueryWork::Rollback, Some(lease)) = (wait.work, lease) {
            databases.leases.get_mut(&lease).unwrap().is_ending = true;
        }
        let started = Query { id: query, wait, lease, collect, began: false, cancelled: None, since: now };
        assert!(databases.running.insert(query, started).is_none() && !databases.past.contains(&query), "used twice");
    }

    pub(crate) fn cancel_query(&mut self, id: QueryId) {
        let now = self.now;
        let query = self.databases.running.get_mut(&id).expect("only what has not ended is cancelled");
        assert_eq!(query.cancelled.replace(now), None, "cancelled twice");
        if let (QueryWork::Begin, Some(lease)) = (query.wait.work, query.lease)
            && let Some(lease) = self.databases.leases.get_mut(&lease)
        {
            lease.given_up = true;
        }
        self.databases.cancelled.push(id);
    }

    fn end_lease(&mut self, lease: LeaseId, database: DatabaseId) {
        let ended = self.databases.leases.remove(&lease).expect("a lease ends once");
        assert_eq!(ended.database, database, "ended in another database");
        self.databases.released.push(ended);
        self.seen.insert("released");
    }

    fn begin_rows(&mut self, id: RequestId, query: QueryId) {
        assert_eq!(self.databases.began, Some(query), "rows that have not come");
        let running = &self.databases.running[&query];
        assert!(!running.collect && running.cancelled.is_none());
        let Place::Waiting(waiting) = &mut self.request(id).place else { panic!("rows for nobody") };
        assert_eq!((waiting.asked.query, waiting.then), (Some(query), Then::Answer));
        waiting.asked.rows = true;
        self.seen.insert("rows");
        self.answer(id, Answer::Awaited, Answer::Begun);
    }

    /// An answer whose rows went out as they came is over.
    pub(crate) fn end_rows(&mut self, id: RequestId, whole: bool) {
        if self.end_file(id, whole) {
            return;
        }
        let Some(asked) = self.request(id).waiting().map(|waiting| waiting.asked.clone()) else { return };
        let query = asked.query.filter(|_| asked.rows).expect("an answer that had begun");
        let failed = match &self.databases.ended {
            Some((ended, completed)) if ended.id == query => !completed,
            _ => self.databases.running[&query].cancelled.is_some(),
        };
        assert_eq!(whole, !failed, "rows that are not all of them");
        self.seen.insert(if whole { "rows ended" } else { "rows broken" });
    }

    /// How a query ended is the answer.
    fn answer_query(&mut self, id: RequestId, query: QueryId, late: Option<Reason>) {
        let waiting = self.request(id).waiting().expect("it waited").clone();
        let is_run = self.is_run(id);
        let completed = self.databases.outcome(query);
        let is_group = matches!(waiting.wait, Wait::Group(_));
        if is_group {
            self.seen.insert("a member failed");
        } else {
            assert_eq!(waiting.asked.query, Some(query), "told of another query");
            check_late(&waiting, late);
        }
        assert!(
            waiting.then == Then::Answer || matches!(waiting.then, Then::Call { .. }) && (!completed || late.is_some())
        );
        self.seen.insert(if late.is_some() { "told late" } else { "told" });
        if is_run {
            return assert!(matches!(waiting.then, Then::Call { .. }), "a run is answered");
        }
        self.answer(id, Answer::Awaited, Answer::Ended);
    }

    /// A coroutine goes on with what came of its query.
    pub(crate) fn check_resumed(&mut self, id: RequestId, waiting: &Waiting, outcome: Outcome) {
        match outcome {
            Outcome::Queried { query, completed, late } => {
                assert_eq!(self.databases.outcome(query), completed, "told what is not true");
                check_late(waiting, late);
                self.seen.insert(if late.is_some() { "resumed late" } else { "resumed with rows" });
            }
            Outcome::Refused { refusal } => self.check_refused(id, refusal),
            _ => {}
        }
    }

    pub(crate) fn check_called(&mut self, outcome: Outcome) {
        if let Outcome::Queried { query, completed, late } = outcome {
            assert!(self.databases.results.contains(&query), "called with a dropped result");
            assert!(completed && late.is_none(), "called without rows");
            self.seen.insert("called with rows");
        }
    }

    /// A query that is refused, or whose end is not known in time.
    pub(crate) fn check_refused(&mut self, id: RequestId, refusal: Refusal) {
        let (now, closed) = (self.now, self.drains);
        let operated = self.operated == Some(id);
        let Some(waiting) = self.request(id).waiting().cloned() else { return };
        let Wait::Query(wait) = &waiting.wait else { return };
        let asked = &waiting.asked;
        let never_told = |reason| match &asked.ending {
            Some((since, reasons)) => *since + QUERY_END_MAX <= now && reasons.contains(&reason),
            None => false,
        };
        let up = wait.shared.is_some() && asked.ending.is_none() && asked.until.is_some_and(|until| until <= now);
        let ends = matches!(wait.work, QueryWork::Within | QueryWork::Commit | QueryWork::Rollback);
        let right = match refusal {
            Refusal::QueryTooLong => up || never_told(Reason::Deadline),
            Refusal::QueryCancelledByOperator => operated || never_told(Reason::Operator),
            Refusal::QueryStopped | Refusal::Stopping => closed,
            Refusal::NoTransaction if !asked.begun => ends && !asked.busy,
            Refusal::NoTransaction => ends && asked.over && wait.work != QueryWork::Rollback,
            Refusal::TransactionOpen => wait.work == QueryWork::Begin && asked.open,
            Refusal::TransactionBusy => ends && asked.busy,
            Refusal::BadAnswer => wait.work != QueryWork::Alone && waiting.then != Then::Await,
            Refusal::ParkedFull
            | Refusal::WorkerDied
            | Refusal::NoApplication
            | Refusal::QueueFull
            | Refusal::QueueTooSlow
            | Refusal::StoreFull
            | Refusal::StoreUnavailable
            | Refusal::NotPublished => true,
            _ => false,
        };
        assert!(right, "refused with {refusal:?}: {waiting:?}");
        match refusal {
            Refusal::QueryTooLong => drop(self.seen.insert(if up { "left the others" } else { "never told" })),
            Refusal::NoTransaction if asked.over => drop(self.seen.insert("a transaction with jobs is being ended")),
            Refusal::NoTransaction if asked.open => drop(self.seen.insert("transaction not begun")),
            Refusal::NoTransaction => drop(self.seen.insert("no transaction")),
            Refusal::TransactionOpen => drop(self.seen.insert("transaction open")),
            Refusal::TransactionBusy => drop(self.seen.insert("transaction busy")),
            _ => {}
        }
    }
}

fn check_late(waiting: &Waiting, late: Option<Reason>) {
    match (&waiting.asked.ending, late) {
        (None, None) => {}
        (Some((_, reasons)), Some(late)) => assert!(reasons.contains(&late), "late for another reason"),
        (ending, late) => panic!("late {late:?} and {ending:?}"),
    }
}
