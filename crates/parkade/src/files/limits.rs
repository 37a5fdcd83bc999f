//! The bounds of files that are answers.

/// What is read of a file at a time, and the largest answer that is sent in one piece: its file is closed at once. Then:
/// the file stays open until its client has all of it. A read of this size takes some 20 µs if the system has it in
/// memory, which is little compared with what it costs to send it.
pub const PIECE_BYTES: usize = 64 * 1024;

/// Bytes of one file that its client has not taken: one piece on its way, and one that is ready when it is gone. Then:
/// the file is read no further.
pub const UNTAKEN_BYTES_MAX: usize = 2 * PIECE_BYTES;

/// Threads that open and read files at a time: enough for a disk with a queue, and for some network file systems that
/// do not respond. Then: others wait in the order in which they came, until their deadline.
pub const THREADS_MAX: usize = 16;

/// Requests in the queue for a thread that have ended, beyond as many as have not: while a disk hangs, clients may come
/// and leave. Then: they are removed, many at a time, so each costs little.
pub const STALE_COUNT_MAX: usize = 64;

/// Attempts to read a small file that changes while it is read. Then: it is sent as the last attempt has read it.
pub const ATTEMPTS_MAX: u32 = 3;
