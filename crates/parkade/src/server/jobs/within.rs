//! Jobs that belong to a request's transaction: enqueued when that commits, and not at all when it does not.
//!
//! ```text
//! COMMIT ──▶ Probing ──▶ Enqueueing ──▶ LookingUp ──▶ Committing ──▶ enqueued, by the transaction itself
//!    │          └─ another database ─┴──────────────▶ Committing ──▶ given to the store
//!    └─ no PostgreSQL ──────────────────────────────▶ Committing ──▶ given to the store
//! ```
//!
//! Whatever fails on the way rolls back, and is how the COMMIT has ended. One that comes while the store is being opened waits for that.

use parkade_core::{DatabaseId, Event, QueryId, RequestId, StoreFault, WorkerId};
use parkade_jobs::postgres::{Placed, Probe, Within, enqueued, looked_up, probed};
use parkade_jobs::{Fault, NewJob};
use parkade_sql::{DatabaseWork, FailureKind, LeaseId, Query, QueryEnd, QueryFailure};
use parkade_wire::Enqueued;

use super::Server;
use crate::store::wall;

/// Jobs of one transaction, and the bytes of their arguments. Beyond that it fails.
const JOBS_COUNT_MAX: usize = 10_000;
const JOBS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The job that has a key may end while it is looked up; then it is tried again.
const TRIES_MAX: u8 = 3;
/// Numbers of statements from here on are ours, those below are the core's.
const STATEMENTS: u64 = 1 << 63;

/// Jobs that wait for the COMMIT of their request's transaction.
#[derive(Debug)]
pub struct Waiting {
    worker: WorkerId,
    jobs: Vec<NewJob>,
    bytes: usize,
    are_too_many: bool,
}

/// A COMMIT that enqueues jobs.
pub struct Committing {
    request: RequestId,
    worker: WorkerId,
    database: DatabaseId,
    lease: LeaseId,
    commit: QueryId,
    jobs: Vec<NewJob>,
    stage: Stage,
    placed: Placed,
    /// What the statement under way has given so far.
    rows: Vec<u8>,
    tries: u8,
}

enum Stage {
    Probing(Within),
    Enqueueing(Within),
    LookingUp(Within),
    /// `is_done`: the transaction has enqueued them; else the store is to have them.
    Committing {
        is_done: bool,
    },
}

impl Server {
    /// `ENQUEUE` with `within`.
    pub(in crate::server) fn enqueue_within(&mut self, worker: WorkerId, request: Option<RequestId>, job: Enqueued) {
        // Its request has ended, and so has its transaction.
        let Some(request) = request.filter(|request| self.clients.exchanges.is_open(*request)) else { return };
        if !self.core.has_transaction(request) {
            tracing::error!(
                worker = worker.0,
                job = job.name,
                "a job was enqueued within a transaction, but none is open; the request fails"
            );
            self.tell(Event::JobEnqueued { worker, request });
            return self.tell(Event::JobStored { request, fault: Some(StoreFault::Unavailable) });
        }
        let job = self.jobs.new_job(job);
        let Some(exchange) = self.clients.exchanges.of(request) else { return };
        let waiting = exchange
            .jobs
            .get_or_insert_default()
            .within
            .get_or_insert_with(|| Box::new(Waiting { worker, jobs: Vec::new(), bytes: 0, are_too_many: false }));
        waiting.bytes += job.arguments.len();
        waiting.are_too_many |= waiting.bytes > JOBS_BYTES_MAX || waiting.jobs.len() >= JOBS_COUNT_MAX;
        if !waiting.are_too_many {
            waiting.jobs.push(job);
        }
    }

    /// The transaction is over: the jobs that waited for its COMMIT.
    pub(in crate::server) fn take_within(&mut self, request: RequestId) -> Option<Box<Waiting>> {
        self.clients.exchanges.of(request)?.jobs.as_mut()?.within.take()
    }

    /// Carries out a COMMIT, and what waits for it.
    pub(in crate::server) fn commit_jobs(
        &mut self,
        request: RequestId,
        (commit, database, lease): (QueryId, DatabaseId, LeaseId),
        waiting: Waiting,
    ) {
        let Waiting { worker, jobs, are_too_many, .. } = waiting;
        let (placed, rows) = (Placed::new(), Vec::new());
        let stage = Stage::Committing { is_done: false };
        let committing = Committing { request, worker, database, lease, commit, jobs, stage, placed, rows, tries: 0 };
        if are_too_many {
            let told = format!("a transaction enqueues at most {JOBS_COUNT_MAX} jobs, with {JOBS_BYTES_MAX} bytes");
            return self.roll_back(&committing, QueryEnd::Failed(QueryFailure::new(FailureKind::TooLarge, told)));
        }
        self.begin_committing(committing);
    }

