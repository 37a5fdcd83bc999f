//! What a thread does to the board.

use std::sync::Arc;

use bytes::Bytes;
use parkade_sql::{DatabaseWork, Query, QueryEnd, QueryEvent, SlotState};

use super::asking::no_transaction;
use super::queue::{Item, Lane};
use super::{Board, Place};
use crate::limits::WRITING_TEXTS_COUNT_MAX;

/// What a thread has to do next.
pub enum Task {
    Work(Item),
    /// Its lease was released: the transaction goes back.
    RollBack,
    End,
}

impl Board {
    /// The next task of a thread; `None`: there is nothing for it.
    pub fn next(&mut self, index: usize) -> Option<Task> {
        let item = match self.slots[index].lease {
            Some(lease) => {
                let held = self.leases.get_mut(&lease).expect("a thread holds a lease that is there");
                if held.is_released {
                    self.slots[index].turn_to(SlotState::Resetting);
                    return Some(Task::RollBack);
                }
                held.works.pop_front()?
            }
            None if self.is_ending() => return Some(Task::End),
            None => {
                let lane = self.slots[index].lane;
                self.queue(lane).pop()?
            }
        };
        if let DatabaseWork::Begin { lease, .. } = item.work {
            self.slots[index].lease = Some(lease);
            if let Some(held) = self.leases.get_mut(&lease) {
                held.slot = Some(index);
            }
        }
        self.places.insert(item.query, Place::Running { slot: index });
        self.slots[index].start(item.query);
        Some(Task::Work(item))
    }

    /// The database has what runs there.
    pub fn say_started(&mut self, index: usize) {
        if let Some(running) = &self.slots[index].running {
            self.said.push_back(QueryEvent::Started { query: running.query });
        }
    }

    /// Whether a piece may be given: `None` while there is no room for it.
    pub fn has_room(&self, index: usize) -> Option<Result<(), Cancelled>> {
        let slot = &self.slots[index];
        match &slot.running {
            Some(running) if !slot.is_cancelled() => (running.untaken < self.limits.window_bytes).then_some(Ok(())),
            Some(_) | None => Some(Err(Cancelled)),
        }
    }

    pub fn say_piece(&mut self, index: usize, bytes: Bytes) {
        let slot = &mut self.slots[index];
        if let Some(running) = slot.running.as_mut().filter(|_| !bytes.is_empty()) {
            running.untaken += bytes.len();
            self.said.push_back(QueryEvent::Piece { query: running.query, bytes });
        }
    }

    /// What ran there has ended, with these last bytes of its rows.
    pub fn finish(&mut self, index: usize, last: Bytes, end: QueryEnd) {
        let is_cancelled = self.slots[index].is_cancelled();
        if !is_cancelled {
            self.say_piece(index, last);
        } else if matches!(end, QueryEnd::Completed(_)) {
            self.counts.cancels_late += 1;
        }
        if let Some(running) = self.slots[index].running.take() {
            self.places.remove(&running.query);
            self.say_ended(running.query, end);
        }
        let state = if self.slots[index].lease.is_some() { SlotState::Held } else { SlotState::Idle };
        self.slots[index].turn_to(state);
    }

    /// A reader has found that it writes: it is the writer's.
    pub fn hand_over(&mut self, index: usize, query: Query) {
        if self.writing.len() >= WRITING_TEXTS_COUNT_MAX {
            self.writing.clear();
        }
        self.writing.insert(Arc::clone(&query.text));
        if self.slots[index].is_cancelled() {
            return self.finish(index, Bytes::new(), QueryEnd::Cancelled);
        }
        if let Some(running) = self.slots[index].running.take() {
            self.push(Lane::Writes, Item { query: running.query, work: DatabaseWork::Alone(query) });
        }
        self.slots[index].turn_to(SlotState::Idle);
    }

    /// The transaction that the thread held is over.
    pub fn end_lease(&mut self, index: usize) {
        if let Some(lease) = self.slots[index].lease.take() {
            self.drop_lease(lease, || no_transaction("it has ended"));
        }
        self.slots[index].turn_to(SlotState::Idle);
    }
}

/// Nobody waits for it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled;
