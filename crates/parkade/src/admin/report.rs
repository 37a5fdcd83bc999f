//! The status of the server as plain values: `/status` writes it, and `parkade status` reads it.

mod databases;
mod jobs;
mod shell;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use databases::{DatabaseReport, QueryReport, QueryTimes};
pub use jobs::JobsReport;
use serde::{Deserialize, Serialize};
pub use shell::Shell;

use crate::statistics::{EndedRequests, Rates, RouteName, RunStatistics};

/// The current state. Times are seconds, sizes bytes; `counts` has totals since the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub version: String,
    pub pid: u32,
    pub target: String,
    /// What the application is written for: `native`, `wsgi` or `asgi`; null until it has loaded.
    #[serde(default)]
    pub interface: Option<String>,
    /// Those that the settings file mounts; empty if there is a single application.
    #[serde(default)]
    pub applications: Vec<ApplicationReport>,
    /// Where clients reach it.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// When it started, in seconds since 1970.
    #[serde(default)]
    pub started: f64,
    pub uptime: f64,
    /// `ready`, `not ready` or `draining`.
    pub state: String,
    pub code: Code,
    pub lives: LivesReport,
    /// By kind: `timer`, `next`, `stream`, `query`, `job`.
    pub waits: BTreeMap<String, WaitReport>,
    /// The shortest time that a request that arrives now will be queued; null if unknown.
    #[serde(default)]
    pub queue_wait: Option<f64>,
    pub channels: ChannelsReport,
    /// By name.
    #[serde(default)]
    pub databases: BTreeMap<String, DatabaseReport>,
    #[serde(default)]
    pub jobs: JobsReport,
    pub workers: Vec<WorkerReport>,
    pub connections: Connections,
    pub memory: Memory,
    #[serde(default)]
    pub turns: TurnsReport,
    pub log: Log,
    #[serde(default)]
    pub traces: TracesReport,
    pub limits: LimitsReport,
    pub counts: Totals,
    /// Of the last minute.
    #[serde(default)]
    pub rates: Rates,
    /// Only for the metrics and the admin page.
    #[serde(skip)]
    pub ended: EndedRequests,
    #[serde(skip)]
    pub routes: Arc<Vec<RouteName>>,
    #[serde(skip)]
    pub runs: RunStatistics,
    #[serde(skip)]
    pub query_times: QueryTimes,
}

/// A mounted application.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationReport {
    /// The prefix of its paths.
    pub mount: String,
    pub target: String,
    pub interface: Option<String>,
    /// `ready`; `starting`; `failed` (it does not load) or `no worker` (all have died, and others start).
    pub state: String,
    pub generation: u32,
    pub last_reload: Option<String>,
    /// Why it did not load last time, if it did not: the last line of that.
    pub error: Option<String>,
    /// Workers of requests.
    pub workers_ready: usize,
    pub queued: usize,
}

/// The code that is serving; a reload makes the next generation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    pub generation: u32,
    pub reloading: bool,
    /// `done` or `aborted`.
    pub last_reload: Option<String>,
    /// Why it was aborted: the traceback, if there is one.
    #[serde(default)]
    pub error: Option<String>,
}

/// Of the thread that decides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnsReport {
    /// Those that took longer than 15 ms.
    pub long: u64,
    pub longest: f64,
    /// The same in CPU time: turns in which the core itself worked for that long.
    pub busy: u64,
    pub busiest: f64,
}

/// Requests by state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LivesReport {
    pub accepted: usize,
    pub queued: usize,
    pub running: usize,
    pub parked: usize,
}

/// What parked requests wait for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitReport {
    pub count: usize,
    /// The age of the oldest.
    pub oldest: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChannelsReport {
    pub count: usize,
    pub messages: usize,
    pub bytes: usize,
    /// Those with the most waiters.
    pub busiest: Vec<ChannelReport>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChannelReport {
    pub name: String,
    /// Requests that wait for the next message.
    pub next: usize,
    pub stream: usize,
    pub oldest: Option<f64>,
    pub messages: usize,
    pub bytes: usize,
    pub cursor: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerReport {
    pub id: u32,
    pub pid: Option<u32>,
    /// Where its application is mounted; null if the server has no other.
    #[serde(default)]
    pub mount: Option<String>,
    /// `starting`, `ready`, `busy`, `draining` or `stopping`.
    pub state: String,
    pub generation: u32,
    pub concurrent: bool,
    /// Its role: `requests` or `jobs`.
    #[serde(default)]
    pub role: String,
    pub held: usize,
    /// Coroutines in it that wait.
    pub awaiting: usize,
    pub credit: i64,
    /// Requests that it has run; one that continued after a wait counts each time.
    pub requests: u64,
    /// The same for jobs.
    #[serde(default)]
    pub jobs: u64,
    pub resident_bytes: Option<u64>,
    pub age: f64,
}

/// Connections of clients, by protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    pub http1: usize,
    pub http2: usize,
    /// Those that a bug in the core has ended.
    pub broken: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_field_names, reason = "the unit is in the name wherever the report is read")]
pub struct Memory {
    /// Of the core; unknown where there is no `/proc`.
    pub resident_bytes: Option<u64>,
    pub parked_bytes: usize,
    /// Memory for heads and bodies of requests: incomplete, queued, or with a worker.
    pub request_bytes: usize,
    /// Query results that are still needed.
    #[serde(default)]
    pub result_bytes: usize,
    /// Job results that are about to be delivered.
    #[serde(default)]
    pub job_results: usize,
}

/// Spans that the collector has taken, and spans that are lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracesReport {
    pub spans_exported: u64,
    pub spans_dropped: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    pub lines_dropped: u64,
}

/// The limits beyond which the server refuses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitsReport {
    pub connections: usize,
    pub queued: usize,
    pub running: usize,
    pub parked: usize,
    pub channels: usize,
    pub history_bytes: usize,
    pub body_bytes: usize,
    /// None: never.
    pub deadline: Option<f64>,
}

/// Totals since the start: they only grow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub accepted: u64,
    pub answered: u64,
    pub cancelled: BTreeMap<String, u64>,
    pub refused: BTreeMap<String, u64>,
    pub parked: u64,
    pub published: u64,
    pub delivered: u64,
    pub gaps: u64,
    pub unpublished: u64,
    #[serde(default)]
    pub queries: u64,
    #[serde(default)]
    pub queries_shared: u64,
    #[serde(default)]
    pub queries_cancelled: u64,
    /// Jobs that the store has accepted from this server, from any source: requests, jobs, scripts, operators, and recurring jobs.
    #[serde(default)]
    pub jobs_enqueued: u64,
    #[serde(default)]
    pub jobs_claimed: u64,
    /// Attempts that have ended, by outcome.
    #[serde(default)]
    pub jobs_completed: u64,
    #[serde(default)]
    pub jobs_retried: u64,
    #[serde(default)]
    pub jobs_dead: u64,
    #[serde(default)]
    pub jobs_cancelled: u64,
    #[serde(default)]
    pub jobs_handed_back: u64,
    #[serde(default)]
    pub jobs_unknown: u64,
    pub workers_started: u64,
    pub workers_died: u64,
    pub workers_killed: BTreeMap<String, u64>,
    pub workers_recycled: u64,
    pub reloads_done: u64,
    pub reloads_given_up: u64,
    pub refused_events: BTreeMap<String, u64>,
    pub late_frames: u64,
}
