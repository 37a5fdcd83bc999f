//! Why a query was not carried out.

/// A query that failed. `message` is for logs and developers: it may quote the statement and its values, never credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryFailure {
    pub kind: FailureKind,
    /// Five characters (SQL:2016, clause 24), where the database gave one.
    pub sqlstate: Option<Box<str>>,
    pub message: Box<str>,
    pub certainty: Certainty,
}

/// Whether it is known what a failed query has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// Nothing.
    NotDone,
    /// The connection broke before the database had said.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The database refused it; `sqlstate` says why.
    Refused,
    /// It has other placeholders than parameters.
    ParameterCount,
    /// Two columns have one name: an object cannot have both.
    DuplicateColumns,
    /// The rows are larger than [`Form::bytes_max`](crate::Form::bytes_max), or one row than the limit of a row.
    TooLarge,
    /// More than one row where one was wanted.
    NotOne,
    /// Such a parameter, value or statement (`COPY`) is not supported.
    Unsupported,
    /// As many wait for a connection as may.
    QueueFull,
    /// No connection can be had.
    Unreachable,
    /// The database does not let us in: the password, the certificate, the name.
    Denied,
    /// The connection broke while the query ran.
    Lost,
    /// The database is not one that the server has been given.
    NoDatabase,
    /// There is no such transaction: it was never begun, or has ended.
    NoTransaction,
}

impl QueryFailure {
    /// A failure of which it is known that nothing has changed.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<Box<str>>) -> Self {
        Self { kind, sqlstate: None, message: message.into(), certainty: Certainty::NotDone }
    }
}
