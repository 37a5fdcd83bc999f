//! The work of a database.

use std::sync::Arc;

use parkade_model::{Int8, LeaseId, Parameter, Shape, TransactionMode};

/// A statement with its parameters and the form of its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// One statement.
    pub text: Arc<str>,
    /// The same with a comment that no other query has: it is sent instead, and not kept prepared.
    pub commented: Option<Arc<str>>,
    pub parameters: Vec<Parameter>,
    pub form: RowFormat,
}

/// The form of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowFormat {
    pub shape: Shape,
    pub int8: Int8,
    /// The limit of the JSON text of all rows together. Then: [`FailureKind::TooLarge`](crate::FailureKind::TooLarge).
    /// `None`: no limit, because pieces are taken as they come.
    pub bytes_max: Option<usize>,
}

/// The work that a [`QueryId`] stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum DatabaseWork {
    /// One statement, on any free connection.
    Alone(Query),
    /// Takes a connection and begins a transaction on it.
    Begin {
        lease: LeaseId,
        mode: TransactionMode,
    },
    /// One statement in that transaction.
    Within {
        lease: LeaseId,
        query: Query,
    },
    /// Ends the transaction; the lease is over.
    Commit {
        lease: LeaseId,
    },
    Rollback {
        lease: LeaseId,
    },
}
