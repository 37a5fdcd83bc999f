//! The rest of a cancelled statement's life: until it is over, and until nothing can hit what comes next.
//!
//! Fence 1: a cancel belongs to one query, and does nothing when that is over. Fence 2: no byte of the next statement, nor of our own
//! ROLLBACK, before the server is ready and every cancel that was sent is acknowledged.

use std::time::Instant;

use parkade_sql::{Certainty, FailureKind, QueryEnd, QueryFailure};

use super::cancels::{CancelRoute, Cancels};
use crate::canceller::Canceller;
use crate::handshake::BackendIdentity;
use crate::job::{Job, StatementOutcome};
use crate::lease::{AfterStatement, TransactionStep};
use crate::pool::PoolContext;
use crate::wire::message::Transaction;

#[derive(Debug)]
pub(crate) struct Cancelling {
    pub(crate) job: Job,
    pub(crate) why: CancelCause,
    pub(crate) cancels: Cancels,
}

/// Why a statement is cancelled.
#[derive(Debug)]
pub(crate) enum CancelCause {
    /// Nobody waits for it any more.
    Unwanted,
    /// Its rows are not what was asked for.
    Failed(QueryFailure),
}

/// The statement is over; its cancels may still be under way.
#[derive(Debug)]
pub(crate) struct Settling {
    cancels: Cancels,
    pub(crate) then: AfterStatement,
}

/// What is known of the cancels of a statement that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// Some may be under way.
    Waits,
    /// Nothing can hit what comes next.
    Clean(AfterStatement),
    /// Nobody can say what would hit what comes next, however long it waits.
    Unsafe,
}

impl Cancelling {
    /// The statement is over, one way or the other.
    pub(crate) fn settle(self, transaction: Transaction, cx: &mut PoolContext) -> Settling {
        let Self { job, why, mut cancels } = self;
        let query = job.query;
        let step = TransactionStep::of(&job.work);
        let outcome = job.finish();
        if let StatementOutcome::Refused(error) = &outcome
            && error.is_cancel()
        {
            cancels.hits += 1;
            if cancels.sent > 0 {
                cx.server.learn_cancel_message(error);
            }
        }
        let then = cx.queries.conclude(step, transaction, false);
        let end = why.end_of(step, outcome, &cancels, cx);
        cx.queries.end(query, end);
        Settling { cancels, then }
    }

    /// When its next cancel can be sent; `None`: one is under way.
    pub(crate) fn fire_at(&self, identity: &BackendIdentity, canceller: &Canceller) -> Option<Instant> {
        let due = self.cancels.due?;
        let waits_for_canceller = self.cancels.route == CancelRoute::Canceller && canceller.serves(identity);
        if waits_for_canceller { canceller.free_at().map(|free_at| due.max(free_at)) } else { Some(due) }
    }

    /// The connection was lost.
    pub(crate) fn lost(self, why: &str, cx: &mut PoolContext) {
        cx.queries.close_lost(&self.job.work);
        cx.queries.end(self.job.query, self.why.end_of_lost(self.job.lost(why)));
    }

    /// Its connection is closed because it does not end.
    pub(crate) fn give_up(self, cx: &mut PoolContext) {
        let certainty = if self.job.is_run() { Certainty::Unknown } else { Certainty::NotDone };
        let message = "the statement could not be cancelled: its connection was closed";
        let failure = QueryFailure { certainty, ..QueryFailure::new(FailureKind::Lost, message) };
        cx.queries.fail(self.job.query, failure);
        cx.queries.close_lost(&self.job.work);
    }
}

impl CancelCause {
    /// How the query ends if nothing of it was carried out.
    pub(crate) fn end(self) -> QueryEnd {
        match self {
            Self::Unwanted => QueryEnd::Cancelled,
            Self::Failed(failure) => QueryEnd::Failed(failure),
        }
    }

    /// How it ends if its connection was lost, as `failure` says.
    pub(crate) fn end_of_lost(self, failure: QueryFailure) -> QueryEnd {
        match self {
            Self::Unwanted if failure.certainty == Certainty::NotDone => QueryEnd::Cancelled,
            Self::Unwanted => QueryEnd::Failed(failure),
            Self::Failed(refused) => QueryEnd::Failed(QueryFailure { certainty: failure.certainty, ..refused }),
        }
    }

    /// How it ends by what the server said of it.
    fn end_of(
        self,
        step: TransactionStep,
        outcome: StatementOutcome,
        cancels: &Cancels,
        cx: &mut PoolContext,
    ) -> QueryEnd {
        match (self, outcome) {
            // It is rolled back before anybody can use it.
            (Self::Unwanted, StatementOutcome::NotRun) => QueryEnd::Cancelled,
            (Self::Unwanted, StatementOutcome::Completed { .. }) if matches!(step, TransactionStep::Begin(_)) => {
                QueryEnd::Cancelled
            }
            (Self::Unwanted, StatementOutcome::Completed { summary, .. }) => {
                cx.counts.cancels_late += 1;
                QueryEnd::Completed(summary)
            }
            (Self::Unwanted, StatementOutcome::Refused(error)) if error.is_cancel() && cancels.sent > 0 => {
                QueryEnd::Cancelled
            }
            (Self::Unwanted, StatementOutcome::Refused(error)) => {
                cx.count_stray(&error);
                QueryEnd::Failed(error.into_failure())
            }
            // It was carried out although we refuse its rows: a statement may have changed something.
            (Self::Failed(failure), StatementOutcome::Completed { .. }) => {
                QueryEnd::Failed(QueryFailure { certainty: Certainty::Unknown, ..failure })
            }
            (Self::Unwanted, StatementOutcome::Failed(failure))
            | (
                Self::Failed(failure),
                StatementOutcome::Refused(_) | StatementOutcome::Failed(_) | StatementOutcome::NotRun,
            ) => QueryEnd::Failed(failure),
        }
    }
}

impl Settling {
    pub(crate) fn cancels_mut(&mut self) -> &mut Cancels {
        &mut self.cancels
    }

    /// Fence 2: the connection goes on once nothing can hit what comes next.
    pub(crate) fn settlement(&self, is_pooled: bool) -> Settlement {
        let is_over = if is_pooled { self.cancels.are_over_behind_a_pooler() } else { self.cancels.are_over() };
        if is_over {
            return Settlement::Clean(self.then);
        }
        // Waiting proves nothing: what was lost may come at any time.
        let is_unsafe = if is_pooled { self.cancels.unacked == 0 } else { self.cancels.is_tainted };
        if is_unsafe { Settlement::Unsafe } else { Settlement::Waits }
    }
}
