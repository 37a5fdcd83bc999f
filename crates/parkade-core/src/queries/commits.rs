//! Transactions that enqueue jobs: these are stored when the transaction commits, and not at all when it does not.
//!
//! ```text
//! COMMIT ──▶ AwaitsStore ──▶ probe ──▶ enqueue ◀─▶ look up ──▶ Commits ──▶ stored by the transaction itself
//!    │                         └── another database ─┴────────▶ Commits ──▶ given to the store
//!    └── no database of the store's kind ─────────────────────▶ Commits ──▶ given to the store
//! ```
//!
//! Whatever fails before the COMMIT is sent rolls back, and is how the COMMIT has ended.

use std::collections::{HashMap, HashSet};

use super::commit::{CommitAnswer, CommitAsk, CommitEffect, CommitFault, PlacedJob, Probed, StoreStanding};
use super::execution::QueryIds;
use super::leases::OpenTransaction;
use crate::context::Context;
use crate::effect::Effect;
use crate::limits::{COMMIT_TRIES_COUNT, TRANSACTION_JOBS_BYTES_MAX, TRANSACTION_JOBS_COUNT_MAX};
use crate::refused::Refused;
use parkade_model::{DatabaseId, IdMap, JobId, LeaseId, PayloadId, QueryId, RequestId, WorkerId};

/// Most transactions enqueue nothing, and are not here.
#[derive(Debug, Default)]
pub struct Commits {
    transactions: IdMap<LeaseId, EnqueuedJobs>,
    under_way: IdMap<QueryId, Commit>,
    /// The COMMITs that these statements are for.
    statements: IdMap<QueryId, QueryId>,
    /// COMMITs that wait until the store is open. Each holds a connection, so there are never many.
    early: Vec<QueryId>,
    store: StoreStanding,
    /// Databases whose transactions have stored jobs: the jobs are there.
    homes: HashSet<DatabaseId>,
    /// Databases of which it was said that their role may not do so.
    closed: HashSet<DatabaseId>,
}

/// A job that is enqueued within a transaction.
#[derive(Debug, Clone, Copy)]
pub struct EnqueuedJob {
    /// None if a script enqueues it.
    pub worker: Option<WorkerId>,
    pub job: JobId,
    pub bytes: usize,
    pub payload: PayloadId,
}

/// A COMMIT that was not sent: its transaction is to be rolled back.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct FailedCommit {
    pub commit: QueryId,
    pub request: RequestId,
    pub lease: LeaseId,
    pub why: CommitFault,
}

/// What follows for a COMMIT that is cancelled.
#[derive(Debug)]
pub enum CommitCancel {
    /// It has been sent, or has failed, or enqueues nothing: it is cancelled like any query.
    AsAQuery,
    /// It ends when its statement has.
    Ends,
    Failed(FailedCommit),
}

/// The jobs of a transaction that has committed.
#[derive(Debug)]
pub struct CommittedJobs {
    pub lease: LeaseId,
    pub worker: Option<WorkerId>,
    pub request: RequestId,
    pub jobs: JobsAfterCommit,
}

#[derive(Debug)]
pub enum JobsAfterCommit {
    /// The transaction has stored them.
    Placed(Vec<PlacedJob>),
    /// So many are for the store.
    ForTheStore(usize),
}

#[derive(Debug)]
struct EnqueuedJobs {
    /// That of the request.
    worker: Option<WorkerId>,
    jobs: Vec<JobId>,
    known: HashSet<JobId>,
    bytes: usize,
    are_too_many: bool,
}

#[derive(Debug)]
struct Commit {
    request: RequestId,
    worker: Option<WorkerId>,
    lease: LeaseId,
    database: DatabaseId,
    jobs: Vec<JobId>,
    placed: HashMap<JobId, PlacedJob>,
    stage: CommitStage,
    /// How often its jobs were enqueued and looked up.
    tries: u32,
    is_cancelled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommitStage {
    AwaitsStore,
    Asks(QueryId),
    /// `has_stored`: the transaction has stored its jobs.
    Commits {
        has_stored: bool,
    },
    Failed,
}

impl Commits {
    /// How many transactions with jobs there are.
    pub fn count(&self) -> usize {
        self.transactions.len()
    }

    /// A job is enqueued within the transaction.
    pub fn keep(&mut self, cx: &mut Context, lease: LeaseId, enqueued: EnqueuedJob) {
        let EnqueuedJob { worker, job, bytes, payload } = enqueued;
        let transaction = self.transactions.entry(lease).or_insert_with(|| EnqueuedJobs::of(worker));
        if transaction.add(job, bytes) {
            cx.effects.push(Effect::Commit(CommitEffect::Keep { lease, payload }));
        }
    }

    /// Whether its COMMIT has jobs to store.
    pub fn has_jobs(&self, lease: LeaseId) -> bool {
        !self.transactions.is_empty() && self.transactions.contains_key(&lease)
    }

