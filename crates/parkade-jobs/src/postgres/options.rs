//! How a store is set up.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct PostgresStoreOptions {
    /// How long jobs that have completed or were cancelled are kept.
    pub keep_completed: Duration,
    /// Maximum number of them. Then: the oldest are forgotten earlier.
    pub keep_completed_count_max: u64,
    /// Commands that wait for the store. Then: `QueueFull`.
    pub commands_count_max: usize,
    /// Arguments and results of the commands that wait for the store. Then: `QueueFull`.
    pub commands_bytes_max: usize,
    pub intervals: Intervals,
    pub clock: TimeSource,
    /// For tests: one in this many statements of commands fails.
    pub fail_every: Option<u32>,
}

/// How often the periodic tasks run.
#[derive(Debug, Clone, Copy)]
pub struct Intervals {
    /// Between two heartbeats of a server.
    pub heartbeat: Duration,
    /// A server that has sent no heartbeat for this long is declared dead, and its jobs are ready again.
    pub lost: Duration,
    /// Between two looks for work, whatever was notified.
    pub poll: Duration,
    /// Between two rounds that forget what was kept long enough.
    pub tidy: Duration,
    /// The maximum age of the counts of a store with many jobs.
    pub count: Duration,
}

/// The source of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeSource {
    /// The database: what the clocks of servers say does not matter. Moments that an owner names are taken as pauses from its now.
    Database,
    /// Whoever submits. For tests, which move the time.
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
