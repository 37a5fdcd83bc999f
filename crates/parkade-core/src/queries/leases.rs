//! Leases: which request has a transaction open, and in which database.

use parkade_model::{DatabaseId, IdMap, LeaseId, QueryId, RequestId};

#[derive(Debug, Default)]
pub struct Leases {
    open: IdMap<RequestId, OpenTransaction>,
    minted: u64,
}

/// A request's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenTransaction {
    pub id: LeaseId,
    pub database: DatabaseId,
    /// Its BEGIN has completed.
    pub has_begun: bool,
    /// Its COMMIT or ROLLBACK was asked for.
    pub is_ending: bool,
    /// The last statement that was begun in it.
    pub statement: Option<QueryId>,
}

impl Leases {
    pub fn count(&self) -> usize {
        self.open.len()
    }

    pub fn of(&self, request: RequestId) -> Option<OpenTransaction> {
        self.open.get(&request).copied()
    }

    pub fn begin(&mut self, request: RequestId, database: DatabaseId) -> LeaseId {
        self.minted += 1;
        let id = LeaseId(self.minted);
        let open = OpenTransaction { id, database, has_begun: false, is_ending: false, statement: None };
        self.open.insert(request, open);
        id
    }

    /// Its BEGIN has completed, if the transaction is still this one.
    pub fn note_begun(&mut self, request: RequestId, id: LeaseId) {
        if let Some(open) = self.open.get_mut(&request).filter(|open| open.id == id) {
            open.has_begun = true;
        }
    }

    /// A statement begins in the request's transaction.
    pub fn note_statement(&mut self, request: RequestId, query: QueryId) {
        if let Some(open) = self.open.get_mut(&request) {
            open.statement = Some(query);
        }
    }

    /// The request asks for the end of its transaction.
    pub fn begin_to_end(&mut self, request: RequestId) {
        if let Some(open) = self.open.get_mut(&request) {
            open.is_ending = true;
        }
    }

    /// The transaction has ended, if it is still this one.
    pub fn end(&mut self, request: RequestId, id: LeaseId) -> Option<OpenTransaction> {
        self.of(request).filter(|lease| lease.id == id)?;
        self.open.remove(&request)
    }

    /// The request has ended.
    pub fn remove(&mut self, request: RequestId) -> Option<OpenTransaction> {
        self.open.remove(&request)
    }
}
