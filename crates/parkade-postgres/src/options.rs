//! How much the driver may use, and what its owner hears of it.

use std::time::Duration;

/// What an owner wants of a database beyond how it is reached.
#[derive(Debug, Clone)]
pub struct Options {
    /// Connections for queries at most; the canceller and the listener have one each beside them.
    pub slots: usize,
    /// Queries that wait for a slot at most. Then: [`QueueFull`](parkade_sql::FailureKind::QueueFull).
    pub queue_count_max: usize,
    /// One row as the server sends it. Then: [`TooLarge`](parkade_sql::FailureKind::TooLarge).
    pub row_bytes_max: usize,
    /// Bytes of pieces that were given and not yet taken. Then: the socket is not read.
    pub window_bytes: usize,
    pub application_name: String,
    /// Channels of NOTIFY.
    pub listen: Vec<String>,
    /// An attempt to connect; also how long queries wait for a database that cannot be reached.
    pub connect_timeout: Duration,
    /// How often a server process looks whether we are still there while it computes: 500 ms.
    pub check_interval: Duration,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Query(parkade_sql::QueryEvent),
    Notification {
        channel: String,
        payload: String,
    },
    /// LISTEN is in force again after it was lost: messages may have been missed.
    ListeningAgain,
}
