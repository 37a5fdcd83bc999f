//! Every bound of the admin endpoints, with what happens then.

use std::time::Duration;

/// Asks that wait for the server. It answers each turn, so more only wait when it is stuck. Then: 503.
pub const ASKS_COUNT_MAX: usize = 64;
/// The server answers within a turn of its loop, which takes milliseconds. Then: 503.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

/// For each address, so that strangers at a TCP address keep nobody from the private socket. Then: the next waits in the kernel's backlog.
pub const CONNECTIONS_COUNT_MAX: usize = 64;
/// However little a client sends or reads, its place is free after this. Then: closed.
pub const CONNECTION_TIME_MAX: Duration = Duration::from_secs(60);
/// Also how long a connection may be idle. Then: closed.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// Then: 408.
pub const BODY_TIME_MAX: Duration = Duration::from_secs(10);
/// Then: 431, by hyper.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// A message, as in the protocol with the workers. Then: 413.
pub const MESSAGE_BYTES_MAX: usize = 512 * 1024;
/// Of a larger body so much is read before its 413 is sent. Then: the connection closes on the rest.
pub const READ_OVER_BYTES_MAX: usize = 8 * MESSAGE_BYTES_MAX;
/// How long accepting pauses when descriptors have run out.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
