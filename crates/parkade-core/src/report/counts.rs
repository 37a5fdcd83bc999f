//! Totals since the start: they only grow.

use crate::effect::KillReason;
use crate::refused::Refused;
use parkade_model::{Reason, Refusal};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    pub accepted: u64,
    /// Ended as done: by a worker, a message, a constant or a refusal.
    pub answered: u64,
    pub cancelled: Tally<Reason>,
    pub refused: Tally<Refusal>,
    /// Times a request was parked; runs of jobs are no requests.
    pub parked: u64,
    pub queries: u64,
    /// Requests that shared an execution, or a result, of another.
    pub queries_shared: u64,
    pub queries_cancelled: u64,
    pub workers_started: u64,
    pub workers_died: u64,
    pub workers_killed: Tally<KillReason>,
    pub workers_recycled: u64,
    pub reloads_done: u64,
    pub reloads_given_up: u64,
    pub published: u64,
    /// Messages to requests: one publish to a thousand waiters counts a thousand.
    pub delivered: u64,
    pub gaps: u64,
    /// Messages that were not published because of the channel limit.
    pub unpublished: u64,
    pub jobs_claimed: u64,
    /// Runs that have ended, by what became of the job.
    pub jobs_completed: u64,
    pub jobs_retried: u64,
    pub jobs_dead: u64,
    pub jobs_cancelled: u64,
    pub jobs_handed_back: u64,
    pub jobs_unknown: u64,
    /// Events that changed nothing.
    pub refused_events: Tally<Refused>,
    /// Closing frames of cancelled requests: nothing is wrong with these.
    pub late_frames: u64,
}

/// A count for each reason that occurred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally<K>(Vec<(K, u64)>);

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + PartialEq> Tally<K> {
    pub(crate) fn add(&mut self, key: K) {
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, count)) => *count += 1,
            None => self.0.push((key, 1)),
        }
    }

    #[must_use]
    pub fn of(&self, key: K) -> u64 {
        self.iter().find(|(known, _)| *known == key).map_or(0, |(_, count)| count)
    }

    #[must_use]
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = (K, u64)> {
        self.0.iter().copied()
    }
}
