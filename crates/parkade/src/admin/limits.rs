//! The limits of the admin endpoints, and what happens beyond them.

use std::time::Duration;

use parkade_wire::limits::ARGUMENTS_BYTES_MAX;

/// Questions that wait for the server. It answers in each turn, so there are more only if it is stuck. Then: 503.
pub const ASKS_COUNT_MAX: usize = 64;
/// The server answers within a turn of its loop, which takes milliseconds. Then: 503.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
/// The job store answers when the data is on disk. Shorter than the commands wait (5 s). Then: 503.
pub const JOB_ANSWER_TIME_MAX: Duration = Duration::from_secs(4);

/// The same bound as in a worker: milliseconds since 1970 stay far within 64 bits. Then: 400.
pub const SECONDS_MAX: f64 = 1e15;

/// Maximum time to wait for the end of a job or a reload. Then: its current state; the client can ask again.
pub const WAIT_TIME_MAX: Duration = Duration::from_secs(60);
/// Clients that wait for the end of a job or a reload, all addresses together: they must leave connections to others. Then: 503.
pub const WAITS_COUNT_MAX: usize = CONNECTIONS_COUNT_MAX / 2;
/// Scripts with a transaction, all addresses together: each holds a connection of a pool for as long as it likes. Then: 503.
pub const SCRIPTS_COUNT_MAX: usize = 64;
/// How long a script whose transaction has ended may take to read what it is told. Then: its connection is closed.
pub const LAST_WORD_TIME_MAX: Duration = Duration::from_secs(1);
/// How long a client that does not wait is kept: one turn of the server's loop is enough for what is known already.
pub const RELOAD_ANSWER_TIME: Duration = Duration::from_millis(50);
/// The first pause before the store is asked again whether the job has ended; each is twice the one before it.
pub const JOB_PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest of them.
pub const JOB_PAUSE_MAX: Duration = Duration::from_millis(500);
/// A job as JSON: its arguments in Base64, and its texts. Then: 413.
pub const JOB_BODY_BYTES_MAX: usize = ARGUMENTS_BYTES_MAX / 3 * 4 + 16 * 1024;
/// Jobs in one list, as many as the store returns. Then: 400.
pub const LISTED_COUNT_MAX: u32 = 1_000;
/// Jobs in a list by default.
pub const LISTED_COUNT_DEFAULT: u32 = 50;

const _: () = assert!(STREAM_TIME_MAX.as_secs() + 2 * HEAD_TIME_MAX.as_secs() < CONNECTION_TIME_MAX.as_secs());

// A client that waits from its first byte on is answered before its connection is closed.
const _: () = assert!(WAIT_TIME_MAX.as_secs() + JOB_ANSWER_TIME_MAX.as_secs() < CONNECTION_TIME_MAX.as_secs());

/// How often an open page gets a snapshot. All pages get the same.
pub const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(1);
/// A snapshot is followed by a pause of so many times what it took, so that pages cost the server 1 % at most.
pub const SNAPSHOT_SHARE: u32 = 100;
/// A stream of snapshots ends after this time, before its connection has to: its page opens another one.
pub const STREAM_TIME_MAX: Duration = Duration::from_secs(60);
/// Open pages, all addresses together: they must leave connections to others. Then: 503.
pub const WATCHERS_COUNT_MAX: usize = CONNECTIONS_COUNT_MAX / 4;

/// Connections at each address, so that strangers at a TCP address cannot block the private socket. Then: the next one waits in the kernel's backlog.
pub const CONNECTIONS_COUNT_MAX: usize = 64;
/// A connection lasts at most this long, however slowly a client sends or reads. Then: closed.
pub const CONNECTION_TIME_MAX: Duration = Duration::from_secs(90);
/// Also how long a connection may be idle. Then: closed.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// Then: 408.
pub const BODY_TIME_MAX: Duration = Duration::from_secs(10);
/// Then: 431, by hyper.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// A message, as in the protocol with the workers. Then: 413.
pub const MESSAGE_BYTES_MAX: usize = 512 * 1024;
/// This much of a larger body is read before the 413 is sent. Then: the connection closes on the rest.
pub const READ_OVER_BYTES_MAX: usize = 8 * MESSAGE_BYTES_MAX;
/// How long accepting pauses when descriptors have run out.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
