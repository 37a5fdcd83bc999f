//! Executions: what the databases were asked to do once, and the requests that wait for it.

use std::collections::HashMap;
use std::time::Duration;

use super::waiter::{Waiter, WaiterStage};
use crate::moment::Moment;
use crate::report::status::QueryStatus;
use crate::structures::chain::Chain;
use parkade_model::{DatabaseId, IdMap, LeaseId, QueryId, QueryWork, RequestId, SharedKey, Sharing};

/// What a database was asked to do once. It is remembered until the database has said how it ended.
#[derive(Debug)]
pub struct Execution {
    pub query: QueryId,
    /// The request for which it was begun, be it by a branch.
    pub owner: RequestId,
    pub database: DatabaseId,
    pub work: QueryWork,
    /// The transaction that it is in, begins or ends.
    pub lease: Option<LeaseId>,
    pub phase: ExecutionPhase,
    pub since: Moment,
    waiters: Waiters,
}

/// How far an execution got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionPhase {
    Running,
    Cancelled,
    /// The database has said how it ended, and the requests that waited are being told.
    Ended,
}

/// Who waits for an execution.
#[derive(Debug)]
enum Waiters {
    /// One request, until it has left.
    One(Option<RequestId>),
    /// Boxed: it is rare compared with the other, and large.
    Many(Box<SingleFlight>),
}

/// Many requests that share an execution (a single flight).
#[derive(Debug)]
pub struct SingleFlight {
    pub key: SharedKey,
    /// For this long, its result is kept for requests that come later.
    pub ttl: Duration,
    waiters: Chain<RequestId>,
}

/// Executions in slots, so that a waiter finds its own without hashing.
#[derive(Debug, Default)]
pub struct Executions {
    slots: Vec<Option<Execution>>,
    vacant: Vec<u32>,
    by_query: IdMap<QueryId, u32>,
    /// Those that requests can still join.
    flights: HashMap<SharedKey, QueryId>,
}

/// The names of all that databases are asked for.
#[derive(Debug, Default)]
pub struct QueryIds {
    minted: u64,
}

impl QueryIds {
    pub fn mint(&mut self) -> QueryId {
        self.minted += 1;
        QueryId(self.minted)
    }
}

