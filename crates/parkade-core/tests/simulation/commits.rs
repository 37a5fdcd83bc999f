//! Transactions that enqueue jobs, in databases of which one may be the store's own. The model knows what truly became of each transaction.

use std::collections::{BTreeMap, BTreeSet};

use parkade_core::limits::{COMMIT_TRIES_COUNT, TRANSACTION_JOBS_BYTES_MAX};
use parkade_core::{
    CommitAnswer, CommitAsk, CommitEffect, CommitEvent, CommitFault, DatabaseId, Event, JobId, LeaseId, PayloadId,
    PlacedJob, Probed, QueryId, QueryWork, RequestId, Status, StoreStanding, Wait, WorkerId,
};

use crate::jobs::Enqueued;
use crate::model::{Model, Place};
use crate::pressure::Enqueuer;
use crate::process::Process;
use crate::queries::Query;
use crate::store::{Command, JOBS_COUNT_MAX, Job, State};
use crate::world::World;

/// So many more than others are enqueued within transactions.
const WITHIN_COUNT_MAX: usize = 150;
/// More than a transaction may enqueue.
const TOO_LARGE: usize = TRANSACTION_JOBS_BYTES_MAX + 1;

#[derive(Debug, Default)]
pub struct Commits {
    /// Those that have enqueued jobs, until the core says that they are over.
    transactions: BTreeMap<LeaseId, Transaction>,
    statements: BTreeMap<QueryId, Statement>,
    /// COMMITs with jobs that have not been sent, and why they will not be.
    unsent: BTreeMap<QueryId, Option<CommitFault>>,
    standing: StoreStanding,
    /// Databases that have stored jobs, as far as the core knows.
    homes: BTreeSet<DatabaseId>,
    closed: BTreeSet<DatabaseId>,
    /// What the step in hand enqueues.
    enqueued: Option<InHand>,
    /// The COMMIT of this transaction has just completed, and its request was told so.
    completed: Option<LeaseId>,
    /// What the step in hand has given to the store.
    given: Vec<Enqueuer>,
    /// Jobs of transactions that were rolled back, or did not commit as far as anybody knows.
    never: BTreeSet<JobId>,
}

#[derive(Debug)]
struct Transaction {
    request: RequestId,
    database: DatabaseId,
    /// What the shell keeps, in order.
    kept: Vec<Kept>,
    bytes: usize,
    /// New jobs that it has stored, and will have if it commits.
    stored: BTreeMap<JobId, Job>,
    /// As which jobs those that it has enqueued are stored.
    placed: BTreeMap<JobId, JobId>,
    looked_up: u32,
    /// What it was answered last says that this server is not one of those that share the jobs.
    rejoins: bool,
    fate: Fate,
    /// The store has been given its jobs.
    is_given: bool,
}

/// What is true of a transaction, whoever knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Open,
    RolledBack,
    Committed,
}

#[derive(Debug, Clone)]
struct Kept {
    id: JobId,
    job: Job,
    by: Enqueuer,
}

#[derive(Debug)]
struct InHand {
    payload: PayloadId,
    request: RequestId,
    kept: Kept,
    /// The transaction that it belongs to.
    lease: Option<LeaseId>,
    is_heard: bool,
}

#[derive(Debug, Clone)]
struct Statement {
    commit: QueryId,
    lease: LeaseId,
    database: DatabaseId,
    ask: CommitAsk,
    is_cancelled: bool,
    /// The shell has yet to look whether the store is open.
    is_new: bool,
}

impl Commits {
    pub fn has_jobs(&self, lease: LeaseId) -> bool {
        self.transactions.contains_key(&lease)
    }

    pub fn is_empty(&self) -> bool {
        self.transactions.is_empty()
    }

    /// Whether a database can end it.
    pub fn is_sent(&self, query: QueryId) -> bool {
        self.unsent.get(&query).is_none_or(Option::is_some)
    }

