//! Events of a query.

use std::sync::Arc;

use bytes::Bytes;
use parkade_model::QueryId;

use crate::failure::QueryFailure;

/// One event. For each query there is at most one `Started`, then any number of pieces, then exactly one `Ended`,
/// cancelled or not.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryEvent {
    /// The query has left the queue and is with the database.
    Started {
        query: QueryId,
    },
    /// The next bytes of the JSON text. None come after a cancel. A small result comes in one piece, right before the
    /// end.
    Piece {
        query: QueryId,
        bytes: Bytes,
    },
    Ended {
        query: QueryId,
        end: QueryEnd,
    },
}

/// How a query ended.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryEnd {
    /// It completed, possibly because a cancel came too late.
    Completed(Summary),
    /// It was cancelled as requested, and has changed nothing.
    Cancelled,
    Failed(QueryFailure),
}

/// The summary of a completed query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// `SELECT`, `INSERT`, `CREATE TABLE`…
    pub command: Box<str>,
    /// The number of rows returned or changed.
    pub rows: u64,
    /// Empty if the statement returns no rows.
    pub columns: Arc<[Column]>,
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: Box<str>,
    /// The name of its type in the database: `timestamptz`, `numeric`, `_int4`. Empty if unknown.
    pub kind: Box<str>,
}
