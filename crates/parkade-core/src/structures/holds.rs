//! Who still needs a thing that the shell keeps: it goes when the last one has let go.

use std::collections::HashMap;
use std::hash::Hash;

#[derive(Debug)]
pub(crate) struct Holds<K> {
    holders: HashMap<K, u32>,
}

impl<K> Default for Holds<K> {
    fn default() -> Self {
        Self { holders: HashMap::new() }
    }
}

impl<K: Copy + Eq + Hash> Holds<K> {
    pub(crate) fn count(&self) -> usize {
        self.holders.len()
    }

    pub(crate) fn hold(&mut self, thing: K) {
        *self.holders.entry(thing).or_insert(0) += 1;
    }

    pub(crate) fn is_held(&self, thing: K) -> bool {
        self.holders.contains_key(&thing)
    }

    /// Whether that was the last one to need it.
    #[must_use]
    pub(crate) fn release(&mut self, thing: K) -> bool {
        let Some(holders) = self.holders.get_mut(&thing) else { return false };
        *holders -= 1;
        if *holders > 0 {
            return false;
        }
        self.holders.remove(&thing);
        true
    }
}
