//! The state that the owner and the threads share: what is queued, and what runs where.
//!
//! Its lock is the fence. A thread takes it before its statement starts and after its end, and a cancel takes it as
//! well. So a cancel either finds the query running and interrupts that, or finds it gone and interrupts nothing.

mod lanes;
mod queries;
mod queue;
mod shared;
mod slot;

use std::time::Instant;

use bytes::Bytes;
use parkade_sql::{
    Availability, ConnectionTotals, DatabaseStatus, DatabaseWork, FailureKind, LeaseId, Query, QueryEnd, QueryEvent,
    QueryId, SlotState,
};
use rusqlite::InterruptHandle;

pub use lanes::Lane;
pub use queue::QueuedWork;
pub use shared::SharedScheduler;
pub use slot::{StatementCancelled, ThreadSlot};

use crate::failures::StopReason;
use crate::options::Options;
use lanes::Lanes;
use queries::QueryTable;

pub struct Scheduler {
    slots: Vec<ThreadSlot>,
    queries: QueryTable,
    lanes: Lanes,
    counts: ConnectionTotals,
    reach: Availability,
    is_ending: bool,
    /// Threads that have not ended.
    alive: usize,
    window_bytes: usize,
}

/// The next task of a thread.
pub enum Task {
    Work(QueuedWork),
    /// Its lease was released: the transaction has to be rolled back.
    RollBack,
    End,
}

/// The calls of the owner.
impl Scheduler {
    pub fn new(options: &Options) -> Self {
        Self {
            slots: Vec::new(),
            queries: QueryTable::new(options.queue_count_max),
            lanes: Lanes::new(options.readers),
            counts: ConnectionTotals::default(),
            reach: Availability::Untried,
            is_ending: false,
            alive: 0,
            window_bytes: options.window_bytes,
        }
    }

    /// A thread is about to start.
    pub fn add_thread(&mut self, lane: Lane) {
        self.slots.push(ThreadSlot::new(lane));
        self.alive += 1;
    }

    /// It did not start after all.
    pub fn remove_thread(&mut self) {
        self.slots.pop();
        self.alive -= 1;
    }

    pub fn is_ending(&self) -> bool {
        self.is_ending
    }

    pub fn is_ended(&self) -> bool {
        self.is_ending && self.alive == 0
    }

    pub fn status(&self, now: Instant) -> DatabaseStatus {
        DatabaseStatus {
            product: format!("SQLite {}", rusqlite::version()),
            is_pooled: false,
            reach: self.reach.clone(),
            slots: self.slots.iter().map(|slot| slot.status(now)).collect(),
            queued: self.queries.queued_count(),
            counts: self.counts,
        }
    }

    pub fn submit(&mut self, query: QueryId, work: DatabaseWork) {
        if self.is_ending {
            return self.queries.fail(query, FailureKind::Unreachable, "the database has been closed");
        }
        let lane = match &work {
            DatabaseWork::Alone(asked) => self.lanes.of_statement(&asked.text),
            DatabaseWork::Begin { mode, .. } => self.lanes.of_transaction(mode.is_read_only),
            DatabaseWork::Within { lease, .. } | DatabaseWork::Commit { lease } | DatabaseWork::Rollback { lease } => {
                if let Some(slot) = self.queries.submit_within(*lease, QueuedWork { query, work }) {
                    self.slots[slot].ring();
                }
                return;
            }
        };
        if self.queries.enqueue(lane, QueuedWork { query, work }) {
            self.ring_for(lane);
        }
    }

    /// No thread could be started.
    pub fn refuse(&mut self, query: QueryId, why: &str) {
        self.reach = Availability::Down { why: why.to_owned() };
        self.queries.fail(query, FailureKind::Unreachable, why);
    }

    pub fn cancel(&mut self, query: QueryId) {
        if let Some(slot) = self.queries.cancel(query) {
            self.counts.cancels_sent += u64::from(self.slots[slot].cancel());
        }
    }

    pub fn taken(&mut self, query: QueryId, bytes: usize) {
        if let Some(slot) = self.queries.slot_of(query) {
            self.slots[slot].taken(bytes);
        }
    }

    pub fn release(&mut self, lease: LeaseId) {
        let Some(slot) = self.queries.release(lease) else { return };
        if let Some(query) = self.slots[slot].query() {
            self.cancel(query);
        }
        self.slots[slot].ring();
    }

