//! Every bound of the driver that is not an option: unit last, the reason beside it, and what happens then.

use std::time::Duration;

/// A cancel waits so long before its first shot: most of those that cross the end of their statement need none. queries.md: 2–5 ms.
pub const GRACE: Duration = Duration::from_millis(3);
/// Cancels that become due within this time go together.
pub const CANCEL_TICK: Duration = Duration::from_millis(2);
/// So long after an acknowledged cancel that had no effect comes the next. The last one repeats.
pub const REPEATS: [Duration; 4] =
    [Duration::from_millis(20), Duration::from_millis(50), Duration::from_millis(100), Duration::from_millis(250)];
/// A statement that is not over so long after its cancel. Then: `pg_terminate_backend`.
pub const CANCELLING_MAX: Duration = Duration::from_secs(3);
/// Acknowledgements that are missing behind the end of a statement. Then: the connection is closed.
pub const SETTLING_MAX: Duration = Duration::from_secs(1);
/// A ROLLBACK. Then: the connection is closed.
pub const RESETTING_MAX: Duration = Duration::from_secs(5);
/// The canceller answers within a millisecond. Then: it is taken for lost, and the other transport is used.
pub const CANCELLER_ANSWER_MAX: Duration = Duration::from_millis(500);
/// A server process of ours that has been told to end is looked for so often.
pub const RETIRING_LOOK: Duration = Duration::from_millis(100);
/// The same in all. Then: its place is taken for free.
pub const RETIRING_MAX: Duration = Duration::from_secs(10);
/// The only slot of many that stays when nothing has happened for so long.
pub const IDLE_MAX: Duration = Duration::from_secs(600);

/// The first pause between attempts to connect; it doubles, and each pause is a part of it by chance.
pub const BACK_OFF_MIN: Duration = Duration::from_millis(50);
/// It grows to this and stays.
pub const BACK_OFF_MAX: Duration = Duration::from_secs(5);
/// The least of such a part.
pub const BACK_OFF_FLOOR: Duration = Duration::from_millis(10);
/// A database that does not let us in is asked again so often.
pub const DENIED_RETRY: Duration = Duration::from_secs(5);
/// The same when somebody wants it.
pub const DENIED_RETRY_WANTED: Duration = Duration::from_secs(1);

/// Nothing has come for so long though something was asked: the database is asked whether it is there. One small statement for each such time.
pub const PROBE_AFTER: Duration = Duration::from_secs(2);
/// It has so long to answer that; a database that runs takes a millisecond.
pub const PROBE_MAX: Duration = Duration::from_secs(1);
/// Nothing has come for so long, and no answer to that. Then: the database is told as down, until something comes.
pub const SILENCE_MAX: Duration = Duration::from_secs(4);

/// A turn that comes later than this after it was due: the core stood still, and the time does not count. Turns take 10 ms, on a machine that is
/// busy some more.
pub const STOOD_STILL_MIN: Duration = Duration::from_millis(250);
/// So much of what was due then is left, to read what has come, and for another that stood still as well: a database answers within a millisecond.
pub const RESPITE: Duration = Duration::from_millis(250);
/// So often somebody looks while something is due soon: a core that stands still counts as looking for at most as long.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
/// What is soon: more than any wait for an answer, less than connections rest.
pub const LOOK_WITHIN: Duration = Duration::from_secs(30);

/// Rounds of SCRAM that the polling thread computes itself: PostgreSQL's 4096 take 2 ms. Then: a thread of their own does; postgres-protocol refuses more than 100,000.
pub const SCRAM_ROUNDS_MAX: u32 = 8192;

/// Prepared statements of a connection. Then: the one not used for longest is closed.
pub const STATEMENTS_COUNT_MAX: usize = 256;
/// Rounds in which the types of a statement are looked up: arrays of domains of arrays. Then: strings.
pub const TYPE_ROUNDS_COUNT_MAX: usize = 8;
/// A statement whose preparation lost its connection is tried again so often. Then: it is taken for what broke it.
pub const TRIES_COUNT_MAX: u8 = 3;

/// A piece is given away from this size on; smaller ones wait for more.
pub const PIECE_BYTES_MIN: usize = 16 * 1024;
/// A larger one is cut.
pub const PIECE_BYTES_MAX: usize = 64 * 1024;
/// How often a socket is read in one turn. Then: the others come first.
pub const READS_COUNT_MAX: usize = 4;
/// Sockets are read for so long in one turn, all together. Then: whoever polls has others to look after, and the rest is read in the next one.
pub const READING_MAX: Duration = Duration::from_millis(2);
/// A message that is no row: errors, notices. Then: the connection is closed, or the message is left out where that changes nothing.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Buffers that have grown over this are given back when they are empty.
pub const BUFFER_KEPT_BYTES: usize = 64 * 1024;
