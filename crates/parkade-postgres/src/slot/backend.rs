//! The server process at the other end of a slot, and what it has prepared.

use parkade_sql::Query;

use crate::handshake::BackendIdentity;
use crate::job::{Job, Means};
use crate::json::Types;
use crate::line::Line;
use crate::session;
use crate::statements::Statements;
use crate::wire::{Wire, write};

#[derive(Debug)]
pub(crate) struct SlotBackend {
    pub(crate) line: Line,
    pub(crate) wire: Wire,
    pub(crate) identity: BackendIdentity,
    statements: Statements,
    /// As many changes of tables were known when it began with these statements.
    table_changes: u64,
    /// Its session is not what it was made to be: nobody else is to have it.
    is_changed: bool,
}

impl SlotBackend {
    pub(crate) fn new(line: Line, row_bytes_max: usize) -> Self {
        Self {
            line,
            wire: Wire::new(row_bytes_max),
            identity: BackendIdentity::default(),
            statements: Statements::default(),
            table_changes: 0,
            is_changed: false,
        }
    }

    /// What a job needs of its connection.
    pub(crate) fn means<'a>(&'a mut self, types: &'a mut Types) -> Means<'a> {
        Means { wire: &mut self.wire, statements: &mut self.statements, types, is_pooled: self.identity.is_pooled }
    }

    /// A statement is about to run.
    pub(crate) fn expect(&mut self, query: Option<&Query>, table_changes: u64) {
        if std::mem::replace(&mut self.table_changes, table_changes) != table_changes {
            self.statements.forget_all();
        }
        self.is_changed |= query.is_some_and(|query| session::is_changed_by(&query.text));
    }

    /// What it has prepared is stale, whatever the statement belonged to: it is forgotten at once. So it fails once at most.
    pub(crate) fn forget_statements(&mut self, table_changes: u64) {
        self.table_changes = table_changes;
        self.statements.forget_all();
    }

    /// The server says that a setting of the session has changed. A pooler tells of the settings of whichever server it links.
    pub(crate) fn setting_changed(&mut self) {
        self.is_changed |= !self.identity.is_pooled;
    }

    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Nothing of the last flight has left this process.
    pub(crate) fn is_unsent(&self, job: &Job) -> bool {
        job.flight_bytes > 0 && self.wire.out.len() >= job.flight_bytes
    }

    /// The last flight is not sent.
    pub(crate) fn take_back(&mut self, job: &Job) {
        let kept = self.wire.out.len() - job.flight_bytes;
        self.wire.out.truncate(kept);
    }

    pub(crate) fn roll_back(&mut self) {
        write::simple(&mut self.wire.out, "ROLLBACK").expect("ROLLBACK is short and has no NUL");
    }

    /// Whether its process can be told from all others, so that it can be looked for when the connection is closed.
    pub(crate) fn is_known(&self) -> bool {
        !self.identity.backend_start.is_empty() && !self.identity.is_pooled
    }
}
