//! Queries: work that databases do for parked requests. What is asked, and what came of it, is opaque here.
//!
//! An execution is what a database was asked to do once. One request waits for it, or many that share a key; when the last of them has gone
//! it is cancelled, and it is remembered until the database has said how it ended.

mod flights;
mod leases;

pub(crate) use flights::{Flight, Kept};
pub(crate) use leases::Lease;
pub use parkade_model::SharedKey;

use std::collections::HashMap;

use crate::moment::Moment;
use crate::structures::chain::{Chain, Place};
use crate::structures::holds::Holds;
use crate::structures::timers::Alarm;
use parkade_model::{DatabaseId, LeaseId, QueryId, QueryWait, QueryWork, RequestId};

/// What a database was asked to do once.
#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) query: QueryId,
    /// For whom it was begun.
    pub(crate) request: RequestId,
    pub(crate) database: DatabaseId,
    pub(crate) work: QueryWork,
    /// Whose transaction it is in, or begins or ends.
    pub(crate) lease: Option<LeaseId>,
    pub(crate) audience: Audience,
    pub(crate) phase: Phase,
    pub(crate) since: Moment,
}

/// How far an execution got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Running,
    Cancelled,
    /// The database has said how; those who waited are being told.
    Ended,
}

/// Who waits for an execution.
#[derive(Debug)]
pub(crate) enum Audience {
    /// One request, until it has left.
    One(Option<RequestId>),
    /// Boxed: it is rare beside the other, and large.
    Many(Box<Flight>),
}

/// Where a request stands in an audience.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seat {
    slot: u32,
    place: Option<Place>,
}

#[derive(Debug, Default)]
pub(crate) struct Queries {
    executions: Vec<Option<Execution>>,
    vacant: Vec<u32>,
    slots: HashMap<QueryId, u32>,
    minted: u64,
    pub(crate) flights: HashMap<SharedKey, QueryId>,
    pub(crate) kept: HashMap<SharedKey, Kept>,
    /// Results that are kept, the oldest first.
    pub(crate) eldest: Chain<QueryId>,
    pub(crate) kept_bytes: usize,
    pub(crate) leases: HashMap<RequestId, Lease>,
    leases_minted: u64,
    /// Results whose content the shell holds, and who needs them.
    pub(crate) results: Holds<QueryId>,
    /// The server stops: rings when queries have had their time.
    pub(crate) over: Option<Alarm>,
    /// They have had it: nothing new.
    pub(crate) is_closed: bool,
    /// The server ends then, whatever still runs.
    pub(crate) end_by: Option<Moment>,
}

impl Queries {
    pub(crate) fn count(&self) -> usize {
        self.executions.len() - self.vacant.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Execution> {
        self.executions.iter().flatten()
    }

    /// An execution begins, for this request and whoever shares it.
    pub(crate) fn begin(
        &mut self,
        now: Moment,
        request: RequestId,
        wait: &QueryWait,
        database: DatabaseId,
        lease: Option<LeaseId>,
    ) -> (QueryId, Seat) {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.executions.push(None);
            u32::try_from(self.executions.len() - 1)
                .expect("there are no more executions than requests, which limits.rs bounds")
        });
        self.minted += 1;
        let query = QueryId(self.minted);
        self.slots.insert(query, slot);
        let (audience, place) = match &wait.shared {
            None => (Audience::One(Some(request)), None),
            Some(sharing) => {
                let mut waiters = Chain::default();
                let place = waiters.push_back(request);
                self.flights.insert(sharing.key, query);
                let flight = Flight { key: sharing.key, ttl: sharing.ttl, waiters };
                (Audience::Many(Box::new(flight)), Some(place))
            }
        };
        let (work, phase) = (wait.work, Phase::Running);
        self.executions[slot as usize] =
            Some(Execution { query, request, database, work, lease, audience, phase, since: now });
        (query, Seat { slot, place })
    }

    pub(crate) fn mint_lease(&mut self) -> LeaseId {
        self.leases_minted += 1;
        LeaseId(self.leases_minted)
    }

    pub(crate) fn seated(&self, seat: Seat) -> &Execution {
        self.executions[seat.slot as usize].as_ref().expect("whoever has a seat keeps its execution")
    }

    pub(crate) fn seated_mut(&mut self, seat: Seat) -> &mut Execution {
        self.executions[seat.slot as usize].as_mut().expect("whoever has a seat keeps its execution")
    }

    pub(crate) fn find(&self, query: QueryId) -> Option<&Execution> {
        self.executions[*self.slots.get(&query)? as usize].as_ref()
    }

    pub(crate) fn find_mut(&mut self, query: QueryId) -> Option<&mut Execution> {
        self.executions[*self.slots.get(&query)? as usize].as_mut()
    }

    /// The seat of nobody: for what concerns the execution alone.
    pub(crate) fn seat(&self, query: QueryId) -> Option<Seat> {
        self.slots.get(&query).map(|slot| Seat { slot: *slot, place: None })
    }

    /// The request waits for it no longer.
    pub(crate) fn leave(&mut self, seat: Seat) {
        let audience = &mut self.seated_mut(seat).audience;
        match (audience, seat.place) {
            (Audience::One(request), _) => *request = None,
            (Audience::Many(flight), Some(place)) => drop(flight.waiters.remove(place)),
            (Audience::Many(_), None) => {}
        }
    }

    /// It is over: nobody waits for it any more.
    pub(crate) fn end(&mut self, query: QueryId) -> Option<Execution> {
        let slot = self.slots.remove(&query)?;
        self.vacant.push(slot);
        self.executions[slot as usize].take()
    }
}

impl Execution {
    pub(crate) fn waiters_count(&self) -> usize {
        match &self.audience {
            Audience::One(request) => usize::from(request.is_some()),
            Audience::Many(flight) => flight.waiters.count(),
        }
    }

    /// What its key is, if it is shared.
    pub(crate) fn key(&self) -> Option<SharedKey> {
        match &self.audience {
            Audience::One(_) => None,
            Audience::Many(flight) => Some(flight.key),
        }
    }

    /// The lease that is there when it ends so.
    pub(crate) fn begins_lease(&self, completed: bool) -> Option<LeaseId> {
        self.lease.filter(|_| self.work == QueryWork::Begin && completed)
    }

    pub(crate) fn ends_a_transaction(&self) -> bool {
        matches!(self.work, QueryWork::Commit | QueryWork::Rollback)
    }

    /// The lease that is over when it ends so.
    pub(crate) fn ends_lease(&self, completed: bool) -> Option<LeaseId> {
        match self.work {
            QueryWork::Begin if !completed => self.lease,
            QueryWork::Commit | QueryWork::Rollback => self.lease,
            QueryWork::Begin | QueryWork::Alone | QueryWork::Within => None,
        }
    }

    pub(crate) fn waiters(&self) -> Vec<RequestId> {
        match &self.audience {
            Audience::One(request) => request.iter().copied().collect(),
            Audience::Many(flight) => flight.waiters.values().collect(),
        }
    }
}
