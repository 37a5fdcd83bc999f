//! The workers, as the server sees them: the *capacity* and *health* of each, the work that it is *given*, and what of
//! that is *cancelled*. Nothing is decided here.
//!
//! Every worker is a process that we start ([`process`]). Another kind of upstream would be a module next to it and a
//! second field of [`Upstream`], which passes each call to the kind that the worker's id belongs to.
//!
//! One task owns [`Upstream`] and loops: wait until it is [`ready`](Upstream::ready), let it take its
//! [`turn`](Upstream::turn), carry out what follows from the events, and [`flush`](Upstream::flush). A call about a
//! worker that is gone, or about a request that it no longer holds, has no effect: an event has already reported it, or
//! will.

mod event;
mod named;
mod process;

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::body_rest::BodyRest;
use bytes::Bytes;
use parkade_model::{AppId, Reason, RequestId, WorkerId};
use parkade_wire::WaitOutcome;
use parkade_wire::encode::{RequestParts, RunParts};

use crate::poll::{NextTurn, Pollable};
use crate::share::Share;
use process::Processes;

pub use event::{AnswerEvent, WorkerEvent};
pub use named::NamedFile;
pub use process::Launch;

pub struct Upstream {
    processes: Processes,
}

impl Upstream {
    /// Starts nothing yet.
    /// `launches`: how a worker of each application is started.
    pub fn new(launches: Vec<Launch>) -> io::Result<Self> {
        Ok(Self { processes: Processes::new(launches)? })
    }

    /// Reads events of the workers, of each a bounded part, until the share is over.
    pub fn turn(&mut self, events: &mut Vec<WorkerEvent>, share: &mut Share) -> io::Result<()> {
        self.processes.turn(events, share)
    }

    /// Sends what was requested, with one write for each link.
    pub fn flush(&mut self) {
        self.processes.flush();
    }

    /// To be called from time to time: frees buffers that are not used.
    pub fn rest(&mut self) {
        self.processes.inflow.rest();
    }

    /// Frees room that is unused: a burst is over.
    pub fn give_room_back(&mut self) {
        self.processes.give_room_back();
    }

    // Health. Events report workers that are ready, fail, violate the protocol or end.

    /// Starts a worker of this application. An event reports a failure.
    pub fn start(&mut self, worker: WorkerId, app: AppId) {
        self.processes.start(worker, app);
    }

    /// Tells the worker that it will be ended after this time.
    pub fn drain(&mut self, worker: WorkerId, within: Duration) {
        self.processes.drain(worker, within);
    }

    /// Tells the worker that it will get no more work.
    pub fn dismiss(&mut self, worker: WorkerId) {
        self.processes.dismiss(worker);
    }

    /// Kills the worker and the processes that it has started.
    pub fn kill(&mut self, worker: WorkerId) {
        self.processes.kill(worker);
    }

    /// Asks for a `Pong`.
    pub fn ping(&mut self, worker: WorkerId, token: u64) {
        self.processes.ping(worker, token);
    }

    /// Asks the worker to log the stack of its code.
    pub fn dump_stack(&mut self, worker: WorkerId) {
        self.processes.dump_stack(worker);
    }

    /// Resident memory of each worker, if known.
    pub fn resident_bytes(&self) -> Vec<(WorkerId, u64)> {
        self.processes.resident_bytes()
    }

    /// Its process id, if it has one. It is known until all events of the turn that reported its exit have been
    /// handled.
    pub fn pid(&self, worker: WorkerId) -> Option<u32> {
        self.processes.pid(worker)
    }

    // Capacity. Events report how many more streams a worker is willing to hold.

    /// Stops reading from the worker: when its link is full, its code waits.
    pub fn pause_reading(&mut self, worker: WorkerId) {
        self.processes.hold_up(worker);
    }

    /// Reads from the worker again.
    pub fn resume_reading(&mut self, worker: WorkerId) {
        self.processes.let_on(worker);
    }

    // Work.