    /// The request asks for the COMMIT of a transaction that has jobs.
    pub fn begin(
        &mut self,
        cx: &mut Context,
        ids: &mut QueryIds,
        (commit, request): (QueryId, RequestId),
        OpenTransaction { id: lease, database, .. }: OpenTransaction,
    ) -> Option<FailedCommit> {
        let transaction = self.transactions.get_mut(&lease)?;
        let (worker, jobs, are_too_many) =
            (transaction.worker, std::mem::take(&mut transaction.jobs), transaction.are_too_many);
        let (placed, stage) = (HashMap::new(), CommitStage::AwaitsStore);
        let begun = Commit { request, worker, lease, database, jobs, placed, stage, tries: 0, is_cancelled: false };
        self.under_way.insert(commit, begun);
        cx.effects.push(Effect::Commit(CommitEffect::Begin { commit, request, lease, database }));
        if are_too_many { self.fail(commit, CommitFault::TooManyJobs) } else { self.approach(cx, ids, commit) }
    }

    /// How the store stands. COMMITs that have waited for that go on.
    pub fn store_stands(&mut self, cx: &mut Context, ids: &mut QueryIds, standing: StoreStanding) -> Vec<FailedCommit> {
        self.store = standing;
        if standing == StoreStanding::Opening {
            return Vec::new();
        }
        let early = std::mem::take(&mut self.early);
        early.into_iter().filter_map(|commit| self.approach(cx, ids, commit)).collect()
    }

    /// A statement has ended.
    pub fn answered(
        &mut self,
        cx: &mut Context,
        ids: &mut QueryIds,
        statement: QueryId,
        answer: CommitAnswer,
    ) -> Option<FailedCommit> {
        let id = self.statements.remove(&statement);
        let Some((id, commit)) = id.and_then(|id| Some((id, self.under_way.get_mut(&id)?))) else {
            cx.counts.refused_events.add(Refused::Unknown);
            return None;
        };
        let (database, is_cancelled) = (commit.database, commit.is_cancelled);
        match answer {
            CommitAnswer::Failed(payload) => self.fail(id, CommitFault::Statement(payload)),
            _ if is_cancelled => self.fail(id, CommitFault::Cancelled),
            // How it stands was told before.
            CommitAnswer::NotOpen if self.store == StoreStanding::Open => self.fail(id, CommitFault::StoreRefuses),
            CommitAnswer::NotOpen => self.approach(cx, ids, id),
            CommitAnswer::Probed(Probed::Maybe) => self.enqueue(cx, ids, id),
            CommitAnswer::Probed(Probed::Closed) => {
                if self.closed.insert(database) {
                    cx.effects.push(Effect::Commit(CommitEffect::TablesClosed { database }));
                }
                self.commit(cx, id, false)
            }
            // The jobs were here before: the other servers have declared this one dead, and it joins them again soon.
            CommitAnswer::Enqueued(None) if self.homes.contains(&database) => self.fail(id, CommitFault::Rejoining),
            CommitAnswer::Enqueued(None) | CommitAnswer::Probed(Probed::No) => self.commit(cx, id, false),
            CommitAnswer::Enqueued(Some(placed)) => {
                self.homes.insert(database);
                commit.place(placed);
                if commit.is_placed() {
                    return self.commit(cx, id, true);
                }
                let unplaced = commit.unplaced();
                self.ask(cx, ids, id, CommitAsk::LookUp(unplaced))
            }
            CommitAnswer::Found(placed) => {
                commit.place(placed);
                commit.tries += 1;
                if commit.is_placed() {
                    self.commit(cx, id, true)
                } else if commit.tries < COMMIT_TRIES_COUNT {
                    self.enqueue(cx, ids, id)
                } else {
                    self.fail(id, CommitFault::KeysBusy)
                }
            }
        }
    }

    /// Nobody waits for the COMMIT any more. If it has not been sent, it will not be.
    pub fn cancel(&mut self, cx: &mut Context, id: QueryId) -> CommitCancel {
        if self.under_way.is_empty() {
            return CommitCancel::AsAQuery;
        }
        let Some(commit) = self.under_way.get_mut(&id) else { return CommitCancel::AsAQuery };
        match commit.stage {
            CommitStage::Commits { .. } | CommitStage::Failed => CommitCancel::AsAQuery,
            CommitStage::Asks(statement) => {
                commit.is_cancelled = true;
                let database = commit.database;
                cx.effects.push(Effect::Commit(CommitEffect::Cancel { commit: id, statement, database }));
                CommitCancel::Ends
            }
            CommitStage::AwaitsStore => {
                self.early.retain(|early| *early != id);
                self.fail(id, CommitFault::Cancelled).map_or(CommitCancel::Ends, CommitCancel::Failed)
            }
        }
    }

