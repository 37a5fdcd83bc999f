//! The options of a store.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct PostgresStoreOptions {
    /// How long jobs that have completed or were cancelled are kept.
    pub keep_completed: Duration,
    /// Maximum number of them. Then: the oldest are deleted earlier.
    pub keep_completed_count_max: u64,
    /// Maximum number of commands that wait for the store. Then: `QueueFull`.
    pub commands_count_max: usize,
    /// Maximum size of the arguments and results of commands that wait for the store. Then: `QueueFull`.
    pub commands_bytes_max: usize,
    pub intervals: Intervals,
    pub clock: TimeSource,
    /// For tests: one in this many statements of commands fails.
    pub fail_every: Option<u32>,
}

/// The intervals of periodic tasks.
#[derive(Debug, Clone, Copy)]
pub struct Intervals {
    /// Between two heartbeats of a server.
    pub heartbeat: Duration,
    /// A server that has sent no heartbeat for this long is declared dead, and its jobs are ready again.
    pub lost: Duration,
    /// Between two searches for jobs, without notifications.
    pub poll: Duration,
    /// Between two rounds that delete old jobs.
    pub tidy: Duration,
    /// The maximum age of the counts of a store with many jobs.
    pub count: Duration,
}

/// The source of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeSource {
    /// The database's clock: the clocks of servers do not matter. Times given by an owner are taken as delays from its
    /// current time.
    Database,
    /// The submitter's clock. For tests, which set the time.
    Owner,
}

impl Default for PostgresStoreOptions {
    fn default() -> Self {
        Self {
            keep_completed: Duration::from_secs(3_600),
            keep_completed_count_max: 100_000,
            commands_count_max: 300_000,
            commands_bytes_max: 256 * 1024 * 1024,
            intervals: Intervals::default(),
            clock: TimeSource::Database,
            fail_every: None,
        }
    }
}

impl Default for Intervals {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(2),
            lost: Duration::from_secs(10),
            poll: Duration::from_secs(5),
            tidy: Duration::from_secs(10),
            count: Duration::from_secs(30),
        }
    }
}
