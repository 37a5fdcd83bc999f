//! The output of the core: actions for the server, which carries them out and decides nothing.

use crate::jobs::{CancelEffect, RecurringEffect};
use crate::moment::Moment;
use crate::queries::CommitEffect;
use crate::requests::Times;
use crate::routes::RouteId;
use parkade_model::{
    Allowance, AppId, Cursor, DatabaseId, Ending, HistoryId, JobCaller, JobId, JobLookup, LeaseId, MessageId,
    PayloadId, QueryId, QueryWork, QueueId, Reason, Refusal, RequestId, TableId, Verdict, WorkerId,
};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// For clients: answers, and streams of them.
    Http(HttpEffect),
    /// For the workers.
    Worker(WorkerEffect),
    /// For the databases.
    Database(DatabaseEffect),
    /// For the files that are answers.
    File(FileEffect),
    /// For the store of jobs.
    Store(StoreEffect),
    /// For the server itself: its routes, its messages, its log, its life.
    Server(ServerEffect),
    /// For jobs that recur.
    Recurring(RecurringEffect),
    /// For jobs that are to be cancelled.
    Cancel(CancelEffect),
    /// For transactions that enqueue jobs.
    Commit(CommitEffect),
}

/// One event may lead to tens of thousands of them.
const _: () = assert!(size_of::<Effect>() <= 64);

/// For clients: answers, and streams of them.
#[derive(Debug, Clone, PartialEq)]
pub enum HttpEffect {
    /// Answer with an error of the core's own.
    Refuse { request: RequestId, refusal: Refusal },
    /// Answer with the constant of that route.
    Constant { request: RequestId, route: RouteId },
    /// Answer which requests of other origins the application permits.
    Preflight { request: RequestId },
    /// This `RESPONSE` goes to the client. `whole`: it is the end.
    Relay { request: RequestId, payload: PayloadId, whole: bool },
    /// These early hints go to the client, before its answer.
    EarlyHints { request: RequestId, payload: PayloadId },
    /// The answer that had begun is complete, with these trailers.
    End { request: RequestId, trailers: Option<PayloadId> },
    /// The answer that had begun will never be complete: break the connection (or the HTTP/2 stream).
    Abort { request: RequestId },
    /// The request becomes a WebSocket, as this `RESPONSE` says.
    OpenSocket { request: RequestId, payload: PayloadId },
    /// The server closes its WebSocket, for this reason.
    CloseSocket { request: RequestId, refusal: Refusal },
    /// Keep this with the request: the `RESPONSE`, or what came with the `PARK` (a response, a function with its state).
    Keep { request: RequestId, payload: PayloadId },
    /// A timer with [`Then::Answer`](crate::Then::Answer) is over, or the jobs of a request are stored: the kept response (or the wait route's)
    /// goes to the client.
    Release { request: RequestId },
    /// A message is the answer of all these requests. `gap`: messages between the cursor and this one are lost.
    Deliver { message: MessageId, cursor: Cursor, gap: bool, requests: Vec<RequestId> },
    /// What a channel held is the answer.
    AnswerHistory { request: RequestId, history: HistoryId },
    /// The cursor of the message that the request has published is the answer.
    AnswerPublished { request: RequestId, cursor: Cursor },
    /// No message came in time (or the server drains): 204 with the channel's present cursor.
    Empty { request: RequestId, cursor: Cursor },
    /// Begin a stream of server-sent events: the head, the gap if `gap` tells one, nothing else. When its client loses it, it comes back at some
    /// time of `reconnect_spread`.
    OpenStream { request: RequestId, cursor: Cursor, gap: bool, reconnect_spread: Duration },
    /// The request becomes a WebSocket that waits on a channel. Messages that its client has missed follow.
    HoldSocket { request: RequestId },
    /// What the client of this WebSocket has said is dealt with: the next message may come.
    ReadSocket { request: RequestId },
    /// One more message on all these streams and WebSockets.
    Feed { message: MessageId, cursor: Cursor, requests: Vec<RequestId> },
    /// Tell these streams that messages were lost: the gap, with the channel's new cursor. A WebSocket is told nothing.
    FeedGap { cursor: Cursor, requests: Vec<RequestId> },
    /// Begin an answer whose rows follow as they come.
    BeginRows { request: RequestId, query: QueryId },
    /// What came of the query is the answer: its rows, or why there are none. `late`: it was cancelled for this reason, and may have been
    /// carried out all the same. A run of a job has no client: this is why it failed.
    AnswerQuery { request: RequestId, query: QueryId, late: Option<Reason> },
    /// End a stream politely: a `retry` with jitter of that spread, then the end of the body.
    EndStream { request: RequestId, reconnect_spread: Duration },
    /// How it stands with the job is the answer.
    AnswerJob { request: RequestId, job: JobId, standing: JobLookup },
    /// How it stands with the job that this client wanted to end is the answer. `will_end`: if it has not ended, it will by this.
    AnswerCancel { request: RequestId, job: JobId, standing: JobLookup, will_end: bool },
}