    /// Whether it will not be sent.
    pub fn has_failed(&self, query: QueryId) -> bool {
        self.unsent.get(&query).is_some_and(Option::is_some)
    }

    /// Of another core: nothing is left but what must never be.
    pub fn anew(&mut self) -> Self {
        Self { never: std::mem::take(&mut self.never), ..Self::default() }
    }

    /// Whether a COMMIT is at a statement that few come to.
    pub fn look_up(&self) -> bool {
        self.statements.values().any(Statement::looks_up)
    }

    fn transaction(&mut self, lease: LeaseId) -> &mut Transaction {
        self.transactions.get_mut(&lease).expect("a transaction that has enqueued jobs")
    }
}

impl Statement {
    fn looks_up(&self) -> bool {
        matches!(self.ask, CommitAsk::LookUp(_)) && !self.is_cancelled
    }
}

impl Transaction {
    fn is_of_itself(&self) -> bool {
        !self.placed.is_empty()
    }

    fn are_too_many(&self) -> bool {
        self.bytes > TRANSACTION_JOBS_BYTES_MAX
    }
}

// What the core asks for.

impl Model {
    pub(crate) fn apply_of_commits(&mut self, effect: &CommitEffect) {
        match effect {
            CommitEffect::Keep { lease, payload } => self.keep(*lease, *payload),
            CommitEffect::NoTransaction { payload, .. } => {
                let enqueued = self.commits.enqueued.as_mut().expect("nothing is enqueued");
                assert_eq!((enqueued.payload, enqueued.lease), (*payload, None), "refused, and there is a transaction");
                enqueued.is_heard = true;
                self.seen.insert("job without a transaction");
            }
            CommitEffect::Begin { commit, request, lease, database } => {
                assert!(self.commits.has_jobs(*lease), "it has no jobs");
                self.start_query(*request, *commit, *database, Some(*lease), true);
                assert_eq!(self.databases.running[commit].wait.work, QueryWork::Commit);
                self.commits.unsent.insert(*commit, None);
                self.seen.insert("commit with jobs");
                self.seen.extend(self.drains.then_some("commit with jobs while the server stops"));
            }
            CommitEffect::Ask { statement, lease, database, ask } => self.ask_in(*statement, *lease, *database, ask),
            CommitEffect::Cancel { commit, statement, .. } => {
                let asked = self.commits.statements.get_mut(statement).expect("it has not ended");
                assert_eq!(asked.commit, *commit);
                assert!(!std::mem::replace(&mut asked.is_cancelled, true), "cancelled twice");
                self.seen.insert(match asked.ask {
                    CommitAsk::Probe => "given up while it was probed",
                    CommitAsk::Enqueue(_) => "given up while it enqueued",
                    CommitAsk::LookUp(_) => "given up while it looked up",
                });
                self.cancel_query(*commit);
            }
            CommitEffect::Commit { commit, lease, database } => self.send_commit(*commit, *lease, *database),
            CommitEffect::Fail { commit, why } => self.fail_commit(*commit, *why),
            CommitEffect::TablesClosed { database } => {
                assert!(self.commits.closed.insert(*database), "told twice");
                self.seen.insert("tables closed");
            }
            CommitEffect::Enqueued { request, job, id } => self.stored_itself(*request, *job, *id),
            CommitEffect::Give { lease, worker, request } => self.give_committed(*lease, *worker, *request),
            CommitEffect::Drop { lease } => self.drop_jobs(*lease),
        }
    }

    fn keep(&mut self, lease: LeaseId, payload: PayloadId) {
        let enqueued = self.commits.enqueued.as_mut().expect("nothing is enqueued");
        assert_eq!((enqueued.payload, enqueued.lease), (payload, Some(lease)), "kept for another transaction");
        assert!(!std::mem::replace(&mut enqueued.is_heard, true), "kept twice");
        let kept = enqueued.kept.clone();
        let transaction = self.commits.transaction(lease);
        assert!(!transaction.are_too_many(), "kept, and will never be stored");
        transaction.kept.push(kept);
    }

