//! Work that waits for a thread, in the order of arrival. An item can be removed by its number.

use std::collections::BTreeMap;

use parkade_sql::{DatabaseWork, QueryId};

/// One piece of work that waits.
pub struct QueuedWork {
    pub query: QueryId,
    pub work: DatabaseWork,
}

#[derive(Default)]
pub struct LaneQueue {
    items: BTreeMap<u64, QueuedWork>,
    next_turn: u64,
}

impl LaneQueue {
    pub fn count(&self) -> usize {
        self.items.len()
    }

    /// Returns the item's number.
    pub fn push(&mut self, item: QueuedWork) -> u64 {
        let turn = self.next_turn;
        self.next_turn += 1;
        self.items.insert(turn, item);
        turn
    }

    pub fn pop(&mut self) -> Option<QueuedWork> {
        self.items.pop_first().map(|(_, item)| item)
    }

    pub fn remove(&mut self, turn: u64) -> Option<QueuedWork> {
        self.items.remove(&turn)
    }
}
