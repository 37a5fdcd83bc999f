//! The options of a database.

use std::time::Duration;

/// The options of a database.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads that read, in addition to the one that writes. 0: the writer does everything.
    pub readers: usize,
    /// Queries that wait for a thread, for readers and for the writer each. Then: `QueueFull`.
    pub queue_count_max: usize,
    /// The values of one row together, and their JSON. Then: `TooLarge`.
    pub row_bytes_max: usize,
    /// Bytes of a query's rows that were passed on and not yet taken. Then: its thread waits.
    pub window_bytes: usize,
    /// How long to wait for the lock of another process. Then: `Refused` with SQLSTATE 55P03.
    pub busy_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            readers: 4,
            queue_count_max: 10_000,
            row_bytes_max: 16 * 1024 * 1024,
            window_bytes: 256 * 1024,
            busy_timeout: Duration::from_secs(5),
        }
    }
}
