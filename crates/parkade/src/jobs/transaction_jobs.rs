//! Jobs of transactions until these have committed, and the statements that store them. The core decides.

use std::collections::HashSet;

use bytes::Bytes;
use parkade_core::limits::{TRANSACTION_JOBS_BYTES_MAX, TRANSACTION_JOBS_COUNT_MAX};
use parkade_core::{CommitAnswer, CommitAsk, CommitFault, PlacedJob, Probed, StoreStanding};
use parkade_jobs::postgres::{Placed, Probe, Within, enqueued, looked_up, probed};
use parkade_jobs::{Fault, NewJob};
use parkade_model::{DatabaseId, IdMap, JobId, LeaseId, PayloadId, QueryId};
use parkade_sql::{Certainty, DatabaseWork, FailureKind, QueryEnd, QueryEvent, QueryFailure};

use super::StoreLink;
use crate::store::wall;

#[derive(Debug, Default)]
pub struct TransactionJobs {
    kept: IdMap<LeaseId, Vec<NewJob>>,
    statements: IdMap<QueryId, CommitStatement>,
    /// How the store stood at the last look.
    standing: StoreStanding,
}

/// A statement that has not ended.
#[derive(Debug)]
struct CommitStatement {
    lease: LeaseId,
    database: DatabaseId,
    ask: CommitAsk,
    /// What it has returned so far.
    rows: Vec<u8>,
}

impl TransactionJobs {
    pub fn keep(&mut self, lease: LeaseId, job: NewJob) {
        self.kept.entry(lease).or_default().push(job);
    }

    /// The jobs of a transaction, in the order in which they were enqueued.
    pub fn take(&mut self, lease: LeaseId) -> Vec<NewJob> {
        self.kept.remove(&lease).unwrap_or_default()
    }

    /// How the store stands, if that has changed since the last call.
    pub fn new_standing(&mut self, store: &StoreLink) -> Option<StoreStanding> {
        let standing = match store.within()? {
            Err(_) => StoreStanding::Refuses,
            Ok(None) => StoreStanding::Opening,
            Ok(Some(_)) => StoreStanding::Open,
        };
        (std::mem::replace(&mut self.standing, standing) != standing).then_some(standing)
    }

    /// A statement that begins; `None`: the store is not open.
    pub fn begin(
        &mut self,
        statement: QueryId,
        (lease, database): (LeaseId, DatabaseId),
        ask: CommitAsk,
        store: &StoreLink,
    ) -> Option<DatabaseWork> {
        let within = store.within()?.ok()??;
        let query = match &ask {
            CommitAsk::Probe => Within::probe(),
            CommitAsk::Enqueue(ids) => within.enqueue(wall(), &self.jobs(lease, ids)),
            CommitAsk::LookUp(ids) => within.look_up(&self.jobs(lease, ids)),
        };
        self.statements.insert(statement, CommitStatement { lease, database, ask, rows: Vec::new() });
        Some(DatabaseWork::Within { lease, query })
    }

    /// Whether the event is about one of the statements.
    pub fn is_about(&self, event: &QueryEvent) -> bool {
        let (QueryEvent::Started { query } | QueryEvent::Piece { query, .. } | QueryEvent::Ended { query, .. }) = event;
        !self.statements.is_empty() && self.statements.contains_key(query)
    }

    /// Rows of a statement have arrived. Returns its database.
    pub fn add_rows(&mut self, statement: QueryId, rows: &Bytes) -> Option<DatabaseId> {
        let statement = self.statements.get_mut(&statement)?;
        statement.rows.extend_from_slice(rows);
        Some(statement.database)
    }

    /// A statement has ended: what it has returned, or how it failed.
    pub fn end(&mut self, statement: QueryId, end: QueryEnd) -> Option<Result<CommitAnswer, QueryEnd>> {
        let CommitStatement { lease, ask, rows, .. } = self.statements.remove(&statement)?;
        if !matches!(end, QueryEnd::Completed(_)) {
            return Some(Err(end));
        }
        let answer = match &ask {
            CommitAsk::Probe => probed(&rows).map(|probe| {
                CommitAnswer::Probed(match probe {
                    Probe::No => Probed::No,
                    Probe::Closed => Probed::Closed,
                    Probe::Maybe => Probed::Maybe,
                })
            }),
            CommitAsk::Enqueue(_) => enqueued(&rows).map(|placed| CommitAnswer::Enqueued(placed.map(listed))),
            CommitAsk::LookUp(ids) => {
                looked_up(&rows, &self.jobs(lease, ids)).map(|placed| CommitAnswer::Found(listed(placed)))
            }
        };
        Some(answer.map_err(|fault| refused(&fault)))
    }

    fn jobs(&self, lease: LeaseId, ids: &[JobId]) -> Vec<&NewJob> {
        let ids: HashSet<&JobId> = ids.iter().collect();
        self.kept.get(&lease).into_iter().flatten().filter(|job| ids.contains(&job.id)).collect()
    }
}

/// How a COMMIT ends that is never sent. `end_of`: how one of the statements before it ended.
pub fn unstored(why: CommitFault, store: &StoreLink, end_of: impl FnOnce(PayloadId) -> Option<QueryEnd>) -> QueryEnd {
    let unavailable = |why: &str| refused(&Fault::Unavailable(why.into()));
    match why {
        CommitFault::Cancelled => QueryEnd::Cancelled,
        CommitFault::Statement(payload) => end_of(payload).map_or(QueryEnd::Cancelled, never_sent),
        CommitFault::TooManyJobs => QueryEnd::Failed(QueryFailure::new(
            FailureKind::TooLarge,
            format!(
                "a transaction can enqueue at most {TRANSACTION_JOBS_COUNT_MAX} jobs, with {TRANSACTION_JOBS_BYTES_MAX} bytes in all"
            ),
        )),
        CommitFault::StoreRefuses => match store.within() {
            Some(Err(fault)) => refused(&fault),
            Some(Ok(_)) | None => unavailable("the job store is being opened"),
        },
        CommitFault::Rejoining => unavailable("this server is rejoining the others"),
        CommitFault::KeysBusy => unavailable("other jobs with the same keys begin and end too quickly"),
    }
}

/// Nothing of the transaction stays, even if nobody knows what became of its last statement.
fn never_sent(end: QueryEnd) -> QueryEnd {
    match end {
        QueryEnd::Failed(failure) => QueryEnd::Failed(QueryFailure { certainty: Certainty::NotDone, ..failure }),
        QueryEnd::Completed(_) | QueryEnd::Cancelled => QueryEnd::Cancelled,
    }
}

fn refused(fault: &Fault) -> QueryEnd {
    let kind = match fault {
        Fault::Unavailable(_) => FailureKind::Unreachable,
        Fault::QueueFull => FailureKind::QueueFull,
        Fault::Full(_) | Fault::Failed(_) => FailureKind::Unsupported,
    };
    QueryEnd::Failed(QueryFailure::new(kind, format!("its jobs cannot be enqueued: {fault}")))
}

fn listed(placed: Placed) -> Vec<PlacedJob> {
    placed.into_iter().map(|(job, (id, wait))| PlacedJob { job, id, wait }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_that_was_never_sent_has_changed_nothing() {
        let lost = QueryFailure { certainty: Certainty::Unknown, ..QueryFailure::new(FailureKind::Lost, "gone") };
        let QueryEnd::Failed(failure) = never_sent(QueryEnd::Failed(lost)) else { panic!("it failed") };
        assert_eq!((failure.kind, failure.certainty), (FailureKind::Lost, Certainty::NotDone));
    }
}
