//! Who waits and who runs what: the one state that the owner and the threads share.
//!
//! Its lock is the fence. A thread takes it before its statement starts and behind its end, and a cancel takes it as well: so a cancel
//! either finds the query running and interrupts that, or finds it gone and interrupts nothing.

mod asking;
mod queue;
mod shared;
mod slot;
mod working;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use parkade_sql::{
    Availability, ConnectionTotals, DatabaseStatus, FailureKind, LeaseId, QueryEnd, QueryEvent, QueryFailure, QueryId,
};

pub use queue::{Item, Lane};
pub use shared::Shared;
pub use slot::Slot;
pub use working::{Cancelled, Task};

use queue::Queue;

pub struct Board {
    pub slots: Vec<Slot>,
    reads: Queue,
    writes: Queue,
    places: HashMap<QueryId, Place>,
    leases: HashMap<LeaseId, Lease>,
    /// Texts that write although they do not look like it.
    writing: HashSet<Arc<str>>,
    said: VecDeque<QueryEvent>,
    pub counts: ConnectionTotals,
    pub reach: Availability,
    course: Course,
    /// Threads that have not ended.
    alive: usize,
    limits: Limits,
}

/// Where a query is. What has ended is nowhere.
#[derive(Debug, Clone, Copy)]
enum Place {
    Queued { lane: Lane, turn: u64 },
    Leased { lease: LeaseId },
    Running { slot: usize },
}

/// A transaction, from its Begin until its thread is free of it.
struct Lease {
    begin: QueryId,
    /// None while Begin waits for a thread.
    slot: Option<usize>,
    works: VecDeque<Item>,
    is_released: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    Serving,
    Ending,
}

/// The options that matter here.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub readers: usize,
    pub queue_count_max: usize,
    pub window_bytes: usize,
}

impl Board {
    pub fn new(limits: Limits) -> Self {
        Self {
            slots: Vec::new(),
            reads: Queue::default(),
            writes: Queue::default(),
            places: HashMap::new(),
            leases: HashMap::new(),
            writing: HashSet::new(),
            said: VecDeque::new(),
            counts: ConnectionTotals::default(),
            reach: Availability::Untried,
            course: Course::Serving,
            alive: 0,
            limits,
        }
    }

    /// A thread is about to start.
    pub fn seat(&mut self, lane: Lane) {
        self.slots.push(Slot::new(lane));
        self.alive += 1;
    }

    /// It did not start after all.
    pub fn unseat(&mut self) {
        self.slots.pop();
        self.alive -= 1;
    }

    /// A thread has ended.
    pub fn leave(&mut self) {
        self.alive -= 1;
    }

    pub fn is_ending(&self) -> bool {
        self.course == Course::Ending
    }

    pub fn is_ended(&self) -> bool {
        self.course == Course::Ending && self.alive == 0
    }

    pub fn status(&self, now: Instant) -> DatabaseStatus {
        DatabaseStatus {
            product: format!("SQLite {}", rusqlite::version()),
            is_pooled: false,
            reach: self.reach.clone(),
            slots: self.slots.iter().map(|slot| slot.status(now)).collect(),
            queued: self.reads.count() + self.writes.count(),
            counts: self.counts,
        }
    }

    fn queue(&mut self, lane: Lane) -> &mut Queue {
        match lane {
            Lane::Reads => &mut self.reads,
            Lane::Writes => &mut self.writes,
        }
    }

    fn say_ended(&mut self, query: QueryId, end: QueryEnd) {
        self.said.push_back(QueryEvent::Ended { query, end });
    }

    fn fail(&mut self, query: QueryId, kind: FailureKind, message: &str) {
        self.say_ended(query, QueryEnd::Failed(QueryFailure::new(kind, message)));
    }
}
