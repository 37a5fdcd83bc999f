//! One stream: what the worker may still write on it, and how much body may still go to the worker (section 3 of the protocol).
//!
//! ```text
//!  Given ──BEGAN──▶ Held, and everything that Held may
//!
//!           RESPONSE with MORE         DATA without MORE, TRAILERS
//!  Held ─────────────────────────▶ Replying ──────────────▶ Closed
//!   │ ▲                               └─────────ERROR──────▶ Closed
//!   │ └──resume── Parked ──cancel──▶ Closed
//!   ├──RESPONSE 101──▶ Socket ──CLOSE, ERROR──▶ Closed
//!   ├──PARK await──▶ Parked
//!   └──RESPONSE, RESULT, ERROR, any other PARK──▶ Closed
//! ```
//!
//! A request ends with `RESPONSE`, a job with `RESULT`: its [`Opener`] determines which of the two a stream may have.

use crate::error::{ProtocolRule, Violation};
use crate::frame::FromWorker;
use crate::kind::Kind;
use crate::limits::{BRANCH_STREAM_MIN, MESSAGE_OVERHEAD_BYTES, WINDOW_BYTES};
use crate::wait::ThenRequest;

/// The status with which a worker accepts a WebSocket.
pub const SWITCHING_PROTOCOLS: u16 = 101;

/// The state of a stream after a step. When it is `Parked` or `Closed`, its credit is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamProgress {
    /// The worker holds it.
    Held,
    /// It waits for `RESUME`.
    Parked,
    /// Over: forget it, and pass further frames of it to [`absent`].
    Closed,
}

/// What opened a stream, and therefore how it may end. It stays the same while the stream is parked and resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opener {
    /// `REQUEST`: no `RESULT`, no `PROGRESS`.
    Request,
    /// `REQUEST` for a WebSocket: the same, and it may be accepted.
    Socket,
    /// `RUN`: no `RESPONSE`.
    Run,
    /// `RESUME` with a function, which continues a request or a job. The wire does not know which, so it may end as either.
    Call,
}

/// A stream that is open: held by the worker, or parked with `await`.
#[derive(Debug)]
pub struct Stream {
    number: u32,
    opener: Opener,
    phase: StreamState,
    cancelled: bool,
}

#[derive(Debug, Clone, Copy)]
enum StreamState {
    /// As `Held`, but `BEGAN` may still come.
    Given,
    Held,
    /// The `DATA` that the worker may still write before more window is granted.
    Replying {
        window: u32,
    },
    /// A WebSocket that was accepted.
    Socket {
        window: MessageWindow,
    },
    Parked,
}

impl Stream {
    /// A stream that has just been opened: the worker holds it.
    #[must_use]
    pub const fn open(number: u32, opener: Opener) -> Self {
        Stream { number, opener, phase: StreamState::Given, cancelled: false }
    }

    /// A branch, which the worker has opened: it waits for its `RESUME`, and is closed with that.
    #[must_use]
    pub const fn branch(number: u32) -> Self {
        Stream { number, opener: Opener::Call, phase: StreamState::Parked, cancelled: false }
    }

    /// The stream was cancelled: further frames of the worker are checked, and then dropped.
    #[must_use]
    pub const fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Whether it is a WebSocket that was accepted.
    #[must_use]
    pub const fn is_socket(&self) -> bool {
        matches!(self.phase, StreamState::Socket { .. })
    }

    /// Its state.
    #[must_use]
    pub const fn progress(&self) -> StreamProgress {
        match self.phase {
            StreamState::Given | StreamState::Held | StreamState::Replying { .. } | StreamState::Socket { .. } => {
                StreamProgress::Held
            }
            StreamState::Parked => StreamProgress::Parked,
        }
    }

