//! The options of the driver, and its events.

use std::time::Duration;

/// The options of a database, apart from its address.
#[derive(Debug, Clone)]
pub struct Options {
    /// Maximum number of connections for queries; the canceller and the listener have one each in addition.
    pub slots: usize,
    /// Maximum number of queries that wait for a slot. Then: [`QueueFull`](parkade_sql::FailureKind::QueueFull).
    pub queue_count_max: usize,
    /// The size of a row as the server sends it. Then: [`TooLarge`](parkade_sql::FailureKind::TooLarge).
    pub row_bytes_max: usize,
    /// Bytes of pieces that were passed on and not yet taken. Then: the socket is not read.
    pub window_bytes: usize,
    pub application_name: String,
    /// Channels of NOTIFY.
    pub listen: Vec<String>,
    /// Time for an attempt to connect; also how long queries wait for a database that cannot be reached.
    pub connect_timeout: Duration,
    /// How often a server process checks, while it computes, that we are still connected: 500 ms.
    pub check_interval: Duration,
}

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Query(parkade_sql::QueryEvent),
    Notification {
        channel: String,
        payload: String,
    },
    /// LISTEN was active, and its connection was lost: notifications are missed until it is active again.
    ListeningLost {
        why: Box<str>,
    },
    /// LISTEN is active again after it was lost: notifications may have been missed.
    ListeningAgain,
}
