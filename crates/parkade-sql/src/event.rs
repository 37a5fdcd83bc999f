//! What a database says about a query.

use std::sync::Arc;

use bytes::Bytes;
use parkade_model::QueryId;

use crate::failure::QueryFailure;

/// One thing that happened. For each query: at most one `Started`, then pieces, then exactly one `Ended`, cancelled or not.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryEvent {
    /// It has left the queue: the database has it.
    Started {
        query: QueryId,
    },
    /// The next bytes of the JSON text. None come behind a cancel. A small result comes in one piece, right before its end.
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
    /// It was carried out, also when it had been cancelled too late.
    Completed(Summary),
    /// It was cancelled as it was asked: nothing of it has happened.
    Cancelled,
    Failed(QueryFailure),
}

/// What there is to know of a query that was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// `SELECT`, `INSERT`, `CREATE TABLE`…
    pub command: Box<str>,
    /// Rows that came back or were changed.
    pub rows: u64,
    /// Empty when the statement gives no rows.
    pub columns: Arc<[Column]>,
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: Box<str>,
    /// The name of its type, as the database calls it: `timestamptz`, `numeric`, `_int4`. Empty when it is not known.
    pub kind: Box<str>,
}
