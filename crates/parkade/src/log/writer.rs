//! A writer that never makes its callers wait: a bounded buffer, and a thread that empties it.
//!
//! `tracing-appender` does nearly the same, but it forgets lines that fail to be written, and at the end it prints to
//! standard output, which may be the pipe that is blocked.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use super::line::one_line;

/// About 10,000 lines: a tenth of a second of the access log at full speed.
const WAITING_BYTES_MAX: usize = 1 << 20; // then: the line is dropped and counted
/// Enough for a slow disk, and not too long for an operator.
const FLUSH_SECONDS_MAX: u64 = 1; // then: the rest is lost

/// What the lines are written to.
pub trait LogDestination: Write + Send + 'static {
    /// Opens it again, if it is a file that another process may have renamed.
    fn reopen(&mut self) {}
}

/// The number of lost lines.
#[derive(Debug, Clone, Default)]
pub struct Dropped(Arc<AtomicU64>);

/// Takes lines without waiting.
#[derive(Debug, Clone)]
pub struct LineWriter {
    queue: Arc<LineQueue>,
    dropped: Dropped,
    /// The subscriber writes escape sequences, for a terminal.
    colours: bool,
}

/// When dropped, waits until everything is written.
#[derive(Debug)]
#[must_use]
pub struct Flush(Arc<LineQueue>);

#[derive(Debug, Default)]
struct LineQueue {
    state: Mutex<LineQueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct LineQueueState {
    waiting: Vec<u8>,
    writing: bool,
    /// The destination is to be opened again before the next line is written.
    reopening: bool,
}

/// Starts the thread that writes to `destination`. It ends with the process.
pub fn start(name: &str, destination: impl LogDestination, dropped: Dropped) -> (LineWriter, Flush) {
    let queue = Arc::new(LineQueue::default());
    let (emptied, counted) = (Arc::clone(&queue), dropped.clone());
    let thread = std::thread::Builder::new().name(name.into());
    // Without the thread all lines count as dropped: the server continues.
    let _ = thread.spawn(move || emptied.empty_into(destination, &counted));
    (LineWriter { queue: Arc::clone(&queue), dropped, colours: false }, Flush(queue))
}

impl Dropped {
    /// Lines lost so far.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, lines: u64) {
        self.0.fetch_add(lines, Ordering::Relaxed);
    }
}

impl LineWriter {
    pub fn with_colours(self, colours: bool) -> Self {
        Self { colours, ..self }
    }

    /// Takes an event, which becomes one line, or drops it. Never waits.
    pub fn put(&self, event: &[u8]) {
        let lines = one_line(event, self.colours);
        let mut state = self.queue.lock();
        if state.waiting.len() + lines.len() > WAITING_BYTES_MAX {
            self.dropped.add(count_lines(&lines));
        } else {
            state.waiting.extend_from_slice(&lines);
            drop(state);
            self.queue.changed.notify_all();
        }
    }

    /// Has the destination opened again. Does not wait.
    pub fn reopen(&self) {
        self.queue.lock().reopening = true;
        self.queue.changed.notify_all();
    }
}

impl Write for LineWriter {
    /// The subscriber writes each event at once.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.put(event);
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LineWriter {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Drop for Flush {
    fn drop(&mut self) {
        let busy = |state: &mut LineQueueState| state.writing || !state.waiting.is_empty();
        let _ = self.0.changed.wait_timeout_while(self.0.lock(), Duration::from_secs(FLUSH_SECONDS_MAX), busy);
    }
}

impl LineQueue {
    fn lock(&self) -> MutexGuard<'_, LineQueueState> {
        // Nothing panics while it holds the lock, and the bytes are always consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn empty_into(&self, mut destination: impl LogDestination, dropped: &Dropped) {
        let mut batch = Vec::new();
        let mut torn = false;
        loop {
            let mut state = self.lock();
            state.writing = false;
            self.changed.notify_all();
            let idle = |state: &mut LineQueueState| state.waiting.is_empty() && !state.reopening;
            let mut state = self.changed.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner);
            state.writing = true;
            std::mem::swap(&mut batch, &mut state.waiting);
            let is_reopened = std::mem::take(&mut state.reopening);
            drop(state);
            if is_reopened {
                destination.reopen();
            }
            if torn {
                torn = !write_what_goes(&mut destination, b"\n").is_empty();
            }
            let lost = write_what_goes(&mut destination, &batch);
            dropped.add(count_lines(lost));
            if let Some(last) = batch[..batch.len() - lost.len()].last() {
                torn = *last != b'\n';
            }
            batch.clear();
        }
    }
}

/// Writes the batch and returns what could not be written.
fn write_what_goes<'a>(destination: &mut impl Write, mut batch: &'a [u8]) -> &'a [u8] {
    while !batch.is_empty() {
        match destination.write(batch) {
            Ok(0) => break,
            Ok(written) => batch = &batch[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Another process that shares the pipe has made it non-blocking.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(10)),
            Err(_) => break,
        }
    }
    batch
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Takes as many bytes as each allowance permits, and fails when there is none left.
    struct Disk {
        room: mpsc::Receiver<usize>,
        taken: Arc<Mutex<Vec<u8>>>,
    }

    impl LogDestination for Disk {}

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Blocks like a pipe without a reader until the test allows something.
            let room = self.room.recv().unwrap_or(0).min(bytes.len());
            self.taken.lock().unwrap().extend_from_slice(&bytes[..room]);
            if room == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(room) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Fixture {
        allow: mpsc::Sender<usize>,
        taken: Arc<Mutex<Vec<u8>>>,
        writer: LineWriter,
        flush: Flush,
        dropped: Dropped,
    }

    fn disk() -> Fixture {
        let (allow, room) = mpsc::channel();
        let taken = Arc::<Mutex<Vec<u8>>>::default();
        let dropped = Dropped::default();
        let (writer, flush) = start("test", Disk { room, taken: Arc::clone(&taken) }, dropped.clone());
        Fixture { allow, taken, writer, flush, dropped }
    }

    fn settle(writer: &LineWriter) {
        let busy = |state: &mut LineQueueState| state.writing || !state.waiting.is_empty();
        drop(writer.queue.changed.wait_while(writer.queue.lock(), busy).unwrap());
    }

    #[test]
    fn a_blocked_pipe_never_blocks_its_writer_and_the_lost_lines_are_counted() {
        let Fixture { allow, taken: _, writer, flush: _flush, dropped } = disk();
        let line = [b"x".repeat(1023), vec![b'\n']].concat();
        for _ in 0..3 * 1024 {
            writer.put(&line);
        }
        // One MiB is buffered, and at most another is with the thread.
        assert!((1024..=2048).contains(&dropped.lines()), "{}", dropped.lines());
        drop(allow);
    }

    #[test]
    fn a_full_disk_counts_the_lost_lines_and_the_next_line_begins_afresh() {
        let Fixture { allow, taken, writer, flush: _flush, dropped } = disk();
        for room in [3, 0, 1, 100] {
            allow.send(room).unwrap();
        }
        writer.put(b"lost\n");
        settle(&writer);
        assert_eq!(dropped.lines(), 1);
        writer.put(b"kept\n");
        settle(&writer);
        assert_eq!(*taken.lock().unwrap(), b"los\nkept\n");
        assert_eq!(dropped.lines(), 1);
    }

    #[test]
    fn the_guard_waits_for_what_is_written() {
        let Fixture { allow, taken, writer, flush, .. } = disk();
        writer.put(b"last words\n");
        allow.send(100).unwrap();
        drop(flush);
        assert_eq!(*taken.lock().unwrap(), b"last words\n");
    }
}
