//! The streams of one connection: each runs in its own task, under its timeout, and is counted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{H2Context, write_timeout};

/// Runs the streams of one connection.
#[derive(Debug, Clone)]
pub struct Streams {
    stall: Duration,
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

impl Default for OpenStreams {
    fn default() -> Self {
        Self { count: 0, since: Instant::now() }
    }
}

impl Streams {
    pub fn new(shared: &H2Context) -> Self {
        Self {
            stall: shared.setup.limits.write_stall,
            open: Arc::new(Mutex::new(OpenStreams::default())),
            all: Arc::clone(&shared.stream_count),
            panics: Arc::clone(&shared.panic_count),
        }
    }

    /// How long the connection may be left as it is, if it may be without streams for this long.
    pub fn idle_until(&self, idle_time: Duration) -> Instant {
        let open = lock(&self.open);
        let since = if open.count == 0 { open.since } else { Instant::now() };
        since + idle_time
    }
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Streams {
    fn execute(&self, stream: F) {
        lock(&self.open).count += 1;
        self.all.fetch_add(1, Ordering::Relaxed);
        let (of_connection, of_all) = (Arc::clone(&self.open), Arc::clone(&self.all));
        let opened = Opened { of_connection, of_all, panics: Arc::clone(&self.panics) };
        // On the heap once: each future that wraps another by value would reserve room for it again, and a stream may wait for long.
        let watched = write_timeout::inherit().watch(Box::pin(stream), self.stall);
        tokio::spawn(async move {
            watched.await;
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
