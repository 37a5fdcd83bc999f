//! Jobs on the wire: what a worker enqueues, and what a core gives it to run.

use bytes::Bytes;
use parkade_model::JobId;

/// A job that a worker sends to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Enqueued {
    pub id: JobId,
    /// 1 to 200 bytes, none of them a control character. The application need not have such a job.
    pub name: String,
    /// Only workers understand them. At most `ARGUMENTS_BYTES_MAX`.
    pub arguments: Bytes,
    pub options: EnqueueOptions,
}

/// When and how it is to be run. Texts have 1 to 200 bytes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EnqueueOptions {
    /// Seconds until it is due; 0 where there is `at`.
    pub delay: f64,
    /// When it is due, in seconds since 1970-01-01 UTC.
    pub at: Option<f64>,
    /// −1,000 to 1,000; `None`: that of the job's function.
    pub priority: Option<i16>,
    /// `None`: that of the job's function.
    pub queue: Option<String>,
    /// While a job of this name with this key is unfinished, that one is used instead.
    pub key: Option<String>,
    /// It belongs to the request's transaction: it is enqueued when that commits, and only then.
    pub within: bool,
}

/// An attempt of a job, as a worker reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFrame {
    pub id: JobId,
    pub name: String,
    /// 1 the first time.
    pub attempt: u32,
    /// Seconds left.
    pub deadline: Option<f64>,
    pub arguments: Bytes,
    /// The id of the request that enqueued it, and its trace.
    pub request_id: Option<String>,
    pub traceparent: Option<String>,
}
