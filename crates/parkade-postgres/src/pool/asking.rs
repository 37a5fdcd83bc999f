//! What the owner asks.

use std::time::Instant;

use parkade_sql::{DatabaseWork, FailureKind, LeaseId, QueryEnd, QueryFailure, QueryId};

use super::dooming::lost_transaction;
use super::{Phase, Pool};
use crate::job::statement_of;
use crate::lease::{Lease, Part, Place};
use crate::line::Manner;
use crate::queue::Ticket;
use crate::slot::{State, Why};
use crate::wire::parameters;

impl Pool {
    pub(crate) fn start(&mut self, now: Instant) {
        self.now = self.attention.looks(now);
        self.phase = Phase::Open;
    }

    pub(crate) fn submit(&mut self, now: Instant, query: QueryId, work: DatabaseWork) {
        self.now = self.attention.looks(now);
        if self.phase == Phase::Ending {
            return self.end_query(query, QueryEnd::Cancelled);
        }
        if let Err(failure) = check(&work) {
            return self.fail_query(query, failure);
        }
        match Part::of(&work) {
            Part::Alone => _ = self.enqueue(query, work),
            Part::Begin(lease) => {
                if self.enqueue(query, work) {
                    self.leases.insert(lease, Lease::queued(query));
                }
            }
            Part::Within(lease) | Part::End(lease) => self.submit_within(query, lease, work),
        }
    }

    /// Whether it was taken.
    fn enqueue(&mut self, query: QueryId, work: DatabaseWork) -> bool {
        self.reaching.wanted(self.now);
        let refusal = match self.reaching.refuses() {
            Some((kind, why)) if !self.has_connections() => Some(QueryFailure::new(kind, self.refusal_text(kind, why))),
            _ if self.queue.count() >= self.options.queue_count_max + self.idle.len() => {
                let message = format!("{} queries wait for a connection already", self.queue.count());
                Some(QueryFailure::new(FailureKind::QueueFull, message))
            }
            Some(_) | None => None,
        };
        if let Some(failure) = refusal {
            self.fail_query(query, failure);
            return false;
        }
        self.queue.push_back(query, work);
        true
    }

    fn submit_within(&mut self, query: QueryId, id: LeaseId, work: DatabaseWork) {
        let Some(lease) = self.leases.get_mut(&id).filter(|lease| lease.place != Place::Released) else {
            return self.fail_query(query, no_transaction());
        };
        lease.waiting.push_back((query, work));
        if lease.place == Place::Lost {
            return self.close_lease(id, &lost_transaction());
        }
        self.queue.note(query, Ticket::Leased(id));
        self.begin_waiting(id);
    }

    pub(crate) fn cancel(&mut self, now: Instant, query: QueryId) {
        self.now = self.attention.looks(now);
        match self.queue.ticket(query) {
            Some(Ticket::Queued(_)) => self.cancel_queued(query),
            Some(&Ticket::Leased(lease)) => self.cancel_leased(lease, query),
            Some(&Ticket::Running(index)) => self.cancel_running(index, query),
            // It has ended: the cancel came too late (fence 1).
            None => {}
        }
    }

    fn cancel_queued(&mut self, query: QueryId) {
        let Some(waiting) = self.queue.remove(query) else { return };
        self.end_query(query, QueryEnd::Cancelled);
        if let Some(lease) = Part::of(&waiting.work).lease() {
            self.close_lease(lease, &no_transaction());
        }
    }

    fn cancel_leased(&mut self, lease: LeaseId, query: QueryId) {
        if self.leases.get_mut(&lease).is_some_and(|lease| lease.remove(query)) {
            self.end_query(query, QueryEnd::Cancelled);
        }
    }

    fn cancel_running(&mut self, index: usize, query: QueryId) {
        if let State::Busy(busy) = &mut self.slot(index).state
            && busy.job.query == query
        {
            busy.is_unwanted = true;
            if busy.job.is_cancellable() {
                self.cancel_slot(index, Why::Unwanted);
            }
        }
    }

    pub(crate) fn taken(&mut self, query: QueryId, bytes: usize) {
        let Some(&Ticket::Running(index)) = self.queue.ticket(query) else { return };
        let window_bytes = self.options.window_bytes;
        let slot = self.slot(index);
        if let State::Busy(busy) = &mut slot.state {
            let was_full = busy.job.untaken_bytes() >= window_bytes;
            busy.job.take(bytes);
            if was_full && busy.job.untaken_bytes() < window_bytes {
                let line = slot.line;
                self.resumed.push(line);
            }
        }
    }

    pub(crate) fn release(&mut self, now: Instant, id: LeaseId) {
        self.now = self.attention.looks(now);
        let Some(lease) = self.leases.get_mut(&id) else { return };
        let place = lease.place;
        for (query, _) in std::mem::take(&mut lease.waiting) {
            self.end_query(query, QueryEnd::Cancelled);
        }
        match place {
            Place::Queued(begin) => self.cancel_queued(begin),
            Place::On(index) => self.release_slot(index, id),
            Place::Released => {}
            Place::Lost => _ = self.leases.remove(&id),
        }
    }

    fn release_slot(&mut self, index: usize, id: LeaseId) {
        if let Some(lease) = self.leases.get_mut(&id) {
            lease.place = Place::Released;
        }
        match &mut self.slot(index).state {
            State::Held(_) => {
                self.leases.remove(&id);
                self.reset(index);
            }
            State::Busy(busy) if busy.job.is_cancellable() => self.cancel_slot(index, Why::Unwanted),
            // What runs ends the transaction, or is being cancelled: the slot looks at the lease when that is over.
            State::Busy(_)
            | State::Cancelling(_)
            | State::Settling(_)
            | State::Connecting(_)
            | State::Idle(_)
            | State::Resetting(_)
            | State::Doomed(_)
            | State::Moving => {}
        }
    }

    /// The server stops.
    pub(crate) fn end(&mut self, now: Instant) {
        self.now = self.attention.looks(now);
        self.phase = Phase::Ending;
        while let Some((query, waiting)) = self.queue.pop() {
            self.end_query(query, QueryEnd::Cancelled);
            if let Some(lease) = Part::of(&waiting.work).lease() {
                self.close_lease(lease, &no_transaction());
            }
        }
        let mut leases: Vec<LeaseId> = self.leases.keys().copied().collect();
        leases.sort_unstable();
        for lease in leases {
            self.release(now, lease);
        }
        for index in 0..self.slots.len() {
            self.end_slot(index);
        }
        if let Some(line) = self.listener.line() {
            self.close_line(line, Manner::Polite);
        }
        self.listener.stop();
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.phase == Phase::Ending && self.slots.iter().all(Option::is_none) && self.requests.lines().next().is_none()
    }
}

fn check(work: &DatabaseWork) -> Result<(), QueryFailure> {
    let Some(query) = statement_of(work) else { return Ok(()) };
    if memchr::memchr(0, query.text.as_bytes()).is_some() {
        return Err(QueryFailure::new(FailureKind::Unsupported, "the statement contains a NUL character"));
    }
    parameters::check(&query.parameters)
}

pub(super) fn no_transaction() -> QueryFailure {
    QueryFailure::new(FailureKind::NoTransaction, "there is no such transaction: it was never begun, or has ended")
}
