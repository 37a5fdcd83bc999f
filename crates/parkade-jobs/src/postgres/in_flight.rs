//! Statements that have been given to the driver, and who waits for each.

use std::collections::HashMap;
use std::time::Instant;

use parkade_postgres::Database;
use parkade_sql::{DatabaseWork, QueryId};

use super::command_queue::{StatementKind, Waiting};
use super::maintenance::Task;
use super::statement::Statement;
use super::texts;
use crate::cluster::{ClaimNumber, Step};

/// What a statement is for, and who waits for it.
#[derive(Debug)]
pub enum Purpose {
    Enqueue(Vec<Waiting>),
    /// Enqueued, but there already: as which jobs?
    LookUp(Vec<Waiting>),
    Claim {
        waiting: Waiting,
        claim: ClaimNumber,
    },
    End(Vec<Waiting>),
    Find(Vec<Waiting>),
    /// One command at a time.
    Single(Waiting),
    Step(Step),
    Task(Task),
}

impl Purpose {
    pub fn kind(&self) -> StatementKind {
        match self {
            Self::Enqueue(_) | Self::LookUp(_) => StatementKind::Enqueue,
            Self::Claim { .. } => StatementKind::Claim,
            Self::End(_) => StatementKind::End,
            Self::Find(_) => StatementKind::Find,
            Self::Single(_) => StatementKind::Single,
            Self::Step(Step::Heartbeat { .. }) => StatementKind::Heartbeat,
            Self::Step(_) | Self::Task(_) => StatementKind::Maintenance,
        }
    }

    pub fn into_waiting(self) -> Vec<Waiting> {
        match self {
            Self::Enqueue(batch) | Self::LookUp(batch) | Self::End(batch) | Self::Find(batch) => batch,
            Self::Claim { waiting, .. } | Self::Single(waiting) => vec![waiting],
            Self::Step(_) | Self::Task(_) => Vec::new(),
        }
    }

    /// Whether a fault that a test injects may hit it.
    fn is_a_command(&self) -> bool {
        !matches!(self, Self::LookUp(_) | Self::Step(_) | Self::Task(_))
    }
}

#[derive(Debug)]
pub struct Flight {
    pub purpose: Purpose,
    /// The JSON text so far.
    pub rows: Vec<u8>,
    pub began: Instant,
}

#[derive(Debug)]
pub struct InFlight {
    flights: HashMap<QueryId, Flight>,
    /// Statements so far.
    count: u64,
    /// Those of commands.
    commands: u32,
    /// For tests: each so many-th statement of commands fails.
    fail_every: Option<u32>,
}

impl InFlight {
    pub fn new(fail_every: Option<u32>) -> Self {
        Self { flights: HashMap::new(), count: 0, commands: 0, fail_every }
    }

    pub fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    pub fn is_busy(&self, kind: StatementKind) -> bool {
        self.flights.values().any(|flight| flight.purpose.kind() == kind)
    }

    pub fn begin(&mut self, database: &mut Database, now: Instant, purpose: Purpose, statement: Statement) {
        let statement =
            if self.is_injected(&purpose) { Statement::new(&texts::INJECTED, Vec::new()) } else { statement };
        self.count += 1;
        let query = QueryId(self.count);
        self.flights.insert(query, Flight { purpose, rows: Vec::new(), began: now });
        database.submit(now, query, DatabaseWork::Alone(statement.query()));
    }

    pub fn received(&mut self, query: QueryId, bytes: &[u8]) {
        if let Some(flight) = self.flights.get_mut(&query) {
            flight.rows.extend_from_slice(bytes);
        }
    }

    pub fn ended(&mut self, query: QueryId) -> Option<Flight> {
        self.flights.remove(&query)
    }

    fn is_injected(&mut self, purpose: &Purpose) -> bool {
        let Some(every) = self.fail_every else { return false };
        if !purpose.is_a_command() {
            return false;
        }
        self.commands += 1;
        self.commands.is_multiple_of(every.max(1))
    }
}
