//! A statement that was not cancelled.

use parkade_sql::{Certainty, QueryEnd, QueryFailure};

use crate::job::{Job, StatementOutcome};
use crate::lease::{AfterStatement, TransactionStep};
use crate::limits::TRIES_COUNT_MAX;
use crate::pool::{PoolContext, PoolPhase};
use crate::queue::WaitingWork;
use crate::wire::message::Transaction;

#[derive(Debug)]
pub(crate) struct Busy {
    pub(crate) job: Job,
    /// A cancel was requested for a statement that is never cancelled.
    pub(crate) is_unwanted: bool,
}

impl Busy {
    pub(crate) fn new(job: Job) -> Self {
        Self { job, is_unwanted: false }
    }

    /// This many bytes of the rows have been taken. Returns whether the connection may be read again.
    pub(crate) fn take(&mut self, bytes: usize, window_bytes: usize) -> bool {
        let was_full = self.job.untaken_bytes() >= window_bytes;
        self.job.take(bytes);
        was_full && self.job.untaken_bytes() < window_bytes
    }

    /// The statement is over.
    pub(crate) fn finish(self, transaction: Transaction, cx: &mut PoolContext) -> AfterStatement {
        let Self { job, is_unwanted } = self;
        let query = job.query;
        let step = TransactionStep::of(&job.work);
        let outcome = job.finish();
        let then = cx.queries.conclude(step, transaction, matches!(outcome, StatementOutcome::Completed { .. }));
        let end = match outcome {
            StatementOutcome::Completed { summary, rest } => {
                cx.counts.cancels_late += u64::from(is_unwanted);
                cx.queries.give(query, rest);
                QueryEnd::Completed(summary)
            }
            StatementOutcome::Refused(error) => {
                cx.count_stray(&error);
                QueryEnd::Failed(error.into_failure())
            }
            StatementOutcome::Failed(failure) => QueryEnd::Failed(failure),
            StatementOutcome::NotRun => QueryEnd::Cancelled,
        };
        cx.queries.end(query, end);
        then
    }

    /// The connection was lost. `is_unsent`: no byte of the statement was sent; `tries`: how often that has happened
    /// before.
    pub(crate) fn lost(self, why: &str, is_unsent: bool, tries: u8, cx: &mut PoolContext) {
        let failure = self.job.lost(why);
        if !self.is_unwanted && (is_unsent || !self.job.is_run()) {
            return self.lost_unsent(failure, tries, cx);
        }
        cx.queries.close_lost(&self.job.work);
        cx.queries.fail(self.job.query, failure);
    }

    /// The server has not run any of it: another connection may.
    fn lost_unsent(self, failure: QueryFailure, tries: u8, cx: &mut PoolContext) {
        let Job { query, work, .. } = self.job;
        let is_first = matches!(TransactionStep::of(&work), TransactionStep::Alone | TransactionStep::Begin(_));
        let may_wait = is_first && cx.phase == PoolPhase::Open && tries + 1 < TRIES_COUNT_MAX;
        let waiting = WaitingWork { work, tries: tries + 1 };
        let refused = if may_wait { cx.queries.requeue(query, waiting).err() } else { Some(waiting) };
        if let Some(WaitingWork { work, .. }) = refused {
            cx.queries.close_lost(&work);
            // This is certain even for a COMMIT, which has not been sent.
            cx.queries.fail(query, QueryFailure { certainty: Certainty::NotDone, ..failure });
        }
    }
}
