//! Branches: the other waits of a request whose coroutine waits for several things at a time.
//!
//! A branch is parked from its beginning to its end. It is a life of its own, with an id that the server gives it, so that everything that waits
//! need not know of branches. It belongs to a request, and ends with it. A request of which nothing of this is true is not here.

use crate::limits::BRANCHES_COUNT_MAX;
use parkade_model::{IdMap, RequestId};

#[derive(Debug, Default)]
pub struct Branches {
    owners: IdMap<RequestId, RequestId>,
    /// In the order in which they began.
    branches: IdMap<RequestId, Vec<RequestId>>,
}

/// The request waits for as many things as it may.
#[derive(Debug)]
pub struct TooManyBranches;

impl Branches {
    pub fn begin(&mut self, owner: RequestId, branch: RequestId) -> Result<(), TooManyBranches> {
        let branches = self.branches.entry(owner).or_default();
        if branches.len() >= BRANCHES_COUNT_MAX {
            return Err(TooManyBranches);
        }
        branches.push(branch);
        self.owners.insert(branch, owner);
        Ok(())
    }

    /// A branch has ended. Returns the request whose last one it was.
    pub fn end(&mut self, branch: RequestId) -> Option<RequestId> {
        let owner = self.owners.remove(&branch)?;
        let branches = self.branches.get_mut(&owner)?;
        branches.retain(|other| *other != branch);
        if !branches.is_empty() {
            return None;
        }
        self.branches.remove(&owner);
        Some(owner)
    }

    /// The request has ended, and its branches are to end with it.
    pub fn take(&mut self, owner: RequestId) -> Vec<RequestId> {
        if self.branches.is_empty() {
            return Vec::new();
        }
        let branches = self.branches.remove(&owner).unwrap_or_default();
        for branch in &branches {
            self.owners.remove(branch);
        }
        branches
    }

    /// The request that it is a branch of; itself, if it is none.
    pub fn owner_of(&self, request: RequestId) -> RequestId {
        if self.owners.is_empty() { request } else { self.owners.get(&request).copied().unwrap_or(request) }
    }

    pub fn contains(&self, request: RequestId) -> bool {
        !self.owners.is_empty() && self.owners.contains_key(&request)
    }

    /// Whether the request waits in branches.
    pub fn are_left(&self, owner: RequestId) -> bool {
        self.branches.contains_key(&owner)
    }

    pub fn of(&self, owner: RequestId) -> &[RequestId] {
        self.branches.get(&owner).map_or(&[], Vec::as_slice)
    }

    pub fn count(&self) -> usize {
        self.owners.len()
    }
}
