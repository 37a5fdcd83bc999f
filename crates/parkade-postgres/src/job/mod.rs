//! One piece of work on a connection: from its first byte to the server's final answer.
//!
//! A statement that is new to the connection takes two or three round trips (prepare; look up its types; run), a known
//! one takes one.

mod rows;
mod stages;

use std::sync::Arc;

use bytes::Bytes;
use parkade_sql::{
    Certainty, DatabaseWork, FailureKind, Isolation, Query, QueryFailure, QueryId, Summary, TransactionMode,
};

use crate::json::Types;
use crate::session::ends_transaction;
use crate::statements::Statement;
use crate::wire::ProtocolViolation;
use crate::wire::error::ServerError;
use crate::wire::message::{BackendMessage, Field, Row, Transaction, command};
use rows::RowStream;
use stages::{DescribedStatement, JobStage};
pub(crate) use stages::{JobStep, Means};

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) query: QueryId,
    pub(crate) work: DatabaseWork,
    stage: JobStage,
    rows: Option<RowStream>,
    summary: Option<Summary>,
    error: Option<ServerError>,
    /// A failure that we have decided ourselves.
    failure: Option<QueryFailure>,
    given_bytes: usize,
    taken_bytes: usize,
    /// The size of the flight that was written last.
    pub(crate) flight_bytes: usize,
    is_retried: bool,
}

/// What the slot has to do after a message.
#[derive(Debug)]
pub(crate) enum Heard {
    Nothing,
    /// Everything that was sent has been answered.
    Ready(Transaction),
    /// The rest of the rows is not needed: cancel the statement.
    Unwanted(QueryFailure),
    /// The server closes the connection.
    Dismissed,
    /// The server expects COPY data, which does not exist.
    CopyIn,
}

/// The outcome, as far as the connection knows it.
#[derive(Debug)]
pub(crate) enum StatementOutcome {
    Completed {
        summary: Summary,
        rest: Bytes,
    },
    Refused(ServerError),
    Failed(QueryFailure),
    /// It was prepared, but not run.
    NotRun,
}

impl Job {
    /// Bytes that were passed on and not taken.
    pub(crate) fn untaken_bytes(&self) -> usize {
        self.given_bytes.saturating_sub(self.taken_bytes)
    }

    pub(crate) fn take(&mut self, bytes: usize) {
        self.taken_bytes += bytes;
    }

    /// The server's error, if it says that prepared statements are stale.
    pub(crate) fn stale(&self) -> Option<&ServerError> {
        self.error.as_ref().filter(|error| error.is_stale_statement())
    }

    /// The rows so far, if they are enough for a piece.
    pub(crate) fn piece(&mut self) -> Option<Bytes> {
        let piece = self.rows.as_mut()?.piece()?;
        self.given_bytes += piece.len();
        Some(piece)
    }

    /// The rows are not needed: they are dropped from now on.
    pub(crate) fn detach(&mut self) {
        self.rows = None;
    }

    /// The result is refused, but the statement cannot be cancelled.
    pub(crate) fn fail(&mut self, failure: QueryFailure) {
        self.failure = Some(failure);
    }

    /// COMMIT is never cancelled, because its outcome would be unknown. ROLLBACK does what a cancel is for.
    pub(crate) fn is_cancellable(&self) -> bool {
        match &self.work {
            DatabaseWork::Commit { .. } | DatabaseWork::Rollback { .. } => false,
            DatabaseWork::Alone(query) | DatabaseWork::Within { query, .. } => !ends_transaction(&query.text),
            DatabaseWork::Begin { .. } => true,
        }
    }

    /// Whether the statement itself has been sent, and not only its preparation.
    pub(crate) fn is_run(&self) -> bool {
        match &self.stage {
            JobStage::Preparing(_) | JobStage::Learning(_) => false,
            JobStage::Running | JobStage::Simple | JobStage::Direct => true,
        }
    }

    pub(crate) fn hear(&mut self, message: BackendMessage<'_>, types: &Types) -> Result<Heard, ProtocolViolation> {
        match message {
            BackendMessage::Row(row) => return self.row(row),
            BackendMessage::Complete(tag) => self.complete(tag),
            BackendMessage::Ready(transaction) => return Ok(Heard::Ready(transaction)),
            BackendMessage::Error(error) if error.is_fatal => {
                self.error = Some(error);
                return Ok(Heard::Dismissed);
            }
            BackendMessage::Error(error) => _ = self.error.get_or_insert(error),
            BackendMessage::Parameters(count) => self.described(|described| described.parameters = count),
            BackendMessage::Columns(fields) => return Ok(self.columns(fields, types)),
            BackendMessage::NoColumns => return Ok(self.columns(vec![], types)),
            BackendMessage::Empty => self.complete(""),
            BackendMessage::RowTooLarge { bytes } => {
                let message = format!("a row has {bytes} bytes, which exceeds the limit");
                return Ok(self.unwanted(QueryFailure::new(FailureKind::TooLarge, message)));
            }
            BackendMessage::CopyIn => {
                self.failure = Some(no_copy());
                return Ok(Heard::CopyIn);
            }
            BackendMessage::CopyOut => return Ok(self.unwanted(no_copy())),
            BackendMessage::Notice(notice) => tracing::debug!(sqlstate = %notice.code, "notice: {}", notice.message),
            BackendMessage::Progress | BackendMessage::Setting { .. } | BackendMessage::Notification { .. } => {}
            BackendMessage::Authentication { .. } | BackendMessage::Key { .. } => {
                return Err(ProtocolViolation("an unexpected message"));
            }
        }
        Ok(Heard::Nothing)
    }

