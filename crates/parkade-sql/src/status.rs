//! The status of a database, as plain values for a status page.

use std::time::Duration;

use parkade_model::QueryId;

#[derive(Debug, Clone, PartialEq)]
pub struct DatabaseStatus {
    /// `PostgreSQL 15.18`, `SQLite 3.50.2`; empty before it is known.
    pub product: String,
    /// Connections go through a pooler that may use a different server process for each transaction.
    pub is_pooled: bool,
    pub reach: Availability,
    pub slots: Vec<SlotStatus>,
    /// Queries that wait for a slot.
    pub queued: usize,
    pub counts: ConnectionTotals,
}

/// Whether the database can be reached. The texts say what to do and contain no credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// Not tried yet.
    Untried,
    Up,
    Down {
        why: String,
    },
    /// It answers, but denies access.
    Denied {
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotStatus {
    pub state: SlotState,
    /// The query that runs on it.
    pub query: Option<QueryId>,
    /// How long it has been in this state.
    pub age: Duration,
}

/// The state of a slot; `docs/queries.md` has the diagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotState {
    Connecting,
    Idle,
    Busy,
    /// Idle in a transaction.
    Held,
    Cancelling,
    Settling,
    Resetting,
    /// Closed, but its server process may still exist.
    Retiring,
}

/// Totals since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionTotals {
    pub connects: u64,
    pub connects_failed: u64,
    pub cancels_sent: u64,
    /// Cancels of a query after an earlier one had been sent.
    pub cancels_repeated: u64,
    /// Queries that completed although they were cancelled.
    pub cancels_late: u64,
    /// Queries that were ended by the cancel of another query: must stay 0.
    pub strays: u64,
    /// Connections that had to be terminated over another connection.
    pub terminated: u64,
}
