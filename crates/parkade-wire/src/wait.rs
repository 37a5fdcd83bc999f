//! What a parked request waits for, and what happens then.

use std::time::Duration;

use bytes::Bytes;
use parkade_model::{ChannelName, Cursor, GroupEnd, JobId};

use crate::exchange::{Added, Response};
use crate::query::{Begin, QueryRequest};

/// The wait of a worker or a route.
#[derive(Debug, Clone, PartialEq)]
pub enum WaitRequest {
    Timer {
        after: Duration,
    },
    /// The next message of a channel.
    Next {
        channel: ChannelName,
        timeout: Option<Duration>,
        since: Option<Cursor>,
    },
    /// Every message of a channel, until the client leaves.
    Stream {
        channel: ChannelName,
        since: Option<Cursor>,
    },
    /// The same for a WebSocket, until that is closed. What its client says is given to the function. Only with one.
    Socket {
        channel: ChannelName,
        since: Option<Cursor>,
        on_close: Option<OnClose>,
        /// The first that the client offers is agreed.
        subprotocols: Vec<String>,
    },
    /// Not until anything: what the channel holds, at most so many messages.
    History {
        channel: ChannelName,
        count: Option<u64>,
    },
    /// Not until anything: the cursor of the message that was published under that number.
    Published {
        number: u64,
    },
    /// Until a database has run a statement.
    Query(Box<QueryRequest>),
    /// Until a transaction has begun, which belongs to the request. This and the next two are only awaited.
    Begin(Box<Begin>),
    /// Until the request's transaction has been carried out.
    Commit,
    /// Until it has been rolled back.
    Rollback,
    /// Until everything that the request has enqueued is stored. Only awaited.
    Stored,
    /// Until every branch of this stream has had its `RESUME`. Only awaited.
    Branches,
    /// Until all of these are over, or the first of them: at most `GROUP_COUNT_MAX`. Only with a function that is called.
    Group {
        until: GroupEnd,
        waits: Vec<WaitRequest>,
    },
    /// Until the job has ended.
    Result {
        job: JobId,
        timeout: Option<Duration>,
    },
    /// Until a file has been sent, which is the answer.
    File {
        /// As the application names it.
        path: String,
    },
    /// The same for a file of a folder, which a request's path names.
    Files(Box<FilesOf>),
    /// Until a part of a file has been sent, which is the body of the response.
    Part(Box<FilePart>),
    /// Not a wait: whether the client may have what it wants from the job that the application was asked about.
    Access {
        granted: bool,
    },
    /// A name or options that this core does not accept: the request ends with 500, the link continues.
    Unaccepted {
        name: String,
        why: &'static str,
    },
}

impl WaitRequest {
    /// Whether a script may wait for this, which has a transaction and nothing else. What is wrong with one that is invalid is told.
    #[must_use]
    pub fn is_of_a_transaction(&self) -> bool {
        match self {
            Self::Query(query) => query.options.within,
            Self::Begin(_) | Self::Commit | Self::Rollback | Self::Stored | Self::Unaccepted { .. } => true,
            _ => false,
        }
    }
}

/// Which file of a folder is the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesOf {
    pub folder: String,
    /// The path of a request, as sent. `None`: of the request that waits.
    pub path: Option<String>,
    /// So many segments of it come before those of the file.
    pub depth: u32,
    /// Files whose names begin with a dot are served, too.
    pub hidden: bool,
    /// Compressed files next to the file are sent to clients that accept them.
    pub precompressed: bool,
    /// The file that is sent for a folder.
    pub index: Option<String>,
}

/// Which part of which file is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    /// The first counts that is the file.
    pub paths: Vec<String>,
    /// How the system knows the file.
    pub device: u64,
    pub inode: u64,
    /// In bytes.
    pub first: u64,
    pub length: u64,
}

/// What a called function occupies in its worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallKind {
    /// It is plain: it takes the worker, or one of its threads.
    #[default]
    Sync,
    /// A coroutine: it takes a turn of the loop now and then.
    Async,
}

/// The function that is called when a WebSocket is over, with the state of the one that gets what its client says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnClose {
    pub function: String,
    pub kind: CallKind,
}

/// How the outcome is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThenRequest {
    /// The core answers alone: with this response after a timer, with the message, the rows or the result (`None`) after the others.
    Answer { response: Option<Response>, added: Option<Added> },
    /// Any worker calls the function with the outcome and the state.
    Call { function: String, state: Bytes, kind: CallKind },
    /// The worker that parked continues the stream.
    Await,
    /// The `PARK` opens its stream, a branch of that one. The worker continues it.
    Branch { of: u32 },
}
