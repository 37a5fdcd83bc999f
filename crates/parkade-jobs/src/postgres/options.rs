//! How a store is set up.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Options {
    /// How long jobs that have completed or were cancelled are kept.
    pub keep_completed: Duration,
    /// At most so many of them are. Then: the oldest are forgotten earlier.
    pub keep_completed_count_max: u64,
    /// Commands that wait for the store. Then: `QueueFull`.
    pub commands_count_max: usize,
    /// Arguments and results of the commands that wait for the store. Then: `QueueFull`.
    pub commands_bytes_max: usize,
    pub pace: Pace,
    pub clock: Clock,
    /// For tests: each so many-th statement of commands fails.
    pub fail_every: Option<u32>,
}

/// How often what is done.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// A server says so often that it lives.
    pub beat: Duration,
    /// One that has not said so for so long is lost: what it ran is ready again.
    pub lost: Duration,
    /// So often it is looked whether there is anything to do, whatever was heard.
    pub poll: Duration,
    /// So often what was kept long enough is forgotten.
    pub tidy: Duration,
    /// Counts of a store with many jobs are at most so old.
    pub count: Duration,
}

/// What tells the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The database: what the clocks of servers say does not matter. Moments that an owner names are taken as pauses from its now.
    Database,
    /// Whoever submits. For tests, which move the time.
    Owner,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            keep_completed: Duration::from_secs(3_600),
            keep_completed_count_max: 100_000,
            commands_count_max: 300_000,
            commands_bytes_max: 256 * 1024 * 1024,
            pace: Pace::default(),
            clock: Clock::Database,
            fail_every: None,
        }
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            beat: Duration::from_secs(2),
            lost: Duration::from_secs(10),
            poll: Duration::from_secs(5),
            tidy: Duration::from_secs(10),
            count: Duration::from_secs(30),
        }
    }
}