    /// The COMMIT of that transaction that has not ended.
    fn commit_of(&self, lease: LeaseId) -> Option<&Query> {
        let commits = |query: &&Query| query.lease == Some(lease) && query.wait.work == QueryWork::Commit;
        self.databases.running.values().find(commits)
    }

    fn check_unsent(&self, lease: LeaseId, database: DatabaseId) -> QueryId {
        let open = self.databases.leases.get(&lease).expect("a statement in a transaction that is over");
        assert_eq!(open.database, database, "in another database");
        let commit = self.commit_of(lease).expect("nobody commits").id;
        assert_eq!(self.commits.unsent.get(&commit), Some(&None), "it has been sent, or has failed");
        assert!(self.databases.running[&commit].cancelled.is_none(), "it goes on though nobody waits for it");
        assert!(!self.commits.statements.values().any(|asked| asked.lease == lease), "two statements at a time");
        commit
    }

    fn ask_in(&mut self, statement: QueryId, lease: LeaseId, database: DatabaseId, ask: &CommitAsk) {
        let commit = self.check_unsent(lease, database);
        let is_used = self.databases.running.contains_key(&statement) || self.databases.past.contains(&statement);
        assert!(!is_used && !self.commits.statements.contains_key(&statement), "a name that is another query's");
        assert_eq!(self.commits.standing, StoreStanding::Open, "asked though the store is not open");
        let is_known = self.commits.homes.contains(&database);
        let transaction = self.commits.transaction(lease);
        match ask {
            CommitAsk::Probe => assert!(!is_known && transaction.placed.is_empty(), "probed in vain"),
            CommitAsk::Enqueue(ids) | CommitAsk::LookUp(ids) => {
                let kept = transaction.kept.iter().map(|kept| kept.id);
                let left: Vec<JobId> = kept.filter(|id| !transaction.placed.contains_key(id)).collect();
                assert_eq!(**ids, left[..], "other jobs, or those that are stored");
            }
        }
        self.databases.past.push(statement);
        let asked = Statement { commit, lease, database, ask: ask.clone(), is_cancelled: false, is_new: true };
        self.commits.statements.insert(statement, asked);
    }

    fn send_commit(&mut self, commit: QueryId, lease: LeaseId, database: DatabaseId) {
        assert_eq!(self.check_unsent(lease, database), commit);
        self.commits.unsent.remove(&commit);
        let transaction = self.commits.transaction(lease);
        assert_eq!(transaction.fate, Fate::Open, "a COMMIT of what was rolled back");
        let is_whole = transaction.kept.iter().all(|kept| transaction.placed.contains_key(&kept.id));
        assert!(is_whole || !transaction.is_of_itself(), "it commits some of its jobs");
    }

    fn fail_commit(&mut self, commit: QueryId, why: CommitFault) {
        let lease = self.databases.running[&commit].lease.expect("a COMMIT has a transaction");
        assert_eq!(self.commits.unsent.insert(commit, Some(why)), Some(None), "it was sent, or has failed already");
        assert!(!self.databases.leases.contains_key(&lease), "it has failed, and its transaction stays open");
        if why == CommitFault::Cancelled && self.databases.running[&commit].cancelled.is_none() {
            assert_ne!(self.commits.standing, StoreStanding::Open, "nothing was waited for");
            self.seen.insert("given up before the store was open");
            self.cancel_query(commit);
        }
        let request = self.commits.transaction(lease).request;
        for released in self.databases.released.iter_mut().filter(|lease| lease.request == request) {
            released.given_up = true;
        }
        let (standing, is_cancelled) = (self.commits.standing, self.databases.running[&commit].cancelled.is_some());
        let transaction = self.commits.transaction(lease);
        assert_ne!(transaction.fate, Fate::Committed);
        transaction.fate = Fate::RolledBack;
        let (is_right, seen) = match why {
            CommitFault::TooManyJobs => (transaction.are_too_many(), "too many jobs in a transaction"),
            CommitFault::StoreRefuses => (standing == StoreStanding::Refuses, "commit refused by the store"),
            CommitFault::Rejoining => (transaction.rejoins, "rejoining"),
            CommitFault::KeysBusy => (transaction.looked_up >= COMMIT_TRIES_COUNT, "keys too busy"),
            CommitFault::Cancelled => (is_cancelled, "commit cancelled before it was sent"),
            CommitFault::Statement(payload) => {
                self.has_come(payload);
                (true, "a statement before the commit failed")
            }
        };
        assert!(is_right, "failed for another reason: {why:?}");
        self.seen.insert(seen);
    }

