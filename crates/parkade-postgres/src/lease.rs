//! Transactions: where each one is, who waits for a turn in it, and what a statement means for it.

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
    /// On a slot; its holder is gone.
    Released,
    /// It was lost with its connection while nothing ran: its holder does not know yet.
    Lost,
}

impl Lease {
    pub(crate) fn queued(begin: QueryId) -> Self {
        Self { state: LeaseState::Queued(begin), waiting: VecDeque::new() }
    }

    /// Leaves the queue, if it is in it and can be.
    pub(crate) fn remove(&mut self, query: QueryId) -> bool {
        // The end of a transaction is carried out even when nobody waits for it.
        let at = self.waiting.iter().position(|(waiting, work)| {
            *waiting == query && !matches!(work, DatabaseWork::Commit { .. } | DatabaseWork::Rollback { .. })
        });
        at.and_then(|at| self.waiting.remove(at)).is_some()
    }
}

/// What a piece of work is for a transaction.
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

    /// The transaction that it belongs to.
    pub(crate) fn lease(self) -> Option<LeaseId> {
        match self {
            Self::Alone => None,
            Self::Begin(lease) | Self::Within(lease) | Self::End(lease) => Some(lease),
        }
    }
}

/// What becomes of a connection after a statement, when nothing of it is under way any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterStatement {
    Idle,
    /// The transaction goes on, if its holder is still there.
    Hold(LeaseId),
    /// A ROLLBACK comes first.
    Reset,
}
