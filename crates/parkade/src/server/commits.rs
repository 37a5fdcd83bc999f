//! Transactions that enqueue jobs: passes what happens to the core, and carries out its effects.
//!
//! Methods of the server alone, on purpose: each effect takes a few lines, which need the databases, the store and the
//! jobs.

use parkade_core::limits::{TRANSACTION_JOBS_BYTES_MAX, TRANSACTION_JOBS_COUNT_MAX};
use parkade_core::{CommitAnswer, CommitAsk, CommitEffect, CommitEvent, CommitFault, Event, StoreStanding};
use parkade_jobs::Fault;
use parkade_model::{DatabaseId, LeaseId, QueryId, QueryWork, RequestId, WorkerId};
use parkade_sql::{DatabaseWork, FailureKind, QueryEnd, QueryEvent, QueryFailure};
use parkade_wire::Enqueued;

use super::Server;
use super::payloads::Payload;
use crate::jobs::refused;
use crate::queries::{Start, WorkRequest};

impl Server {
    /// `ENQUEUE` within the request's transaction.
    pub(super) fn worker_enqueued_within(&mut self, worker: WorkerId, request: Option<RequestId>, job: Enqueued) {
        // Without a request there is no transaction: both have ended.
        let Some(request) = request else { return };
        let job = self.jobs.new_job(job);
        let (id, bytes) = (job.id, job.arguments.len());
        self.tell_with(Payload::Job(Box::new(job)), |payload| {
            Event::Commit(CommitEvent::Enqueued { worker, request, job: id, bytes, payload })
        });
    }

    /// Tells the core how the store stands, if that has changed.
    pub(super) fn tell_standing(&mut self) {
        let Some(within) = self.jobs.store.within() else { return };
        let standing = match within {
            Err(_) => StoreStanding::Refuses,
            Ok(None) => StoreStanding::Opening,
            Ok(Some(_)) => StoreStanding::Open,
        };
        if let Some(standing) = self.transaction_jobs.note_standing(standing) {
            self.tell(Event::Commit(CommitEvent::Store(standing)));
        }
    }

    /// A statement of a COMMIT has rows, or has ended.
    pub(super) fn hear_statement(&mut self, event: QueryEvent) {
        match event {
            QueryEvent::Started { .. } => {}
            QueryEvent::Piece { query, bytes } => {
                if let Some(database) = self.transaction_jobs.add_rows(query, &bytes) {
                    self.databases.taken(database, query, bytes.len());
                }
            }
            QueryEvent::Ended { query, end } => match self.transaction_jobs.end(query, end) {
                None => {}
                Some(Ok(answer)) => self.answer_commit(query, answer),
                Some(Err(end)) => self.tell_with(Payload::End(Box::new(end)), |payload| {
                    let answer = CommitAnswer::Failed(payload);
                    Event::Commit(CommitEvent::Answered { statement: query, answer })
                }),
            },
        }
    }

    pub(super) fn act_on_commits(&mut self, effect: CommitEffect) {
        match effect {
            CommitEffect::Keep { lease, payload } => {
                if let Some(job) = self.payloads.take_job(payload) {
                    self.transaction_jobs.keep(lease, job);
                }
            }
            CommitEffect::NoTransaction { worker, payload } => {
                let job = self.payloads.take_job(payload).map(|job| job.name);
                tracing::error!(
                    worker = worker.0,
                    job,
                    "a job was enqueued within a transaction, but none is open; the request fails"
                );
            }
            CommitEffect::Begin { commit: query, request, lease, database } => {
                let (work, lease) = (QueryWork::Commit, Some(lease));
                let start = Start { query, request, database, work, lease, collect: true };
                if let Err(failure) = self.queries.start(&start, WorkRequest::End, self.now) {
                    self.databases.end_without(query, QueryEnd::Failed(failure));
                }
            }
            CommitEffect::Ask { statement, lease, database, ask } => {
                self.ask_for_commit(statement, lease, database, ask);
            }
            CommitEffect::Cancel { commit, statement, database } => {
                self.queries.cancelled(commit, self.now);
                self.databases.cancel(database, self.clock.at(self.now), statement);
            }
            CommitEffect::Commit { commit, lease, database } => {
                self.databases.submit(database, self.clock.at(self.now), commit, DatabaseWork::Commit { lease });
            }
            CommitEffect::Fail { commit, why } => {
                if why == CommitFault::Cancelled {
                    self.queries.cancelled(commit, self.now);
                }
                let end = self.commit_end(why);
                self.databases.end_without(commit, end);
            }
            CommitEffect::TablesClosed { database } => {
                let database = self.databases.name(database);
                tracing::warn!(
                    database,
                    "jobs are enqueued after its transactions have committed, not within them: its role has no access to the schema parkade (see docs/jobs.md)"
                );
            }
            CommitEffect::Enqueued { request, job, id } => {
                self.jobs.store.add_enqueued(u64::from(job == id));
                self.clients.exchanges.note_stored(request, job, id);
            }
            CommitEffect::Give { lease, worker, request } => {
                for job in self.transaction_jobs.take(lease) {
                    self.with_jobs(|jobs, cx| jobs.enqueue_for_worker(cx, worker, Some(request), job));
                }
            }
            CommitEffect::Drop { lease } => drop(self.transaction_jobs.take(lease)),
        }
    }

    fn ask_for_commit(&mut self, statement: QueryId, lease: LeaseId, database: DatabaseId, ask: CommitAsk) {
        let Some(Ok(Some(within))) = self.jobs.store.within() else {
            self.tell_standing();
            return self.answer_commit(statement, CommitAnswer::NotOpen);
        };
        let query = self.transaction_jobs.begin(statement, (lease, database), ask, &within);
        self.databases.submit(database, self.clock.at(self.now), statement, DatabaseWork::Within { lease, query });
    }

    fn answer_commit(&mut self, statement: QueryId, answer: CommitAnswer) {
        self.tell(Event::Commit(CommitEvent::Answered { statement, answer }));
    }

    fn commit_end(&mut self, why: CommitFault) -> QueryEnd {
        match why {
            CommitFault::Cancelled => QueryEnd::Cancelled,
            CommitFault::Statement(payload) => self.payloads.take_end(payload).unwrap_or(QueryEnd::Cancelled),
            CommitFault::TooManyJobs => {
                let told = format!(
                    "a transaction enqueues at most {TRANSACTION_JOBS_COUNT_MAX} jobs, with {TRANSACTION_JOBS_BYTES_MAX} bytes"
                );
                QueryEnd::Failed(QueryFailure::new(FailureKind::TooLarge, told))
            }
            CommitFault::StoreRefuses => match self.jobs.store.within() {
                Some(Err(fault)) => refused(&fault),
                Some(Ok(_)) | None => refused(&Fault::Unavailable("the job store is being opened".into())),
            },
            CommitFault::Rejoining => refused(&Fault::Unavailable("this server is rejoining the others".into())),
            CommitFault::KeysBusy => {
                refused(&Fault::Unavailable("other jobs with the same keys begin and end too quickly".into()))
            }
        }
    }
}
