//! The input of the core: the only door through which anything comes in.

use std::time::Duration;

use crate::barrier::Output;
use crate::jobs::{CancelEvent, PressureEvent, RecurringEvent};
use crate::queries::CommitEvent;
use crate::routes::{Destination, RouteId};
use parkade_model::{
    AppId, ChannelName, ClaimedJob, DeclaredJobs, HistoryLimits, JobId, JobLookup, MessageId, PayloadId, QueryId,
    QueueBounds, Refusal, RequestId, StoreFault, TableId, Then, Wait, WorkerId,
};

/// One thing that happened, told together with its moment.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    // From the clients.
    /// A request has come: its head and, for workers that do not take bodies as they come, its whole body.
    /// It stays with the application: only where it goes there may be looked up again.
    Arrived { request: RequestId, app: AppId, destination: Destination },
    /// The answer to [`ServerEffect::LookUpRoute`](crate::ServerEffect::LookUpRoute): this is where the request goes now.
    RouteFound { request: RequestId, destination: Destination },
    /// More of the body of a request has arrived, which its code reads while it arrives.
    BodyProgressed { request: RequestId },
    /// The client of a request that has not ended has gone, or a script has.
    Left { request: RequestId },
    /// The same, and the client has got everything that its response announced: its worker has only not said that this is the end.
    Served { request: RequestId },
    /// The client of a WebSocket that waits on a channel has said something. The server keeps that under the id of the call.
    Said { socket: RequestId, call: RequestId },
    /// An operator ends a request.
    CancelledByOperator { request: RequestId },

    // From scripts: programs that are no workers. That one has left is told like that of a client.
    /// A script is there, for a transaction. Its id is like that of a request.
    ScriptCame { script: RequestId },
    /// It asks for something, and is told what comes of that; the payload is a statement.
    ScriptAsked { script: RequestId, wait: Wait, payload: PayloadId },

    // From the workers, in the order in which each wrote it.
    /// The worker can be given requests, or runs of the jobs that its application declares.
    WorkerReady { worker: WorkerId, table: TableId, credit: i64, manner: Manner, jobs: DeclaredJobs },
    /// The worker said that it cannot load the application; it will exit by itself.
    WorkerFailed { worker: WorkerId },
    /// The worker said `GOODBYE`: nothing more is read from it, and it will exit by itself.
    WorkerLeft { worker: WorkerId },
    /// The process is gone and its link is read to the end.
    WorkerExited { worker: WorkerId },
    /// The worker broke the rules of the protocol: its link is closed already.
    WorkerViolated { worker: WorkerId },
    /// `CREDIT`.
    Credit { worker: WorkerId, delta: i64 },
    /// `BEGAN`: its code begins now.
    Began { worker: WorkerId, request: RequestId },
    /// `PONG`.
    Pong { worker: WorkerId, token: u64 },
    /// What slows it down, or no longer does.
    Pressure(PressureEvent),
    /// Resident memory of the process, told about once a second.
    Measured { worker: WorkerId, resident_bytes: u64 },
    /// `RESPONSE` or `EARLY_HINTS`, which is the payload. The messages of a WebSocket are no events.
    Answered { worker: WorkerId, request: RequestId, payload: PayloadId, extent: Extent },
    /// The last `DATA` of a response, or `TRAILERS`, which are the payload; or the `CLOSE` of a WebSocket.
    AnswerEnded { worker: WorkerId, request: RequestId, trailers: Option<PayloadId> },
    /// The client has closed its WebSocket, or has broken the rules and was told so: its worker hears of it.
    SocketClosed { request: RequestId },
    /// `ERROR`.
    Errored { worker: WorkerId, request: RequestId, error: WorkerError },
    /// `PARK`. The payload is what came with it: a response, a function with its state, a statement.
    Parked { worker: WorkerId, request: RequestId, wait: Wait, then: Then, payload: PayloadId },

    /// `PARK` with `branch`: the coroutine of `owner` waits for one more thing. The branch has an id of its own; the payload is a statement.
    Branched { worker: WorkerId, owner: RequestId, branch: RequestId, wait: Wait, payload: PayloadId },
    /// One of the waits of a group, as which `owner` was parked just now: as many as that says, in their order. The payload is a statement.
    Joined { owner: RequestId, member: RequestId, wait: Wait, payload: PayloadId },
    /// `UNPARK`: the coroutine no longer wants what it, or a branch of it, waits for.
    Unparked { worker: WorkerId, request: RequestId },

    // From the databases.
    /// The first rows have come of a query that is answered as it goes.
    QueryBegan { query: QueryId },
    /// The database has said how it ended, and is done with it. The shell holds its result, which has so many bytes.
    QueryEnded { query: QueryId, completed: bool, bytes: usize },
    /// An operator ends a query.
    QueryCancelledByOperator { query: QueryId },

    // From files.
    /// The answer has begun: bytes of the file follow.
    FileBegan { request: RequestId },
    /// All of it was sent, or as much as there was.
    FileEnded { request: RequestId, end: FileEnd },

    // From the store of jobs.
    /// There may be jobs that are ready, now or after this time.
    JobsReady { after: Option<Duration> },
    /// The answer to [`StoreEffect::ClaimJobs`](crate::StoreEffect::ClaimJobs). `more`: others are ready; `next`: when the next one will be.
    JobsClaimed { jobs: Vec<ClaimedJob>, more: bool, next: Option<Duration> },
    /// The other answer: the store could not.
    JobsNotClaimed,
    /// What bounds queues from now on: those that are not named have no bounds.
    QueuesConfigured { queues: Vec<QueueBounds> },
    /// The store has noted how this run ended. `is_stale`: it had given the job away meanwhile, and that changed nothing.
    RunNoted { request: RequestId, is_stale: bool },
    /// It could not, or nobody knows whether it could.
    RunNotNoted { request: RequestId },
    /// About jobs that are to be cancelled.
    Cancel(CancelEvent),
    /// Of jobs that recur.
    Recurring(RecurringEvent),
    /// Of transactions that enqueue jobs.
    Commit(CommitEvent),
    /// `ENQUEUE` of a worker whose writes the request awaits ([`Core::awaits_write`](crate::Core::awaits_write)): its answer waits until the store
    /// has the job.
    JobEnqueued { request: RequestId },
    /// The store has it, or cannot. Exactly one for each of the above.
    JobStored { request: RequestId, fault: Option<StoreFault> },
    /// What a worker said of a request is not heard before [`ServerEffect::ReleaseOutput`](crate::ServerEffect::ReleaseOutput), as
    /// [`Core::holds_output`](crate::Core::holds_output) wants it.
    OutputHeld { worker: WorkerId, request: RequestId, output: Output },
    /// `RESULT`, which the server keeps with the run.
    JobReturned { worker: WorkerId, request: RequestId },
    /// A job has ended for good, and the store has that; the shell has what came of it.
    JobEnded { job: JobId },
    /// A job is no more, whether or not it had ended.
    JobDropped { job: JobId },
    /// The answer to [`StoreEffect::LookUpJob`](crate::StoreEffect::LookUpJob).
    JobFound { request: RequestId, standing: JobLookup },
    /// The other answer: the store could not.
    JobNotLookedUp { request: RequestId },
    /// The third, for a visitor: before anything is told of the job, or done to it, the application is asked whether this client
    /// may have it. The request goes to a worker under `route`; `concurrent`: a coroutine is asked.
    JobGuarded { request: RequestId, route: RouteId, concurrent: bool },
    /// Another server has been asked to end a job, and this one may run it.
    JobCancelled { job: JobId },

    // From anywhere.
    /// A message; `bytes` is what its history entry costs.
    Published { channel: ChannelName, message: MessageId, bytes: usize, by: Option<Publisher> },
    /// A request has published something that is no message (found by the shell).
    PublishedNothing { by: Publisher },
    /// How long the history of channels is that match `pattern` (a name, or a prefix ending in `*`).
    ChannelConfigured { pattern: String, limits: HistoryLimits },
    /// The source of this channel may have lost messages: everybody who waits has to learn of a gap.
    MessagesLost { channel: ChannelName },
    /// Nothing more comes on this channel: its streams end.
    ChannelEnded { channel: ChannelName },
    /// Nothing happened but time: [`Core::next_due`](crate::Core::next_due) has come.
    Tick,

    // From the operator.
    /// SIGHUP: replace the workers by new ones that load the code afresh.
    Reload,
    /// SIGTERM: end within the grace.
    Drain { grace: Duration },
    /// So many requests have begun to arrive, and are not known yet: the end waits for them.
    Arriving { count: usize },
}

/// How much of the answer a worker gives at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// `EARLY_HINTS`: the response follows.
    Hints,
    Whole,
    /// The rest follows.
    Begun,
    /// The request becomes a WebSocket.
    Socket,
}

/// How the answer with a file ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileEnd {
    Sent,
    /// It has begun, and cannot be completed.
    Broken,
    /// It has not begun.
    Refused(Refusal),
}

/// The request that publishes, and the worker that holds it or awaits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publisher {
    pub worker: WorkerId,
    pub request: RequestId,
    /// By this number the request may ask for the message's cursor, if it may.
    pub number: Option<u64>,
}

/// Why a worker gave up a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerError {
    Application,
    Cancelled,
    Overloaded,
    /// The answer that the worker gave breaks HTTP (found by the shell).
    BadAnswer,
    /// Of a job: it asks to be tried again, after this time.
    Retry {
        after: Option<Duration>,
    },
    /// Of a job: it does not want to be tried again.
    Discarded,
    /// Of a job: the worker has no such function.
    UnknownJob,
}

/// How a worker runs what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// In the order in which it got them, each to its end before the next.
    OneByOne,
    /// Coroutines on an event loop, and so many plain functions at a time in threads beside it.
    Loop { threads: u32 },
}
