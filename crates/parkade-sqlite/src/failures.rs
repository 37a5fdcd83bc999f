//! Converts SQLite's errors into the common ones.

use std::time::Duration;

use parkade_sql::{Certainty, FailureKind, QueryEnd, QueryFailure};
use rusqlite::ErrorCode;
use rusqlite::ffi;

use crate::scheduler::StatementCancelled;

/// Why a thread stops working on a query.
#[derive(Debug)]
pub enum StopReason {
    /// SQLite was interrupted.
    Interrupted,
    /// Another connection holds the lock, for too long or until the query was cancelled.
    Busy,
    /// A reader found out that the statement writes.
    Writes,
    /// The query was cancelled before it began, or while its rows were waiting.
    Cancelled,
    Failed(QueryFailure),
}

impl StopReason {
    /// How the query ended, taking a cancel into account.
    pub fn end(self, is_cancelled: bool, busy_timeout: Duration) -> QueryEnd {
        match self {
            Self::Cancelled => QueryEnd::Cancelled,
            Self::Interrupted | Self::Busy if is_cancelled => QueryEnd::Cancelled,
            Self::Interrupted => QueryEnd::Failed(refused("57014", "it was interrupted unexpectedly")),
            Self::Busy => {
                let message =
                    format!("SQLITE_BUSY: another process has held the lock for {} ms", busy_timeout.as_millis());
                QueryEnd::Failed(refused("55P03", message))
            }
            Self::Writes => QueryEnd::Failed(read_only()),
            Self::Failed(failure) => QueryEnd::Failed(failure),
        }
    }
}

impl From<QueryFailure> for StopReason {
    fn from(failure: QueryFailure) -> Self {
        Self::Failed(failure)
    }
}

impl From<StatementCancelled> for StopReason {
    fn from(StatementCancelled: StatementCancelled) -> Self {
        Self::Cancelled
    }
}

impl From<rusqlite::Error> for StopReason {
    fn from(error: rusqlite::Error) -> Self {
        match code(&error) {
            Some(ErrorCode::OperationInterrupted) => Self::Interrupted,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(_) | None => Self::Failed(failure(&error)),
        }
    }
}

/// A failure with its SQLSTATE.
pub fn refused(sqlstate: &str, message: impl Into<Box<str>>) -> QueryFailure {
    QueryFailure { sqlstate: Some(sqlstate.into()), ..QueryFailure::new(FailureKind::Refused, message) }
}

/// A write where only reading is allowed.
pub fn read_only() -> QueryFailure {
    refused("25006", "the transaction is read-only")
}

/// SQLite's message.
pub fn message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqlInputError { msg, offset, .. } if *offset >= 0 => format!("{msg} (at byte {offset})"),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}

/// SQLite's own code, also for an error with a position in the text.
pub fn code(error: &rusqlite::Error) -> Option<ErrorCode> {
    match error {
        rusqlite::Error::SqlInputError { error, .. } => Some(error.code),
        other => other.sqlite_error_code(),
    }
}

/// A damaged or unreadable file: a new connection may succeed.
pub fn is_of_the_file(end: &QueryEnd) -> bool {
    matches!(end, QueryEnd::Failed(QueryFailure { sqlstate: Some(state), .. }) if matches!(&**state, "XX001" | "58030"))
}

fn failure(error: &rusqlite::Error) -> QueryFailure {
    let message = message(error);
    let Some(code) = code(error) else { return of_the_binding(error, message) };
    match code {
        ErrorCode::ConstraintViolation => refused(constraint(error), message),
        ErrorCode::TypeMismatch => refused("22000", message),
        ErrorCode::TooBig => refused("54000", message),
        ErrorCode::DiskFull => refused("53100", format!("{message}: free disk space")),
        ErrorCode::OutOfMemory => refused("53200", message),
        ErrorCode::ReadOnly => refused("25006", format!("{message}: check the owner and the mode of the file")),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => refused(
            "XX001",
            format!("{message}: stop every writer, copy the file away, and restore a backup or use sqlite3's .recover"),
        ),
        ErrorCode::SystemIoFailure => {
            QueryFailure { certainty: Certainty::Unknown, ..refused("58030", format!("{message} (SQLite: I/O error)")) }
        }
        ErrorCode::CannotOpen => QueryFailure::new(FailureKind::Unreachable, message),
        ErrorCode::Unknown => refused(of_the_text(&message), message),
        _ => QueryFailure::new(FailureKind::Refused, message),
    }
}

fn constraint(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error().map_or(0, |code| code.extended_code) {
        ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID => "23505",
        ffi::SQLITE_CONSTRAINT_NOTNULL => "23502",
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => "23503",
        ffi::SQLITE_CONSTRAINT_CHECK => "23514",
        ffi::SQLITE_CONSTRAINT_DATATYPE => "22000",
        _ => "23000",
    }
}

/// SQLite has one code for all errors in a text; the message distinguishes them.
fn of_the_text(message: &str) -> &'static str {
    let has = |part: &str| message.contains(part);
    match () {
        () if has("no such table") => "42P01",
        () if has("no such column") || has("has no column named") => "42703",
        () if has("no such function") || has("wrong number of arguments to function") => "42883",
        () if has("already exists") => "42P07",
        () if has("ambiguous column name") => "42702",
        () if has("integer overflow") => "22003",
        () if has("malformed JSON") => "22032",
        () => "42601",
    }
}

fn of_the_binding(error: &rusqlite::Error, message: String) -> QueryFailure {
    match error {
        rusqlite::Error::MultipleStatement => {
            QueryFailure::new(FailureKind::Unsupported, "one statement at a time: the text has several")
        }
        _ => QueryFailure::new(FailureKind::Unsupported, message),
    }
}
