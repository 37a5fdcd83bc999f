//! Statements that have been given to the driver, and the commands that wait for each.

use std::collections::HashMap;
use std::time::Instant;

use parkade_postgres::Database;
use parkade_sql::{DatabaseWork, QueryId};

use super::command_queue::{PendingCommand, StatementKind};
use super::maintenance::MaintenanceTask;
use super::statement::StoreStatement;
use super::texts;
use crate::cluster::{ClaimId, MemberStep};

/// The purpose of a statement, and the commands that wait for it.
#[derive(Debug)]
pub enum Purpose {
    Enqueue(Vec<PendingCommand>),
    /// Enqueued jobs that existed before: their ids are looked up.
    LookUp(Vec<PendingCommand>),
    Claim {
        waiting: PendingCommand,
        claim: ClaimId,
    },
    End(Vec<PendingCommand>),
    Find(Vec<PendingCommand>),
    /// One command at a time.
    Single(PendingCommand),
    Step(MemberStep),
    Task(MaintenanceTask),
}

impl Purpose {
    pub fn kind(&self) -> StatementKind {
        match self {
            Self::Enqueue(_) | Self::LookUp(_) => StatementKind::Enqueue,
            Self::Claim { .. } => StatementKind::Claim,
            Self::End(_) => StatementKind::End,
            Self::Find(_) => StatementKind::Find,
            Self::Single(_) => StatementKind::Single,
            Self::Step(MemberStep::Heartbeat { .. }) => StatementKind::Heartbeat,
            Self::Step(_) | Self::Task(_) => StatementKind::Maintenance,
        }
    }

    pub fn into_waiting(self) -> Vec<PendingCommand> {
        match self {
            Self::Enqueue(batch) | Self::LookUp(batch) | Self::End(batch) | Self::Find(batch) => batch,
            Self::Claim { waiting, .. } | Self::Single(waiting) => vec![waiting],
            Self::Step(_) | Self::Task(_) => Vec::new(),
        }
    }

    /// Whether a fault that a test injects may affect it.
    fn is_a_command(&self) -> bool {
        !matches!(self, Self::LookUp(_) | Self::Step(_) | Self::Task(_))
    }
}

/// A statement that has been submitted to the driver.
#[derive(Debug)]
pub struct SubmittedStatement {
    pub purpose: Purpose,
    /// The JSON text so far.
    pub rows: Vec<u8>,
    pub began: Instant,
}

#[derive(Debug)]
pub struct InFlight {
    statements: HashMap<QueryId, SubmittedStatement>,
    /// The number of statements so far.
    count: u64,
    /// The number of those for commands.
    commands: u32,
    /// For tests: one in this many statements of commands fails.
    fail_every: Option<u32>,
}

impl InFlight {
    pub fn new(fail_every: Option<u32>) -> Self {
        Self { statements: HashMap::new(), count: 0, commands: 0, fail_every }
    }

    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    pub fn is_busy(&self, kind: StatementKind) -> bool {
        self.statements.values().any(|statement| statement.purpose.kind() == kind)
    }

    pub fn begin(&mut self, database: &mut Database, now: Instant, purpose: Purpose, statement: StoreStatement) {
        let statement =
            if self.is_injected(&purpose) { StoreStatement::new(&texts::INJECTED, Vec::new()) } else { statement };
        self.count += 1;
        let query = QueryId(self.count);
        self.statements.insert(query, SubmittedStatement { purpose, rows: Vec::new(), began: now });
        database.submit(now, query, DatabaseWork::Alone(statement.query()));
    }

    /// Abandons the statements of this kind: they are cancelled, and their results ignored.
    pub fn abandon(&mut self, database: &mut Database, now: Instant, kind: StatementKind) {
        let is_it = |(_, statement): &(&QueryId, &SubmittedStatement)| statement.purpose.kind() == kind;
        let queries: Vec<QueryId> = self.statements.iter().filter(is_it).map(|(query, _)| *query).collect();
        for query in queries {
            tracing::debug!(
                ?kind,
                "a statement of the job store has had no answer for too long; it is cancelled and sent again"
            );
            self.statements.remove(&query);
            database.cancel(now, query);
        }
    }

    pub fn received(&mut self, query: QueryId, bytes: &[u8]) {
        if let Some(statement) = self.statements.get_mut(&query) {
            statement.rows.extend_from_slice(bytes);
        }
    }

    pub fn ended(&mut self, query: QueryId) -> Option<SubmittedStatement> {
        self.statements.remove(&query)
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
