//! How requests end: the errors that the core answers with, and why a request is abandoned.

/// Errors that the core answers with. One table in the server maps them to status, headers and text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// 404
    NotFound,
    /// 405; `Allow` comes from the route table.
    MethodNotAllowed,
    /// 400: the path has a segment `.` or `..`, and the application does not resolve these itself.
    DotSegment,
    /// 500: the application's code raised an exception.
    ApplicationFailed,
    /// 500: the application's response violates HTTP, or its wait is unknown to this core.
    BadAnswer,
    /// 502: the worker that ran the request died.
    WorkerDied,
    /// 503 with `Retry-After`: the queue is full.
    QueueFull,
    /// 503 with `Retry-After`: at the queue's current speed, no worker would take the request before its deadline.
    QueueTooSlow,
    /// 503 with `Retry-After`: too many requests are parked.
    ParkedFull,
    /// 503 with `Retry-After`: the limit of channels is reached.
    ChannelsFull,
    /// 503 with `Retry-After`: the same, for a message that the request has published.
    NotPublished,
    /// 500: the request asks for the cursor of a message that it has not published, or of one too long ago.
    CursorUnknown,
    /// 503 with `Retry-After`: the worker reported that it is overloaded.
    WorkerOverloaded,
    /// 503 with `Retry-After`: no worker took the request before its deadline.
    QueuedTooLong,
    /// 503 with `Retry-After`: the application does not start.
    NoApplication,
    /// 503 with `Retry-After`: the server is stopping.
    Stopping,
    /// 500: this request already has an open transaction.
    TransactionOpen,
    /// 500: this request has no open transaction.
    NoTransaction,
    /// 500: a statement of this request's transaction is still running.
    TransactionBusy,
    /// 500: this request waits for too many things at a time.
    TooManyWaits,
    /// 503: an operator ended it.
    CancelledByOperator,
    /// 504: the deadline passed while a worker ran it.
    DeadlinePassed,
    /// 507: there is no room for the jobs that it enqueued.
    StoreFull,
    /// 503 with `Retry-After`: the jobs that it enqueued cannot be stored.
    StoreUnavailable,
    /// 503 with `Retry-After`: the store cannot tell the state of a job.
    StoreUnreadable,
    /// 504: the deadline of a query passed, and its effect is not known yet.
    QueryTooLong,
    /// 503: an operator ended the query, and its effect is not known yet.
    QueryCancelledByOperator,
    /// 503 with `Retry-After`: the server stops, and the effect of the query is not known yet.
    QueryStopped,
    /// 404: there is no such file.
    FileMissing,
    /// 500: the file that is the answer cannot be read.
    FileUnreadable,
    /// 503 with `Retry-After`: too many files are open.
    FilesFull,
}

/// Why a request ended without a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    ClientLeft,
    Deadline,
    Operator,
    Stopping,
    /// The worker died or violated the protocol (never sent to a worker).
    WorkerDied,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    Done,
    Cancelled(Reason),
}
