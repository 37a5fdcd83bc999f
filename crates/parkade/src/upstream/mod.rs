//! The workers, as the server sees them: the *capacity* and *health* of each, what it is *given*, and what of that is *cancelled*. Nothing is
//! decided here.
//!
//! Every worker is a process that we start ([`process`]). Another kind of upstream would be a module next to it and a second field of [`Upstream`],
//! which passes each call to the kind that the worker's id belongs to.
//!
//! One task owns [`Upstream`] and loops: wait until it is [`ready`](Upstream::ready), let it take its [`turn`](Upstream::turn), carry out what
//! follows from the events, and [`flush`](Upstream::flush). A call about a worker that is gone, or about a request that it no longer holds, has no
//! effect: an event has already said so, or will.

mod event;
mod process;

use std::io;
use std::time::Duration;

use bytes::Bytes;
use parkade_model::{JobId, Reason, RequestId, WorkerId};
use parkade_wire::WaitOutcome;
use parkade_wire::encode::RequestParts;

use crate::share::Share;
use process::Processes;

pub use event::WorkerEvent;
pub use process::Launch;

pub struct Upstream {
    processes: Processes,
}

/// An attempt of a job, as it is told to a worker.
pub struct RunParts<'a> {
    pub id: JobId,
    pub name: &'a str,
    pub attempt: u32,
    /// Seconds.
    pub deadline: Option<f64>,
    pub arguments: &'a [u8],
}

impl Upstream {
    /// Nothing is started yet.
    pub fn new(launch: Launch) -> io::Result<Self> {
        Ok(Self { processes: Processes::new(launch)? })
    }

    /// Waits until a worker has something to say. Cancel safe.
    pub async fn ready(&self) -> io::Result<()> {
        self.processes.ready().await
    }

    /// Takes what the workers have to say, of each a bounded part, until the share is over.
    pub fn turn(&mut self, events: &mut Vec<WorkerEvent>, share: &mut Share) -> io::Result<()> {
        self.processes.turn(events, share)
    }

    /// Sends what has been asked for, with one write for each link.
    pub fn flush(&mut self) {
        self.processes.flush();
    }

    // Health. Events tell of workers that are ready, fail, break the protocol or end.

    /// Has a worker started. An event says if that cannot be done.
    pub fn start(&mut self, worker: WorkerId) {
        self.processes.start(worker);
    }

    /// Gives notice: in so much time the worker will be ended.
    pub fn drain(&mut self, worker: WorkerId, within: Duration) {
        self.processes.drain(worker, within);
    }

    /// Nothing is left for the worker.
    pub fn dismiss(&mut self, worker: WorkerId) {
        self.processes.dismiss(worker);
    }

    /// Ends the worker at once, with what it has started.
    pub fn kill(&mut self, worker: WorkerId) {
        self.processes.kill(worker);
    }

    /// Asks for a `Pong`.
    pub fn ping(&mut self, worker: WorkerId, token: u64) {
        self.processes.ping(worker, token);
    }

    /// Has the worker say in the log what its code is doing.
    pub fn dump_stack(&mut self, worker: WorkerId) {
        self.processes.dump_stack(worker);
    }

    /// Resident memory of each worker of which it is known.
    pub fn resident_bytes(&self) -> Vec<(WorkerId, u64)> {
        self.processes.resident_bytes()
    }

    /// Its number for the operating system, if it has one; known for as long as the events of the turn that told its exit are looked at.
    pub fn pid(&self, worker: WorkerId) -> Option<u32> {
        self.processes.pid(worker)
    }

    // Capacity. Events tell how many streams more a worker is willing to hold.

    /// What the worker says from now on is not read: when its link is full, its code waits.
    pub fn pause_reading(&mut self, worker: WorkerId) {
        self.processes.hold_up(worker);
    }

    /// The worker is heard again.
    pub fn resume_reading(&mut self, worker: WorkerId) {
        self.processes.let_on(worker);
    }

    // What a worker is given.

    /// A request. `body` is whole; `parts.body` and `parts.more` are set here.
    pub fn request<'a, P, H>(
        &mut self,
        worker: WorkerId,
        request: RequestId,
        parts: RequestParts<'_, P, H>,
        body: &Bytes,
    ) where
        P: IntoIterator<Item = &'a str>,
        H: IntoIterator<Item = (&'a str, &'a [u8])>,
    {
        self.processes.request(worker, request, parts, body);
    }

    /// An attempt of a job.
    pub fn run(&mut self, worker: WorkerId, request: RequestId, run: &RunParts<'_>) {
        self.processes.run(worker, request, run);
    }

    /// Calls a function for each of these requests, with its state. One frame for all, unless rows follow: `rows`.
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

    /// Lets the coroutines of these requests go on. One frame for all, unless rows follow: `rows`.
    pub fn resume(
        &mut self,
        worker: WorkerId,
        outcome: &WaitOutcome<'_>,
        requests: &[RequestId],
        rows: Option<&Bytes>,
    ) {
        self.processes.resume(worker, outcome, requests, rows);
    }

    /// The client has taken so many bytes that came as `Data`: as many more may come.
    pub fn grant(&mut self, request: RequestId, bytes: usize) {
        self.processes.grant(request, bytes);
    }

    /// Tells the worker that nobody waits for the answer. If it holds the request, `Closed` will say when it no longer does.
    pub fn cancel(&mut self, worker: WorkerId, request: RequestId, reason: Reason) {
        self.processes.cancel(worker, request, reason);
    }
}
