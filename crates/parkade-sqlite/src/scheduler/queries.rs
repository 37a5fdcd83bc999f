//! Queries that have not ended: where each of them is, which work waits in which transaction, and the events for the
//! owner.

use std::collections::{HashMap, VecDeque};

use parkade_sql::{DatabaseWork, FailureKind, LeaseId, QueryEnd, QueryEvent, QueryFailure, QueryId};

use super::lanes::Lane;
use super::queue::{LaneQueue, QueuedWork};

pub struct QueryTable {
    reads: LaneQueue,
    writes: LaneQueue,
    places: HashMap<QueryId, QueryPlace>,
    transactions: HashMap<LeaseId, ThreadTransaction>,
    said: VecDeque<QueryEvent>,
    /// The limit of each queue.
    queue_count_max: usize,
}

/// Where a query is. A query that has ended is not listed.
#[derive(Debug, Clone, Copy)]
enum QueryPlace {
    Queued { lane: Lane, turn: u64 },
    Leased { lease: LeaseId },
    Running { slot: usize },
}

/// A transaction, from its BEGIN until its thread is free of it.
struct ThreadTransaction {
    begin: QueryId,
    /// None while BEGIN waits for a thread.
    slot: Option<usize>,
    works: VecDeque<QueuedWork>,
    is_released: bool,
}

impl QueryTable {
    pub fn new(queue_count_max: usize) -> Self {
        Self {
            reads: LaneQueue::default(),
            writes: LaneQueue::default(),
            places: HashMap::new(),
            transactions: HashMap::new(),
            said: VecDeque::new(),
            queue_count_max,
        }
    }

    pub fn queued_count(&self) -> usize {
        self.reads.count() + self.writes.count()
    }

    /// All queries that have not ended.
    pub fn all(&self) -> Vec<QueryId> {
        self.places.keys().copied().collect()
    }

    pub fn transactions(&self) -> Vec<LeaseId> {
        self.transactions.keys().copied().collect()
    }

    fn queue(&mut self, lane: Lane) -> &mut LaneQueue {
        match lane {
            Lane::Reads => &mut self.reads,
            Lane::Writes => &mut self.writes,
        }
    }

    // Events for the owner.

    pub fn has_said(&self) -> bool {
        !self.said.is_empty()
    }

    /// The oldest events, at most `count_max`.
    pub fn take_said(&mut self, count_max: usize, events: &mut Vec<QueryEvent>) {
        let count = self.said.len().min(count_max);
        events.extend(self.said.drain(..count));
    }

    pub fn say(&mut self, event: QueryEvent) {
        self.said.push_back(event);
    }

    pub fn end(&mut self, query: QueryId, end: QueryEnd) {
        self.places.remove(&query);
        self.say(QueryEvent::Ended { query, end });
    }

    pub fn fail(&mut self, query: QueryId, kind: FailureKind, message: &str) {
        self.end(query, QueryEnd::Failed(QueryFailure::new(kind, message)));
    }

    // The queues.

    /// Appends a query to its queue. Returns whether there was room; if not, the query has failed.
    pub fn enqueue(&mut self, lane: Lane, item: QueuedWork) -> bool {
        let has_room = self.queue(lane).count() < self.queue_count_max;
        if has_room {
            if let DatabaseWork::Begin { lease, .. } = item.work {
                let new = ThreadTransaction { begin: item.query, slot: None, works: [].into(), is_released: false };
                self.transactions.insert(lease, new);
            }
            self.push(lane, item);
        } else {
            self.fail(item.query, FailureKind::QueueFull, "too many queries are waiting for a thread");
        }
        has_room
    }

    /// The same for a query that was accepted before.
    pub fn push(&mut self, lane: Lane, item: QueuedWork) {
        let query = item.query;
        let turn = self.queue(lane).push(item);
        self.places.insert(query, QueryPlace::Queued { lane, turn });
    }

    /// The next query of a lane, which will run on that slot.
    pub fn next(&mut self, lane: Lane, slot: usize) -> Option<QueuedWork> {
        let item = self.queue(lane).pop()?;
        if let DatabaseWork::Begin { lease, .. } = item.work
            && let Some(transaction) = self.transactions.get_mut(&lease)
        {
            transaction.slot = Some(slot);
        }
        self.places.insert(item.query, QueryPlace::Running { slot });
        Some(item)
    }

