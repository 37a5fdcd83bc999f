//! Results of shared queries that are kept for requests which come a little later.

use std::collections::HashMap;

use crate::limits::{KEPT_RESULTS_BYTES_MAX, KEPT_RESULTS_COUNT_MAX};
use crate::structures::chain::{Chain, Place};
use crate::structures::timers::Alarm;
use parkade_model::{QueryId, SharedKey};

#[derive(Debug, Default)]
pub struct KeptResults {
    by_key: HashMap<SharedKey, KeptEntry>,
    /// The oldest first.
    by_age: Chain<QueryId>,
    bytes: usize,
}

#[derive(Debug)]
struct KeptEntry {
    kept: KeptResult,
    bytes: usize,
    place: Place,
}

/// A result that a request which asks for it gets at once.
#[derive(Debug, Clone, Copy)]
pub struct KeptResult {
    pub query: QueryId,
    /// It rings when the time of the result is over.
    pub alarm: Alarm,
}

impl KeptResults {
    pub fn get(&self, key: &SharedKey) -> Option<QueryId> {
        self.by_key.get(key).map(|entry| entry.kept.query)
    }

    /// Returns the results that have to go instead.
    pub fn keep(&mut self, key: SharedKey, kept: KeptResult, bytes: usize) -> Vec<KeptResult> {
        let mut gone: Vec<KeptResult> = self.remove(&key).into_iter().collect();
        let place = self.by_age.push_back(kept.query);
        self.bytes += bytes;
        self.by_key.insert(key, KeptEntry { kept, bytes, place });
        while self.by_key.len() > KEPT_RESULTS_COUNT_MAX || self.bytes > KEPT_RESULTS_BYTES_MAX {
            let Some(oldest) = self.by_age.first() else { break };
            let Some(kept) = self.remove_query(oldest) else { break };
            gone.push(kept);
        }
        gone
    }

    pub fn remove_query(&mut self, query: QueryId) -> Option<KeptResult> {
        let key = self.by_key.iter().find(|(_, entry)| entry.kept.query == query).map(|(key, _)| *key)?;
        self.remove(&key)
    }

    /// All of them.
    pub fn take(&mut self) -> impl Iterator<Item = KeptResult> + use<> {
        std::mem::take(self).by_key.into_values().map(|entry| entry.kept)
    }

    fn remove(&mut self, key: &SharedKey) -> Option<KeptResult> {
        let entry = self.by_key.remove(key)?;
        self.by_age.remove(entry.place);
        self.bytes -= entry.bytes;
        Some(entry.kept)
    }
}