    /// Its request may be told that all is well.
    fn stored_itself(&mut self, id: RequestId, job: JobId, stored_as: JobId) {
        let lease = self.commits.completed.expect("stored by a transaction that has not committed");
        let transaction = self.commits.transaction(lease);
        assert_eq!(transaction.placed.get(&job), Some(&stored_as), "stored as another");
        self.jobs.has_reason = true;
        if let Some(request) = self.requests.get_mut(&id) {
            request.enqueued.entry(stored_as).or_insert(Enqueued::Stored);
        }
    }

    fn give_committed(&mut self, lease: LeaseId, worker: Option<WorkerId>, id: RequestId) {
        assert_eq!(self.commits.completed, Some(lease), "given to the store by a transaction that has not committed");
        let transaction = self.commits.transaction(lease);
        assert!(!transaction.is_of_itself(), "it has stored them itself");
        assert!(!std::mem::replace(&mut transaction.is_given, true), "given twice");
        for Kept { id: job, job: stored, by } in transaction.kept.clone() {
            // A request may have gone to another worker in its transaction: the first pays for all.
            let by = by.paid_by(worker);
            if let Some(request) = self.requests.get_mut(&id) {
                request.enqueued.insert(job, Enqueued::Pending);
            }
            self.jobs.store.ask(Command::Enqueue { by, request: Some(id), id: job, job: stored });
            self.commits.given.push(by);
        }
        self.seen.insert(if worker.is_some() {
            "jobs given after the commit"
        } else {
            "jobs of a script given after the commit"
        });
    }

    fn drop_jobs(&mut self, lease: LeaseId) {
        assert!(!self.databases.leases.contains_key(&lease), "its transaction is open");
        assert!(self.commit_of(lease).is_none(), "its COMMIT has not ended");
        let transaction = self.commits.transactions.remove(&lease).expect("dropped twice");
        let is_completed = self.commits.completed == Some(lease);
        let is_done = transaction.is_given || transaction.is_of_itself() || transaction.kept.is_empty();
        assert!(!is_completed || is_done, "it has committed, and its jobs are lost: {transaction:?}");
        let is_stored = transaction.fate == Fate::Committed && transaction.is_of_itself();
        if !is_completed && !is_stored {
            self.commits.never.extend(transaction.kept.iter().map(|kept| kept.id));
        }
    }

    /// The transaction commits, whoever hears of it.
    fn commits_truly(&mut self, lease: LeaseId) {
        let transaction = self.commits.transaction(lease);
        assert_eq!(transaction.fate, Fate::Open);
        transaction.fate = Fate::Committed;
        for (id, job) in std::mem::take(&mut transaction.stored) {
            assert!(self.jobs.store.jobs.insert(id, job).is_none(), "stored twice");
            self.seen.insert("jobs stored by their transaction");
        }
    }
}

// What happens.

impl World {
    /// `ENQUEUE` within the transaction of the request, or of none.
    pub(crate) fn enqueues_within(&mut self, process: &Process, request: RequestId, is_ghost: bool) {
        self.enqueues_in_a_transaction(Some(process.id), request, is_ghost);
    }

