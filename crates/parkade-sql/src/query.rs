//! What is asked of a database.

use std::sync::Arc;

use parkade_model::LeaseId;

/// A statement with what it is given, and how its rows are wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// One statement.
    pub text: Arc<str>,
    pub parameters: Vec<Parameter>,
    pub form: Form,
}

/// How rows are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    pub shape: Shape,
    pub int8: Int8,
    /// The JSON text of all rows together. Then: [`FailureKind::TooLarge`](crate::FailureKind::TooLarge). `None`: it is taken as it comes, without an end.
    pub bytes_max: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// `[{…}, {…}]`
    Rows,
    /// `{…}`, or `null` when there is none; a second row is [`FailureKind::NotOne`](crate::FailureKind::NotOne).
    One,
    /// The first column of the only row, or `null`; a second row as above.
    Value,
}

/// How 64-bit integers are written. JavaScript reads numbers over 2^53 wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Int8 {
    Number,
    Text,
}

/// A value for a placeholder. A database that has no such type says so with [`FailureKind::Unsupported`](crate::FailureKind::Unsupported).
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Box<str>),
    Blob(Box<[u8]>),
    Array(Vec<Parameter>),
    /// A JSON document, as text.
    Json(Box<str>),
}

/// What a [`QueryId`] stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// One statement, on whichever connection is free.
    Alone(Query),
    /// Takes a connection and begins a transaction on it.
    Begin {
        lease: LeaseId,
        mode: Mode,
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

/// What kind of transaction. `None`: the database's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mode {
    pub isolation: Option<Isolation>,
    pub is_read_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}
