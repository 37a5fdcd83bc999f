//! The bounds of this module: of a link, of what a worker prints, of the time it takes to go.

use std::time::Duration;

/// Read from one link in one turn: about 1,500 small frames, or 1 ms, so that a worker that floods delays the others by no more.
/// Then: the rest waits in the pipe, and the worker with it.
pub const READ_BYTES_PER_TURN: usize = 256 * 1024;

/// What one `read` may bring. Larger than the kernel's usual delivery; smaller ones cost a call for each hundred frames.
pub const READ_BYTES: usize = 64 * 1024;

/// Asked of the kernel for each direction of a link: room for some 2,000 small answers, or for four large inline bodies. Pages are taken
/// when bytes wait in them. A user without privileges has 64 MiB for all pipes by default: more than 100 workers have theirs.
pub const PIPE_BYTES: usize = 256 * 1024;

/// What waits here for one worker to read it. Credit bounds what a worker is given, so only one that does not read gets here.
/// Then: it has broken the protocol and is ended.
pub const UNSENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// `DATA` of request bodies is written only while less than this waits to be sent, so that bodies wait as they are, uncopied.
pub const UNSENT_BYTES_BUSY: usize = 256 * 1024;

/// Written to one link in one turn, about 1 ms: a worker that reads as fast as the core writes would hold up everybody else until the end of
/// a large body. Then: the rest is for the next turn.
pub const WRITTEN_BYTES_PER_TURN: usize = 1024 * 1024;

/// A buffer that had to grow beyond this is given back when it is empty.
pub const BUFFER_BYTES_KEPT: usize = 1024 * 1024;

/// One `WINDOW` for so much of an answer that a client took: a quarter of the window, so that the worker never waits while the client reads.
pub const GRANT_BYTES_MIN: usize = 64 * 1024;

/// A line that a worker prints. Then: it is logged in pieces.
pub const LINE_BYTES_MAX: usize = 8 * 1024;

/// How much of a frame that broke the rules goes to the log.
pub const EVIDENCE_BYTES: usize = 48;

/// A worker that has closed its link, or that said it failed, has nothing left to do. Then: it is killed.
pub const EXIT_TIME: Duration = Duration::from_secs(1);

/// A process that is gone may have left its link or its output to a process of its own. Then: what it wrote itself is taken from the link,
/// and its end is told.
pub const LAST_WORDS_TIME: Duration = Duration::from_millis(50);

/// What others print where it printed is logged so much longer.
pub const LAST_LINES_TIME: Duration = Duration::from_secs(1);

/// Where memory runs out the kernel takes a worker, never the core: a worker comes back, the core holds everybody's connections.
pub const OOM_SCORE_ADJUST: u16 = 400;
