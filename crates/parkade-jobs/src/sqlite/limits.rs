//! Every bound that is not an option.

use std::time::Duration;

/// Commands in one transaction: enough to make the cost of its `fsync` negligible. Then: the next transaction.
pub const BATCH_COUNT_MAX: usize = 1_000;

/// Work in one transaction, so that no answer waits long for other commands. Then: the transaction is committed with what has been carried out.
pub const BATCH_TIME_MAX: Duration = Duration::from_millis(20);

/// Commands of a transaction between two readings of the clock, which cost as much as a tenth of a short command.
pub const UNTIMED_COUNT: usize = 4;

/// Commands that arrive this soon after the first one join its transaction. A single command waits this long, but a
/// burst saves every second commit.
pub const GATHER_TIME: Duration = Duration::from_micros(200);

/// Jobs that one command claims. Then: `more` says that there are others.
pub const CLAIM_COUNT_MAX: u32 = 1_000;

/// Arguments that one command claims: they are in memory until workers have them. Then: `more` says that there are
/// others, but at least one is claimed.
pub const CLAIM_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Jobs that one claim makes ready because they are due (some 10 ms). Then: `next` is in the past, and the owner claims
/// again.
pub const PROMOTED_COUNT_MAX: usize = 1_000;

/// Jobs that one transaction deletes because their retention time is over (some 2 ms), or twice the number of its
/// commands if that is more: so they are deleted faster than they arrive. Then: the next one continues.
pub const PURGED_COUNT_MAX: usize = 200;

/// Jobs that one transaction makes ready because their function is known again. Then: the next one continues.
pub const RECOGNISED_COUNT_MAX: usize = 500;

/// Jobs in one list.
pub const LISTED_COUNT_MAX: u32 = 1_000;

/// A list searches all jobs of a state that has at most this many; otherwise only the newest ones, see below (about 100 ms at most).
pub const SORTED_COUNT_MAX: u64 = 20_000;

/// Jobs that are searched for a list that names no state, or not a rare one. Then: the list ends; older ones are not in
/// it.
pub const SCANNED_COUNT_MAX: u32 = 200_000;

/// Pages of the write-ahead log before it is written into the file: 16 MiB. With more, the pauses would be longer; with
/// fewer, more frequent.
pub const LOG_PAGES_MAX: u32 = 4_096;

/// The size to which SQLite truncates the log after it has been written into the file.
pub const LOG_BYTES_KEPT: u32 = 64 * 1024 * 1024;

/// SQLite's memory for pages, in KiB.
pub const CACHE_KIB: u32 = 16 * 1024;

/// Bytes of a page, SQLite's default.
pub const PAGE_BYTES: u64 = 4_096;

/// In a file with a size limit, this many pages (256 KiB), and a sixteenth of a large file, are reserved for existing jobs, so that they can end. Then: `Full`.
pub const RESERVED_PAGES_MIN: u64 = 64;

/// Statements that stay prepared: more than there are.
pub const PREPARED_COUNT_MAX: usize = 64;

/// Ready jobs of one queue and priority that are read at once; twice this number is kept in memory (16 bytes each). Then: they are read again.
pub const LANE_COUNT_MAX: usize = 512;

/// New jobs that are kept in memory until they are claimed, about half a kilobyte each at most. Then: others are read from the file.
pub const KNOWN_COUNT_MAX: usize = 2_048;

/// Jobs in one row of a claim: it is written again when one of them ends. Then: another row.
pub const CLAIM_ROW_COUNT_MAX: usize = 64;

/// Bytes of arguments that are stored with the rest of a job, in a row that is written again when it ends. Then: they
/// have a separate row.
pub const ARGUMENTS_BESIDE_BYTES_MAX: usize = 256;
