//! Transactions: where each one is, what waits in it, and how a statement changes it.

use std::collections::VecDeque;

use parkade_sql::{DatabaseWork, LeaseId, QueryId};

#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) state: LeaseState,
    pub(crate) waiting: VecDeque<(QueryId, DatabaseWork)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseState {
    /// Its BEGIN waits for a slot.
    Queued(QueryId),
    On(usize),
    /// On a slot, but its holder is gone.
    Released,
    /// It was lost with its connection while it was idle; its holder has not been told.
    Lost,
}

impl Lease {
    pub(crate) fn queued(begin: QueryId) -> Self {
        Self { state: LeaseState::Queued(begin), waiting: VecDeque::new() }
    }

    /// Removes a query from the queue, if it is queued and may be removed.
    pub(crate) fn remove(&mut self, query: QueryId) -> bool {
        // The end of a transaction is carried out even if it was cancelled.
        let at = self.waiting.iter().position(|(waiting, work)| {
            *waiting == query && !matches!(work, DatabaseWork::Commit { .. } | DatabaseWork::Rollback { .. })
        });
        at.and_then(|at| self.waiting.remove(at)).is_some()
    }
}

/// The role of a piece of work in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionStep {
    Alone,
    Begin(LeaseId),
    Within(LeaseId),
    End(LeaseId),
}

impl TransactionStep {
    pub(crate) fn of(work: &DatabaseWork) -> Self {
        match work {
            DatabaseWork::Alone(_) => Self::Alone,
            DatabaseWork::Begin { lease, .. } => Self::Begin(*lease),
            DatabaseWork::Within { lease, .. } => Self::Within(*lease),
            DatabaseWork::Commit { lease } | DatabaseWork::Rollback { lease } => Self::End(*lease),
        }
    }

    /// The lease of its transaction.
    pub(crate) fn lease(self) -> Option<LeaseId> {
        match self {
            Self::Alone => None,
            Self::Begin(lease) | Self::Within(lease) | Self::End(lease) => Some(lease),
        }
    }
}

/// What follows a statement on its connection, when nothing of the statement is under way any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterStatement {
    Idle,
    /// The transaction continues, if its holder still exists.
    Hold(LeaseId),
    /// A ROLLBACK comes first.
    Reset,
}
