//! What a parked request waits for, and how it continues.

use std::time::Duration;

use crate::channel::ChannelName;
use crate::cursor::Cursor;
use crate::id::{DatabaseId, JobId};

/// What a parked request waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum Wait {
    Timer {
        after: Duration,
    },
    Next {
        channel: ChannelName,
        timeout: Option<Duration>,
        since: Option<Cursor>,
    },
    Stream {
        channel: ChannelName,
        since: Option<Cursor>,
    },
    /// A WebSocket gets every message of the channel, and each message of its client is a call. So is its end, if the application wants it.
    Socket {
        channel: ChannelName,
        since: Option<Cursor>,
        on_close: Option<CloseCall>,
    },
    /// Not until anything: what the channel holds, at most so many messages.
    History {
        channel: ChannelName,
        count: Option<u64>,
    },
    /// Not until anything: the cursor of the message that this request has published under that number.
    Published {
        number: u64,
    },
    Query(QueryWait),
    /// Until all jobs that the request has enqueued are stored.
    Stored,
    /// Until every branch of the request has ended: the other waits that its coroutine has begun.
    Branches,
    /// Until all of several waits are over, or the first of them. Each of them joins the request with an id of its own.
    Group(GroupWait),
    /// Until that job has ended.
    Job {
        job: JobId,
        timeout: Option<Duration>,
    },
    /// At the address of a job: what its client wants there, if it has access.
    Visit {
        job: JobId,
        errand: Errand,
    },
    /// Until a file has been sent, which is the answer. The server knows which.
    File,
    /// Nothing: the application has decided whether a client may access a job.
    Access {
        granted: bool,
    },
}

/// Several waits as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupWait {
    pub until: GroupEnd,
    /// How many waits there are.
    pub count: u32,
}

/// When several waits are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupEnd {
    /// When all of them are.
    All,
    /// When the first of them is.
    First,
}

/// What a client wants at the address of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Errand {
    /// As [`Wait::Job`].
    Result { timeout: Option<Duration> },
    /// If the job exists: the stream of a channel, until the stream ends.
    Events { channel: ChannelName, since: Option<Cursor> },
    /// That the job ends. The answer is how it stands, when it is known whether it will.
    Cancel,
}

/// How the request continues when the wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The core answers by itself: with the response that was parked, or with the message.
    Answer,
    /// Any worker calls a function with the outcome; `concurrent` if the function is a coroutine.
    Call { concurrent: bool },
    /// The coroutine in this worker continues.
    Await,
}

/// The end of a WebSocket is a call of a function; `concurrent` if that is a coroutine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloseCall {
    pub concurrent: bool,
}

/// A wait for a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryWait {
    pub database: DatabaseId,
    /// The deadline of the query. `None`: that of the request's route; zero: none.
    pub deadline: Option<Duration>,
    pub work: QueryWork,
    /// Requests that wait for the same key share one execution. Only with [`QueryWork::Alone`].
    pub shared: Option<Sharing>,
}

/// The kind of work, as far as the core needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueryWork {
    /// A statement outside of a transaction.
    Alone,
    /// A transaction begins; it belongs to the request until the transaction or the request ends.
    Begin,
    /// A statement in the request's transaction.
    Within,
    /// The request's transaction ends.
    Commit,
    Rollback,
}

/// Which requests share an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharing {
    pub key: SharedKey,
    /// How long a result is also given to later requests.
    pub ttl: Duration,
}

/// A digest of everything that requests must have in common to share an execution. Its size does not depend on what
/// clients send. The server computes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharedKey(pub [u8; 32]);
