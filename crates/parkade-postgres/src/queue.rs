//! Queries that wait for a slot, in order; and where each query is.

use std::collections::VecDeque;

use parkade_sql::{DatabaseWork, IdMap, LeaseId, QueryId};

#[derive(Debug, Default)]
pub(crate) struct WaitQueue {
    /// Queries that were removed leave their numbers in it: the table tells which still exist.
    order: VecDeque<QueryId>,
    tickets: IdMap<QueryId, Ticket>,
    queued: usize,
}

/// Where a query is.
#[derive(Debug)]
pub(crate) enum Ticket {
    /// In the queue for any slot.
    Queued(WaitingWork),
    /// In the queue of its transaction.
    Leased(LeaseId),
    Running(usize),
}

#[derive(Debug)]
pub(crate) struct WaitingWork {
    pub(crate) work: DatabaseWork,
    /// How often it has been on a connection that broke before it ran.
    pub(crate) tries: u8,
}

impl WaitQueue {
    pub(crate) fn count(&self) -> usize {
        self.queued
    }

    pub(crate) fn ticket(&self, query: QueryId) -> Option<&Ticket> {
        self.tickets.get(&query)
    }

    pub(crate) fn push_back(&mut self, query: QueryId, work: DatabaseWork) {
        self.order.push_back(query);
        self.enqueue(query, WaitingWork { work, tries: 0 });
    }

    /// Puts it back at the front.
    pub(crate) fn push_front(&mut self, query: QueryId, waiting: WaitingWork) {
        self.order.push_front(query);
        self.enqueue(query, waiting);
    }

    pub(crate) fn pop(&mut self) -> Option<(QueryId, WaitingWork)> {
        while let Some(query) = self.order.pop_front() {
            if let Some(waiting) = self.take_queued(query) {
                return Some((query, waiting));
            }
        }
        None
    }

    /// Removes a query from the queue, if it is queued.
    pub(crate) fn remove(&mut self, query: QueryId) -> Option<WaitingWork> {
        let waiting = self.take_queued(query)?;
        // Each number left behind is removed once, so in total this costs no more than the removals.
        if self.order.len() > 2 * self.queued + 64 {
            self.order.retain(|query| matches!(self.tickets.get(query), Some(Ticket::Queued(_))));
        }
        Some(waiting)
    }

    /// Where a query is that is not in this queue.
    pub(crate) fn note(&mut self, query: QueryId, ticket: Ticket) {
        self.tickets.insert(query, ticket);
    }

    /// The query has ended.
    pub(crate) fn forget(&mut self, query: QueryId) {
        self.tickets.remove(&query);
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.tickets.is_empty()
    }

    fn enqueue(&mut self, query: QueryId, waiting: WaitingWork) {
        self.tickets.insert(query, Ticket::Queued(waiting));
        self.queued += 1;
    }

    fn take_queued(&mut self, query: QueryId) -> Option<WaitingWork> {
        match self.tickets.remove(&query)? {
            Ticket::Queued(waiting) => {
                self.queued -= 1;
                Some(waiting)
            }
            other @ (Ticket::Leased(_) | Ticket::Running(_)) => {
                self.tickets.insert(query, other);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_leaves_is_passed_over_and_leaves_nothing_behind() {
        let mut queue = WaitQueue::default();
        let work = || DatabaseWork::Commit { lease: LeaseId(0) };
        for query in 0..1000 {
            queue.push_back(QueryId(query), work());
        }
        for query in 0..999 {
            assert!(queue.remove(QueryId(query)).is_some());
        }
        assert!(queue.order.len() < 100);
        queue.push_front(QueryId(2000), WaitingWork { work: work(), tries: 1 });
        assert_eq!(queue.pop().unwrap().0, QueryId(2000));
        assert_eq!((queue.pop().unwrap().0, queue.pop().is_none(), queue.count()), (QueryId(999), true, 0));
    }

    #[test]
    fn one_that_runs_is_not_taken_from_the_queue() {
        let mut queue = WaitQueue::default();
        queue.note(QueryId(1), Ticket::Running(0));
        assert!(queue.remove(QueryId(1)).is_none() && !queue.is_empty());
    }
}
