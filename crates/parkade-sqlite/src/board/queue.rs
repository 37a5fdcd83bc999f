//! Those who wait for a thread, in the order in which they came; whoever knows his turn leaves from anywhere.

use std::collections::BTreeMap;

use parkade_sql::{DatabaseWork, QueryId};

/// Which threads can do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    Reads,
    Writes,
}

/// One piece of work that waits.
pub struct Item {
    pub query: QueryId,
    pub work: DatabaseWork,
}

#[derive(Default)]
pub struct Queue {
    items: BTreeMap<u64, Item>,
    next_turn: u64,
}

impl Queue {
    pub fn count(&self) -> usize {
        self.items.len()
    }

    /// Returns its turn.
    pub fn push(&mut self, item: Item) -> u64 {
        let turn = self.next_turn;
        self.next_turn += 1;
        self.items.insert(turn, item);
        turn
    }

    pub fn pop(&mut self) -> Option<Item> {
        self.items.pop_first().map(|(_, item)| item)
    }

    pub fn remove(&mut self, turn: u64) -> Option<Item> {
        self.items.remove(&turn)
    }
}
