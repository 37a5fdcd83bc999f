//! Why a query failed.

/// A query that failed. `message` is for logs and developers: it may quote the statement and its values, never credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryFailure {
    pub kind: FailureKind,
    /// Five characters (SQL:2016, clause 24), if the database gave one.
    pub sqlstate: Option<Box<str>>,
    pub message: Box<str>,
    pub certainty: Certainty,
}

/// What is known about the changes of a failed query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// Nothing.
    NotDone,
    /// Unknown: the connection broke before the database reported the outcome.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The database refused it; `sqlstate` says why.
    Refused,
    /// The number of parameters differs from the number of placeholders.
    ParameterCount,
    /// Two columns have the same name, which an object cannot represent.
    DuplicateColumns,
    /// The rows are larger than [`Form::bytes_max`](crate::Form::bytes_max), or one row is larger than the limit of a
    /// row.
    TooLarge,
    /// More than one row where only one was expected.
    NotOne,
    /// This parameter, value or statement (`COPY`) is not supported.
    Unsupported,
    /// The queue for a connection is full.
    QueueFull,
    /// The database cannot be reached.
    Unreachable,
    /// The database denies access: the password, the certificate or the name is wrong.
    Denied,
    /// The connection broke while the query ran.
    Lost,
    /// The server has no database of this name.
    NoDatabase,
    /// There is no such transaction: it has not begun, or has ended.
    NoTransaction,
}

impl QueryFailure {
    /// A failure after which nothing has changed.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<Box<str>>) -> Self {
        Self { kind, sqlstate: None, message: message.into(), certainty: Certainty::NotDone }
    }
}