/// For the workers.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerEffect {
    /// Open a stream for this request on the worker's link.
    Assign {
        request: RequestId,
        worker: WorkerId,
        route: Option<RouteId>,
    },
    /// Open a stream that calls the function kept with this request.
    Call {
        request: RequestId,
        worker: WorkerId,
        outcome: Outcome,
    },
    /// The coroutines of these requests, all parked in this worker, go on.
    Resume {
        worker: WorkerId,
        outcome: Outcome,
        requests: Box<[RequestId]>,
    },
    /// Tell the worker that nobody waits for this any more.
    Cancel {
        request: RequestId,
        worker: WorkerId,
        reason: Reason,
    },
    /// Tell the worker that the server has closed this WebSocket, for this reason: `CLOSE`.
    CloseSocket {
        request: RequestId,
        worker: WorkerId,
        refusal: Refusal,
    },
    /// It runs the code of this application.
    StartWorker {
        worker: WorkerId,
        app: AppId,
    },
    /// Give notice: `DRAIN`.
    DrainWorker {
        worker: WorkerId,
        within: Duration,
    },
    /// Nothing is left for it: `GOODBYE`, `stopping`.
    DismissWorker {
        worker: WorkerId,
    },
    KillWorker {
        worker: WorkerId,
        why: KillReason,
    },
    /// The stack of its code goes to the log. `request`: the one whose code should have ended.
    DumpStack {
        worker: WorkerId,
        why: KillReason,
        request: Option<RequestId>,
    },
    /// Its pipe is not read for a while.
    PauseReading {
        worker: WorkerId,
    },
    ResumeReading {
        worker: WorkerId,
    },
    Ping {
        worker: WorkerId,
        token: u64,
    },
    /// Open a stream on which this run of a job is made.
    RunJob {
        request: RequestId,
        worker: WorkerId,
    },
}

/// For the databases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DatabaseEffect {
    /// Begin this query. `collect`: its rows are needed whole, else they are the
    /// answer of `request` as they come.
    StartQuery {
        query: QueryId,
        request: RequestId,
        source: StatementSource,
        database: DatabaseId,
        work: QueryWork,
        lease: Option<LeaseId>,
        collect: bool,
    },
    /// Nobody waits for it any more.
    CancelQuery { query: QueryId, database: DatabaseId },
    /// The request whose transaction this is has ended: what it did not commit is undone.
    EndLease { lease: LeaseId, database: DatabaseId },
    /// Nobody needs the result any more.
    DropResult { query: QueryId },
}

/// For the files that are answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileEffect {
    /// The file is this request's answer.
    Send { request: RequestId },
    /// Nobody wants it any more.
    Stop { request: RequestId },
}

/// For the store of jobs.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreEffect {
    /// How many jobs are wanted, and how many of each queue at most. Every queue with bounds is named.
    ClaimJobs { count: u32, limited: Vec<Allowance<QueueId>> },
    /// A run has ended: this is to be noted of its job. [`ServerEffect::Forget`] follows.
    EndRun { request: RequestId, verdict: Verdict },
    /// What [`Event::RunNotNoted`](crate::Event::RunNotNoted) was said of is to be noted again, as it was: the store may have it.
    NoteAgain { request: RequestId },
    /// Say with [`Event::JobFound`](crate::Event::JobFound) how it stands with this job.
    LookUpJob { request: RequestId, job: JobId, asker: JobCaller },
    /// Nobody is to be told of the job's end any more.
    DropJobResult { job: JobId },
}

