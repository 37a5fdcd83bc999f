//! How many still need a thing that the shell keeps. It is dropped when the last holder has released it.

use std::hash::Hash;

use parkade_model::IdMap;

#[derive(Debug)]
pub struct RefCounts<K> {
    holders: IdMap<K, u32>,
    /// Holders that let go during the present event: counted at its end, when somebody else may hold the thing.
    released: Vec<K>,
}

impl<K> Default for RefCounts<K> {
    fn default() -> Self {
        Self { holders: IdMap::default(), released: Vec::new() }
    }
}

impl<K: Copy + Eq + Hash> RefCounts<K> {
    pub fn count(&self) -> usize {
        self.holders.len()
    }

    pub fn hold(&mut self, thing: K) {
        *self.holders.entry(thing).or_insert(0) += 1;
    }

    pub fn is_held(&self, thing: K) -> bool {
        self.holders.contains_key(&thing)
    }

    /// One holder needs it no more.
    pub fn release(&mut self, thing: K) {
        self.released.push(thing);
    }

    /// Forgets everything that nobody holds any more, in the order in which it was released.
    pub fn drop_unheld(&mut self, mut dropped: impl FnMut(K)) {
        if self.released.is_empty() {
            return;
        }
        for thing in self.released.drain(..) {
            let Some(holders) = self.holders.get_mut(&thing) else { continue };
            *holders -= 1;
            if *holders == 0 {
                self.holders.remove(&thing);
                dropped(thing);
            }
        }
    }
}
