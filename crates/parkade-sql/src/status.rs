//! What is going on in a database, as plain values for a status page.

use std::time::Duration;

use parkade_model::QueryId;

#[derive(Debug, Clone, PartialEq)]
pub struct DatabaseStatus {
    /// `PostgreSQL 15.18`, `SQLite 3.50.2`; empty before it is known.
    pub product: String,
    /// Connections go through a pooler that gives each transaction another server process.
    pub is_pooled: bool,
    pub reach: Availability,
    pub slots: Vec<SlotStatus>,
    /// Queries that wait for a slot.
    pub queued: usize,
    pub counts: ConnectionTotals,
}

/// Whether the database can be reached. The texts say what to do and name no credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// Nobody has tried.
    Untried,
    Up,
    Down {
        why: String,
    },
    /// It is there and does not let us in.
    Denied {
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotStatus {
    pub state: SlotState,
    /// What runs on it.
    pub query: Option<QueryId>,
    /// How long it has been in this state.
    pub age: Duration,
}

/// Where a slot is; `docs/queries.md` has the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotState {
    Connecting,
    Idle,
    Busy,
    /// Idle in somebody's transaction.
    Held,
    Cancelling,
    Settling,
    Resetting,
    /// Closed, while its server process may still be there.
    Retiring,
}

/// Totals since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionTotals {
    pub connects: u64,
    pub connects_failed: u64,
    pub cancels_sent: u64,
    /// Cancels of a query for which one had been sent before.
    pub cancels_repeated: u64,
    /// Queries that completed although they had been cancelled.
    pub cancels_late: u64,
    /// Queries that a cancel ended which was not theirs: must stay 0.
    pub strays: u64,
    /// Connections that had to be terminated over another connection.
    pub terminated: u64,
}