    /// A COMMIT has ended. Returns the jobs that are to be stored, or that are.
    pub fn end(&mut self, cx: &mut Context, id: QueryId, completed: bool) -> Option<CommittedJobs> {
        if self.under_way.is_empty() {
            return None;
        }
        let Commit { request, worker, lease, jobs, mut placed, stage, .. } = self.under_way.remove(&id)?;
        self.transactions.remove(&lease);
        let jobs = match stage {
            CommitStage::Commits { has_stored: true } if completed => {
                JobsAfterCommit::Placed(jobs.iter().filter_map(|job| placed.remove(job)).collect())
            }
            CommitStage::Commits { has_stored: false } if completed => JobsAfterCommit::ForTheStore(jobs.len()),
            CommitStage::Commits { .. } | CommitStage::Failed | CommitStage::Asks(_) | CommitStage::AwaitsStore => {
                cx.effects.push(Effect::Commit(CommitEffect::Drop { lease }));
                return None;
            }
        };
        Some(CommittedJobs { lease, worker, request, jobs })
    }

    /// The transaction is over for its request. The jobs of one that is being committed are needed until that has ended.
    pub fn close(&mut self, cx: &mut Context, lease: LeaseId) {
        if !self.has_jobs(lease) || self.under_way.values().any(|commit| commit.lease == lease) {
            return;
        }
        self.transactions.remove(&lease);
        cx.effects.push(Effect::Commit(CommitEffect::Drop { lease }));
    }

    /// By the transaction itself, where its database may be the one that has the jobs.
    fn approach(&mut self, cx: &mut Context, ids: &mut QueryIds, id: QueryId) -> Option<FailedCommit> {
        let database = self.under_way.get(&id)?.database;
        if !cx.config.job_databases.contains(&database) {
            self.commit(cx, id, false)
        } else if self.homes.contains(&database) {
            self.enqueue(cx, ids, id)
        } else {
            self.ask(cx, ids, id, CommitAsk::Probe)
        }
    }

    fn await_store(&mut self, id: QueryId) -> Option<FailedCommit> {
        self.under_way.get_mut(&id)?.stage = CommitStage::AwaitsStore;
        self.early.push(id);
        None
    }

    fn enqueue(&mut self, cx: &mut Context, ids: &mut QueryIds, id: QueryId) -> Option<FailedCommit> {
        let unplaced = self.under_way.get(&id)?.unplaced();
        self.ask(cx, ids, id, CommitAsk::Enqueue(unplaced))
    }

    /// As long as the store is being opened nobody can tell where the jobs are.
    fn ask(&mut self, cx: &mut Context, ids: &mut QueryIds, id: QueryId, ask: CommitAsk) -> Option<FailedCommit> {
        match self.store {
            StoreStanding::Open => {}
            StoreStanding::Opening => return self.await_store(id),
            StoreStanding::Refuses => return self.fail(id, CommitFault::StoreRefuses),
        }
        let commit = self.under_way.get_mut(&id)?;
        let statement = ids.mint();
        commit.stage = CommitStage::Asks(statement);
        self.statements.insert(statement, id);
        let (lease, database) = (commit.lease, commit.database);
        cx.effects.push(Effect::Commit(CommitEffect::Ask { statement, lease, database, ask }));
        None
    }

    fn commit(&mut self, cx: &mut Context, id: QueryId, has_stored: bool) -> Option<FailedCommit> {
        let commit = self.under_way.get_mut(&id)?;
        commit.stage = CommitStage::Commits { has_stored };
        let (lease, database) = (commit.lease, commit.database);
        cx.effects.push(Effect::Commit(CommitEffect::Commit { commit: id, lease, database }));
        None
    }

    fn fail(&mut self, id: QueryId, why: CommitFault) -> Option<FailedCommit> {
        let commit = self.under_way.get_mut(&id)?;
        commit.stage = CommitStage::Failed;
        Some(FailedCommit { commit: id, request: commit.request, lease: commit.lease, why })
    }
}

impl EnqueuedJobs {
    fn of(worker: Option<WorkerId>) -> Self {
        Self { worker, jobs: Vec::new(), known: HashSet::new(), bytes: 0, are_too_many: false }
    }

    /// Returns whether the job is to be kept: not if it is there already, or the COMMIT will fail because there are too many.
    fn add(&mut self, job: JobId, bytes: usize) -> bool {
        if self.are_too_many || !self.known.insert(job) {
            return false;
        }
        self.bytes += bytes;
        self.are_too_many = self.bytes > TRANSACTION_JOBS_BYTES_MAX || self.jobs.len() >= TRANSACTION_JOBS_COUNT_MAX;
        if !self.are_too_many {
            self.jobs.push(job);
        }
        !self.are_too_many
    }
}

impl Commit {
    fn place(&mut self, placed: Vec<PlacedJob>) {
        self.placed.extend(placed.into_iter().map(|placed| (placed.job, placed)));
    }

    fn is_placed(&self) -> bool {
        self.jobs.iter().all(|job| self.placed.contains_key(job))
    }

    /// Those of which it is not known yet as which job they are stored.
    fn unplaced(&self) -> Box<[JobId]> {
        self.jobs.iter().filter(|job| !self.placed.contains_key(job)).copied().collect()
    }
}
