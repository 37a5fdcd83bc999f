//! The part of a report about databases.

use std::collections::BTreeMap;

use parkade_sql::{Availability, DatabaseStatus, SlotState};
use serde::{Deserialize, Serialize};

use crate::statistics::Histogram;

/// One database.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DatabaseReport {
    /// `PostgreSQL 15.18`; empty before it is known.
    pub product: String,
    /// `untried`, `up`, `down` or `denied`.
    pub state: String,
    /// Why it is not up, in words; never with credentials.
    pub why: Option<String>,
    pub is_pooled: bool,
    /// Connections, by state.
    pub slots: BTreeMap<String, usize>,
    /// Queries that wait for a connection.
    pub queued: usize,
    /// The oldest first, at most [`QUERIES_COUNT_MAX`].
    pub running: Vec<QueryReport>,
    pub counts: DatabaseCounts,
}

/// A query that has not ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QueryReport {
    /// For `parkade cancel`.
    pub id: u64,
    pub statement: String,
    /// `queued` or `running`.
    pub state: String,
    pub age: f64,
    /// Requests that wait for it.
    pub waiting: usize,
    pub cancelled: bool,
}

/// Totals since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseCounts {
    pub connects: u64,
    pub connects_failed: u64,
    pub cancels_sent: u64,
    pub cancels_repeated: u64,
    pub cancels_late: u64,
    pub strays: u64,
    pub terminated: u64,
}

/// How the time of queries was spent, all databases together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryTimes {
    pub queue: Histogram,
    pub database: Histogram,
    /// From the cancel to the end that the database reported.
    pub cancel: Histogram,
}

/// Queries that are shown. Then: only counted.
const QUERIES_COUNT_MAX: usize = 100;

impl DatabaseReport {
    pub fn new(status: DatabaseStatus, mut running: Vec<QueryReport>) -> Self {
        running.sort_by(|one, other| other.age.total_cmp(&one.age));
        running.truncate(QUERIES_COUNT_MAX);
        let (state, why) = match status.reach {
            Availability::Untried => ("untried", None),
            Availability::Up => ("up", None),
            Availability::Down { why } => ("down", Some(why)),
            Availability::Denied { why } => ("denied", Some(why)),
        };
        let mut slots = BTreeMap::new();
        for slot in &status.slots {
            *slots.entry(word(slot.state).to_owned()).or_insert(0) += 1;
        }
        let counts = status.counts;
        Self {
            product: status.product,
            state: state.into(),
            why,
            is_pooled: status.is_pooled,
            slots,
            queued: status.queued,
            running,
            counts: DatabaseCounts {
                connects: counts.connects,
                connects_failed: counts.connects_failed,
                cancels_sent: counts.cancels_sent,
                cancels_repeated: counts.cancels_repeated,
                cancels_late: counts.cancels_late,
                strays: counts.strays,
                terminated: counts.terminated,
            },
        }
    }
}

fn word(state: SlotState) -> &'static str {
    match state {
        SlotState::Connecting => "connecting",
        SlotState::Idle => "idle",
        SlotState::Busy => "busy",
        SlotState::Held => "held",
        SlotState::Cancelling => "cancelling",
        SlotState::Settling => "settling",
        SlotState::Resetting => "resetting",
        SlotState::Retiring => "retiring",
    }
}