    fn row(&mut self, row: Row<'_>) -> Result<Heard, ProtocolViolation> {
        if let JobStage::Learning(learning) = &mut self.stage {
            return learning.row(row).map(|()| Heard::Nothing);
        }
        let Some(rows) = &mut self.rows else { return Ok(Heard::Nothing) };
        match rows.write(row)? {
            Ok(()) => Ok(Heard::Nothing),
            Err(failure) => Ok(self.unwanted(failure)),
        }
    }

    fn complete(&mut self, tag: &str) {
        let (command, count) = command(tag);
        let summary = match (&self.stage, &mut self.rows) {
            (JobStage::Preparing(_) | JobStage::Learning(_), _) => return,
            (JobStage::Running | JobStage::Direct, Some(rows)) => rows.end(command, count),
            (JobStage::Running | JobStage::Direct | JobStage::Simple, _) => {
                Summary { command: command.into(), rows: count, columns: Arc::default() }
            }
        };
        self.summary = Some(summary);
    }

    /// Behind a pooler a statement is described while it is already running.
    fn columns(&mut self, fields: Vec<Field>, types: &Types) -> Heard {
        if !matches!(self.stage, JobStage::Direct) {
            self.described(|described| described.fields = fields);
            return Heard::Nothing;
        }
        let Some(query) = statement_of(&self.work) else { return Heard::Nothing };
        let statement = Arc::new(Statement::new("".into(), query.parameters.len(), fields, types));
        match RowStream::new(statement, query.form) {
            Ok(rows) => {
                self.rows = Some(rows);
                Heard::Nothing
            }
            Err(failure) => self.unwanted(failure),
        }
    }

    fn described(&mut self, change: impl FnOnce(&mut DescribedStatement)) {
        if let JobStage::Preparing(described) = &mut self.stage {
            change(described);
        }
    }

    fn unwanted(&mut self, failure: QueryFailure) -> Heard {
        self.detach();
        Heard::Unwanted(failure)
    }

    /// What is known of its changes if nobody learns how it ended. Until its COMMIT has been sent, a transaction has
    /// changed nothing.
    pub(crate) fn certainty(&self) -> Certainty {
        let may_commit = match &self.work {
            DatabaseWork::Alone(_) | DatabaseWork::Commit { .. } => true,
            DatabaseWork::Within { query, .. } => ends_transaction(&query.text),
            DatabaseWork::Begin { .. } | DatabaseWork::Rollback { .. } => false,
        };
        if may_commit && self.is_run() { Certainty::Unknown } else { Certainty::NotDone }
    }

    /// The connection broke. What the server sent before determines what is known; the outcome of a COMMIT is unknown.
    pub(crate) fn lost(&self, why: &str) -> QueryFailure {
        let refused = self.error.as_ref().is_some_and(ServerError::is_shutdown) && self.is_cancellable();
        let certainty = if refused { Certainty::NotDone } else { self.certainty() };
        let (sqlstate, message) = match &self.error {
            Some(error) => (Some(error.code.clone()), error.message.clone()),
            None => (None, format!("the connection to the database was lost while the statement ran: {why}").into()),
        };
        QueryFailure { kind: FailureKind::Lost, sqlstate, message, certainty }
    }

    /// The server is ready for the next statement.
    pub(crate) fn finish(mut self) -> StatementOutcome {
        if let Some(failure) = self.failure {
            return StatementOutcome::Failed(failure);
        }
        if let Some(error) = self.error {
            return StatementOutcome::Refused(error);
        }
        let Some(summary) = self.summary else { return StatementOutcome::NotRun };
        if matches!(self.work, DatabaseWork::Commit { .. }) && &*summary.command == "ROLLBACK" {
            return StatementOutcome::Refused(rolled_back());
        }
        let rest = self.rows.as_mut().map(RowStream::rest).unwrap_or_default();
        StatementOutcome::Completed { summary, rest }
    }
}

fn rolled_back() -> ServerError {
    ServerError {
        is_fatal: false,
        code: "25P02".into(),
        message: "the transaction had failed and was rolled back".into(),
        routine: "".into(),
    }
}

fn begin_text(mode: TransactionMode) -> String {
    let isolation = match mode.isolation {
        None => "",
        Some(Isolation::ReadCommitted) => " ISOLATION LEVEL READ COMMITTED",
        Some(Isolation::RepeatableRead) => " ISOLATION LEVEL REPEATABLE READ",
        Some(Isolation::Serializable) => " ISOLATION LEVEL SERIALIZABLE",
    };
    format!("BEGIN{isolation}{}", if mode.is_read_only { " READ ONLY" } else { "" })
}

/// The statement of a piece of work that has one.
pub(crate) fn statement_of(work: &DatabaseWork) -> Option<&Query> {
    match work {
        DatabaseWork::Alone(query) | DatabaseWork::Within { query, .. } => Some(query),
        DatabaseWork::Begin { .. } | DatabaseWork::Commit { .. } | DatabaseWork::Rollback { .. } => None,
    }
}

/// Whether the failed statement of `work` may be repeated: only outside of a transaction, and only if it has had no
/// effect.
fn may_retry(work: &DatabaseWork, transaction: Transaction, given_bytes: usize) -> bool {
    matches!(work, DatabaseWork::Alone(_)) && transaction == Transaction::None && given_bytes == 0
}

fn no_copy() -> QueryFailure {
    QueryFailure::new(FailureKind::Unsupported, "COPY from or to the client is not supported")
}
