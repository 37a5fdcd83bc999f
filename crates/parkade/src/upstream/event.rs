//! Events of workers.

use bytes::Bytes;
use parkade_model::{RequestId, WorkerId};
use parkade_wire::{Application, Enqueued, ErrorReason, Headers, Published, Response, ThenRequest, WaitRequest};

use super::named::NamedFile;
use crate::log::Record;

/// A frame of a worker, or something that happened to it. The events of a worker come in the order in which it wrote
/// the frames; `Exited` is the last.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerEvent {
    /// `READY`. `language`: as the worker calls its language, if it does.
    Ready { worker: WorkerId, credit: u32, application: Box<Application>, language: Option<String> },
    /// `FAILED`: it cannot load the application; `Exited` follows. `watch`: where it tried to load it from.
    Failed { worker: WorkerId, text: String, watch: Vec<String> },
    /// `GOODBYE`: it exits by itself, told to or not. `Exited` follows.
    Left { worker: WorkerId },
    /// Its process could not be started; its only event.
    Unstarted { worker: WorkerId, why: String },
    /// It violated the protocol: its link is closed, its process killed. `Exited` follows.
    Violated { worker: WorkerId, why: String },
    /// Its process is gone and its link has been read to the end: "exit status 1", "signal 9 (SIGKILL)".
    /// `announced`: that was to be expected.
    Exited { worker: WorkerId, how: String, announced: bool },
    /// Its code has logged something. `request`: what that is about, if it is known.
    Logged { worker: WorkerId, request: Option<RequestId>, record: Box<Record> },
    /// `RESPONSE`. With `more`, its body follows in `Data`, and [`grant`](super::Upstream::grant) reports every byte
    /// that the client has taken.
    Response { worker: WorkerId, request: RequestId, response: Response, more: bool },
    /// `DATA` of a response; without `more` the last one.
    Data { worker: WorkerId, request: RequestId, bytes: Bytes, more: bool },
    /// What comes before a response, or after its body; or about a WebSocket that was accepted.
    Answer { worker: WorkerId, request: RequestId, event: AnswerEvent },
    /// `ERROR`.
    Errored { worker: WorkerId, request: RequestId, error: ErrorReason, text: String },
    /// `BEGAN`: the code begins now, even if the request was cancelled in the meantime.
    Began { worker: WorkerId, request: RequestId },
    /// `PARK`. With [`ThenRequest::Await`] the stream stays open until [`resume`](super::Upstream::resume) or
    /// [`cancel`](super::Upstream::cancel) ends the wait. `named`: it waits for a part of a file, which its worker keeps until
    /// this is dropped.
    Parked { worker: WorkerId, request: RequestId, wait: WaitRequest, then: ThenRequest, named: Option<NamedFile> },
    /// `PARK` with `branch`: the coroutine of a request waits for one more thing. [`branch`](super::Upstream::branch)
    /// gives that an id.
    Branched { worker: WorkerId, request: RequestId, stream: u32, wait: WaitRequest },
    /// `UNPARK` of a branch of the request.
    BranchUnparked { worker: WorkerId, request: RequestId, stream: u32 },
    /// `UNPARK`: [`resume`](super::Upstream::resume) has to follow, unless it or a [`cancel`](super::Upstream::cancel)
    /// was sent already.
    Unparked { worker: WorkerId, request: RequestId },
    /// The closing frame, of any kind, of a stream that had been cancelled: the worker no longer holds it.
    Closed { worker: WorkerId, request: RequestId },
    /// `PUBLISH`; `request` is `None` outside of requests.
    Published { worker: WorkerId, request: Option<RequestId>, message: Published },
    /// `ENQUEUE`; `request` is `None` outside of requests.
    Enqueued { worker: WorkerId, request: Option<RequestId>, job: Box<Enqueued> },
    /// `RESULT`.
    Returned { worker: WorkerId, request: RequestId, result: Bytes },
    /// `PROGRESS`.
    Progressed { worker: WorkerId, request: RequestId, fraction: Option<f64>, text: String },
    /// `CREDIT`.
    Credit { worker: WorkerId, delta: i32 },
    /// `PONG`.
    Pong { worker: WorkerId, token: u64 },
}

/// What a worker says around a response, or of a WebSocket.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerEvent {
    /// `EARLY_HINTS`, before a response.
    Hints(Headers),
    /// `TRAILERS`, instead of the last `DATA`.
    Trailers(Headers),
    /// `MESSAGE` for the client. `more`: it goes on in the next one.
    Message { is_text: bool, more: bool, bytes: Bytes },
    /// `CLOSE`: the application has closed it.
    Closed { code: u16, text: String },
    /// A function has closed the WebSocket of which a client has said something. No worker holds that.
    ClosedByCall { code: u16, text: String },
    /// `WINDOW`: there is room for so many bytes more of the client.
    Window { bytes: u32 },
}

impl WorkerEvent {
    pub fn worker(&self) -> WorkerId {
        match self {
            Self::Ready { worker, .. }
            | Self::Failed { worker, .. }
            | Self::Left { worker }
            | Self::Unstarted { worker, .. }
            | Self::Violated { worker, .. }
            | Self::Exited { worker, .. }
            | Self::Logged { worker, .. }
            | Self::Response { worker, .. }
            | Self::Data { worker, .. }
            | Self::Answer { worker, .. }
            | Self::Errored { worker, .. }
            | Self::Began { worker, .. }
            | Self::Parked { worker, .. }
            | Self::Branched { worker, .. }
            | Self::BranchUnparked { worker, .. }
            | Self::Unparked { worker, .. }
            | Self::Closed { worker, .. }
            | Self::Published { worker, .. }
            | Self::Enqueued { worker, .. }
            | Self::Returned { worker, .. }
            | Self::Progressed { worker, .. }
            | Self::Credit { worker, .. }
            | Self::Pong { worker, .. } => *worker,
        }
    }
}
