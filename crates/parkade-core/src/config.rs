//! What an operator may choose.

use std::time::Duration;

use crate::limits;
use parkade_model::{DatabaseId, HistoryLimits};

#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// For each application, at least one. An [`AppId`](parkade_model::AppId) is a place among these.
    pub apps: Vec<AppWorkers>,
    /// The seed of jitter. The same seed leads to the same decisions.
    pub seed: u64,
    /// The epoch of the first channel; each later channel has the next one. Use the wall clock, so that cursors from before a restart are recognized.
    pub epoch: u64,
    /// Of each application.
    pub queued_count_max: usize,
    /// Of each application.
    pub running_count_max: usize,
    pub parked_count_max: usize,
    /// See [`JOBS_ELSEWHERE_COUNT_MAX`](limits::JOBS_ELSEWHERE_COUNT_MAX).
    pub jobs_elsewhere_count_max: usize,
    /// How long a request may be queued and running at a time, if its route does not say. `None`: for ever.
    pub deadline: Option<Duration>,
    pub kill_grace: Duration,
    pub start_timeout: Duration,
    pub stuck_after: Duration,
    pub ping_interval: Duration,
    pub reload_grace: Duration,
    pub recycle: Recycle,
    /// The history of channels that no rule names.
    pub history: HistoryLimits,
    pub history_bytes_max: usize,
    pub channels_count_max: usize,
    /// When the server stops, queries have this long to end. Then they are cancelled.
    pub query_grace: Duration,
    /// Databases of the kind in which the store of jobs is: it may be one of these, whose transactions can store jobs themselves.
    pub job_databases: Vec<DatabaseId>,
    /// If no application loads at the first start, the server ends: no client is served yet.
    pub exit_when_the_first_start_fails: bool,
    /// [`ServerEffect::Spent`](crate::ServerEffect::Spent) tells where the time of each request goes.
    pub tells_spells: bool,
}

impl Config {
    /// An interval of zero would never let a turn end.
    pub(crate) fn sane(mut self) -> Self {
        if self.apps.is_empty() {
            self.apps.push(AppWorkers::default());
        }
        let runs_jobs = self.apps.iter().any(|workers| workers.jobs > 0);
        for workers in &mut self.apps {
            workers.requests = workers.requests.max(1);
            // The store gives the jobs of all applications alike.
            workers.jobs = workers.jobs.max(u32::from(runs_jobs));
        }
        self.kill_grace = self.kill_grace.max(TIME_MIN);
        self.ping_interval = self.ping_interval.max(TIME_MIN);
        self
    }
}

/// Worker processes of one application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppWorkers {
    /// To keep ready for requests; at least one is kept.
    pub requests: u32,
    /// The same for jobs, if the application declares any. 0: none is run here, which holds for all applications or for none.
    pub jobs: u32,
}

/// When a worker is replaced by a fresh one. Each worker draws its own numbers, at most `jitter_percent` away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recycle {
    pub requests: Option<u64>,
    pub age: Option<Duration>,
    /// Without jitter, because memory varies by itself.
    pub resident_bytes: Option<u64>,
    pub jitter_percent: u8,
}

const TIME_MIN: Duration = Duration::from_millis(1);

impl Default for AppWorkers {
    fn default() -> Self {
        Self { requests: 1, jobs: 1 }
    }
}

impl Default for Recycle {
    fn default() -> Self {
        Self { requests: None, age: None, resident_bytes: None, jitter_percent: 10 }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            apps: vec![AppWorkers::default()],
            seed: 0,
            epoch: 1,
            queued_count_max: limits::QUEUED_COUNT_MAX,
            running_count_max: limits::RUNNING_COUNT_MAX,
            parked_count_max: limits::PARKED_COUNT_MAX,
            jobs_elsewhere_count_max: limits::JOBS_ELSEWHERE_COUNT_MAX,
            deadline: Some(Duration::from_secs(30)),
            kill_grace: limits::KILL_GRACE,
            start_timeout: limits::START_TIMEOUT,
            stuck_after: limits::STUCK_AFTER,
            ping_interval: limits::PING_INTERVAL,
            reload_grace: limits::RELOAD_GRACE,
            recycle: Recycle::default(),
            history: HistoryLimits::default(),
            history_bytes_max: limits::HISTORIES_BYTES_MAX,
            channels_count_max: limits::CHANNELS_COUNT_MAX,
            query_grace: limits::QUERY_GRACE,
            job_databases: Vec::new(),
            exit_when_the_first_start_fails: true,
            tells_spells: false,
        }
    }
}
