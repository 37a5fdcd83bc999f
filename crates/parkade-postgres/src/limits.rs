//! Every bound of the driver that is not an option: with its unit, its reason, and what happens beyond it.

use std::time::Duration;

/// The delay before a cancel is sent for the first time: a statement that is about to end needs none. queries.md: 2–5
/// ms.
pub const GRACE: Duration = Duration::from_millis(3);
/// Cancels that become due within this time are sent together.
pub const CANCEL_TICK: Duration = Duration::from_millis(2);
/// The delays before a cancel is repeated, after one that was acknowledged and had no effect. The last one repeats.
pub const REPEATS: [Duration; 4] =
    [Duration::from_millis(20), Duration::from_millis(50), Duration::from_millis(100), Duration::from_millis(250)];
/// Time for a statement to end after its cancel. Then: `pg_terminate_backend`.
pub const CANCELLING_MAX: Duration = Duration::from_secs(3);
/// Time for outstanding acknowledgements after the end of a statement. Then: the connection is closed.
pub const SETTLING_MAX: Duration = Duration::from_secs(1);
/// Time for a ROLLBACK. Then: the connection is closed.
pub const RESETTING_MAX: Duration = Duration::from_secs(5);
/// The canceller usually answers within a millisecond. Then: it counts as lost, and `CancelRequest`s are used.
pub const CANCELLER_ANSWER_MAX: Duration = Duration::from_millis(500);
/// How often to check whether one of our server processes that was told to end is gone.
pub const RETIRING_LOOK: Duration = Duration::from_millis(100);
/// How long to check. Then: its place counts as free.
pub const RETIRING_MAX: Duration = Duration::from_secs(10);
/// Idle slots are closed after this time, except the last one.
pub const IDLE_MAX: Duration = Duration::from_secs(600);

/// The first pause between attempts to connect. It doubles each time; the actual pause is a random part of it.
pub const BACK_OFF_MIN: Duration = Duration::from_millis(50);
/// The longest pause.
pub const BACK_OFF_MAX: Duration = Duration::from_secs(5);
/// The shortest random part.
pub const BACK_OFF_FLOOR: Duration = Duration::from_millis(10);
/// How often to try a database again that denies access.
pub const DENIED_RETRY: Duration = Duration::from_secs(5);
/// The same while queries need it.
pub const DENIED_RETRY_WANTED: Duration = Duration::from_secs(1);

/// If nothing has arrived for this long although there is a request, the database is probed: one small statement each
/// time.
pub const PROBE_AFTER: Duration = Duration::from_secs(2);
/// Time allowed for the answer; a healthy database takes a millisecond.
pub const PROBE_MAX: Duration = Duration::from_secs(1);
/// Nothing has arrived for this long, and the probe was not answered. Then: the database is reported as down, until
/// something arrives.
pub const SILENCE_MAX: Duration = Duration::from_secs(4);

/// If a turn comes later than this after it was due, the core was stopped, and the time does not count. A turn takes 10
/// ms, on a busy machine somewhat longer.
pub const STOOD_STILL_MIN: Duration = Duration::from_millis(250);
/// The time that is left then until it is due: to read what has arrived, and for a server that was stopped as well. A
/// database answers within a millisecond.
pub const RESPITE: Duration = Duration::from_millis(250);
/// The time between turns while something is due soon: if the core is stopped, at most this much of the time counts.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How soon that is: longer than any timeout for an answer, shorter than the idle timeout of connections.
pub const LOOK_WITHIN: Duration = Duration::from_secs(30);

/// Rounds of SCRAM that the polling thread computes itself: PostgreSQL's 4096 take 2 ms. Then: another thread computes
/// them; postgres-protocol refuses more than 100,000.
pub const SCRAM_ROUNDS_MAX: u32 = 8192;

/// Prepared statements of a connection. Then: the least recently used one is closed.
pub const STATEMENTS_COUNT_MAX: usize = 256;
/// Rounds in which the types of a statement are looked up: arrays of domains of arrays. Then: strings.
pub const TYPE_ROUNDS_COUNT_MAX: usize = 8;
/// How often a statement is tried again if its preparation lost the connection. Then: it is considered the cause.
pub const TRIES_COUNT_MAX: u8 = 3;

/// The minimum size of a piece that is passed on before the end.
pub const PIECE_BYTES_MIN: usize = 16 * 1024;
/// The maximum size of a piece; a larger one is split.
pub const PIECE_BYTES_MAX: usize = 64 * 1024;
/// How often a socket is read in one turn. Then: the others come first.
pub const READS_COUNT_MAX: usize = 4;
/// How long sockets are read in one turn, all together. Then: the rest is read in the next turn, so that the owner's
/// other work is not delayed.
pub const READING_MAX: Duration = Duration::from_millis(2);
/// A message other than a row: errors, notices. Then: the connection is closed, or the message is skipped if that is
/// harmless.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Buffers that have grown beyond this are freed when they are empty.
pub const BUFFER_KEPT_BYTES: usize = 64 * 1024;
