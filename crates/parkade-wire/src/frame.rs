//! The typed frames of a worker and of a core.

use std::num::NonZeroU64;

use bytes::Bytes;
use parkade_model::EventName;

use crate::application::Application;
use crate::exchange::{Headers, RequestFrame, Response};
use crate::job::{Enqueued, RunFrame};
use crate::kind::Kind;
use crate::outcome::WaitOutcome;
use crate::wait::{ThenRequest, WaitRequest};

/// A frame of a worker. Its stream and end have been checked, its order has not ([`crate::Conversation`]).
/// A fraction is 0 to 1; a result is not checked to be a `MessagePack` value. `more` of a message: a piece, after which others of
/// it follow; `text` counts on the first.
#[derive(Debug, Clone, PartialEq)]
pub enum FromWorker {
    Hello { version_min: u32, version_max: u32, features: u64, info: WorkerInfo },
    Ready { credit: u32, application: Application },
    Failed { text: String, watch: Vec<String> },
    Response { stream: u32, more: bool, response: Response },
    Data { stream: u32, more: bool, bytes: Bytes },
    Window { stream: u32, bytes: u32 },
    Error { stream: u32, reason: ErrorReason, text: String },
    Began { stream: u32 },
    EarlyHints { stream: u32, headers: Headers },
    Trailers { stream: u32, headers: Headers },
    Park { stream: u32, wait: WaitRequest, then: ThenRequest },
    Unpark { stream: u32 },
    Publish { stream: u32, message: Published },
    Credit { delta: i32 },
    Pong { token: u64 },
    Goodbye { code: String, text: String },
    Enqueue { stream: u32, job: Enqueued },
    Result { stream: u32, result: Bytes },
    Progress { stream: u32, fraction: Option<f64>, text: String },
    Message { stream: u32, text: bool, more: bool, bytes: Bytes },
    Close { stream: u32, code: u16, text: String },
}

impl FromWorker {
    /// The frame's kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            FromWorker::Hello { .. } => Kind::Hello,
            FromWorker::Ready { .. } => Kind::Ready,
            FromWorker::Failed { .. } => Kind::Failed,
            FromWorker::Response { .. } => Kind::Response,
            FromWorker::Data { .. } => Kind::Data,
            FromWorker::Window { .. } => Kind::Window,
            FromWorker::Error { .. } => Kind::Error,
            FromWorker::Began { .. } => Kind::Began,
            FromWorker::EarlyHints { .. } => Kind::EarlyHints,
            FromWorker::Trailers { .. } => Kind::Trailers,
            FromWorker::Park { .. } => Kind::Park,
            FromWorker::Unpark { .. } => Kind::Unpark,
            FromWorker::Publish { .. } => Kind::Publish,
            FromWorker::Credit { .. } => Kind::Credit,
            FromWorker::Pong { .. } => Kind::Pong,
            FromWorker::Goodbye { .. } => Kind::Goodbye,
            FromWorker::Enqueue { .. } => Kind::Enqueue,
            FromWorker::Result { .. } => Kind::Result,
            FromWorker::Progress { .. } => Kind::Progress,
            FromWorker::Message { .. } => Kind::Message,
            FromWorker::Close { .. } => Kind::Close,
        }
    }

    /// The frame's stream; 0 is the link.
    #[must_use]
    pub const fn stream(&self) -> u32 {
        match self {
            FromWorker::Response { stream, .. }
            | FromWorker::Data { stream, .. }
            | FromWorker::Window { stream, .. }
            | FromWorker::Error { stream, .. }
            | FromWorker::Began { stream }
            | FromWorker::EarlyHints { stream, .. }
            | FromWorker::Trailers { stream, .. }
            | FromWorker::Park { stream, .. }
            | FromWorker::Unpark { stream }
            | FromWorker::Publish { stream, .. }
            | FromWorker::Enqueue { stream, .. }
            | FromWorker::Result { stream, .. }
            | FromWorker::Progress { stream, .. }
            | FromWorker::Message { stream, .. }
            | FromWorker::Close { stream, .. } => *stream,
            FromWorker::Hello { .. }
            | FromWorker::Ready { .. }
            | FromWorker::Failed { .. }
            | FromWorker::Credit { .. }
            | FromWorker::Pong { .. }
            | FromWorker::Goodbye { .. } => 0,
        }
    }
}

/// What a worker publishes. `number`: by this the request may ask for the message's cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    pub channel: Box<str>,
    pub content_type: Box<str>,
    pub body: Bytes,
    pub event: Option<EventName>,
    pub number: Option<NonZeroU64>,
}

/// A frame of a core. The core never reads these; the vectors and test workers do.
#[derive(Debug, Clone, PartialEq)]
pub enum FromCore {
    Hello {
        version_min: u32,
        version_max: u32,
        features: u64,
        info: CoreInfo,
    },
    Request {
        stream: u32,
        more: bool,
        request: RequestFrame,
    },
    Run {
        stream: u32,
        run: RunFrame,
    },
    Data {
        stream: u32,
        more: bool,
        bytes: Bytes,
    },
    Window {
        stream: u32,
        bytes: u32,
    },
    /// Streams that were parked with `await`.
    ResumeAwait {
        outcome: WaitOutcome<'static>,
        streams: Vec<u32>,
    },
    /// New streams, each with the state of its call.
    ResumeCall {
        outcome: WaitOutcome<'static>,
        function: String,
        calls: Vec<(u32, Bytes)>,
    },
    Cancel {
        stream: u32,
        reason: CancelReason,
    },
    Drain {
        seconds: f64,
    },
    Ping {
        token: u64,
    },
    Goodbye {
        code: String,
        text: String,
    },
    Message {
        stream: u32,
        text: bool,
        more: bool,
        bytes: Bytes,
    },
    Close {
        stream: u32,
        code: u16,
        text: String,
    },
}

/// What a worker says about itself, for people and logs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerInfo {
    pub language: Option<String>,
    pub runtime: Option<String>,
    pub pid: Option<u64>,
}

/// What a core says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoreInfo {
    pub core: Option<String>,
    pub target: Option<String>,
}

/// Why a request, or an attempt of a job, failed in the worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ErrorReason {
    /// The code raised.
    Application,
    /// It stopped, as requested.
    Cancelled,
    /// It has too much to do.
    Overloaded,
    /// The job asks to be retried after so many seconds; `None`: as usual. This and the next two have a meaning for jobs only, but are
    /// not violations on the stream of a request.
    Retry { after: Option<f64> },
    /// The job asks not to be retried.
    Discard,
    /// The worker has no such job.
    Unknown,
}

impl ErrorReason {
    /// All but `Retry`, which is more than a word.
    pub(crate) fn of(word: &str) -> Option<Self> {
        [Self::Application, Self::Cancelled, Self::Overloaded, Self::Discard, Self::Unknown]
            .into_iter()
            .find(|reason| reason.word() == word)
    }

    /// The word on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Cancelled => "cancelled",
            Self::Overloaded => "overloaded",
            Self::Retry { .. } => "retry",
            Self::Discard => "discard",
            Self::Unknown => "unknown",
        }
    }
}

/// Why the response is no longer wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelReason {
    ClientLeft,
    Deadline,
    Operator,
    Stopping,
}

impl CancelReason {
    pub(crate) fn of(word: &str) -> Option<Self> {
        [Self::ClientLeft, Self::Deadline, Self::Operator, Self::Stopping].into_iter().find(|r| r.word() == word)
    }

    /// The word on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ClientLeft => "client_left",
            Self::Deadline => "deadline",
            Self::Operator => "operator",
            Self::Stopping => "stopping",
        }
    }
}
