//! Bounds of the databases that no setting changes.

use std::time::Duration;

/// Rows that have been read and not been taken, for each query. Then: the database is not read on.
pub const WINDOW_BYTES: usize = 256 * 1024;
/// A connection must stand after this time. Then: the database cannot be reached, and whoever waits for it is told so.
pub const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// So often PostgreSQL looks whether we still live while it runs a statement. A core that was killed leaves nothing behind for longer.
pub const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// How long a writer of SQLite waits for another process. Then: 503.
pub const BUSY_TIME_MAX: Duration = Duration::from_secs(5);
/// Readers of a SQLite file beside its one writer.
pub const READERS_COUNT: usize = 4;
