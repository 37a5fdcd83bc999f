//! Queries that have not ended: where each of them is, what waits in which transaction, and the events for the owner.
//!
//! Every query ends exactly once, by [`end`](PendingQueries::end).

use bytes::Bytes;
use parkade_sql::{DatabaseWork, FailureKind, IdMap, LeaseId, QueryEnd, QueryFailure, QueryId, Summary};

use crate::Event;
use crate::lease::{AfterStatement, Lease, LeaseState, TransactionStep};
use crate::limits::PIECE_BYTES_MAX;
use crate::queue::{Ticket, WaitQueue, WaitingWork};
use crate::wire::message::Transaction;

#[derive(Debug, Default)]
pub(crate) struct PendingQueries {
    queue: WaitQueue,
    leases: IdMap<LeaseId, Lease>,
    events: Vec<Event>,
}

impl PendingQueries {
    pub(crate) fn take_events(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.events);
    }

    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// How many queries wait for a slot.
    pub(crate) fn queued_count(&self) -> usize {
        self.queue.count()
    }

    /// Whether no query and no transaction is known.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.leases.is_empty()
    }

    /// Another event for the owner, in order.
    pub(crate) fn tell(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) fn end(&mut self, query: QueryId, end: QueryEnd) {
        self.queue.forget(query);
        self.events.push(Event::Query(parkade_sql::QueryEvent::Ended { query, end }));
    }

    pub(crate) fn fail(&mut self, query: QueryId, failure: QueryFailure) {
        self.end(query, QueryEnd::Failed(failure));
    }

    /// The rows of a query, in pieces.
    pub(crate) fn give(&mut self, query: QueryId, mut bytes: Bytes) {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE_BYTES_MAX));
            self.events.push(Event::Query(parkade_sql::QueryEvent::Piece { query, bytes: piece }));
        }
    }

    fn started(&mut self, query: QueryId) {
        self.events.push(Event::Query(parkade_sql::QueryEvent::Started { query }));
    }

    // The queue for any slot.

    pub(crate) fn enqueue(&mut self, query: QueryId, work: DatabaseWork) {
        if let TransactionStep::Begin(lease) = TransactionStep::of(&work) {
            self.leases.insert(lease, Lease::queued(query));
        }
        self.queue.push_back(query, work);
    }

    /// Puts a query back at the front: its connection was lost before the query ran. Refused if its holder is gone.
    pub(crate) fn requeue(&mut self, query: QueryId, waiting: WaitingWork) -> Result<(), WaitingWork> {
        let lease = TransactionStep::of(&waiting.work).lease();
        if let Some(lease) = lease.and_then(|lease| self.leases.get_mut(&lease)) {
            if lease.state == LeaseState::Released {
                return Err(waiting);
            }
            lease.state = LeaseState::Queued(query);
        }
        self.queue.push_front(query, waiting);
        Ok(())
    }

    /// The next query, which will run on that slot.
    pub(crate) fn next_for(&mut self, slot: usize) -> Option<(QueryId, WaitingWork)> {
        let (query, waiting) = self.queue.pop()?;
        if waiting.tries == 0 {
            self.started(query);
        }
        let lease = TransactionStep::of(&waiting.work).lease();
        if let Some(lease) = lease.and_then(|lease| self.leases.get_mut(&lease)) {
            lease.state = LeaseState::On(slot);
        }
        Some((query, waiting))
    }

    pub(crate) fn runs_on(&mut self, query: QueryId, slot: usize) {
        self.queue.note(query, Ticket::Running(slot));
    }

    /// The slot that runs the query.
    pub(crate) fn slot_of(&self, query: QueryId) -> Option<usize> {
        match self.queue.ticket(query)? {
            Ticket::Running(slot) => Some(*slot),
            Ticket::Queued(_) | Ticket::Leased(_) => None,
        }
    }

    /// Ends a query that is waiting. If it is running, returns its slot, which has to cancel it. If it has ended,
    /// nothing happens: the cancel came too late (fence 1).
    pub(crate) fn cancel(&mut self, query: QueryId) -> Option<usize> {
        match self.queue.ticket(query)? {
            Ticket::Queued(_) => self.cancel_queued(query),
            &Ticket::Leased(lease) => {
                if self.leases.get_mut(&lease).is_some_and(|lease| lease.remove(query)) {
                    self.end(query, QueryEnd::Cancelled);
                }
            }
            &Ticket::Running(slot) => return Some(slot),
        }
        None
    }

    fn cancel_queued(&mut self, query: QueryId) {
        let Some(waiting) = self.queue.remove(query) else { return };
        self.end_queued(query, &waiting);
    }

    /// The database is closed: no queued query begins.
    pub(crate) fn cancel_all_queued(&mut self) {
        while let Some((query, waiting)) = self.queue.pop() {
            self.end_queued(query, &waiting);
        }
    }

    fn end_queued(&mut self, query: QueryId, waiting: &WaitingWork) {
        self.end(query, QueryEnd::Cancelled);
        if let Some(lease) = TransactionStep::of(&waiting.work).lease() {
            self.close_lease(lease, &no_transaction());
        }
    }

    /// No connection is possible: all queued queries fail.
    pub(crate) fn fail_all_queued(&mut self, failure: &QueryFailure) {
        while let Some((query, waiting)) = self.queue.pop() {
            if let Some(lease) = TransactionStep::of(&waiting.work).lease() {
                self.close_lease(lease, failure);
            }
            self.fail(query, failure.clone());
        }
    }

    // Transactions.

    /// Adds work to a transaction. Returns the slot that holds it, which may begin.
    pub(crate) fn submit_within(&mut self, query: QueryId, id: LeaseId, work: DatabaseWork) -> Option<usize> {
        let Some(lease) = self.leases.get_mut(&id).filter(|lease| lease.state != LeaseState::Released) else {
            self.fail(query, no_transaction());
            return None;
        };
        lease.waiting.push_back((query, work));
        match lease.state {
            LeaseState::Lost => {
                self.close_lease(id, &lost_transaction());
                None
            }
            LeaseState::On(slot) => {
                self.queue.note(query, Ticket::Leased(id));
                Some(slot)
            }
            LeaseState::Queued(_) | LeaseState::Released => {
                self.queue.note(query, Ticket::Leased(id));
                None
            }
        }
    }

    /// The next work of a transaction, for its slot.
    pub(crate) fn next_within(&mut self, id: LeaseId) -> Option<(QueryId, WaitingWork)> {
        let lease = self.leases.get_mut(&id).filter(|lease| matches!(lease.state, LeaseState::On(_)))?;
        let (query, work) = lease.waiting.pop_front()?;
        self.started(query);
        Some((query, WaitingWork { work, tries: 0 }))
    }

    /// Whether the holder of a transaction still exists. If not, the transaction is over.
    pub(crate) fn keeps(&mut self, id: LeaseId) -> bool {
        let is_kept = matches!(self.leases.get(&id), Some(Lease { state: LeaseState::On(_), .. }));
        if !is_kept {
            self.leases.remove(&id);
        }
        is_kept
    }

    /// The holder is gone: the waiting work of the transaction ends. Returns the slot that has to roll it back.
    pub(crate) fn release(&mut self, id: LeaseId) -> Option<usize> {
        let lease = self.leases.get_mut(&id)?;
        let state = lease.state;
        for (query, _) in std::mem::take(&mut lease.waiting) {
            self.end(query, QueryEnd::Cancelled);
        }
        match state {
            LeaseState::Queued(begin) => self.cancel_queued(begin),
            LeaseState::On(slot) => {
                self.leases.entry(id).and_modify(|lease| lease.state = LeaseState::Released);
                return Some(slot);
            }
            LeaseState::Released => {}
            LeaseState::Lost => _ = self.leases.remove(&id),
        }
        None
    }

    pub(crate) fn leases(&self) -> Vec<LeaseId> {
        let mut leases: Vec<LeaseId> = self.leases.keys().copied().collect();
        leases.sort_unstable();
        leases
    }

    /// Determines what follows a statement, from its role and the state of the transaction. Closes the lease if the
    /// transaction is over.
    pub(crate) fn conclude(
        &mut self,
        step: TransactionStep,
        transaction: Transaction,
        is_begun: bool,
    ) -> AfterStatement {
        let is_over = match step {
            TransactionStep::Alone | TransactionStep::End(_) => true,
            TransactionStep::Begin(_) => !is_begun || transaction == Transaction::None,
            TransactionStep::Within(_) => transaction == Transaction::None,
        };
        match step.lease() {
            Some(lease) if !is_over => return AfterStatement::Hold(lease),
            Some(lease) => self.close_lease(lease, &no_transaction()),
            None => {}
        }
        if transaction == Transaction::None { AfterStatement::Idle } else { AfterStatement::Reset }
    }

    /// The transaction was lost with its connection while it was idle: its holder learns of it with the next statement.
    pub(crate) fn lose_lease(&mut self, id: LeaseId) {
        match self.leases.get_mut(&id) {
            Some(lease) if lease.waiting.is_empty() && lease.state != LeaseState::Released => {
                lease.state = LeaseState::Lost;
            }
            Some(_) | None => self.close_lease(id, &lost_transaction()),
        }
    }

    /// A statement was lost with its connection: if it belongs to a transaction, that is lost, too.
    pub(crate) fn close_lost(&mut self, work: &DatabaseWork) {
        if let Some(lease) = TransactionStep::of(work).lease() {
            self.close_lease(lease, &lost_transaction());
        }
    }

    /// The transaction is over: its waiting work fails.
    fn close_lease(&mut self, id: LeaseId, failure: &QueryFailure) {
        let Some(lease) = self.leases.remove(&id) else { return };
        for (query, work) in lease.waiting {
            match work {
                // A rollback has had its effect.
                DatabaseWork::Rollback { .. } => self.end(query, QueryEnd::Completed(rolled_back())),
                _ => self.fail(query, failure.clone()),
            }
        }
    }
}

fn no_transaction() -> QueryFailure {
    QueryFailure::new(FailureKind::NoTransaction, "no such transaction: it was never begun, or has ended")
}

fn lost_transaction() -> QueryFailure {
    QueryFailure::new(FailureKind::Lost, "the transaction was lost with its connection, and has been rolled back")
}

fn rolled_back() -> Summary {
    Summary { command: "ROLLBACK".into(), rows: 0, columns: std::sync::Arc::default() }
}
