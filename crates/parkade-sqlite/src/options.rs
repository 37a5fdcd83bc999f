//! How a database is used.

use std::time::Duration;

/// How a database is used.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads that read, besides the one that writes. 0: that one does everything.
    pub readers: usize,
    /// Queries that wait for a thread, for reading and for writing each. Then: `QueueFull`.
    pub queue_count_max: usize,
    /// The values of one row together, and their JSON. Then: `TooLarge`.
    pub row_bytes_max: usize,
    /// Bytes of a query's rows that were given and not yet taken. Then: its thread waits.
    pub window_bytes: usize,
    /// How long the lock of another process is waited for. Then: `Refused` with SQLSTATE 55P03.
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
