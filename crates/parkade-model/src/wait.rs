//! What a parked request waits for, and what happens then.

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
    Query(QueryWait),
    /// Until all that the request has enqueued is stored.
    Stored,
    /// Until that job has ended.
    Job {
        job: JobId,
        timeout: Option<Duration>,
    },
    /// At the address of a job: what its client wants there, if it may.
    Visit {
        job: JobId,
        errand: Errand,
    },
    /// For nothing: the application was asked whether a visitor may have what it wants.
    Access {
        granted: bool,
    },
}

/// What a client wants at the address of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Errand {
    /// As [`Wait::Job`].
    Result { timeout: Option<Duration> },
    /// If there is such a job: the stream of a channel, until that ends.
    Events { channel: ChannelName, since: Option<Cursor> },
}

/// What happens when the wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The core answers alone: with the response that was parked, or with the message.
    Answer,
    /// Any worker calls a function with the outcome; `concurrent` when that is a coroutine.
    Call { concurrent: bool },
    /// The coroutine in this worker goes on.
    Await,
}

/// What a request waits for when it waits for a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryWait {
    pub database: DatabaseId,
    /// When the query must have ended. `None`: as the request's route says; zero: never.
    pub deadline: Option<Duration>,
    pub work: QueryWork,
    /// Requests that wait for the same key have one execution. Only with [`QueryWork::Alone`].
    pub shared: Option<Sharing>,
}

/// What is asked, as far as the core needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueryWork {
    /// A statement of its own.
    Alone,
    /// A transaction begins; it is the request's until it or the request ends.
    Begin,
    /// A statement in the request's transaction.
    Within,
    /// The request's transaction ends.
    Commit,
    Rollback,
}

/// Whose execution counts for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharing {
    pub key: SharedKey,
    /// For this long, a result is also given to requests that come later.
    pub ttl: Duration,
}

/// What requests must have in common to share an execution: a digest of it, so that a key costs the same whatever a client has put into
/// its question. The server makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharedKey(pub [u8; 32]);
