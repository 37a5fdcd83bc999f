//! One piece of work on a connection: from its first byte to what the server said of it.
//!
//! A statement that the connection does not know takes two or three flights (prepare; look up its types; run), one that it knows takes one.

mod hearing;
mod stages;

use bytes::Bytes;
use parkade_sql::{
    Certainty, DatabaseWork, FailureKind, Isolation, Query, QueryFailure, QueryId, Summary, TransactionMode,
};
use std::sync::Arc;

use crate::limits::PIECE_BYTES_MIN;
use crate::session::ends_transaction;
use crate::wire::error::ServerError;
use crate::wire::message::Transaction;
pub(crate) use hearing::Heard;
use parkade_sql::RowWriter;
use stages::Stage;
pub(crate) use stages::{Means, Step};

use crate::statements::Statement;

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) query: QueryId,
    pub(crate) work: DatabaseWork,
    stage: Stage,
    rows: Option<Rows>,
    summary: Option<Summary>,
    error: Option<ServerError>,
    /// What we refuse ourselves.
    failure: Option<QueryFailure>,
    given_bytes: usize,
    taken_bytes: usize,
    /// The size of the flight that was written last.
    pub(crate) flight_bytes: usize,
    is_retried: bool,
}

#[derive(Debug)]
struct Rows {
    statement: Arc<Statement>,
    writer: RowWriter,
}

/// What became of it, as far as the connection knows.
#[derive(Debug)]
pub(crate) enum Outcome {
    Completed {
        summary: Summary,
        rest: Bytes,
    },
    Refused(ServerError),
    Failed(QueryFailure),
    /// It has been prepared, and not been run.
    NotRun,
}

impl Job {
    /// How much was given away that nobody has taken.
    pub(crate) fn untaken_bytes(&self) -> usize {
        self.given_bytes.saturating_sub(self.taken_bytes)
    }

    pub(crate) fn take(&mut self, bytes: usize) {
        self.taken_bytes += bytes;
    }

    /// Why nothing that is prepared is to be trusted, if the server has said so.
    pub(crate) fn stale(&self) -> Option<&ServerError> {
        self.error.as_ref().filter(|error| error.is_stale_statement())
    }

    /// What has come so far, when that is worth a piece.
    pub(crate) fn piece(&mut self) -> Option<Bytes> {
        let rows = self.rows.as_mut().filter(|rows| rows.writer.pending() >= PIECE_BYTES_MIN)?;
        let piece = rows.writer.take();
        self.given_bytes += piece.len();
        Some(piece)
    }

    /// Nobody wants the rows: what comes of them is left out.
    pub(crate) fn detach(&mut self) {
        self.rows = None;
    }

    /// We refuse what comes of it, and it cannot be cancelled.
    pub(crate) fn fail(&mut self, failure: QueryFailure) {
        self.failure = Some(failure);
    }

    /// COMMIT is never cancelled: nobody could say whether it has happened. ROLLBACK is what a cancel wants.
    pub(crate) fn is_cancellable(&self) -> bool {
        match &self.work {
            DatabaseWork::Commit { .. } | DatabaseWork::Rollback { .. } => false,
            DatabaseWork::Alone(query) | DatabaseWork::Within { query, .. } => !ends_transaction(&query.text),
            DatabaseWork::Begin { .. } => true,
        }
    }

    /// Whether the statement itself has been sent, and not only what prepares it.
    pub(crate) fn is_run(&self) -> bool {
        match &self.stage {
            Stage::Preparing(_) | Stage::Learning(_) => false,
            Stage::Running | Stage::Simple | Stage::Direct => true,
        }
    }

    /// The connection broke. What the server said before decides what is known; of a COMMIT it cannot know itself.
    pub(crate) fn lost(&self, why: &str) -> QueryFailure {
        let refused = self.error.as_ref().is_some_and(ServerError::is_shutdown) && self.is_cancellable();
        let certainty = if refused || !self.is_run() { Certainty::NotDone } else { Certainty::Unknown };
        let (sqlstate, message) = match &self.error {
            Some(error) => (Some(error.code.clone()), error.message.clone()),
            None => (None, format!("the connection to the database was lost while the statement ran: {why}").into()),
        };
        QueryFailure { kind: FailureKind::Lost, sqlstate, message, certainty }
    }

    /// The server is ready for something else.
    pub(crate) fn finish(mut self) -> Outcome {
        if let Some(failure) = self.failure {
            return Outcome::Failed(failure);
        }
        if let Some(error) = self.error {
            return Outcome::Refused(error);
        }
        let Some(summary) = self.summary else { return Outcome::NotRun };
        if matches!(self.work, DatabaseWork::Commit { .. }) && &*summary.command == "ROLLBACK" {
            return Outcome::Refused(rolled_back());
        }
        let rest = self.rows.as_mut().map(|rows| rows.writer.take()).unwrap_or_default();
        Outcome::Completed { summary, rest }
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

/// Whether the failed statement of `work` may be said again: only alone, and only before anything came of it.
fn may_retry(work: &DatabaseWork, transaction: Transaction, given_bytes: usize) -> bool {
    matches!(work, DatabaseWork::Alone(_)) && transaction == Transaction::None && given_bytes == 0
}
