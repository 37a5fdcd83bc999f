//! One thread as the others see it, and what may be done to it. All of it under the board's lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar};
use std::thread::Thread;
use std::time::Instant;

use parkade_sql::{LeaseId, QueryId, SlotState, SlotStatus};
use rusqlite::InterruptHandle;

use super::queue::Lane;
use super::working::Cancelled;

pub struct Slot {
    pub lane: Lane,
    pub lease: Option<LeaseId>,
    pub running: Option<Running>,
    /// Rung when there is work, room or a cancel.
    pub bell: Arc<Condvar>,
    pub rest: Rest,
    /// True while the statement that runs is cancelled and may be stopped. SQLite's callbacks on the thread look at it without the lock.
    pub stop: Arc<AtomicBool>,
    interrupt: Option<Arc<InterruptHandle>>,
    thread: Option<Thread>,
    state: SlotState,
    since: Instant,
}

/// What runs on it.
pub struct Running {
    pub query: QueryId,
    pub wish: Wish,
    gate: Gate,
    /// Bytes that were given and not taken.
    pub untaken: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Wanted,
    Cancelled,
}

/// Whether an interrupt may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    /// Our own statements, and every COMMIT: a cancel is remembered, not sent.
    Shut,
    Open,
}

/// Whether the thread needs a ring to find new work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    Awake,
    Asleep,
}

impl Slot {
    pub fn new(lane: Lane) -> Self {
        Self {
            lane,
            lease: None,
            running: None,
            bell: Arc::default(),
            rest: Rest::Awake,
            stop: Arc::default(),
            interrupt: None,
            thread: None,
            state: SlotState::Idle,
            since: Instant::now(),
        }
    }

    pub fn status(&self, now: Instant) -> SlotStatus {
        let query = self.running.as_ref().map(|running| running.query);
        SlotStatus { state: self.state, query, age: now.saturating_duration_since(self.since) }
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

    pub fn start(&mut self, query: QueryId) {
        self.running = Some(Running { query, wish: Wish::Wanted, gate: Gate::Shut, untaken: 0 });
        self.stop.store(false, Ordering::Relaxed);
        (self.state, self.since) = (SlotState::Busy, Instant::now());
    }

    pub fn is_cancelled(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.wish == Wish::Cancelled)
    }

    /// From here on an interrupt may come in. What is cancelled already must not begin.
    pub fn open(&mut self) -> Result<(), Cancelled> {
        match &mut self.running {
            Some(running) if running.wish == Wish::Wanted => {
                running.gate = Gate::Open;
                Ok(())
            }
            Some(_) | None => Err(Cancelled),
        }
    }

    /// No interrupt comes behind this.
    pub fn shut(&mut self) {
        if let Some(running) = &mut self.running {
            running.gate = Gate::Shut;
        }
        self.stop.store(false, Ordering::Relaxed);
    }

    /// Cancels what runs. True: it was interrupted.
    pub fn cancel(&mut self) -> bool {
        let Some(running) = &mut self.running else { return false };
        if running.wish == Wish::Cancelled {
            return false;
        }
        running.wish = Wish::Cancelled;
        let is_open = running.gate == Gate::Open;
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
