//! Every bound that is not an option.

use std::time::Duration;

/// Connections: one for each kind of statement, so that none waits for another, and one for a heartbeat while the last
/// one hangs. They are opened when needed.
pub const SLOTS: usize = 8;

/// Commands in one statement: enough to make the cost of its commit negligible. Then: the next statement.
pub const BATCH_COUNT_MAX: usize = 1_000;

/// Arguments and results in one statement; twice as much on the wire. Then: the next statement, but it always has at
/// least one.
pub const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Jobs that are looked up by one statement: they come back with their results.
pub const FOUND_COUNT_MAX: usize = 64;

/// Jobs that one command claims. Then: `more` says that there are others.
pub const CLAIM_COUNT_MAX: u32 = 1_000;

/// Jobs in one list.
pub const LISTED_COUNT_MAX: u32 = 1_000;

/// Jobs that are searched for a list of a state that most jobs have. Then: the list ends; older ones are not in it.
pub const SCANNED_COUNT_MAX: u32 = 200_000;

/// Jobs that are searched for a list of completed or cancelled ones: those that ended last. Then: the list ends.
pub const LISTED_ENDED_COUNT_MAX: u32 = 20_000;

/// How often a statement whose connection broke is tried again if that is safe. Then: `Unavailable`.
pub const TRIES_COUNT_MAX: u8 = 3;

/// Pause before a maintenance task that failed is tried again.
pub const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// The delay before a claim is repeated while another server claims the same jobs, or from the same queue with limits.
pub const CONTENDED: Duration = Duration::from_millis(20);

/// The largest value that PostgreSQL sends: a claim must never fail after its commit.
pub const ROW_BYTES_MAX: usize = 1 << 30;

/// Rows that have been read and not been taken. They are always taken at once.
pub const WINDOW_BYTES: usize = 1024 * 1024;

/// Maximum time to open a connection. Then: the store counts as unreachable, and waiting commands are refused.
pub const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// How often PostgreSQL checks, while it runs a statement, that we are still connected.
pub const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Counting takes at most this part of the time.
pub const COUNT_SHARE: u32 = 20;

/// How long before the last heartbeat notifications may have been lost with the connection, in ms.
pub const NOTIFICATIONS_LOST_MS_MAX: i64 = 60_000;
