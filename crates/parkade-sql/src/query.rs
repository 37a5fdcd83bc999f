//! What is asked of a database.

use std::sync::Arc;

use parkade_model::{Int8, LeaseId, Parameter, Shape, TransactionMode};

/// A statement with what it is given, and how its rows are wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// One statement.
    pub text: Arc<str>,
    pub parameters: Vec<Parameter>,
    pub form: RowFormat,
}

/// How rows are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowFormat {
    pub shape: Shape,
    pub int8: Int8,
    /// The JSON text of all rows together. Then: [`FailureKind::TooLarge`](crate::FailureKind::TooLarge). `None`: it is taken as it comes, without an end.
    pub bytes_max: Option<usize>,
}

/// What a [`QueryId`] stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum DatabaseWork {
    /// One statement, on whichever connection is free.
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