    /// Sends a request, with its body or what has arrived of it; `parts.body` and `parts.more` are set here.
    pub fn request<'a, P, H>(
        &mut self,
        worker: WorkerId,
        request: RequestId,
        parts: RequestParts<'_, P, H>,
        body: (&Bytes, BodyRest),
    ) where
        P: IntoIterator<Item = &'a str>,
        H: IntoIterator<Item = (&'a str, &'a [u8])>,
    {
        self.processes.request(worker, request, parts, body);
    }

    /// A piece of the body that was wanted has arrived.
    pub fn piece(&mut self, request: RequestId, bytes: Bytes, rest: BodyRest) {
        self.processes.piece(request, bytes, rest);
    }

    /// The requests of whose bodies the next piece is wanted: their code reads, and the worker accepts more.
    pub fn take_wanting(&mut self) -> Vec<RequestId> {
        self.processes.take_wanting()
    }

    /// Whether the worker accepts requests whose bodies are arriving.
    pub fn takes_incremental_bodies(&self, worker: WorkerId) -> bool {
        self.processes.takes_incremental_bodies(worker)
    }

    /// Whether the worker of a WebSocket takes messages that do not fit into one frame.
    pub fn takes_long_messages(&self, request: RequestId) -> bool {
        self.processes.takes_long_messages(request)
    }

    /// Whether a worker holds the request, and its body is still arriving.
    pub fn has_arriving_body(&self, request: RequestId) -> bool {
        self.processes.has_arriving_body(request)
    }

    /// Sends an attempt of a job.
    pub fn run(&mut self, worker: WorkerId, request: RequestId, run: &RunParts<'_>) {
        self.processes.run(worker, request, run);
    }

    /// Calls a function for each of these requests, with its state. One frame is sent for all, unless `rows` follow.
    pub fn call(
        &mut self,
        worker: WorkerId,
        outcome: &WaitOutcome<'_>,
        function: &str,
        calls: &[(RequestId, &[u8])],
        rows: Option<&Bytes>,
    ) {
        self.processes.call(worker, outcome, function, calls, rows);
    }

    /// Resumes the coroutines of these requests. One frame is sent for all, unless `rows` follow.
    pub fn resume(
        &mut self,
        worker: WorkerId,
        outcome: &WaitOutcome<'_>,
        requests: &[RequestId],
        rows: Option<&Bytes>,
    ) {
        self.processes.resume(worker, outcome, requests, rows);
    }

    /// Gives the branch on that stream of the worker its id. `false`: its request has been cancelled meanwhile, and the
    /// branch is closed.
    pub fn branch(&mut self, worker: WorkerId, stream: u32, branch: RequestId) -> bool {
        self.processes.branch(worker, stream, branch)
    }

    /// The branch on that stream of the worker, if it is still open.
    pub fn branch_on(&self, worker: WorkerId, stream: u32) -> Option<RequestId> {
        self.processes.branch_on(worker, stream)
    }

    /// A message of the client of a WebSocket, for which its worker has room.
    pub fn message(&mut self, request: RequestId, is_text: bool, bytes: Bytes) {
        self.processes.message(request, is_text, bytes);
    }

    /// The client has closed its WebSocket.
    pub fn close_socket(&mut self, request: RequestId, code: u16, text: String) {
        self.processes.close_socket(request, code, text);
    }

    /// The client has taken this many bytes of `Data`: the worker may send as many more.
    pub fn grant(&mut self, request: RequestId, bytes: usize) {
        self.processes.grant(request, bytes);
    }

    /// Tells the worker that the response is not needed. If it holds the request, `Closed` will report when it no
    /// longer does.
    pub fn cancel(&mut self, worker: WorkerId, request: RequestId, reason: Reason) {
        self.processes.cancel(worker, request, reason);
    }
}

impl Pollable for Upstream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.processes.poll_ready(cx)
    }

    fn next_turn(&self) -> NextTurn {
        self.processes.next_turn()
    }
}
