//! One thread, as the owner and the other threads see it. Everything here happens under the scheduler's lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar};
use std::thread::Thread;
use std::time::Instant;

use parkade_sql::{LeaseId, QueryId, SlotState, SlotStatus};
use rusqlite::InterruptHandle;

use super::lanes::Lane;

pub struct ThreadSlot {
    pub lane: Lane,
    pub lease: Option<LeaseId>,
    running: Option<RunningStatement>,
    /// Notified when there is work, room or a cancel.
    bell: Arc<Condvar>,
    rest: Wakefulness,
    /// True while the running statement is cancelled and may be stopped. SQLite's callbacks on the thread read it
    /// without the lock.
    pub stop: Arc<AtomicBool>,
    interrupt: Option<Arc<InterruptHandle>>,
    thread: Option<Thread>,
    state: SlotState,
    since: Instant,
}

/// The query on a slot.
struct RunningStatement {
    query: QueryId,
    wish: OwnerWish,
    fence: Fence,
    /// Bytes that were passed on and not taken.
    untaken: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OwnerWish {
    Wanted,
    Cancelled,
}

/// Whether an interrupt is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fence {
    /// During our own statements, and every COMMIT: a cancel is recorded, but not carried out.
    Shut,
    Open,
}

/// Whether the thread has to be notified of new work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wakefulness {
    Awake,
    Asleep,
}

/// The query was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementCancelled;

impl ThreadSlot {
    pub fn new(lane: Lane) -> Self {
        Self {
            lane,
            lease: None,
            running: None,
            bell: Arc::default(),
            rest: Wakefulness::Awake,
            stop: Arc::default(),
            interrupt: None,
            thread: None,
            state: SlotState::Idle,
            since: Instant::now(),
        }
    }

    pub fn status(&self, now: Instant) -> SlotStatus {
        SlotStatus { state: self.state, query: self.query(), age: now.saturating_duration_since(self.since) }
    }

    pub fn turn_to(&mut self, state: SlotState) {
        if self.state != state {
            (self.state, self.since) = (state, Instant::now());
        }
    }

    /// Called by the thread itself.
    pub fn introduce(&mut self, thread: Thread) {
        self.thread = Some(thread);
    }

    /// The thread has opened its connection, or closed it.
    pub fn connect(&mut self, interrupt: Option<InterruptHandle>) {
        self.interrupt = interrupt.map(Arc::new);
    }

    #[cfg(test)]
    pub fn interrupt_handle(&self) -> Option<Arc<InterruptHandle>> {
        self.interrupt.clone()
    }

    /// The query that runs on it.
    pub fn query(&self) -> Option<QueryId> {
        self.running.as_ref().map(|running| running.query)
    }

    /// Notified when there is work, room or a cancel.
    pub fn bell(&self) -> Arc<Condvar> {
        Arc::clone(&self.bell)
    }

    pub fn ring(&self) {
        self.bell.notify_one();
    }

    /// The thread has nothing to do, and waits for a notification.
    pub fn sleep(&mut self) {
        self.rest = Wakefulness::Asleep;
    }

    /// The thread has woken up, possibly by itself.
    pub fn woke(&mut self) {
        self.rest = Wakefulness::Awake;
    }

    /// Whether it sleeps and holds no transaction.
    pub fn is_free(&self) -> bool {
        self.lease.is_none() && self.rest == Wakefulness::Asleep
    }

    /// Marks it as awake, so that the next notification goes to another thread.
    pub fn wake(&mut self) {
        self.rest = Wakefulness::Awake;
        self.ring();
    }

    pub fn start(&mut self, query: QueryId) {
        self.running = Some(RunningStatement { query, wish: OwnerWish::Wanted, fence: Fence::Shut, untaken: 0 });
        self.stop.store(false, Ordering::Relaxed);
        (self.state, self.since) = (SlotState::Busy, Instant::now());
    }

    /// The query has ended, or moves to another thread.
    pub fn stop(&mut self) -> Option<QueryId> {
        self.running.take().map(|running| running.query)
    }

    /// Whether a piece may be passed on: `None` while there is no room for it.
    pub fn has_room(&self, window_bytes: usize) -> Option<Result<(), StatementCancelled>> {
        match &self.running {
            Some(running) if running.wish == OwnerWish::Wanted => (running.untaken < window_bytes).then_some(Ok(())),
            Some(_) | None => Some(Err(StatementCancelled)),
        }
    }

    /// This many bytes of the rows were passed on.
    pub fn given(&mut self, bytes: usize) {
        if let Some(running) = &mut self.running {
            running.untaken += bytes;
        }
    }

    /// This many of them were taken.
    pub fn taken(&mut self, bytes: usize) {
        if let Some(running) = &mut self.running {
            running.untaken = running.untaken.saturating_sub(bytes);
            self.bell.notify_one();
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.wish == OwnerWish::Cancelled)
    }

    /// From here on interrupts are allowed. Fails if the query is already cancelled.
    pub fn open(&mut self) -> Result<(), StatementCancelled> {
        match &mut self.running {
            Some(running) if running.wish == OwnerWish::Wanted => {
                running.fence = Fence::Open;
                Ok(())
            }
            Some(_) | None => Err(StatementCancelled),
        }
    }

    /// From here on interrupts are not allowed.
    pub fn shut(&mut self) {
        if let Some(running) = &mut self.running {
            running.fence = Fence::Shut;
        }
        self.stop.store(false, Ordering::Relaxed);
    }

    /// Cancels the query. Returns true if it was interrupted.
    pub fn cancel(&mut self) -> bool {
        let Some(running) = &mut self.running else { return false };
        if running.wish == OwnerWish::Cancelled {
            return false;
        }
        running.wish = OwnerWish::Cancelled;
        let is_open = running.fence == Fence::Open;
        self.turn_to(SlotState::Cancelling);
        self.bell.notify_one();
        if is_open {
            self.stop_now();
        }
        is_open
    }

    /// Uses three ways, because none works everywhere: a statement that has not begun ignores the interrupt, the flag
    /// is read between SQLite's steps and in a busy wait, and a waiting thread is woken.
    fn stop_now(&self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(interrupt) = &self.interrupt {
            interrupt.interrupt();
        }
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }
}