    /// Checks a frame of this stream. Frames that do not concern streams change nothing.
    pub fn hear(&mut self, frame: &FromWorker) -> Result<StreamProgress, Violation> {
        match frame {
            FromWorker::Response { more, response, .. } if response.status == SWITCHING_PROTOCOLS => self.accept(*more),
            FromWorker::Response { more, .. } => self.response(*more),
            FromWorker::Result { .. } => self.result(),
            FromWorker::Progress { .. } => self.of_a_job(Kind::Progress).map(|()| self.progress()),
            FromWorker::Data { more, bytes, .. } => self.data(bytes.len(), *more),
            FromWorker::Message { bytes, .. } => self.message(bytes.len()),
            FromWorker::Close { .. } => self.close(),
            FromWorker::Error { .. } => self.error(),
            FromWorker::Began { .. } => self.begin(),
            FromWorker::EarlyHints { .. } => self.early_hints(),
            FromWorker::Trailers { .. } => self.trailers(),
            FromWorker::Park { then, .. } => self.park(then),
            // The code that resumes the stream knows whether it is still parked, or its `RESUME` is on its way.
            FromWorker::Unpark { .. }
            | FromWorker::Hello { .. }
            | FromWorker::Ready { .. }
            | FromWorker::Failed { .. }
            | FromWorker::Window { .. }
            | FromWorker::Publish { .. }
            | FromWorker::Enqueue { .. }
            | FromWorker::Credit { .. }
            | FromWorker::Pong { .. }
            | FromWorker::Goodbye { .. } => Ok(self.progress()),
        }
    }

    /// The core cancels. A parked stream is over at once; a held one when the worker has written its closing frame.
    pub fn cancel(&mut self) -> StreamProgress {
        self.cancelled = true;
        match self.phase {
            StreamState::Given | StreamState::Held | StreamState::Replying { .. } | StreamState::Socket { .. } => {
                StreamProgress::Held
            }
            StreamState::Parked => StreamProgress::Closed,
        }
    }

    /// The core resumes: the worker holds the stream again. `false`, and nothing happens, if it is not parked.
    #[must_use]
    pub fn resume(&mut self) -> bool {
        let parked = matches!(self.phase, StreamState::Parked);
        if parked {
            self.phase = StreamState::Held;
        }
        parked
    }

    /// The core has written `WINDOW`: the worker may write this many bytes more.
    pub fn grant(&mut self, bytes: u32) {
        match &mut self.phase {
            StreamState::Replying { window } => *window = window.saturating_add(bytes),
            StreamState::Socket { window } => window.granted(bytes),
            StreamState::Given | StreamState::Held | StreamState::Parked => {}
        }
    }

    /// A stream that has begun is held; one that continues after a `RESUME` had begun.
    fn begin(&mut self) -> Result<StreamProgress, Violation> {
        match self.phase {
            StreamState::Given => self.phase = StreamState::Held,
            StreamState::Held | StreamState::Replying { .. } | StreamState::Socket { .. } if self.cancelled => (),
            StreamState::Held | StreamState::Replying { .. } | StreamState::Socket { .. } => {
                return Err(self.refused(ProtocolRule::Second, Kind::Began));
            }
            StreamState::Parked => return Err(self.refused(ProtocolRule::Closed, Kind::Began)),
        }
        Ok(StreamProgress::Held)
    }

    fn response(&mut self, more: bool) -> Result<StreamProgress, Violation> {
        self.of_a_request(Kind::Response)?;
        match self.phase {
            StreamState::Given | StreamState::Held if more => {
                self.phase = StreamState::Replying { window: WINDOW_BYTES };
                Ok(StreamProgress::Held)
            }
            StreamState::Given | StreamState::Held => Ok(StreamProgress::Closed),
            StreamState::Replying { .. } | StreamState::Socket { .. } => {
                Err(self.refused(ProtocolRule::Response, Kind::Response))
            }
            StreamState::Parked => Err(self.refused(ProtocolRule::Closed, Kind::Response)),
        }
    }

    /// `RESPONSE` with 101.
    fn accept(&mut self, more: bool) -> Result<StreamProgress, Violation> {
        if self.opener != Opener::Socket || !more {
            return Err(Violation {
                why: "101 accepts a WebSocket, with MORE",
                ..self.refused(ProtocolRule::Stream, Kind::Response)
            });
        }
        self.response(more)?;
        self.phase = StreamState::Socket { window: MessageWindow::new() };
        Ok(StreamProgress::Held)
    }

    fn message(&mut self, bytes: usize) -> Result<StreamProgress, Violation> {
        let refused = |rule| Violation::new(rule, Kind::Message, self.number);
        match &mut self.phase {
            StreamState::Socket { window } => {
                if window.take(bytes) {
                    Ok(StreamProgress::Held)
                } else {
                    Err(refused(ProtocolRule::Window))
                }
            }
            StreamState::Parked => Err(refused(ProtocolRule::Closed)),
            StreamState::Given | StreamState::Held | StreamState::Replying { .. } => {
                Err(Violation { why: "only on a WebSocket", ..refused(ProtocolRule::Stream) })
            }
        }
    }

