//! How requests end: what the server answers by itself, and why a request is given up.

/// Answers that the core gives by itself. One table in the server maps them to status, headers and text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// 404
    NotFound,
    /// 405; `Allow` comes from the route table.
    MethodNotAllowed,
    /// 500: the application's code raised.
    ApplicationFailed,
    /// 500: the application's answer breaks HTTP, or its wait is none this core knows.
    BadAnswer,
    /// 502: the worker that ran it died.
    WorkerDied,
    /// 503 with `Retry-After`: more are queued than the core keeps.
    QueueFull,
    /// 503 with `Retry-After`: as fast as the queue moves, no worker would take it before its deadline.
    QueueTooSlow,
    /// 503 with `Retry-After`: too many requests are parked.
    ParkedFull,
    /// 503 with `Retry-After`: a limit of channels.
    ChannelsFull,
    /// 503 with `Retry-After`: the same, for a message that the request has published.
    NotPublished,
    /// 503 with `Retry-After`: the worker said that it is overloaded.
    WorkerOverloaded,
    /// 503 with `Retry-After`: no worker took it before its deadline.
    QueuedTooLong,
    /// 503 with `Retry-After`: the application does not start.
    NoApplication,
    /// 503 with `Retry-After`: the server is stopping.
    Stopping,
    /// 500: this request already has an open transaction.
    TransactionOpen,
    /// 500: this request has no open transaction.
    NoTransaction,
    /// 503: an operator ended it.
    CancelledByOperator,
    /// 504: the deadline passed while a worker ran it.
    DeadlinePassed,
    /// 507: there is no room for the jobs that it enqueued.
    StoreFull,
    /// 503 with `Retry-After`: the jobs that it enqueued cannot be stored.
    StoreUnavailable,
    /// 503 with `Retry-After`: the store does not say how it stands with a job.
    StoreUnreadable,
    /// 504: the deadline of a query passed, and what it has done is not known yet.
    QueryTooLong,
    /// 503: an operator ended the query, and what it has done is not known yet.
    QueryCancelledByOperator,
    /// 503 with `Retry-After`: the server stops, and what the query has done is not known yet.
    QueryStopped,
}

/// Why a request ended without its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    ClientLeft,
    Deadline,
    Operator,
    Stopping,
    /// The worker died or broke the protocol (never told to a worker).
    WorkerDied,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    Done,
    Cancelled(Reason),
}
