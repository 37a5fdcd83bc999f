//! The statements around a transaction. They are never cached, because an application's text could have the same name.

use bytes::Bytes;
use parkade_sql::{FailureKind, QueryFailure, Summary, TransactionMode};
use rusqlite::Connection;

use crate::failures::StopReason;

/// Takes the lock at once if the transaction may write: if it found the lock taken later, it would have to give up.
pub fn begin(connection: &Connection, mode: TransactionMode) -> Result<(), StopReason> {
    let text = if mode.is_read_only { "BEGIN" } else { "BEGIN IMMEDIATE" };
    Ok(connection.execute_batch(text)?)
}

/// If a commit fails, the transaction is rolled back.
pub fn commit(connection: &Connection) -> Result<(), StopReason> {
    lasts(connection)?;
    let committed = connection.execute_batch("COMMIT");
    if committed.is_err() {
        roll_back(connection);
    }
    Ok(committed?)
}

/// A rollback fails only if SQLite has rolled back already.
pub fn roll_back(connection: &Connection) {
    if !connection.is_autocommit() {
        let _rolled_back = connection.execute_batch("ROLLBACK");
    }
}

/// SQLite rolls a transaction back by itself when one of its writes is interrupted or the disk is full.
pub fn lasts(connection: &Connection) -> Result<(), QueryFailure> {
    if connection.is_autocommit() {
        let message = "no such transaction: SQLite has rolled it back with a statement that failed or was cancelled";
        return Err(QueryFailure::new(FailureKind::NoTransaction, message));
    }
    Ok(())
}

/// The summary of these statements.
pub fn summary(command: &str) -> (Bytes, Summary) {
    (Bytes::new(), Summary { command: command.into(), rows: 0, columns: [].into() })
}

/// Makes a statement that changes data and returns rows all or nothing: if its rows cannot be passed on, SQLite would
/// keep the changes.
pub struct StatementSavepoint<'a> {
    connection: &'a Connection,
    is_alone: bool,
}

impl<'a> StatementSavepoint<'a> {
    pub fn begin(connection: &'a Connection) -> Result<Self, StopReason> {
        let is_alone = connection.is_autocommit();
        connection.execute_batch("SAVEPOINT parkade_statement")?;
        Ok(Self { connection, is_alone })
    }

    pub fn keep(self) -> Result<(), StopReason> {
        let kept = self.connection.execute_batch("RELEASE parkade_statement");
        if kept.is_err() {
            self.undo();
        }
        Ok(kept?)
    }

    pub fn undo(self) {
        if self.is_alone {
            roll_back(self.connection);
        } else if !self.connection.is_autocommit() {
            let text = "ROLLBACK TO parkade_statement; RELEASE parkade_statement";
            let _undone = self.connection.execute_batch(text);
        }
    }
}
