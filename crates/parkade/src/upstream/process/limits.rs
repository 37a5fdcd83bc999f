//! The bounds of this module: of a link, of what a worker prints, of the time it takes to end.

use std::time::Duration;

/// Read from one link in one turn: about 1,500 small frames, or 1 ms, so that a worker that floods delays the others by no more.
/// Then: the rest waits in the pipe, and the worker with it.
pub const READ_BYTES_PER_TURN: usize = 256 * 1024;

/// The size of one `read`. Larger than what the kernel usually delivers; a smaller one would cost a call for each
/// hundred frames.
pub const READ_BYTES: usize = 64 * 1024;

/// A payload of at least this size is read into memory of its own, which it fills at least by half.
pub const LARGE_BYTES_MIN: usize = 32 * 1024;

/// The requested size of each pipe of a link: a window of `DATA` with its headers, which needs a page more than 256 KiB,
/// so that neither end waits for the other in the middle of a frame. The kernel allocates pages only for bytes in the
/// pipe. By default a user without privileges has 64 MiB for all pipes: enough for 64 workers. Then: the pipes of
/// further workers have the size below, or the kernel's 64 KiB.
pub const PIPE_BYTES: usize = 512 * 1024;
pub const SMALLER_PIPE_BYTES: usize = 256 * 1024;

/// Bytes that wait for one worker to read them. Credit limits the work of a worker, so only one that does not read gets
/// here. Then: it has violated the protocol and is killed.
pub const UNSENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// `DATA` of request bodies is written only while fewer bytes than this wait to be sent, so that bodies wait uncopied.
pub const UNSENT_BYTES_BUSY: usize = 256 * 1024;

/// `DATA` of at least this size is written from where it is; below, a copy costs less than one more part of a write.
pub const UNCOPIED_BYTES_MIN: usize = 4 * 1024;

/// A message of a WebSocket that does not fit into one frame is written in pieces of this size, for the same reasons as a body: it
/// waits uncopied, and keeps other streams waiting for one piece at the most.
pub const MESSAGE_PIECE_BYTES: usize = 64 * 1024;

/// Bytes written to one link in one turn, about 1 ms: otherwise a worker that reads as fast as the core writes would
/// delay all others until the end of a large body. Then: the rest waits for the next turn.
pub const WRITTEN_BYTES_PER_TURN: usize = 1024 * 1024;

/// A buffer that has grown beyond this is freed when it is empty.
pub const BUFFER_BYTES_KEPT: usize = 1024 * 1024;

/// One `WINDOW` is sent for this many bytes that the client took: half of the window. With a quarter, a worker would be
/// woken twice as often, which costs it as much as the bytes themselves.
pub const GRANT_BYTES_MIN: usize = 128 * 1024;

/// A line that a worker prints. Then: it is logged in pieces.
pub const LINE_BYTES_MAX: usize = 8 * 1024;

/// A record of an application, with its traceback: the worker shortens longer ones. Then: it is logged in pieces, as text.
pub const RECORD_BYTES_MAX: usize = 128 * 1024;

/// Records that wait for the core. Then: the output of workers is not read for a moment.
pub const RECORDS_COUNT_MAX: usize = 256;
pub const RECORDS_RETRY_TIME: Duration = Duration::from_millis(1);

/// Streams whose requests are remembered for records that come late. Then: a record does not say which request it is about.
pub const RECENT_STREAMS_COUNT: usize = 512;

/// How much of a frame that broke the rules goes to the log.
pub const EVIDENCE_BYTES: usize = 48;

/// A worker that has closed its link, or reported that it failed, has nothing left to do. After this time it is killed.
pub const EXIT_TIME: Duration = Duration::from_secs(1);

/// A process may have passed its link or its output to a child process, which keeps them open after it has ended. After
/// this time, what it wrote itself is taken from the link, and its end is reported.
pub const LAST_WORDS_TIME: Duration = Duration::from_millis(50);

/// How much longer the output of such child processes is logged.
pub const LAST_LINES_TIME: Duration = Duration::from_secs(1);

/// If memory runs out, the kernel should kill a worker, never the core: a worker is replaced, the core holds all
/// connections.
pub const OOM_SCORE_ADJUST: u16 = 400;