    /// `worker`: none if it is a script that enqueues.
    pub(crate) fn enqueues_in_a_transaction(&mut self, worker: Option<WorkerId>, request: RequestId, is_ghost: bool) {
        let now = self.now;
        if self.model.jobs.store.jobs.len() > JOBS_COUNT_MAX + WITHIN_COUNT_MAX {
            return self.time_passes();
        }
        let (id, job) = self.model.jobs.store.mint(&mut self.random, now);
        let by = self.enqueuer(worker);
        let bytes = if self.random.below(60) == 0 { TOO_LARGE } else { by.bytes() };
        let lease = self.model.databases.lease_of(request).filter(|_| !is_ghost);
        let lease = lease.filter(|lease| !self.model.databases.leases[lease].is_ending);
        let mut is_heard = is_ghost;
        if let Some(lease) = lease {
            let database = self.model.databases.leases[&lease].database;
            let transaction = self.model.commits.transactions.entry(lease).or_insert_with(|| Transaction {
                request,
                database,
                kept: Vec::new(),
                bytes: 0,
                stored: BTreeMap::new(),
                placed: BTreeMap::new(),
                looked_up: 0,
                rejoins: false,
                fate: Fate::Open,
                is_given: false,
            });
            transaction.bytes += bytes;
            is_heard = transaction.are_too_many();
        } else if !is_ghost {
            self.model.request(request).enqueued.insert(id, Enqueued::Failed);
        }
        let (payload, kept) = (self.payload(), Kept { id, job, by });
        self.model.commits.enqueued = Some(InHand { payload, request, kept, lease, is_heard });
        self.tell(Event::Commit(CommitEvent::Enqueued { worker, request, job: id, bytes, payload }));
        let enqueued = self.model.commits.enqueued.take();
        assert!(enqueued.is_some_and(|enqueued| enqueued.is_heard && enqueued.request == request), "not heard");
    }

    /// By its client, or by its coroutine.
    pub(crate) fn a_commit_is_given_up(&mut self) {
        let commits = &self.model.commits;
        let looks_up = commits.look_up();
        let asking = commits.statements.values().filter(|asked| !looks_up || asked.looks_up());
        let asking: Vec<RequestId> = asking.map(|asked| commits.transactions[&asked.lease].request).collect();
        if asking.is_empty() {
            return self.time_passes();
        }
        let request = *self.one_of(&asking);
        let awaits = |process: &&Process| process.awaiting.contains(&request);
        let process = self.model.processes.values().find(awaits).map(|process| process.id);
        let Some(worker) = process else { return };
        let is_awaited = self
            .model
            .request(request)
            .waiting()
            .is_some_and(|waiting| matches!(&waiting.wait, Wait::Query(wait) if wait.work == QueryWork::Commit));
        if self.random.below(2) == 0 || !is_awaited {
            // What is said on a WebSocket has no client of its own.
            let request = self.model.request(request).call_of.unwrap_or(request);
            self.model.request(request).here = false;
            return self.tell(Event::Left { request });
        }
        if let Place::Waiting(waiting) = &mut self.model.request(request).place {
            waiting.given_up = true;
        }
        self.tell(Event::Unparked { worker, request });
    }

    pub(crate) fn the_store_moves(&mut self) {
        let standing = *self.one_of(&[
            StoreStanding::Open,
            StoreStanding::Open,
            StoreStanding::Open,
            StoreStanding::Opening,
            StoreStanding::Refuses,
        ]);
        let awaits = |(_, why): (&QueryId, &Option<CommitFault>)| why.is_none();
        let is_awaited = self.model.commits.standing == StoreStanding::Opening
            && self.model.commits.statements.is_empty()
            && self.model.commits.unsent.iter().any(awaits);
        if is_awaited && standing == StoreStanding::Open {
            self.model.seen.insert("commit waited for the store");
        }
        self.model.commits.standing = standing;
        self.tell(Event::Commit(CommitEvent::Store(standing)));
    }

