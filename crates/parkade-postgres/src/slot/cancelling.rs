//! The rest of a cancelled statement's life: until it is over, and until nothing can hit the next one.
//!
//! Fence 1: a cancel belongs to one query, and has no effect after that is over. Fence 2: no byte of the next
//! statement, nor of our own ROLLBACK, is sent before the server is ready and every cancel that was sent is
//! acknowledged.

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
    /// The query was cancelled.
    Unwanted,
    /// Its rows are refused.
    Failed(QueryFailure),
}

/// The statement is over; its cancels may still be under way.
#[derive(Debug)]
pub(crate) struct Settling {
    cancels: Cancels,
    pub(crate) then: AfterStatement,
}

/// The state of the cancels after the end of their statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// Some may be under way.
    Waits,
    /// Nothing can hit the next statement.
    Clean(AfterStatement),
    /// Something might hit the next statement, however long it waits.
    Unsafe,
}

impl Cancelling {
    /// The statement is over, whatever the outcome.
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

    /// Its connection is closed because the statement does not end.
    pub(crate) fn give_up(self, cx: &mut PoolContext) {
        let message = "the statement could not be cancelled: its connection was closed";
        let failure = QueryFailure { certainty: self.job.certainty(), ..QueryFailure::new(FailureKind::Lost, message) };
        cx.queries.fail(self.job.query, failure);
        cx.queries.close_lost(&self.job.work);
    }
}

impl CancelCause {
    /// How the query ends if it has had no effect.
    pub(crate) fn end(self) -> QueryEnd {
        match self {
            Self::Unwanted => QueryEnd::Cancelled,
            Self::Failed(failure) => QueryEnd::Failed(failure),
        }
    }

    /// How it ends if its connection was lost; `failure`: what is known.
    pub(crate) fn end_of_lost(self, failure: QueryFailure) -> QueryEnd {
        match self {
            Self::Unwanted if failure.certainty == Certainty::NotDone => QueryEnd::Cancelled,
            Self::Unwanted => QueryEnd::Failed(failure),
            Self::Failed(refused) => QueryEnd::Failed(QueryFailure { certainty: failure.certainty, ..refused }),
        }
    }

    /// How it ends according to the server.
    fn end_of(
        self,
        step: TransactionStep,
        outcome: StatementOutcome,
        cancels: &Cancels,
        cx: &mut PoolContext,
    ) -> QueryEnd {
        match (self, outcome) {
            // It is rolled back before anything can use it.
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
            // It completed although its rows are refused: it may have changed something.
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

    /// Fence 2: the connection continues when nothing can hit the next statement.
    pub(crate) fn settlement(&self, is_pooled: bool) -> Settlement {
        let is_over = if is_pooled { self.cancels.are_over_behind_a_pooler() } else { self.cancels.are_over() };
        if is_over {
            return Settlement::Clean(self.then);
        }
        // Waiting proves nothing: a lost cancel may arrive at any time.
        let is_unsafe = if is_pooled { self.cancels.unacked == 0 } else { self.cancels.is_tainted };
        if is_unsafe { Settlement::Unsafe } else { Settlement::Waits }
    }
}
