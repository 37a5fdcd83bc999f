//! The outcome of a query, as a response to its client or as an outcome for a worker.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parkade_model::{Reason, Shape};
use parkade_sql::{Certainty, FailureKind, QueryEnd, QueryFailure};
use parkade_wire::limits::INLINE_BODY_BYTES_MAX;
use parkade_wire::{EncodedColumns, QueryEffect, WaitOutcome};

use super::RESULTS_BYTES_MAX;
use super::failure::{self, Explanation};
use super::running::{Running, Sink};
use crate::http::problem::{FailedQuery, Problem};

#[derive(Debug)]
pub struct QueryResult {
    text: Arc<str>,
    shape: Shape,
    /// JSON text; empty if the rows have already gone to the client.
    rows: Bytes,
    end: QueryEnd,
    /// Encoded for workers; `None` if no worker needs them, or if there are too many.
    columns: Option<EncodedColumns>,
    collected_bytes: usize,
}

/// The response to a client.
#[derive(Debug)]
pub enum QueryAnswer {
    /// JSON.
    Rows(Bytes),
    /// With the seconds of `Retry-After`.
    Problem(Problem<'static>, Option<&'static [u8]>),
}

impl QueryResult {
    pub fn new(running: Running, end: QueryEnd) -> Self {
        let end = if running.is_crowded_out() { crowded_out(&end) } else { end };
        let columns = match (&running.sink, &end) {
            (Sink::Collected(_), QueryEnd::Completed(summary)) => {
                EncodedColumns::new(summary.columns.iter().map(|column| (&*column.name, &*column.kind)))
            }
            _ => None,
        };
        let (rows, collected_bytes) = match running.sink {
            Sink::Collected(pieces) => {
                let rows = joined(pieces);
                let bytes = rows.len();
                (rows, bytes)
            }
            Sink::Client { held, .. } => (held.unwrap_or_default(), 0),
            Sink::Flowing { .. } => (Bytes::new(), 0),
        };
        Self { text: running.text, shape: running.shape, rows, end, columns, collected_bytes }
    }

    pub fn is_complete(&self) -> bool {
        matches!(self.end, QueryEnd::Completed(_))
    }

    pub fn end(&self) -> &QueryEnd {
        &self.end
    }

    pub fn rows(&self) -> &Bytes {
        &self.rows
    }

    /// The size of the collected rows.
    pub fn collected_bytes(&self) -> usize {
        self.collected_bytes
    }

    /// For a client. `late`: the query had been abandoned for this reason. `shows_failure`: the client is a developer,
    /// who gets the statement and the database's message.
    pub fn answer(&self, late: Option<Reason>, shows_failure: bool) -> QueryAnswer {
        let explanation = match (&self.end, late) {
            (end, Some(reason)) => failure::late(reason, end),
            (QueryEnd::Failed(failure), None) => failure::failed(failure),
            (QueryEnd::Cancelled, None) => failure::cancelled(),
            (QueryEnd::Completed(summary), None) => {
                let is_missing = self.shape != Shape::Rows && summary.rows == 0 && !summary.columns.is_empty();
                if !is_missing {
                    return QueryAnswer::Rows(self.rows.clone());
                }
                failure::no_row()
            }
        };
        let retry_after = explanation.retry_after;
        let query = shows_failure.then(|| self.shown());
        QueryAnswer::Problem(Problem { query, ..explanation.problem() }, retry_after)
    }

    fn shown(&self) -> FailedQuery {
        let failure = match &self.end {
            QueryEnd::Failed(failure) => Some(failure),
            QueryEnd::Completed(_) | QueryEnd::Cancelled => None,
        };
        FailedQuery {
            query: (*self.text).into(),
            message: failure.map(|failure| (*failure.message).into()),
            sqlstate: failure.and_then(|failure| failure.sqlstate.as_deref()).map(Into::into),
        }
    }

    /// For a worker. Rows that are too large for the frame of the outcome follow it.
    pub fn outcome(&self, late: Option<Reason>) -> WaitOutcome<'_> {
        let (explanation, text) = match (&self.end, late) {
            (end, Some(reason)) => (failure::late(reason, end), None),
            (QueryEnd::Failed(failure), None) => (failure::failed(failure), Some(&*failure.message)),
            (QueryEnd::Cancelled, None) => (failure::cancelled(), None),
            (QueryEnd::Completed(summary), None) => {
                let Some(columns) = self.columns.clone() else { return too_many_columns() };
                let is_inline = self.rows.len() <= INLINE_BODY_BYTES_MAX;
                return WaitOutcome::Rows {
                    columns,
                    command: (&*summary.command).into(),
                    count: summary.rows,
                    body: is_inline.then(|| self.rows[..].into()),
                };
            }
        };
        let sqlstate = match &self.end {
            QueryEnd::Failed(failure) => failure.sqlstate.as_deref().map(Into::into),
            QueryEnd::Completed(_) | QueryEnd::Cancelled => None,
        };
        let Explanation { status, fault, detail, reason, effect, .. } = explanation;
        let text = text.map_or_else(|| detail.clone(), Into::into);
        WaitOutcome::Failed { reason: reason.into(), sqlstate, text, effect, status, fault: fault.into(), detail }
    }
}

fn too_many_columns() -> WaitOutcome<'static> {
    WaitOutcome::Failed {
        reason: "too large".into(),
        sqlstate: None,
        text: "the column names are too long to be sent to a worker".into(),
        effect: QueryEffect::Completed,
        status: 500,
        fault: "application".into(),
        detail: "the result is larger than the server allows".into(),
    }
}

/// How a query ends for whose rows there was no room.
fn crowded_out(end: &QueryEnd) -> QueryEnd {
    let certainty = match end {
        QueryEnd::Completed(_) => Certainty::Unknown,
        QueryEnd::Cancelled => Certainty::NotDone,
        QueryEnd::Failed(failure) => failure.certainty,
    };
    let message = format!("results of queries have {RESULTS_BYTES_MAX} bytes already");
    QueryEnd::Failed(QueryFailure { certainty, ..QueryFailure::new(FailureKind::QueueFull, message) })
}

fn joined(mut pieces: Vec<Bytes>) -> Bytes {
    if pieces.len() <= 1 {
        return pieces.pop().unwrap_or_default();
    }
    let mut all = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
    for piece in &pieces {
        all.extend_from_slice(piece);
    }
    all.freeze()
}