impl Executions {
    pub fn count(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Execution> {
        self.slots.iter().flatten()
    }

    /// An execution begins, for this request and all that share it.
    pub fn begin(
        &mut self,
        now: Moment,
        (query, request, owner): (QueryId, RequestId, RequestId),
        (database, work, lease): (DatabaseId, QueryWork, Option<LeaseId>),
        shared: Option<&Sharing>,
    ) -> Waiter {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1)
                .expect("there are no more executions than requests, which limits.rs bounds")
        });
        self.by_query.insert(query, slot);
        let (waiters, place) = match shared {
            None => (Waiters::One(Some(request)), None),
            Some(sharing) => {
                let mut waiters = Chain::default();
                let place = waiters.push_back(request);
                self.flights.insert(sharing.key, query);
                (Waiters::Many(Box::new(SingleFlight { key: sharing.key, ttl: sharing.ttl, waiters })), Some(place))
            }
        };
        self.slots[slot as usize] = Some(Execution {
            query,
            owner,
            database,
            work,
            lease,
            phase: ExecutionPhase::Running,
            since: now,
            waiters,
        });
        Waiter { slot, place, stage: WaiterStage::Waiting }
    }

    /// Joins the execution under this key, if one is under way that is still wanted.
    pub fn join(&mut self, key: &SharedKey, request: RequestId) -> Option<Waiter> {
        let slot = *self.by_query.get(self.flights.get(key)?)?;
        let execution =
            self.slots[slot as usize].as_mut().filter(|execution| execution.phase == ExecutionPhase::Running)?;
        let Waiters::Many(flight) = &mut execution.waiters else { return None };
        let place = flight.waiters.push_back(request);
        Some(Waiter { slot, place: Some(place), stage: WaiterStage::Waiting })
    }

    /// Requests cannot join it any more.
    pub fn land(&mut self, key: &SharedKey, query: QueryId) {
        if self.flights.get(key) == Some(&query) {
            self.flights.remove(key);
        }
    }

    pub fn of(&self, waiter: Waiter) -> &Execution {
        self.slots[waiter.slot as usize].as_ref().expect("an execution outlives its waiters")
    }

    pub fn find(&self, query: QueryId) -> Option<&Execution> {
        self.slots[*self.by_query.get(&query)? as usize].as_ref()
    }

    pub fn find_mut(&mut self, query: QueryId) -> Option<&mut Execution> {
        self.slots[*self.by_query.get(&query)? as usize].as_mut()
    }

    /// Whether it runs, and somebody waits for it.
    pub fn is_awaited(&self, query: Option<QueryId>) -> bool {
        let execution = query.and_then(|query| self.find(query));
        execution.is_some_and(|execution| execution.phase == ExecutionPhase::Running && execution.waiters_count() > 0)
    }

    /// The request waits for it no longer. Returns the execution, and whether that was its last waiter.
    pub fn leave(&mut self, waiter: Waiter) -> (&Execution, bool) {
        let execution = self.slots[waiter.slot as usize].as_mut().expect("an execution outlives its waiters");
        match (&mut execution.waiters, waiter.place) {
            (Waiters::One(request), _) => *request = None,
            (Waiters::Many(flight), Some(place)) => drop(flight.waiters.remove(place)),
            (Waiters::Many(_), None) => {}
        }
        let was_last = execution.waiters_count() == 0;
        (execution, was_last)
    }

    /// It is over, and nobody waits for it any more. Returns the flight that shared it.
    pub fn end(&mut self, query: QueryId) -> Option<SingleFlight> {
        let slot = self.by_query.remove(&query)?;
        self.vacant.push(slot);
        match self.slots[slot as usize].take()?.waiters {
            Waiters::One(_) => None,
            Waiters::Many(flight) => {
                self.land(&flight.key, query);
                Some(*flight)
            }
        }
    }
}

impl Execution {
    pub fn waiters_count(&self) -> usize {
        match &self.waiters {
            Waiters::One(request) => usize::from(request.is_some()),
            Waiters::Many(flight) => flight.waiters.count(),
        }
    }

    pub fn waiters(&self) -> Vec<RequestId> {
        match &self.waiters {
            Waiters::One(request) => request.iter().copied().collect(),
            Waiters::Many(flight) => flight.waiters.values().collect(),
        }
    }

    /// The only request that can be waiting for it, unless it has left or the execution is shared.
    pub fn only_waiter(&self) -> Option<RequestId> {
        match &self.waiters {
            Waiters::One(request) => *request,
            Waiters::Many(_) => None,
        }
    }

    /// What its key is, if it is shared.
    pub fn key(&self) -> Option<SharedKey> {
        match &self.waiters {
            Waiters::One(_) => None,
            Waiters::Many(flight) => Some(flight.key),
        }
    }

    /// The lease that is there when it ends so.
    pub fn begins_lease(&self, completed: bool) -> Option<LeaseId> {
        self.lease.filter(|_| self.work == QueryWork::Begin && completed)
    }

    pub fn ends_a_transaction(&self) -> bool {
        matches!(self.work, QueryWork::Commit | QueryWork::Rollback)
    }

    /// The lease that is over when it ends so.
    pub fn ends_lease(&self, completed: bool) -> Option<LeaseId> {
        match self.work {
            QueryWork::Begin if !completed => self.lease,
            QueryWork::Commit | QueryWork::Rollback => self.lease,
            QueryWork::Begin | QueryWork::Alone | QueryWork::Within => None,
        }
    }

    pub fn status(&self) -> QueryStatus {
        QueryStatus {
            query: self.query,
            database: self.database,
            waiting: self.waiters_count(),
            cancelled: self.phase != ExecutionPhase::Running,
            is_cancellable: !self.ends_a_transaction(),
            since: self.since,
        }
    }
}
