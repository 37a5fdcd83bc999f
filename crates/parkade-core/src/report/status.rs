//! What is going on at a moment, as plain values for the status page and `/metrics`.

use std::time::Duration;

use crate::config::Config;
use crate::effect::ReloadOutcome;
use crate::moment::Moment;
use parkade_model::{AppId, ChannelName, Cursor, DatabaseId, HistoryLimits, JobId, QueryId, RequestId, Role, WorkerId};

#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// Requests, and runs of jobs.
    pub lives: LivesStatus,
    /// Of these the runs of jobs.
    pub runs: LivesStatus,
    /// What parked requests wait for.
    pub waits: Vec<WaitStatus>,
    /// How long a request that arrives now is queued, at the soonest. `None`: nothing is known of that.
    pub queue_wait: Option<Duration>,
    pub workers: Vec<WorkerStatus>,
    /// Those with most waiters first, at most [`STATUS_CHANNELS_COUNT_MAX`](crate::limits::STATUS_CHANNELS_COUNT_MAX).
    pub channels: Vec<ChannelStatus>,
    pub channels_count: usize,
    pub history_bytes: usize,
    pub messages_held: usize,
    pub alarms: usize,
    /// Queries that databases have been asked for and that have not ended.
    pub queries_count: usize,
    pub results_held: usize,
    pub transactions_count: usize,
    /// Scripts, which are there for a transaction each.
    pub scripts_count: usize,
    /// Those that have enqueued jobs, until their COMMIT has ended.
    pub transactions_with_jobs_count: usize,
    /// Runs of jobs that workers have, or that are parked.
    pub jobs_running: usize,
    /// Claimed, and not given to a worker.
    pub jobs_waiting: usize,
    /// How long no job of some application is begun, because workers of jobs keep dying and none is left.
    pub jobs_put_off: Option<Duration>,
    /// Requests, and runs of other jobs, that wait for a job to end.
    pub jobs_watched: usize,
    /// Requests for which the store is asked how a job stands.
    pub jobs_looked_up: usize,
    /// Clients at the addresses of jobs whose access has not been decided.
    pub jobs_visited: usize,
    /// Requests with jobs that are not stored, or could not be.
    pub jobs_unstored: usize,
    /// Claims that the store has not answered: there is one at most.
    pub claims_count: usize,
    pub job_results_held: usize,
    /// Jobs that somebody wants to end, until it is known whether they will.
    pub jobs_cancelled_count: usize,
    /// Runs that have ended, and the store has not noted how.
    pub runs_unnoted_count: usize,
    pub ready: bool,
    pub draining: bool,
    pub apps: Vec<AppStatus>,
    pub reloading: bool,
    pub last_reload: Option<ReloadOutcome>,
    pub limits: LimitsStatus,
}

/// How many there are in each state; those that have ended are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LivesStatus {
    pub accepted: usize,
    pub routed: usize,
    pub running: usize,
    pub parked: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitKind {
    Timer,
    Next,
    Stream,
    /// A WebSocket that gets the messages of a channel.
    Socket,
    Query,
    /// For a job to end, or for jobs to be stored.
    Job,
    /// For a file to be sent.
    File,
    /// For several things at a time. Each of them is counted too, as what it is.
    Several,
    /// A script with a transaction: for what it says next.
    Script,
}

impl WaitKind {
    pub const ALL: [Self; 9] = [
        Self::Timer,
        Self::Next,
        Self::Stream,
        Self::Socket,
        Self::Query,
        Self::Job,
        Self::File,
        Self::Several,
        Self::Script,
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitStatus {
    pub kind: WaitKind,
    pub count: usize,
    /// How long the first of them has waited.
    pub oldest: Option<Duration>,
}

/// A request, or a run of a job, that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestStatus {
    pub request: RequestId,
    pub is_run: bool,
    pub stage: RequestStage,
    /// How long it has been there.
    pub age: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestStage {
    Queued,
    Running { worker: WorkerId },
    Parked { kind: WaitKind, target: Option<WaitTarget> },
}

/// What exactly a parked request waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitTarget {
    Channel(ChannelName),
    Query(QueryId),
    Job(JobId),
}

/// A query that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryStatus {
    pub query: QueryId,
    pub database: DatabaseId,
    /// Requests that wait for it.
    pub waiting: usize,
    pub cancelled: bool,
    /// The end of a transaction is not cancelled.
    pub is_cancellable: bool,
    pub since: Moment,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelStatus {
    pub name: ChannelName,
    pub waiters: usize,
    pub streams: usize,
    /// How long the first waiter (or else stream) has waited.
    pub oldest: Option<Duration>,
    pub history_count: usize,
    pub history_bytes: usize,
    pub cursor: Cursor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkerState {
    Starting,
    /// Ready, and nothing to do.
    Ready,
    Busy,
    /// It finishes what it holds.
    Draining,
    /// Dismissed, failed or killed: gone in a moment.
    Stopping,
}

/// An application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppStatus {
    pub app: AppId,
    /// The generation of code that serves; a reload makes the next.
    pub generation: u32,
    /// A worker has loaded it.
    pub has_started: bool,
    /// The last start of one failed.
    pub fails_to_start: bool,
    /// Workers of requests.
    pub workers_ready: usize,
    /// Requests that wait for a worker.
    pub queued: usize,
    /// Whether there should be workers that run jobs of it.
    pub runs_jobs: bool,
    /// How long no job of it is begun, because workers of jobs keep dying and none is left.
    pub jobs_put_off: Option<Duration>,
    pub last_reload: Option<ReloadOutcome>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerStatus {
    pub worker: WorkerId,
    pub app: AppId,
    pub state: WorkerState,
    pub generation: u32,
    pub concurrent: bool,
    pub role: Role,
    /// Closing frames that it has written.
    pub done: u64,
    /// How many of these were about jobs.
    pub jobs_done: u64,
    /// Streams that it holds, cancelled ones included.
    pub held: usize,
    /// Coroutines in it that wait.
    pub awaiting: usize,
    pub credit: i64,
    pub resident_bytes: Option<u64>,
    pub age: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitsStatus {
    pub queued_count_max: usize,
    pub running_count_max: usize,
    pub parked_count_max: usize,
    pub channels_count_max: usize,
    pub history_bytes_max: usize,
    pub history: HistoryLimits,
    pub deadline: Option<Duration>,
}

impl From<&Config> for LimitsStatus {
    fn from(config: &Config) -> Self {
        Self {
            queued_count_max: config.queued_count_max,
            running_count_max: config.running_count_max,
            parked_count_max: config.parked_count_max,
            channels_count_max: config.channels_count_max,
            history_bytes_max: config.history_bytes_max,
            history: config.history,
            deadline: config.deadline,
        }
    }
}
