//! Bounds of the databases that are not settings.

use std::time::Duration;

/// Rows of each query that have been read and not been taken. Then: no more is read from the database.
pub const WINDOW_BYTES: usize = 256 * 1024;
/// Time allowed to connect. Then: the database counts as unreachable, and queries that wait for the connection fail.
pub const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// How often PostgreSQL checks, while it runs a statement, that we are still connected. A core that was killed leaves
/// no statement running for longer.
pub const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// How long a writer of SQLite waits for another process. Then: 503.
pub const BUSY_TIME_MAX: Duration = Duration::from_secs(5);
/// Readers of a SQLite file in addition to its one writer.
pub const READERS_COUNT: usize = 4;
