//! What a job takes from the server's messages.

use std::sync::Arc;

use parkade_sql::{FailureKind, QueryFailure, RowWriter, Summary};

use super::stages::Stage;
use super::{Job, Rows, statement_of};
use crate::json::Types;
use crate::statements::Statement;
use crate::wire::Broken;
use crate::wire::message::{Field, Message, Row, Transaction, command};

/// What the slot has to do about a message.
#[derive(Debug)]
pub(crate) enum Heard {
    Nothing,
    /// Everything that was sent has been answered.
    Ready(Transaction),
    /// The rest is not wanted: cancel it.
    Unwanted(QueryFailure),
    /// The server closes the connection.
    Dismissed,
    /// The server waits for data that nobody has.
    CopyIn,
}

impl Job {
    pub(crate) fn hear(&mut self, message: Message<'_>, types: &Types) -> Result<Heard, Broken> {
        match message {
            Message::Row(row) => return self.row(row),
            Message::Complete(tag) => self.complete(tag),
            Message::Ready(transaction) => return Ok(Heard::Ready(transaction)),
            Message::Error(error) if error.is_fatal => {
                self.error = Some(error);
                return Ok(Heard::Dismissed);
            }
            Message::Error(error) => _ = self.error.get_or_insert(error),
            Message::Parameters(count) => self.described(|described| described.parameters = count),
            Message::Columns(fields) => return Ok(self.columns(fields, types)),
            Message::NoColumns => return Ok(self.columns(vec![], types)),
            Message::Empty => self.complete(""),
            Message::RowTooLarge { bytes } => {
                let message = format!("a row has {bytes} bytes, which is more than a row may have");
                return Ok(self.unwanted(QueryFailure::new(FailureKind::TooLarge, message)));
            }
            Message::CopyIn => {
                self.failure = Some(no_copy());
                return Ok(Heard::CopyIn);
            }
            Message::CopyOut => return Ok(self.unwanted(no_copy())),
            Message::Notice(notice) => tracing::debug!(code = %notice.code, "notice: {}", notice.message),
            Message::Progress | Message::Setting { .. } | Message::Notification { .. } => {}
            Message::Authentication { .. } | Message::Key { .. } => return Err(Broken("a message out of turn")),
        }
        Ok(Heard::Nothing)
    }

    fn row(&mut self, mut row: Row<'_>) -> Result<Heard, Broken> {
        if let Stage::Learning(learning) = &mut self.stage {
            return learning.row(row).map(|()| Heard::Nothing);
        }
        let Some(Rows { statement, writer }) = &mut self.rows else { return Ok(Heard::Nothing) };
        let writers = statement.writers(writer.form().int8);
        if row.count() != writers.len() {
            return Err(Broken("a row has other columns than the statement"));
        }
        if let Err(failure) = writer.row() {
            return Ok(self.unwanted(failure));
        }
        for (index, value_writer) in writers.iter().enumerate() {
            let value = row.next_value()?;
            let Some(out) = writer.value(&statement.columns, index) else { continue };
            match value {
                Some(text) => value_writer.write(out, text),
                None => out.extend_from_slice(b"null"),
            }
        }
        match writer.end_row() {
            Ok(()) => Ok(Heard::Nothing),
            Err(failure) => Ok(self.unwanted(failure)),
        }
    }

    fn complete(&mut self, tag: &str) {
        let (command, count) = command(tag);
        match (&self.stage, &mut self.rows) {
            (Stage::Preparing(_) | Stage::Learning(_), _) => {}
            (Stage::Running | Stage::Direct, Some(Rows { statement, writer })) => {
                self.summary = Some(writer.end(&statement.columns, command, count));
            }
            (Stage::Running | Stage::Direct | Stage::Simple, _) => {
                self.summary = Some(Summary { command: command.into(), rows: count, columns: Arc::default() });
            }
        }
    }

    /// Behind a pooler a statement is described while it already runs.
    fn columns(&mut self, fields: Vec<Field>, types: &Types) -> Heard {
        if !matches!(self.stage, Stage::Direct) {
            self.described(|described| described.fields = fields);
            return Heard::Nothing;
        }
        let Some(query) = statement_of(&self.work) else { return Heard::Nothing };
        let statement = Arc::new(Statement::new("".into(), query.parameters.len(), fields, types));
        match RowWriter::new(query.form, &statement.columns) {
            Ok(writer) => {
                self.rows = Some(Rows { statement, writer });
                Heard::Nothing
            }
            Err(failure) => self.unwanted(failure),
        }
    }

    fn described(&mut self, change: impl FnOnce(&mut super::stages::Described)) {
        if let Stage::Preparing(described) = &mut self.stage {
            change(described);
        }
    }

    fn unwanted(&mut self, failure: QueryFailure) -> Heard {
        self.detach();
        Heard::Unwanted(failure)
    }
}

fn no_copy() -> QueryFailure {
    QueryFailure::new(FailureKind::Unsupported, "COPY from or to the client is not supported")
}
