//! What requests have enqueued, until the store has it.

use std::collections::HashMap;

use parkade_model::{RequestId, StoreFault};

/// Most requests enqueue nothing, and are not here.
#[derive(Debug, Default)]
pub struct EnqueuedJobs {
    by_request: HashMap<RequestId, Unconfirmed>,
}

/// Jobs of one request that the store has not confirmed.
#[derive(Debug, Clone, Copy, Default)]
struct Unconfirmed {
    count: u32,
    /// Why one of them could not be stored. It is remembered until the answer comes, or the coroutine is told.
    fault: Option<StoreFault>,
}

impl EnqueuedJobs {
    pub fn add(&mut self, request: RequestId) {
        self.by_request.entry(request).or_default().count += 1;
    }

    /// The store has one, or cannot have it. Returns whether no other is on its way.
    pub fn confirm(&mut self, request: RequestId, fault: Option<StoreFault>) -> bool {
        let Some(jobs) = self.by_request.get_mut(&request) else { return false };
        jobs.count = jobs.count.saturating_sub(1);
        jobs.fault = jobs.fault.or(fault);
        if jobs.count > 0 {
            return false;
        }
        if jobs.fault.is_none() {
            self.by_request.remove(&request);
        }
        true
    }

    /// Whether one is on its way to the store.
    pub fn are_pending(&self, request: RequestId) -> bool {
        self.of(request).is_some_and(|jobs| jobs.count > 0)
    }

    /// Why one could not be stored.
    pub fn fault(&self, request: RequestId) -> Option<StoreFault> {
        self.of(request).and_then(|jobs| jobs.fault)
    }

    /// The same, for a coroutine: it is told once.
    pub fn take_fault(&mut self, request: RequestId) -> Option<StoreFault> {
        self.by_request.remove(&request).and_then(|jobs| jobs.fault)
    }

    /// The request has ended.
    pub fn forget(&mut self, request: RequestId) {
        if !self.by_request.is_empty() {
            self.by_request.remove(&request);
        }
    }

    pub fn count(&self) -> usize {
        self.by_request.len()
    }

    fn of(&self, request: RequestId) -> Option<Unconfirmed> {
        if self.by_request.is_empty() { None } else { self.by_request.get(&request).copied() }
    }
}
