//! Bounds of what is checked here.

use std::time::Duration;

/// Bytes of a channel's name; names come from paths and go into log lines. Then: the wait is refused.
pub const CHANNEL_NAME_BYTES_MAX: usize = 200;

/// Messages that a channel keeps for clients that come back. Then: the oldest goes, and a client that wanted it is told of a gap.
pub const HISTORY_COUNT_MAX: usize = 100;
/// The same in bytes.
pub const HISTORY_BYTES_MAX: usize = 1024 * 1024;
/// The same in time: as long as a client is away when its train is in a tunnel.
pub const HISTORY_AGE_MAX: Duration = Duration::from_secs(300);