    /// By the transaction itself, where its database may be the one that holds the jobs. As long as the store is being opened nobody can tell.
    fn begin_committing(&mut self, committing: Committing) {
        match self.jobs.store.within() {
            Some(within) if self.databases.is_postgres(committing.database) => match within {
                Err(fault) => self.roll_back(&committing, refused(&fault)),
                Ok(None) => self.commits.early.push(committing),
                Ok(Some(within)) if self.commits.homes.contains(&committing.database) => {
                    self.enqueue_by(committing, within);
                }
                Ok(Some(within)) => self.ask_within(committing, Stage::Probing(within), Within::probe()),
            },
            _ => self.commit(committing, false),
        }
    }

    /// The store may be open now.
    pub(in crate::server) fn begin_the_early(&mut self) {
        for committing in std::mem::take(&mut self.commits.early) {
            self.begin_committing(committing);
        }
    }

    /// Whether a statement is one of those that are carried out here.
    pub(in crate::server) fn is_for_jobs(event: &parkade_sql::QueryEvent) -> bool {
        let (parkade_sql::QueryEvent::Started { query }
        | parkade_sql::QueryEvent::Piece { query, .. }
        | parkade_sql::QueryEvent::Ended { query, .. }) = event;
        query.0 >= STATEMENTS
    }

    pub(in crate::server) fn hear_within(&mut self, event: parkade_sql::QueryEvent) {
        match event {
            parkade_sql::QueryEvent::Started { .. } => {}
            parkade_sql::QueryEvent::Piece { query, bytes } => {
                let Some(committing) = self.commits.committing.get_mut(&query) else { return };
                committing.rows.extend_from_slice(&bytes);
                self.databases.taken(committing.database, query, bytes.len());
            }
            parkade_sql::QueryEvent::Ended { query, end } => {
                let Some(committing) = self.commits.committing.remove(&query) else { return };
                match end {
                    QueryEnd::Completed(_) => self.go_on_committing(committing),
                    end => self.roll_back(&committing, end),
                }
            }
        }
    }

    fn go_on_committing(&mut self, mut committing: Committing) {
        let rows = std::mem::take(&mut committing.rows);
        let stage = std::mem::replace(&mut committing.stage, Stage::Committing { is_done: false });
        let fault = match stage {
            Stage::Probing(within) => match probed(&rows) {
                Ok(Probe::Maybe) => return self.enqueue_by(committing, within),
                Ok(Probe::No) => return self.commit(committing, false),
                Ok(Probe::Closed) => return self.commit_past_closed_tables(committing),
                Err(fault) => fault,
            },
            Stage::Enqueueing(within) => match enqueued(&rows) {
                Ok(Some(placed)) => return self.enqueued_by(committing, within, placed),
                // It was here before: the other servers have taken this one for lost. Soon it is here again.
                Ok(None) if self.commits.homes.contains(&committing.database) => {
                    Fault::Unavailable("this server is rejoining the others".into())
                }
                Ok(None) => return self.commit(committing, false),
                Err(fault) => fault,
            },
            Stage::LookingUp(within) => match looked_up(&rows, &unplaced(&committing)) {
                Ok(placed) => return self.looked_up_by(committing, within, placed),
                Err(fault) => fault,
            },
            Stage::Committing { .. } => return,
        };
        self.roll_back(&committing, refused(&fault));
    }

    fn ask_within(&mut self, mut committing: Committing, stage: Stage, query: Query) {
        self.commits.statements += 1;
        let statement = QueryId(STATEMENTS + self.commits.statements);
        let (database, lease) = (committing.database, committing.lease);
        committing.stage = stage;
        self.commits.committing.insert(statement, committing);
        self.databases.submit(database, self.clock.at(self.now), statement, DatabaseWork::Within { lease, query });
    }

    fn enqueue_by(&mut self, committing: Committing, within: Within) {
        let jobs: Vec<_> = unplaced(&committing);
        let query = within.enqueue(wall(), &jobs);
        self.ask_within(committing, Stage::Enqueueing(within), query);
    }

