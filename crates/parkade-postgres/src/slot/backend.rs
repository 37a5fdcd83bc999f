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
    line: Line,
    wire: Wire,
    identity: BackendIdentity,
    statements: Statements,
    /// The number of known table changes when its first current statement was prepared.
    table_changes: u64,
    /// Its session has been changed: it must not be reused.
    is_changed: bool,
}

impl SlotBackend {
    pub(crate) fn new(line: Line, wire: Wire, identity: BackendIdentity) -> Self {
        Self { line, wire, identity, statements: Statements::default(), table_changes: 0, is_changed: false }
    }

    pub(crate) fn line(&self) -> Line {
        self.line
    }

    pub(crate) fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }

    pub(crate) fn identity(&self) -> &BackendIdentity {
        &self.identity
    }

    pub(crate) fn into_identity(self) -> BackendIdentity {
        self.identity
    }

    /// What a job needs from its connection.
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

    /// Its prepared statements are stale. They are dropped at once, whatever the statement was part of, so a statement
    /// fails at most once.
    pub(crate) fn forget_statements(&mut self, table_changes: u64) {
        self.table_changes = table_changes;
        self.statements.forget_all();
    }

    /// The server reports a change of a setting. A pooler reports the settings of the server that it currently uses.
    pub(crate) fn setting_changed(&mut self) {
        self.is_changed |= !self.identity.is_pooled;
    }

    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Whether nothing of the last flight has left this process.
    pub(crate) fn is_unsent(&self, job: &Job) -> bool {
        job.flight_bytes > 0 && self.wire.out.len() >= job.flight_bytes
    }

    /// Drops the last flight before it is sent.
    pub(crate) fn take_back(&mut self, job: &Job) {
        let kept = self.wire.out.len() - job.flight_bytes;
        self.wire.out.truncate(kept);
    }

    pub(crate) fn roll_back(&mut self) {
        write::simple(&mut self.wire.out, "ROLLBACK").expect("ROLLBACK is short and has no NUL");
    }

    /// Whether its process can be identified, so that it can be checked after the connection is closed.
    pub(crate) fn is_known(&self) -> bool {
        !self.identity.backend_start.is_empty() && !self.identity.is_pooled
    }
}
