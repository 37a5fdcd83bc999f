//! Worker events that the core has not seen yet: the share of a turn was over, or clients are behind with what the
//! worker has published.

use parkade_model::WorkerId;

use crate::upstream::WorkerEvent;

#[derive(Debug, Default)]
pub struct Backlog {
    /// For the next turn.
    events: Vec<WorkerEvent>,
    /// Workers that publish faster than clients can be served.
    held_back: Vec<WorkerId>,
    /// Events of those workers since then, in order.
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

    /// Frees room that is unused.
    pub fn give_room_back(&mut self) {
        self.events.shrink_to_fit();
        self.said.shrink_to_fit();
    }

    pub fn put_back(&mut self, events: Vec<WorkerEvent>) {
        self.events = events;
    }

    /// Holds back the worker's events from now on. Returns whether they were not held back already.
    pub fn hold_back(&mut self, worker: WorkerId) -> bool {
        let is_new = !self.held_back.contains(&worker);
        if is_new {
            self.held_back.push(worker);
        }
        is_new
    }

    /// Keeps the event of a worker that is held back; returns it if the worker is not.
    pub fn hold(&mut self, event: WorkerEvent) -> Option<WorkerEvent> {
        if !self.held_back.contains(&event.worker()) {
            return Some(event);
        }
        self.said.push(event);
        None
    }

    /// Holds back no worker any more: their events come first in the next turn.
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
