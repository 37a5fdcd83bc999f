//! What was asked and has not ended: where each query is, who waits in which transaction, and what the owner hears of it.
//!
//! Every query that comes in ends once, by [`end`](PendingQueries::end).

use bytes::Bytes;
use parkade_sql::{DatabaseWork, FailureKind, LeaseId, QueryEnd, QueryFailure, QueryId, Summary};

use crate::Event;
use crate::ids::IdMap;
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

    /// How many wait for a slot.
    pub(crate) fn queued_count(&self) -> usize {
        self.queue.count()
    }

    /// Whether no query and no transaction is remembered.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.leases.is_empty()
    }

    /// Something else that the owner hears of, in the same order.
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

    /// Rows of a query, in pieces.
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

    /// It has been the first already: the connection was lost before anything of it ran. Refused if its holder is gone.
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

    /// The next query, which that slot will run.
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

    /// The slot on which it runs.
    pub(crate) fn slot_of(&self, query: QueryId) -> Option<usize> {
        match self.queue.ticket(query)? {
            Ticket::Running(slot) => Some(*slot),
            Ticket::Queued(_) | Ticket::Leased(_) => None,
        }
    }

    /// Ends what waits. Returns the slot on which it runs instead: that has to cancel it. Nothing happens if it has ended: the cancel came
    /// too late (fence 1).
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

    /// The database is closed: nothing that is queued begins.
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

    /// No connection can be had: everything that is queued fails.
    pub(crate) fn fail_all_queued(&mut self, failure: &QueryFailure) {
        while let Some((query, waiting)) = self.queue.pop() {
            if let Some(lease) = TransactionStep::of(&waiting.work).lease() {
                self.close_lease(lease, failure);
            }
            self.fail(query, failure.clone());
        }
    }

    // Transactions.

    /// Work of a transaction. Returns the slot that holds it, which may begin with it.
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

    /// The next of those that wait in a transaction on a slot.
    pub(crate) fn next_within(&mut self, id: LeaseId) -> Option<(QueryId, WaitingWork)> {
        let lease = self.leases.get_mut(&id).filter(|lease| matches!(lease.state, LeaseState::On(_)))?;
        let (query, work) = lease.waiting.pop_front()?;
        self.started(query);
        Some((query, WaitingWork { work, tries: 0 }))
    }

    /// Whether the holder of a transaction is still there. If not, the transaction is over.
    pub(crate) fn keeps(&mut self, id: LeaseId) -> bool {
        let is_kept = matches!(self.leases.get(&id), Some(Lease { state: LeaseState::On(_), .. }));
        if !is_kept {
            self.leases.remove(&id);
        }
        is_kept
    }

    /// The holder is gone: what waits in the transaction ends. Returns the slot that has to undo it.
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

    /// What follows a statement, by what it was and what the server says of the transaction. Closes the lease if it is over.
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

    /// The transaction was lost with its connection while nothing ran: its holder hears of it with the next statement.
    pub(crate) fn lose_lease(&mut self, id: LeaseId) {
        match self.leases.get_mut(&id) {
            Some(lease) if lease.waiting.is_empty() && lease.state != LeaseState::Released => {
                lease.state = LeaseState::Lost;
            }
            Some(_) | None => self.close_lease(id, &lost_transaction()),
        }
    }

    /// A statement of a transaction was lost with its connection, if it belongs to one.
    pub(crate) fn close_lost(&mut self, work: &DatabaseWork) {
        if let Some(lease) = TransactionStep::of(work).lease() {
            self.close_lease(lease, &lost_transaction());
        }
    }

    /// The transaction is over: what waits in it fails.
    fn close_lease(&mut self, id: LeaseId, failure: &QueryFailure) {
        let Some(lease) = self.leases.remove(&id) else { return };
        for (query, work) in lease.waiting {
            match work {
                // What it asks for has happened.
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
