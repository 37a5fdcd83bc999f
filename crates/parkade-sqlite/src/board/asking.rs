//! What the owner does to the board.

use parkade_sql::{Availability, DatabaseWork, FailureKind, LeaseId, QueryEnd, QueryEvent, QueryId};

use super::queue::{Item, Lane};
use super::slot::Rest;
use super::{Board, Course, Lease, Place};
use crate::statement::command;

impl Board {
    pub fn submit(&mut self, query: QueryId, work: DatabaseWork) {
        if self.is_ending() {
            return self.fail(query, FailureKind::Unreachable, "the database has been closed");
        }
        match &work {
            DatabaseWork::Alone(asked) => {
                let lane = self.lane(command::may_read(&asked.text) && !self.writing.contains(&asked.text));
                self.enqueue(lane, Item { query, work });
            }
            DatabaseWork::Begin { lease, mode } => {
                let (lease, lane) = (*lease, self.lane(mode.is_read_only));
                if self.enqueue(lane, Item { query, work }) {
                    let new = Lease { begin: query, slot: None, works: [].into(), is_released: false };
                    self.leases.insert(lease, new);
                }
            }
            DatabaseWork::Within { lease, .. } | DatabaseWork::Commit { lease } | DatabaseWork::Rollback { lease } => {
                self.lend(*lease, Item { query, work });
            }
        }
    }

    /// No thread could be started.
    pub fn refuse(&mut self, query: QueryId, why: &str) {
        self.reach = Availability::Down { why: why.to_owned() };
        self.fail(query, FailureKind::Unreachable, why);
    }

    pub fn cancel(&mut self, query: QueryId) {
        match self.places.get(&query).copied() {
            // It has ended, perhaps without the owner having heard.
            None => self.forget_pieces(query),
            Some(Place::Running { slot }) => {
                self.forget_pieces(query);
                self.counts.cancels_sent += u64::from(self.slots[slot].cancel());
            }
            Some(Place::Queued { lane, turn }) => {
                self.places.remove(&query);
                let item = self.queue(lane).remove(turn);
                self.say_ended(query, QueryEnd::Cancelled);
                if let Some(Item { work: DatabaseWork::Begin { lease, .. }, .. }) = item {
                    self.drop_lease(lease, || no_transaction("it was cancelled before it had begun"));
                }
            }
            Some(Place::Leased { lease }) => self.cancel_leased(lease, query),
        }
    }

    /// The end of a transaction is carried out even when nobody waits for it: without it the thread would keep the lease for ever.
    fn cancel_leased(&mut self, lease: LeaseId, query: QueryId) {
        let Some(lease) = self.leases.get_mut(&lease) else { return };
        let ends = |item: &Item| matches!(item.work, DatabaseWork::Commit { .. } | DatabaseWork::Rollback { .. });
        if lease.works.iter().any(|item| item.query == query && ends(item)) {
            return;
        }
        lease.works.retain(|item| item.query != query);
        self.places.remove(&query);
        self.say_ended(query, QueryEnd::Cancelled);
    }

    pub fn taken(&mut self, query: QueryId, bytes: usize) {
        let Some(Place::Running { slot }) = self.places.get(&query).copied() else { return };
        let slot = &mut self.slots[slot];
        if let Some(running) = &mut slot.running {
            running.untaken = running.untaken.saturating_sub(bytes);
            slot.bell.notify_one();
        }
    }

    pub fn release(&mut self, lease: LeaseId) {
        let Some(held) = self.leases.get_mut(&lease) else { return };
        held.is_released = true;
        let (begin, slot) = (held.begin, held.slot);
        for item in std::mem::take(&mut held.works) {
            self.places.remove(&item.query);
            self.say_ended(item.query, QueryEnd::Cancelled);
        }
        match slot {
            None => self.cancel(begin),
            Some(slot) => {
                let running = self.slots[slot].running.as_ref().map(|running| running.query);
                if let Some(query) = running {
                    self.cancel(query);
                }
                self.slots[slot].bell.notify_one();
            }
        }
    }

    pub fn end(&mut self) {
        self.course = Course::Ending;
        for lease in self.leases.keys().copied().collect::<Vec<_>>() {
            self.release(lease);
        }
        for query in self.places.keys().copied().collect::<Vec<_>>() {
            self.cancel(query);
        }
        for slot in &self.slots {
            slot.bell.notify_one();
        }
    }

    /// A lease that no thread holds any more; what still waited in it ends.
    pub(super) fn drop_lease(&mut self, lease: LeaseId, end: impl Fn() -> QueryEnd) {
        for item in self.leases.remove(&lease).into_iter().flat_map(|lease| lease.works) {
            self.places.remove(&item.query);
            self.say_ended(item.query, end());
        }
    }

    /// Puts it behind the others and rings for a thread.
    pub(super) fn push(&mut self, lane: Lane, item: Item) {
        let query = item.query;
        let turn = self.queue(lane).push(item);
        self.places.insert(query, Place::Queued { lane, turn });
        let is_free = |slot: &&mut super::Slot| slot.lane == lane && slot.lease.is_none() && slot.rest == Rest::Asleep;
        if let Some(slot) = self.slots.iter_mut().find(is_free) {
            // Awake from now on, so that the next one rings for somebody else.
            slot.rest = Rest::Awake;
            slot.bell.notify_one();
        }
    }

    fn enqueue(&mut self, lane: Lane, item: Item) -> bool {
        let has_room = self.queue(lane).count() < self.limits.queue_count_max;
        if has_room {
            self.push(lane, item);
        } else {
            self.fail(item.query, FailureKind::QueueFull, "as many queries wait for a thread as may");
        }
        has_room
    }

    fn lend(&mut self, lease: LeaseId, item: Item) {
        let query = item.query;
        match self.leases.get_mut(&lease) {
            Some(held) if held.is_released => self.say_ended(query, no_transaction("it has been released")),
            Some(held) if held.works.len() >= self.limits.queue_count_max => {
                self.fail(query, FailureKind::QueueFull, "as many queries wait in the transaction as may");
            }
            Some(held) => {
                held.works.push_back(item);
                if let Some(slot) = held.slot {
                    self.slots[slot].bell.notify_one();
                }
                self.places.insert(query, Place::Leased { lease });
            }
            None => self.say_ended(query, no_transaction("it was never begun, or has ended")),
        }
    }

    fn lane(&self, is_read: bool) -> Lane {
        if is_read && self.limits.readers > 0 { Lane::Reads } else { Lane::Writes }
    }

    fn forget_pieces(&mut self, cancelled: QueryId) {
        self.said.retain(|event| !matches!(event, QueryEvent::Piece { query, .. } if *query == cancelled));
    }
}

pub(super) fn no_transaction(why: &str) -> QueryEnd {
    let message = format!("there is no such transaction: {why}");
    QueryEnd::Failed(parkade_sql::QueryFailure::new(FailureKind::NoTransaction, message))
}
