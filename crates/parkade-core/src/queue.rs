//! What waits for a worker: one line for plain functions and one for coroutines.
//!
//! A plain function may have to wait for a thread; a coroutine needs none, and never waits behind one that does.

use crate::structures::chain::Chain;
use parkade_model::RequestId;

#[derive(Debug, Default)]
pub struct Queue {
    plain: Chain<RequestId>,
    coroutines: Chain<RequestId>,
}

impl Queue {
    /// The line for coroutines, or the one for all else.
    pub fn line(&mut self, concurrent: bool) -> &mut Chain<RequestId> {
        if concurrent { &mut self.coroutines } else { &mut self.plain }
    }

    /// The first of each line.
    pub fn firsts(&self) -> [Option<RequestId>; 2] {
        [self.plain.first(), self.coroutines.first()]
    }

    /// How many stand in one of them.
    pub fn count_of(&self, concurrent: bool) -> usize {
        if concurrent { self.coroutines.count() } else { self.plain.count() }
    }

    pub fn count(&self) -> usize {
        self.plain.count() + self.coroutines.count()
    }

    pub fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.coroutines.is_empty()
    }

    /// Line by line, each in its order.
    pub fn values(&self) -> impl Iterator<Item = RequestId> {
        self.plain.values().chain(self.coroutines.values())
    }
}