    fn close(&self) -> Result<StreamProgress, Violation> {
        match self.phase {
            StreamState::Socket { .. } => Ok(StreamProgress::Closed),
            // The client of a WebSocket may have said what the function was called for.
            StreamState::Given | StreamState::Held if self.opener == Opener::Call => Ok(StreamProgress::Closed),
            StreamState::Parked => Err(self.refused(ProtocolRule::Closed, Kind::Close)),
            StreamState::Given | StreamState::Held | StreamState::Replying { .. } => {
                Err(Violation { why: "only on a WebSocket", ..self.refused(ProtocolRule::Stream, Kind::Close) })
            }
        }
    }

    fn result(&self) -> Result<StreamProgress, Violation> {
        self.of_a_job(Kind::Result)?;
        match self.phase {
            StreamState::Given | StreamState::Held => Ok(StreamProgress::Closed),
            StreamState::Replying { .. } | StreamState::Socket { .. } => {
                Err(self.refused(ProtocolRule::Response, Kind::Result))
            }
            StreamState::Parked => Err(self.refused(ProtocolRule::Closed, Kind::Result)),
        }
    }

    /// Refuses frames that no job may write.
    fn of_a_request(&self, kind: Kind) -> Result<(), Violation> {
        match self.opener {
            Opener::Request | Opener::Socket | Opener::Call => Ok(()),
            Opener::Run => Err(Violation { why: "a job ends with RESULT", ..self.refused(ProtocolRule::Stream, kind) }),
        }
    }

    /// Refuses frames that only a job may write.
    fn of_a_job(&self, kind: Kind) -> Result<(), Violation> {
        match self.opener {
            Opener::Run | Opener::Call => Ok(()),
            Opener::Request | Opener::Socket => {
                Err(Violation { why: "only on a job's", ..self.refused(ProtocolRule::Stream, kind) })
            }
        }
    }

    fn data(&mut self, bytes: usize, more: bool) -> Result<StreamProgress, Violation> {
        match self.phase {
            StreamState::Given | StreamState::Held | StreamState::Socket { .. } => {
                Err(self.refused(ProtocolRule::More, Kind::Data))
            }
            StreamState::Replying { window } => {
                let left = u32::try_from(bytes).ok().and_then(|bytes| window.checked_sub(bytes));
                let window = left.ok_or_else(|| self.refused(ProtocolRule::Window, Kind::Data))?;
                self.phase = StreamState::Replying { window };
                Ok(if more { StreamProgress::Held } else { StreamProgress::Closed })
            }
            StreamState::Parked => Err(self.refused(ProtocolRule::Closed, Kind::Data)),
        }
    }

    fn early_hints(&self) -> Result<StreamProgress, Violation> {
        self.of_a_request(Kind::EarlyHints)?;
        match self.phase {
            StreamState::Given | StreamState::Held => Ok(StreamProgress::Held),
            StreamState::Replying { .. } | StreamState::Socket { .. } => {
                Err(self.refused(ProtocolRule::Response, Kind::EarlyHints))
            }
            StreamState::Parked => Err(self.refused(ProtocolRule::Closed, Kind::EarlyHints)),
        }
    }

    fn trailers(&self) -> Result<StreamProgress, Violation> {
        match self.phase {
            StreamState::Given | StreamState::Held | StreamState::Socket { .. } => {
                Err(self.refused(ProtocolRule::More, Kind::Trailers))
            }
            StreamState::Replying { .. } => Ok(StreamProgress::Closed),
            StreamState::Parked => Err(self.refused(ProtocolRule::Closed, Kind::Trailers)),
        }
    }

    fn error(&self) -> Result<StreamProgress, Violation> {
        match self.phase {
            StreamState::Given | StreamState::Held | StreamState::Replying { .. } | StreamState::Socket { .. } => {
                Ok(StreamProgress::Closed)
            }
            StreamState::Parked => Err(self.refused(ProtocolRule::Closed, Kind::Error)),
        }
    }

    fn park(&mut self, then: &ThenRequest) -> Result<StreamProgress, Violation> {
        match (self.phase, then) {
            (StreamState::Given | StreamState::Held, ThenRequest::Await) if !self.cancelled => {
                self.phase = StreamState::Parked;
                Ok(StreamProgress::Parked)
            }
            // The worker had not read the CANCEL yet, and will not write on the stream again.
            (
                StreamState::Given | StreamState::Held,
                ThenRequest::Await | ThenRequest::Answer { .. } | ThenRequest::Call { .. } | ThenRequest::Branch { .. },
            ) => Ok(StreamProgress::Closed),
            (StreamState::Replying { .. } | StreamState::Socket { .. }, _) => {
                Err(self.refused(ProtocolRule::Response, Kind::Park))
            }
            (StreamState::Parked, _) => Err(self.refused(ProtocolRule::Closed, Kind::Park)),
        }
    }

