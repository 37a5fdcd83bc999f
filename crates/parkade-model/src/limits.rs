//! Limits of the values checked here.

use std::time::Duration;

/// Bytes of a channel's name; names come from paths and go into log lines. Then: the wait is refused.
pub const CHANNEL_NAME_BYTES_MAX: usize = 200;

/// Bytes of an event's name, which is repeated in every response with the message. Then: it is not published.
pub const EVENT_NAME_BYTES_MAX: usize = 200;

/// Messages that a channel keeps for clients that reconnect. Then: the oldest is dropped, and a client that needed it
/// gets a gap.
pub const HISTORY_COUNT_MAX: usize = 100;
/// The same limit in bytes.
pub const HISTORY_BYTES_MAX: usize = 1024 * 1024;
/// The same limit in time: about as long as a client has no connection in a train tunnel.
pub const HISTORY_AGE_MAX: Duration = Duration::from_secs(300);