/// Where the time of a request goes: the states that take any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spell {
    Queued,
    Running,
    Parked,
}

/// For the server itself: its routes, its messages, its log, its life.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerEffect {
    /// The request waited, and the workers that may get it now have other routes. Look it up in this table and answer with
    /// [`Event::RouteFound`](crate::Event::RouteFound).
    LookUpRoute { request: RequestId, table: TableId },
    /// It was in this state for this time. Told as it leaves it, if [`Config::tells_spells`](crate::Config::tells_spells).
    Spent { request: RequestId, spell: Spell, since: Moment, until: Moment },
    /// What this script has asked for is over.
    TellScript { script: RequestId, outcome: Outcome },
    /// The request is over for the core: log it, forget what was kept for it. Always the last effect that names a request.
    Forget { request: RequestId, ending: Ending, times: Times },
    /// The function for the end of this WebSocket was not called, or did not come to its end, for this reason. For the log.
    CloseCallLost { request: RequestId, refusal: Refusal },
    /// What the request has written is durable, or lost, and its worker still holds it: the output that was held may be heard.
    ReleaseOutput { request: RequestId },
    /// The message is refused: the limit of channels is reached, and clients wait on all of them. [`ServerEffect::DropMessage`] follows.
    NotPublished { message: MessageId },
    /// The message is in no history and on no way to anybody any more.
    DropMessage { message: MessageId },
    /// These messages, in their order, are what a channel holds; it stands at `cursor`, which is that of the last one.
    KeepHistory { history: HistoryId, cursor: Cursor, messages: Box<[MessageId]> },
    /// Nobody needs it any more.
    DropHistory { history: HistoryId },
    /// How a reload of an application went, for the log and the status page. A reload is over when all applications have told this.
    Reloaded { app: AppId, outcome: ReloadOutcome },
    /// Requests are no longer accepted: close the listeners.
    StopAccepting,
    /// Everything has ended.
    Exit { reason: ExitReason },
}

/// How a wait ended, for a function or a coroutine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    Elapsed,
    Message {
        message: MessageId,
        cursor: Cursor,
        gap: bool,
    },
    TimedOut {
        cursor: Cursor,
    },
    /// What a channel holds.
    History {
        history: HistoryId,
    },
    /// A message that the request has published has this cursor.
    Published {
        cursor: Cursor,
    },
    /// A database is done with it. `late`: it had been cancelled for this reason, and may have been carried out all the same.
    Queried {
        query: QueryId,
        completed: bool,
        late: Option<Reason>,
    },
    /// All that the request has enqueued is durable.
    Stored,
    Job {
        job: JobId,
        standing: JobLookup,
    },
    /// A file is the answer. `is_whole`: all of it was sent.
    File {
        is_whole: bool,
    },
    /// Several waits are over, or the first of them: those of this request. [`Core::group`](crate::Core::group) says what has come of each.
    Group {
        request: RequestId,
    },
    /// The client of a WebSocket has said something: the message that is kept with this call.
    Said {
        request: RequestId,
    },
    /// This WebSocket is over. With which code it was closed, is kept with it.
    Closed {
        request: RequestId,
    },
    /// Its coroutine no longer wants it.
    Unparked,
    Refused {
        refusal: Refusal,
    },
}

/// Where the statement of a query, or the mode of a transaction, is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementSource {
    /// It came with the `PARK`.
    Payload(PayloadId),
    /// The wait route has it.
    Route(RouteId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KillReason {
    /// It ran a request past its deadline and did not come back.
    Deadline,
    /// Its event loop does not answer pings.
    Stuck,
    /// It did not say ready in time.
    StartedTooSlowly,
    /// It broke the protocol.
    Violation,
    /// The grace of its drain is over.
    GraceOver,
    /// A reload was given up, or the server exits.
    NotNeeded,
}

/// Of several applications the worst counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReloadOutcome {
    Done,
    /// The new code did not start: the old keeps serving.
    GivenUp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitReason {
    Drained,
    /// The grace was over before everything had ended.
    GraceOver,
    /// The application could not be loaded at the first start.
    ApplicationFailed,
}
