//! How long a thread waits for a lock that another process holds.
//!
//! SQLite's interrupt does not reach a busy wait, so this is our own handler: it checks whether the statement is
//! cancelled, and a cancel unparks the thread. SQLite's wrapper takes a plain function, hence the thread-local.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The longest pause between two attempts to get the lock: nothing reports when it is free.
const PAUSE_MAX: Duration = Duration::from_millis(16);

thread_local! {
    static BUSY_WAIT: RefCell<Option<BusyWait>> = const { RefCell::new(None) };
}

struct BusyWait {
    stop: Arc<AtomicBool>,
    timeout: Duration,
    since: Instant,
}

/// How long this thread waits, and the flag that ends the wait.
pub fn set(stop: Arc<AtomicBool>, timeout: Duration) {
    BUSY_WAIT.set(Some(BusyWait { stop, timeout, since: Instant::now() }));
}

/// SQLite's busy handler. `tries`: how often it was called before for the same lock.
pub fn look_again(tries: i32) -> bool {
    BUSY_WAIT.with_borrow_mut(|busy_wait| busy_wait.as_mut().is_some_and(|busy_wait| busy_wait.wait(tries)))
}

impl BusyWait {
    fn wait(&mut self, tries: i32) -> bool {
        if tries == 0 {
            self.since = Instant::now();
        }
        if self.stop.load(Ordering::Relaxed) {
            return false;
        }
        let Some(left) = self.timeout.checked_sub(self.since.elapsed()) else { return false };
        let pause = Duration::from_millis(1 << tries.clamp(0, 4));
        thread::park_timeout(pause.min(PAUSE_MAX).min(left));
        !self.stop.load(Ordering::Relaxed)
    }
}