    /// The slot that runs the query.
    pub fn slot_of(&self, query: QueryId) -> Option<usize> {
        match self.places.get(&query) {
            Some(QueryPlace::Running { slot }) => Some(*slot),
            Some(QueryPlace::Queued { .. } | QueryPlace::Leased { .. }) | None => None,
        }
    }

    /// Ends a query that is waiting. If it is running, returns its slot. Pieces that the owner has not received are
    /// dropped, even if the query has ended.
    pub fn cancel(&mut self, query: QueryId) -> Option<usize> {
        match self.places.get(&query).copied() {
            None => self.forget_pieces(query),
            Some(QueryPlace::Running { slot }) => {
                self.forget_pieces(query);
                return Some(slot);
            }
            Some(QueryPlace::Queued { lane, turn }) => {
                let item = self.queue(lane).remove(turn);
                self.end(query, QueryEnd::Cancelled);
                if let Some(QueuedWork { work: DatabaseWork::Begin { lease, .. }, .. }) = item {
                    self.drop_transaction(lease, "it was cancelled before it had begun");
                }
            }
            Some(QueryPlace::Leased { lease }) => self.cancel_within(lease, query),
        }
        None
    }

    fn forget_pieces(&mut self, cancelled: QueryId) {
        self.said.retain(|event| !matches!(event, QueryEvent::Piece { query, .. } if *query == cancelled));
    }

    // Transactions.

    /// Adds work to a transaction. Returns the slot that holds the transaction.
    pub fn submit_within(&mut self, lease: LeaseId, item: QueuedWork) -> Option<usize> {
        let query = item.query;
        match self.transactions.get_mut(&lease) {
            Some(transaction) if transaction.is_released => {
                self.end(query, no_transaction("it has been released"));
            }
            Some(transaction) if transaction.works.len() >= self.queue_count_max => {
                self.fail(query, FailureKind::QueueFull, "too many queries are waiting in the transaction");
            }
            Some(transaction) => {
                transaction.works.push_back(item);
                self.places.insert(query, QueryPlace::Leased { lease });
                return transaction.slot;
            }
            None => self.end(query, no_transaction("it was never begun, or has ended")),
        }
        None
    }

    pub fn is_released(&self, lease: LeaseId) -> bool {
        self.transactions.get(&lease).is_some_and(|transaction| transaction.is_released)
    }

    /// The next work of a transaction, which will run on that slot.
    pub fn next_within(&mut self, lease: LeaseId, slot: usize) -> Option<QueuedWork> {
        let transaction = self.transactions.get_mut(&lease).expect("a thread holds a lease that is there");
        let item = transaction.works.pop_front()?;
        self.places.insert(item.query, QueryPlace::Running { slot });
        Some(item)
    }

    /// The end of a transaction is carried out even if it was cancelled; otherwise the thread would keep the lease for
    /// ever.
    fn cancel_within(&mut self, lease: LeaseId, query: QueryId) {
        let Some(transaction) = self.transactions.get_mut(&lease) else { return };
        let ends = |item: &QueuedWork| matches!(item.work, DatabaseWork::Commit { .. } | DatabaseWork::Rollback { .. });
        if transaction.works.iter().any(|item| item.query == query && ends(item)) {
            return;
        }
        transaction.works.retain(|item| item.query != query);
        self.end(query, QueryEnd::Cancelled);
    }

    /// The holder is gone: the waiting work of the transaction ends. Returns the slot that has to roll it back.
    pub fn release(&mut self, lease: LeaseId) -> Option<usize> {
        let transaction = self.transactions.get_mut(&lease)?;
        transaction.is_released = true;
        let (begin, slot) = (transaction.begin, transaction.slot);
        for item in std::mem::take(&mut transaction.works) {
            self.end(item.query, QueryEnd::Cancelled);
        }
        if slot.is_none() {
            self.cancel(begin);
        }
        slot
    }

    /// No thread holds the transaction any more; its waiting work ends.
    pub fn drop_transaction(&mut self, lease: LeaseId, why: &str) {
        for item in self.transactions.remove(&lease).into_iter().flat_map(|transaction| transaction.works) {
            self.end(item.query, no_transaction(why));
        }
    }
}

fn no_transaction(why: &str) -> QueryEnd {
    QueryEnd::Failed(QueryFailure::new(FailureKind::NoTransaction, format!("no such transaction: {why}")))
}
