//! The rows of a statement, as they arrive.

use std::sync::Arc;

use bytes::Bytes;
use parkade_sql::{QueryFailure, RowFormat, RowWriter, Summary};

use crate::limits::PIECE_BYTES_MIN;
use crate::statements::Statement;
use crate::wire::ProtocolViolation;
use crate::wire::message::Row;

#[derive(Debug)]
pub(super) struct RowStream {
    statement: Arc<Statement>,
    writer: RowWriter,
}

impl RowStream {
    pub(super) fn new(statement: Arc<Statement>, form: RowFormat) -> Result<Self, QueryFailure> {
        let writer = RowWriter::new(form, &statement.columns)?;
        Ok(Self { statement, writer })
    }

    /// The name of the statement on its connection.
    pub(super) fn statement_name(&self) -> &str {
        &self.statement.name
    }

    /// Whether one of their types was unknown.
    pub(super) fn are_guessed(&self) -> bool {
        self.statement.is_guessed
    }

    /// Writes a row. The inner error is the reason why the rest is not needed.
    pub(super) fn write(&mut self, mut row: Row<'_>) -> Result<Result<(), QueryFailure>, ProtocolViolation> {
        let Self { statement, writer } = self;
        let value_writers = statement.writers(writer.form().int8);
        if row.count() != value_writers.len() {
            return Err(ProtocolViolation("a row's columns do not match the statement's"));
        }
        if let Err(failure) = writer.row() {
            return Ok(Err(failure));
        }
        for (index, value_writer) in value_writers.iter().enumerate() {
            let value = row.next_value()?;
            let Some(out) = writer.value(&statement.columns, index) else { continue };
            match value {
                Some(text) => value_writer.write(out, text),
                None => out.extend_from_slice(b"null"),
            }
        }
        Ok(writer.end_row())
    }

    pub(super) fn end(&mut self, command: &str, count: u64) -> Summary {
        self.writer.end(&self.statement.columns, command, count)
    }

    /// The rows so far, if they are enough for a piece.
    pub(super) fn piece(&mut self) -> Option<Bytes> {
        (self.writer.pending() >= PIECE_BYTES_MIN).then(|| self.writer.take())
    }

    /// The rows that have not been passed on.
    pub(super) fn rest(&mut self) -> Bytes {
        self.writer.take()
    }
}
