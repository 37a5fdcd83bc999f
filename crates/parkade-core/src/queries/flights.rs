//! Single flights: many requests, one execution, and its result for those who come a little later.

use std::time::Duration;

use super::{Audience, Phase, Queries, Seat};
use crate::limits::{KEPT_RESULTS_BYTES_MAX, KEPT_RESULTS_COUNT_MAX};
use crate::structures::chain::{Chain, Place};
use crate::structures::timers::Alarm;
use parkade_model::{QueryId, RequestId, SharedKey};

/// All who wait for one execution.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) key: SharedKey,
    pub(crate) ttl: Duration,
    pub(crate) waiters: Chain<RequestId>,
}

/// A result that whoever asks for it gets at once.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) query: QueryId,
    pub(crate) bytes: usize,
    pub(crate) alarm: Alarm,
    elder: Place,
}

impl Queries {
    /// Joins the execution under this key, if one is under way that is still wanted.
    pub(crate) fn join(&mut self, key: &SharedKey, request: RequestId) -> Option<Seat> {
        let query = *self.flights.get(key)?;
        let execution = self.find_mut(query).filter(|execution| execution.phase == Phase::Running)?;
        let Audience::Many(flight) = &mut execution.audience else { return None };
        let place = flight.waiters.push_back(request);
        self.seat(query).map(|seat| Seat { place: Some(place), ..seat })
    }

    /// The key stands for this execution no longer.
    pub(crate) fn land(&mut self, key: &SharedKey, query: QueryId) {
        if self.flights.get(key) == Some(&query) {
            self.flights.remove(key);
        }
    }

    /// Keeps a result for those who come later. Gives the results that have to go instead.
    pub(crate) fn keep(&mut self, key: SharedKey, query: QueryId, bytes: usize, alarm: Alarm) -> Vec<Kept> {
        let mut gone: Vec<Kept> = self.forget(&key).into_iter().collect();
        let elder = self.eldest.push_back(query);
        self.kept_bytes += bytes;
        self.kept.insert(key, Kept { query, bytes, alarm, elder });
        while self.kept.len() > KEPT_RESULTS_COUNT_MAX || self.kept_bytes > KEPT_RESULTS_BYTES_MAX {
            let Some(eldest) = self.eldest.first() else { break };
            let Some(kept) = self.forget_query(eldest) else { break };
            gone.push(kept);
        }
        gone
    }

    /// The time of a kept result is over.
    pub(crate) fn forget_query(&mut self, query: QueryId) -> Option<Kept> {
        let key = self.kept.iter().find(|(_, kept)| kept.query == query).map(|(key, _)| *key)?;
        self.forget(&key)
    }

    fn forget(&mut self, key: &SharedKey) -> Option<Kept> {
        let kept = self.kept.remove(key)?;
        self.eldest.remove(kept.elder);
        self.kept_bytes -= kept.bytes;
        Some(kept)
    }
}
