//! What a slot does when its statement is over: the next one, the transaction's next one, a ROLLBACK.

use parkade_sql::{DatabaseWork, LeaseId, QueryEnd, QueryFailure, QueryId};

use super::asking::no_transaction;
use super::dooming::lost_transaction;
use super::{Phase, Pool};
use crate::job::{Job, Means, statement_of};
use crate::lease::{Part, Place};
use crate::line::Manner;
use crate::queue::{Ticket, Waiting};
use crate::session;
use crate::slot::{Busy, Held, Idle, Resetting, State, Then};
use crate::wire::message::Transaction;
use crate::wire::write;

/// What a job needs of its slot. A macro, since the borrow checker has to see which fields it takes.
macro_rules! means {
    ($pool:ident, $slot:ident) => {
        Means {
            wire: &mut $slot.wire,
            statements: &mut $slot.statements,
            types: &mut $pool.types,
            is_pooled: $slot.identity.is_pooled,
        }
    };
}
pub(super) use means;

impl Pool {
    /// Gives the queued queries to the idle slots, in their order.
    pub(crate) fn dispatch(&mut self) {
        while !self.idle.is_empty() {
            let Some((query, waiting)) = self.queue.pop() else { return };
            let Some(index) = self.idle.pop() else { return };
            if waiting.tries == 0 {
                self.events.push(crate::Event::Query(parkade_sql::QueryEvent::Started { query }));
            }
            if let Some(lease) = Part::of(&waiting.work).lease().and_then(|lease| self.leases.get_mut(&lease)) {
                lease.place = Place::On(index);
            }
            self.begin(index, query, waiting);
        }
    }

    fn begin(&mut self, index: usize, query: QueryId, waiting: Waiting) {
        let lease = Part::of(&waiting.work).lease();
        let slot = self.slots[index].as_mut().expect("an idle slot is there");
        slot.epoch += 1;
        slot.tries = waiting.tries;
        if std::mem::replace(&mut slot.changes, self.changes) != self.changes {
            slot.statements.forget_all();
        }
        slot.is_changed |= statement_of(&waiting.work).is_some_and(|query| session::is_changed_by(&query.text));
        match Job::begin(query, waiting.work, &mut means!(self, slot)) {
            Ok(job) => {
                slot.enter(State::Busy(Busy::new(job)), self.now);
                self.speaking.push(slot.line);
                self.queue.note(query, Ticket::Running(index));
            }
            Err((query, failure)) => {
                self.fail_query(query, failure);
                match lease {
                    Some(lease) => self.slot(index).state = State::Held(Held { lease }),
                    None => self.rest(index),
                }
            }
        }
    }

    /// The next of those who wait in a transaction, if it is their turn.
    pub(super) fn begin_waiting(&mut self, id: LeaseId) {
        while let Some(lease) = self.leases.get_mut(&id) {
            let Place::On(index) = lease.place else { return };
            if !matches!(&self.slots[index], Some(slot) if matches!(slot.state, State::Held(_))) {
                return;
            }
            let Some((query, work)) = lease.waiting.pop_front() else { return };
            self.events.push(crate::Event::Query(parkade_sql::QueryEvent::Started { query }));
            self.begin(index, query, Waiting { work, tries: 0 });
        }
    }

    /// What follows when a statement is over and nothing of it is under way any more.
    pub(super) fn follow(&mut self, index: usize, then: Then) {
        match then {
            Then::Idle => self.rest(index),
            Then::Hold(id) => match self.leases.get(&id).map(|lease| lease.place) {
                Some(Place::On(_)) => {
                    let now = self.now;
                    self.slot(index).enter(State::Held(Held { lease: id }), now);
                    self.begin_waiting(id);
                }
                Some(Place::Queued(_) | Place::Released | Place::Lost) | None => {
                    self.leases.remove(&id);
                    self.reset(index);
                }
            },
            Then::Reset => self.reset(index),
        }
    }

    /// What will follow a statement, by what it was and what the server says of the transaction. Ends the lease if it is over.
    pub(super) fn sequel(&mut self, part: Part, transaction: Transaction, is_begun: bool) -> Then {
        let is_over = match part {
            Part::Alone | Part::End(_) => true,
            Part::Begin(_) => !is_begun || transaction == Transaction::None,
            Part::Within(_) => transaction == Transaction::None,
        };
        match part.lease() {
            Some(lease) if !is_over => return Then::Hold(lease),
            Some(lease) => self.close_lease(lease, &no_transaction()),
            None => {}
        }
        if transaction == Transaction::None { Then::Idle } else { Then::Reset }
    }

    /// The transaction went with its connection while nothing ran: whoever holds it is told when he comes again.
    pub(super) fn lose_lease(&mut self, id: LeaseId) {
        match self.leases.get_mut(&id) {
            Some(lease) if lease.waiting.is_empty() && lease.place != Place::Released => lease.place = Place::Lost,
            Some(_) | None => self.close_lease(id, &lost_transaction()),
        }
    }

    /// The transaction is over: whoever waits in it is told.
    pub(super) fn close_lease(&mut self, id: LeaseId, failure: &QueryFailure) {
        let Some(lease) = self.leases.remove(&id) else { return };
        for (query, work) in lease.waiting {
            match work {
                // What it asks for has happened.
                DatabaseWork::Rollback { .. } => self.end_query(query, QueryEnd::Completed(rolled_back())),
                _ => self.fail_query(query, failure.clone()),
            }
        }
    }

    fn rest(&mut self, index: usize) {
        let now = self.now;
        self.slot(index).enter(State::Idle(Idle), now);
        if self.phase == Phase::Ending {
            self.end_slot(index);
        } else if self.slot(index).is_changed {
            self.drop_slot(index, Manner::Polite);
        } else {
            self.idle.push(index);
        }
    }

    pub(super) fn reset(&mut self, index: usize) {
        let now = self.now;
        let slot = self.slot(index);
        write::simple(&mut slot.wire.out, "ROLLBACK").expect("ROLLBACK is short and has no NUL");
        slot.enter(State::Resetting(Resetting), now);
        self.speak(index);
    }

    /// The server stops: an idle slot says good-bye, a busy one is cancelled, the others come here when they are done.
    pub(super) fn end_slot(&mut self, index: usize) {
        let Some(slot) = &self.slots[index] else { return };
        match &slot.state {
            State::Idle(_) => self.drop_slot(index, Manner::Polite),
            State::Connecting(_) => self.drop_slot(index, Manner::Abrupt),
            State::Busy(busy) if busy.job.is_cancellable() => self.cancel_slot(index, crate::slot::Why::Unwanted),
            State::Busy(_)
            | State::Held(_)
            | State::Cancelling(_)
            | State::Settling(_)
            | State::Resetting(_)
            | State::Doomed(_)
            | State::Moving => {}
        }
    }

    /// The connection is closed, and its place is free.
    pub(super) fn drop_slot(&mut self, index: usize, manner: Manner) {
        self.idle.retain(|idle| *idle != index);
        if let Some(slot) = self.slots[index].take() {
            self.close_line(slot.line, manner);
        }
    }
}

fn rolled_back() -> parkade_sql::Summary {
    parkade_sql::Summary { command: "ROLLBACK".into(), rows: 0, columns: std::sync::Arc::default() }
}