    /// The shell's answers to statements that it cannot execute, because the store has just been lost.
    pub(crate) fn statements_in_vain(&mut self) -> Vec<Event> {
        let statements = &mut self.model.commits.statements;
        let new: Vec<QueryId> = statements.iter().filter(|(_, asked)| asked.is_new).map(|(id, _)| *id).collect();
        let mut events = Vec::new();
        for statement in new {
            if self.random.below(20) > 0 {
                self.model.commits.statements.get_mut(&statement).unwrap().is_new = false;
                continue;
            }
            self.model.commits.statements.remove(&statement);
            let standing = *self.one_of(&[StoreStanding::Opening, StoreStanding::Refuses]);
            self.model.commits.standing = standing;
            events.push(Event::Commit(CommitEvent::Store(standing)));
            events.push(Event::Commit(CommitEvent::Answered { statement, answer: CommitAnswer::NotOpen }));
            self.model.seen.insert("store lost before a commit");
        }
        events
    }

    /// Whether a statement of a COMMIT has ended.
    pub(crate) fn a_statement_ends(&mut self) -> bool {
        let all: Vec<QueryId> = self.model.commits.statements.keys().copied().collect();
        if all.is_empty() || self.random.below(2) == 0 {
            return false;
        }
        let id = *self.one_of(&all);
        let asked = self.model.commits.statements.remove(&id).unwrap();
        let is_lost = self.model.commits.transaction(asked.lease).fate != Fate::Open;
        let fails = self.random.below(8) == 0 || asked.is_cancelled && self.random.below(2) == 0;
        let answer = if is_lost || fails {
            // The connection broke, or the transaction is aborted by that.
            self.model.commits.transaction(asked.lease).fate = Fate::RolledBack;
            CommitAnswer::Failed(self.payload())
        } else {
            self.model.seen.extend(asked.is_cancelled.then_some("executed though it was given up"));
            self.executes(&asked)
        };
        self.tell(Event::Commit(CommitEvent::Answered { statement: id, answer }));
        true
    }

    fn executes(&mut self, asked: &Statement) -> CommitAnswer {
        let is_home = asked.database == self.home;
        match &asked.ask {
            CommitAsk::Probe => CommitAnswer::Probed(match (is_home, self.random.below(3)) {
                (true, _) if self.tables_are_closed => Probed::Closed,
                (true, _) | (false, 0) => Probed::Maybe,
                (false, _) => Probed::No,
            }),
            CommitAsk::Enqueue(_) if !is_home => {
                self.model.seen.insert("enqueued in another database");
                CommitAnswer::Enqueued(None)
            }
            CommitAsk::Enqueue(_) if self.random.below(10) == 0 => {
                self.model.commits.transaction(asked.lease).rejoins = true;
                CommitAnswer::Enqueued(None)
            }
            CommitAsk::Enqueue(ids) => {
                if !asked.is_cancelled {
                    self.model.commits.homes.insert(asked.database);
                }
                let most = if self.keys_are_busy { 0 } else { 4 };
                let new = ids.iter().filter(|_| self.random.below(8) < most || self.model.jobs.store.jobs.is_empty());
                let new: Vec<JobId> = new.copied().collect();
                let transaction = self.model.commits.transaction(asked.lease);
                let mut placed = Vec::new();
                for kept in transaction.kept.iter().filter(|kept| new.contains(&kept.id)) {
                    let due = if let State::Scheduled(due) = kept.job.state { Some(due) } else { None };
                    transaction.stored.insert(kept.id, kept.job.clone());
                    transaction.placed.insert(kept.id, kept.id);
                    let wait = due.map(|due| if due > self.now { due - self.now } else { std::time::Duration::ZERO });
                    placed.push(PlacedJob { job: kept.id, id: kept.id, wait });
                }
                CommitAnswer::Enqueued(Some(placed))
            }
            CommitAsk::LookUp(ids) => {
                let there: Vec<JobId> = self.model.jobs.store.jobs.keys().copied().collect();
                let mut placed = Vec::new();
                for job in ids.iter().copied() {
                    if !there.is_empty() && self.random.below(8) < if self.keys_are_busy { 0 } else { 5 } {
                        placed.push(PlacedJob { job, id: *self.one_of(&there), wait: None });
                        self.model.seen.insert("a job with its key was there");
                    }
                }
                let transaction = self.model.commits.transaction(asked.lease);
                transaction.looked_up += 1;
                transaction.placed.extend(placed.iter().map(|placed| (placed.job, placed.id)));
                CommitAnswer::Found(placed)
            }
        }
    }