    const fn refused(&self, rule: ProtocolRule, kind: Kind) -> Violation {
        Violation::new(rule, kind, self.number)
    }
}

/// Checks a frame on a stream that is not open. `opened` is the highest number so far: the core numbers streams upwards.
///
/// `WINDOW` may cross the closing frame and `UNPARK` a `CANCEL`, so they are ignored, and a `PUBLISH` or `ENQUEUE` counts as on stream 0; everything
/// else is a violation.
pub fn absent(frame: &FromWorker, opened: u32) -> Result<(), Violation> {
    let rule = match frame {
        frame if frame.stream() > opened && frame.stream() < BRANCH_STREAM_MIN => ProtocolRule::Unopened,
        FromWorker::Window { .. } | FromWorker::Unpark { .. } => return Ok(()),
        frame if frame.stream() >= BRANCH_STREAM_MIN => ProtocolRule::Unopened,
        FromWorker::Publish { .. } | FromWorker::Enqueue { .. } => return Ok(()),
        _ => ProtocolRule::Closed,
    };
    Err(Violation::new(rule, frame.kind(), frame.stream()))
}

/// How far a sender of `MESSAGE` may be ahead of its receiver. While there is any window, a message may have any size, and what it
/// takes too much is owed. A piece of a worker's long message counts as a message.
#[derive(Debug, Clone, Copy)]
pub struct MessageWindow {
    left: i64,
}

impl MessageWindow {
    /// The window of a WebSocket that was just accepted.
    #[must_use]
    pub const fn new() -> Self {
        Self { left: WINDOW_BYTES as i64 }
    }

    /// What a message takes from a window.
    #[must_use]
    pub fn cost(bytes: usize) -> usize {
        bytes + MESSAGE_OVERHEAD_BYTES as usize
    }

    /// Whether a message may be sent.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.left > 0
    }

    /// By how much messages have taken more than there was.
    #[must_use]
    pub fn debt(&self) -> usize {
        usize::try_from(-self.left).unwrap_or_default()
    }

    /// Takes a message with so many bytes. `false`, and nothing happens, if it may not be sent.
    #[must_use]
    pub fn take(&mut self, bytes: usize) -> bool {
        let is_open = self.is_open();
        if is_open {
            self.left -= i64::try_from(Self::cost(bytes)).unwrap_or(i64::MAX / 2);
        }
        is_open
    }

    /// The other end has written `WINDOW`.
    pub fn granted(&mut self, bytes: u32) {
        self.left = self.left.saturating_add(bytes.into());
    }
}

impl Default for MessageWindow {
    fn default() -> Self {
        Self::new()
    }
}

/// How much of a request's body, or of rows that follow, may be sent before the worker has read some. Each body has its own window.
#[derive(Debug)]
pub struct SendWindow {
    window: u32,
}

impl SendWindow {
    /// The window of a body that has just been announced.
    #[must_use]
    pub const fn new() -> Self {
        SendWindow { window: WINDOW_BYTES }
    }

    /// Bytes that may be sent now.
    #[must_use]
    pub const fn room(&self) -> usize {
        self.window as usize
    }

    /// Takes bytes that are about to be sent out of the window: as much of `wanted` as fits.
    #[must_use]
    pub fn take(&mut self, wanted: usize) -> usize {
        let taken = u32::try_from(wanted).map_or(self.window, |wanted| wanted.min(self.window));
        self.window -= taken;
        taken as usize
    }

    /// The worker has written `WINDOW`.
    pub fn granted(&mut self, bytes: u32) {
        self.window = self.window.saturating_add(bytes);
    }
}

impl Default for SendWindow {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_goes_out_as_the_window_allows() {
        let mut body = SendWindow::new();
        assert_eq!(body.take(200_000), 200_000);
        assert_eq!(body.take(200_000), 62_144);
        assert_eq!(body.take(1), 0);
        body.granted(10);
        assert_eq!((body.room(), body.take(5), body.room()), (10, 5, 5));
    }
}
