//! The streams of one connection: each runs in its own task, and is counted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::H2Context;

/// Counts the streams of one connection.
#[derive(Debug)]
pub struct Streams {
    open: Arc<Mutex<OpenStreams>>,
    /// The streams of all connections.
    all: Arc<AtomicUsize>,
    panics: Arc<AtomicUsize>,
}

/// The streams of a connection that have not ended.
#[derive(Debug)]
struct OpenStreams {
    count: usize,
    /// When the last of them ended, or the connection began.
    since: Instant,
}

impl Streams {
    pub fn new(shared: &H2Context) -> Self {
        Self {
            open: Arc::new(Mutex::new(OpenStreams { count: 0, since: Instant::now() })),
            all: Arc::clone(&shared.stream_count),
            panics: Arc::clone(&shared.panic_count),
        }
    }

    /// Since when the connection has had no stream, if it has none.
    pub fn idle_since(&self) -> Option<Instant> {
        let open = lock(&self.open);
        (open.count == 0).then_some(open.since)
    }

    /// Runs one to its end.
    pub fn run(&self, stream: impl Future<Output = ()> + Send + 'static) {
        lock(&self.open).count += 1;
        self.all.fetch_add(1, Ordering::Relaxed);
        let (of_connection, of_all) = (Arc::clone(&self.open), Arc::clone(&self.all));
        let opened = Opened { of_connection, of_all, panics: Arc::clone(&self.panics) };
        // On the heap once: each future that wraps another by value would reserve room for it again, and a stream may wait for long.
        let stream = Box::pin(stream);
        tokio::spawn(async move {
            stream.await;
            drop(opened);
        });
    }
}

/// Counts its stream as ended when dropped, and by a panic as broken.
struct Opened {
    of_connection: Arc<Mutex<OpenStreams>>,
    of_all: Arc<AtomicUsize>,
    panics: Arc<AtomicUsize>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.panics.fetch_add(usize::from(std::thread::panicking()), Ordering::Relaxed);
        self.of_all.fetch_sub(1, Ordering::Relaxed);
        let mut open = lock(&self.of_connection);
        open.count -= 1;
        open.since = Instant::now();
    }
}

/// A panic while it was held cannot have left it half changed.
fn lock(open: &Mutex<OpenStreams>) -> MutexGuard<'_, OpenStreams> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}