    fn enqueued_by(&mut self, mut committing: Committing, within: Within, placed: Placed) {
        self.commits.homes.insert(committing.database);
        committing.placed.extend(placed);
        let known = unplaced(&committing);
        if known.is_empty() {
            return self.commit(committing, true);
        }
        let query = within.look_up(&known);
        self.ask_within(committing, Stage::LookingUp(within), query);
    }

    fn looked_up_by(&mut self, mut committing: Committing, within: Within, placed: Placed) {
        committing.placed.extend(placed);
        committing.tries += 1;
        if unplaced(&committing).is_empty() {
            self.commit(committing, true);
        } else if committing.tries < TRIES_MAX {
            self.enqueue_by(committing, within);
        } else {
            let fault = Fault::Unavailable("other jobs with the same keys begin and end too quickly".into());
            self.roll_back(&committing, refused(&fault));
        }
    }

    /// Without their privilege the transaction cannot tell whether these are the right tables.
    fn commit_past_closed_tables(&mut self, committing: Committing) {
        let database = self.databases.name(committing.database).to_owned();
        if self.commits.closed.insert(committing.database) {
            tracing::warn!(
                database,
                "jobs are enqueued after its transactions have committed, not within them: its role has no access to the schema parkade (see docs/jobs.md)"
            );
        }
        self.commit(committing, false);
    }

    fn commit(&mut self, mut committing: Committing, is_done: bool) {
        let (database, lease, commit) = (committing.database, committing.lease, committing.commit);
        committing.stage = Stage::Committing { is_done };
        self.commits.committing.insert(commit, committing);
        self.databases.submit(database, self.clock.at(self.now), commit, DatabaseWork::Commit { lease });
    }

    /// The COMMIT has ended so: nothing of the transaction stays.
    fn roll_back(&mut self, committing: &Committing, end: QueryEnd) {
        let Committing { database, lease, commit, .. } = *committing;
        self.databases.release(database, self.clock.at(self.now), lease);
        self.databases.end_without(commit, end);
    }

    /// Whether the COMMIT has not been asked for yet: then it will not be.
    pub(in crate::server) fn cancel_committing(&mut self, commit: QueryId) -> bool {
        if let Some(at) = self.commits.early.iter().position(|early| early.commit == commit) {
            let early = self.commits.early.swap_remove(at);
            self.roll_back(&early, QueryEnd::Cancelled);
            return true;
        }
        let mut all = self.commits.committing.iter();
        let Some((statement, committing)) = all.find(|(_, committing)| committing.commit == commit) else {
            return false;
        };
        let (statement, database) = (*statement, committing.database);
        if statement == commit {
            return false;
        }
        self.databases.cancel(database, self.clock.at(self.now), statement);
        true
    }

    /// A COMMIT has ended, and its coroutine goes on.
    pub(in crate::server) fn jobs_committed(&mut self, commit: QueryId, completed: bool) {
        let Some(Committing { request, worker, jobs, stage, placed, .. }) = self.commits.committing.remove(&commit)
        else {
            return;
        };
        if !completed {
            return;
        }
        for job in jobs {
            self.tell(Event::JobEnqueued { worker, request });
            if !matches!(stage, Stage::Committing { is_done: true }) {
                self.with_jobs(|jobs, cx| jobs.enqueue_for_worker(cx, worker, Some(request), job));
                continue;
            }
            let (id, wait) = placed.get(&job.id).copied().unwrap_or((job.id, None));
            self.jobs.store.add_enqueued(u64::from(id == job.id));
            self.clients.exchanges.note_stored(request, job.id, id);
            self.tell(Event::JobStored { request, fault: None });
            self.tell(Event::JobsReady { after: wait });
        }
    }
}

/// Those of which it is not known yet as which job they are enqueued.
fn unplaced(committing: &Committing) -> Vec<&NewJob> {
    committing.jobs.iter().filter(|job| !committing.placed.contains_key(&job.id)).collect()
}

fn refused(fault: &Fault) -> QueryEnd {
    let kind = match fault {
        Fault::Unavailable(_) => FailureKind::Unreachable,
        Fault::QueueFull => FailureKind::QueueFull,
        Fault::Full(_) | Fault::Failed(_) => FailureKind::Unsupported,
    };
    QueryEnd::Failed(QueryFailure::new(kind, format!("its jobs cannot be enqueued: {fault}")))
}