    /// A COMMIT ends: what is true, and returns what is told.
    pub(crate) fn commit_ends(&mut self, query: &Query, completed: bool) -> bool {
        let Some(lease) = query.lease.filter(|_| query.wait.work == QueryWork::Commit) else { return completed };
        if self.model.commits.unsent.remove(&query.id).is_some() {
            return false;
        }
        let Some(transaction) = self.model.commits.transactions.get(&lease) else { return completed };
        if transaction.fate != Fate::Open {
            return false;
        }
        self.model.seen.extend(query.cancelled.map(|_| "given up while it committed"));
        if completed {
            self.model.commits_truly(lease);
            self.model.commits.completed = Some(lease);
        } else if self.random.below(2) == 0 {
            self.model.commits_truly(lease);
            self.model.seen.insert("answer of a commit with jobs lost");
        } else {
            self.model.commits.transaction(lease).fate = Fate::RolledBack;
        }
        completed
    }

    /// What follows outside the core when the COMMIT has ended.
    pub(crate) fn commit_ended(&mut self) {
        if let Some(lease) = self.model.commits.completed.take() {
            assert!(!self.model.commits.has_jobs(lease), "it has committed, and its jobs are kept");
        }
        for by in std::mem::take(&mut self.model.commits.given) {
            self.write_began(by);
        }
    }

    /// The core is killed. Connections break, and a COMMIT may have come through.
    pub(crate) fn databases_survive(&mut self) {
        let commits = |query: &&Query| query.wait.work == QueryWork::Commit;
        let sent = self.model.databases.running.values().filter(commits);
        let sent: Vec<LeaseId> = sent
            .filter(|query| !self.model.commits.unsent.contains_key(&query.id))
            .filter_map(|query| query.lease)
            .collect();
        for lease in sent {
            let is_open = |transaction: &Transaction| transaction.fate == Fate::Open;
            if self.model.commits.transactions.get(&lease).is_some_and(is_open) && self.random.below(2) == 0 {
                self.model.commits_truly(lease);
                self.model.seen.insert("killed while it committed");
            }
        }
        let commits = &mut self.model.commits;
        for transaction in commits.transactions.values() {
            if transaction.fate != Fate::Committed || !transaction.is_of_itself() {
                commits.never.extend(transaction.kept.iter().map(|kept| kept.id));
            }
        }
    }
}

/// The jobs of a transaction are there if it has committed, and not at all if it has not.
pub fn jobs_share_the_fate_of_their_transaction(world: &World, status: &Status) {
    let commits = &world.model.commits;
    assert_eq!(status.transactions_with_jobs_count, commits.transactions.len(), "jobs are kept of no transaction");
    for job in &commits.never {
        assert!(
            !world.model.jobs.store.jobs.contains_key(job),
            "{job:?} is stored, and its transaction did not commit"
        );
    }
    for (lease, transaction) in &commits.transactions {
        let is_there = world.model.databases.leases.contains_key(lease) || world.model.commit_of(*lease).is_some();
        assert!(is_there, "jobs are kept of a transaction that is over: {transaction:?}");
        let open = world.model.databases.leases.get(lease);
        assert!(open.is_none_or(|open| open.database == transaction.database));
    }
    for (commit, why) in &commits.unsent {
        let is_asking = commits.statements.values().any(|asked| asked.commit == *commit);
        let waits = commits.standing == StoreStanding::Opening || world.model.exited.is_some();
        assert!(why.is_some() || is_asking || waits, "{commit:?} waits for nothing");
    }
}
