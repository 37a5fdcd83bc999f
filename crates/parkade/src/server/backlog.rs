//! Worker events that the core has not seen yet: the share of a turn was over, or clients are behind with what the worker has published.

use parkade_model::WorkerId;

use crate::upstream::WorkerEvent;

#[derive(Debug, Default)]
pub struct Backlog {
    /// For the next turn.
    events: Vec<WorkerEvent>,
    /// Workers that publish faster than clients can be told.
    held_back: Vec<WorkerId>,
    /// What those have said since, in their order.
    said: Vec<WorkerEvent>,
}

impl Backlog {
    /// Whether nothing is left for the next turn.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub fn take(&mut self) -> Vec<WorkerEvent> {
        std::mem::take(&mut self.events)
    }

    pub fn put_back(&mut self, events: Vec<WorkerEvent>) {
        self.events = events;
    }

    /// From now on what the worker says waits. Whether it did not already.
    pub fn hold_back(&mut self, worker: WorkerId) -> bool {
        let is_new = !self.held_back.contains(&worker);
        if is_new {
            self.held_back.push(worker);
        }
        is_new
    }

    /// Keeps what a worker says that is held back; gives it back if it is not.
    pub fn hold(&mut self, event: WorkerEvent) -> Option<WorkerEvent> {
        if !self.held_back.contains(&event.worker()) {
            return Some(event);
        }
        self.said.push(event);
        None
    }

    /// Those that were held back go on: what they have said is heard first in the next turn.
    pub fn let_on(&mut self) -> Vec<WorkerId> {
        if self.held_back.is_empty() {
            return Vec::new();
        }
        let mut first = std::mem::take(&mut self.said);
        first.append(&mut self.events);
        self.events = first;
        std::mem::take(&mut self.held_back)
    }
}
