//! One thread as the others see it, and what may be done to it. All of it under the scheduler's lock.

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
    /// Rung when there is work, room or a cancel.
    bell: Arc<Condvar>,
    rest: Wakefulness,
    /// True while the statement that runs is cancelled and may be stopped. SQLite's callbacks on the thread look at it without the lock.
    pub stop: Arc<AtomicBool>,
    interrupt: Option<Arc<InterruptHandle>>,
    thread: Option<Thread>,
    state: SlotState,
    since: Instant,
}

/// What runs on it.
struct RunningStatement {
    query: QueryId,
    wish: OwnerWish,
    fence: Fence,
    /// Bytes that were given and not taken.
    untaken: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OwnerWish {
    Wanted,
    Cancelled,
}

/// Whether an interrupt may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fence {
    /// Our own statements, and every COMMIT: a cancel is remembered, not sent.
    Shut,
    Open,
}

/// Whether the thread needs a ring to find new work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wakefulness {
    Awake,
    Asleep,
}

/// Nobody waits for it any more.
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

    /// The thread itself says who it is.
    pub fn introduce(&mut self, thread: Thread) {
        self.thread = Some(thread);
    }

    /// It has a connection, or none any more.
    pub fn connect(&mut self, interrupt: Option<InterruptHandle>) {
        self.interrupt = interrupt.map(Arc::new);
    }

    #[cfg(test)]
    pub fn interrupt_handle(&self) -> Option<Arc<InterruptHandle>> {
        self.interrupt.clone()
    }

    /// What runs on it.
    pub fn query(&self) -> Option<QueryId> {
        self.running.as_ref().map(|running| running.query)
    }

    /// Rung when there is work, room or a cancel.
    pub fn bell(&self) -> Arc<Condvar> {
        Arc::clone(&self.bell)
    }

    pub fn ring(&self) {
        self.bell.notify_one();
    }

    /// It has nothing to do, and has to be rung for.
    pub fn sleep(&mut self) {
        self.rest = Wakefulness::Asleep;
    }

    /// It has woken, perhaps by itself.
    pub fn woke(&mut self) {
        self.rest = Wakefulness::Awake;
    }

    /// Whether it sleeps and holds no transaction.
    pub fn is_free(&self) -> bool {
        self.lease.is_none() && self.rest == Wakefulness::Asleep
    }

    /// Awake from now on, so that the next ring is for another.
    pub fn wake(&mut self) {
        self.rest = Wakefulness::Awake;
        self.ring();
    }

    pub fn start(&mut self, query: QueryId) {
        self.running = Some(RunningStatement { query, wish: OwnerWish::Wanted, fence: Fence::Shut, untaken: 0 });
        self.stop.store(false, Ordering::Relaxed);
        (self.state, self.since) = (SlotState::Busy, Instant::now());
    }

    /// What runs has ended, or goes to another thread.
    pub fn stop(&mut self) -> Option<QueryId> {
        self.running.take().map(|running| running.query)
    }

    /// Whether a piece may be given: `None` while there is no room for it.
    pub fn has_room(&self, window_bytes: usize) -> Option<Result<(), StatementCancelled>> {
        match &self.running {
            Some(running) if running.wish == OwnerWish::Wanted => (running.untaken < window_bytes).then_some(Ok(())),
            Some(_) | None => Some(Err(StatementCancelled)),
        }
    }

    /// So many bytes of its rows were given.
    pub fn given(&mut self, bytes: usize) {
        if let Some(running) = &mut self.running {
            running.untaken += bytes;
        }
    }

    /// So many of them were taken.
    pub fn taken(&mut self, bytes: usize) {
        if let Some(running) = &mut self.running {
            running.untaken = running.untaken.saturating_sub(bytes);
            self.bell.notify_one();
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.wish == OwnerWish::Cancelled)
    }

    /// From here on an interrupt may come in. What is cancelled already must not begin.
    pub fn open(&mut self) -> Result<(), StatementCancelled> {
        match &mut self.running {
            Some(running) if running.wish == OwnerWish::Wanted => {
                running.fence = Fence::Open;
                Ok(())
            }
            Some(_) | None => Err(StatementCancelled),
        }
    }

    /// No interrupt comes after this.
    pub fn shut(&mut self) {
        if let Some(running) = &mut self.running {
            running.fence = Fence::Shut;
        }
        self.stop.store(false, Ordering::Relaxed);
    }

    /// Cancels what runs. True: it was interrupted.
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

    /// Three ways, since none reaches everywhere: the interrupt is forgotten by a statement that has not yet begun, the flag is read
    /// between SQLite's steps and in a busy wait, and whoever waits there is woken.
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
