//! Leases: whose transaction is open where.

use super::Queries;
use parkade_model::{DatabaseId, LeaseId, RequestId};

/// A request's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) id: LeaseId,
    pub(crate) database: DatabaseId,
}

impl crate::Core {
    /// Whether the request has begun a transaction that has not ended.
    #[must_use]
    pub fn has_transaction(&self, request: RequestId) -> bool {
        self.queries.lease_of(request).is_some()
    }
}

impl Queries {
    pub(crate) fn lease_of(&self, request: RequestId) -> Option<Lease> {
        self.leases.get(&request).copied()
    }

    /// The transaction has ended, if it is still this one.
    pub(crate) fn end_lease(&mut self, request: RequestId, id: LeaseId) -> Option<Lease> {
        self.lease_of(request).filter(|lease| lease.id == id)?;
        self.leases.remove(&request)
    }
}