    pub fn end(&mut self) {
        self.is_ending = true;
        for lease in self.queries.transactions() {
            self.release(lease);
        }
        for query in self.queries.all() {
            self.cancel(query);
        }
        for slot in &self.slots {
            slot.ring();
        }
    }

    /// Wakes a thread for new work.
    fn ring_for(&mut self, lane: Lane) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.lane == lane && slot.is_free()) {
            slot.wake();
        }
    }
}

/// The calls of a thread.
impl Scheduler {
    pub fn slot(&mut self, index: usize) -> &mut ThreadSlot {
        &mut self.slots[index]
    }

    #[cfg(test)]
    pub fn slots(&self) -> impl Iterator<Item = &ThreadSlot> {
        self.slots.iter()
    }

    /// The thread has ended.
    pub fn leave(&mut self) {
        self.alive -= 1;
    }

    /// The thread has opened its connection, or failed to.
    pub fn opened(&mut self, index: usize, opened: Result<InterruptHandle, &StopReason>) {
        match opened {
            Ok(interrupt) => {
                self.counts.connects += 1;
                self.reach = Availability::Up;
                self.slots[index].connect(Some(interrupt));
                self.slots[index].turn_to(SlotState::Busy);
            }
            Err(stop) => {
                self.counts.connects_failed += 1;
                if let StopReason::Failed(failure) = stop {
                    self.reach = Availability::Down { why: failure.message.to_string() };
                }
            }
        }
    }

    /// The next task of a thread; `None`: there is none.
    pub fn next(&mut self, index: usize) -> Option<Task> {
        let slot = &mut self.slots[index];
        let item = match slot.lease {
            Some(lease) if self.queries.is_released(lease) => {
                slot.turn_to(SlotState::Resetting);
                return Some(Task::RollBack);
            }
            Some(lease) => self.queries.next_within(lease, index)?,
            None if self.is_ending => return Some(Task::End),
            None => self.queries.next(slot.lane, index)?,
        };
        if let DatabaseWork::Begin { lease, .. } = item.work {
            slot.lease = Some(lease);
        }
        slot.start(item.query);
        Some(Task::Work(item))
    }

    /// The statement on this thread has started.
    pub fn say_started(&mut self, index: usize) {
        if let Some(query) = self.slots[index].query() {
            self.queries.say(QueryEvent::Started { query });
        }
    }

    /// Whether a piece may be passed on: `None` while there is no room for it.
    pub fn has_room(&self, index: usize) -> Option<Result<(), StatementCancelled>> {
        self.slots[index].has_room(self.window_bytes)
    }

    pub fn say_piece(&mut self, index: usize, bytes: Bytes) {
        if let Some(query) = self.slots[index].query().filter(|_| !bytes.is_empty()) {
            self.slots[index].given(bytes.len());
            self.queries.say(QueryEvent::Piece { query, bytes });
        }
    }

    /// SQLite was interrupted although the query on this thread was not cancelled.
    pub fn count_stray(&mut self) {
        self.counts.strays += 1;
    }

    /// The query on this thread has ended, with these last bytes of its rows.
    pub fn finish(&mut self, index: usize, last: Bytes, end: QueryEnd) {
        if !self.slots[index].is_cancelled() {
            self.say_piece(index, last);
        } else if matches!(end, QueryEnd::Completed(_)) {
            self.counts.cancels_late += 1;
        }
        if let Some(query) = self.slots[index].stop() {
            self.queries.end(query, end);
        }
        let state = if self.slots[index].lease.is_some() { SlotState::Held } else { SlotState::Idle };
        self.slots[index].turn_to(state);
    }

    /// A reader found out that the statement writes: it is passed to the writer.
    pub fn hand_over(&mut self, index: usize, query: Query) {
        self.lanes.note_writing(&query.text);
        if self.slots[index].is_cancelled() {
            return self.finish(index, Bytes::new(), QueryEnd::Cancelled);
        }
        if let Some(id) = self.slots[index].stop() {
            self.queries.push(Lane::Writes, QueuedWork { query: id, work: DatabaseWork::Alone(query) });
            self.ring_for(Lane::Writes);
        }
        self.slots[index].turn_to(SlotState::Idle);
    }

    /// The transaction on this thread is over.
    pub fn end_lease(&mut self, index: usize) {
        if let Some(lease) = self.slots[index].lease.take() {
            self.queries.drop_transaction(lease, "it has ended");
        }
        self.slots[index].turn_to(SlotState::Idle);
    }
}
