//! The part of a report about jobs.

use std::collections::BTreeMap;

use parkade_core::Status;
use parkade_jobs::{JobCounts, JobState};
use serde::{Deserialize, Serialize};

/// The contents of the store, as of the last second or so; empty if nothing was ever stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobsReport {
    pub ready: u64,
    /// Those that are not due yet.
    pub scheduled: u64,
    pub running: u64,
    pub dead: u64,
    /// Those that the application does not know.
    pub unknown: u64,
    pub completed: u64,
    pub cancelled: u64,
    /// The age of the oldest one that is ready.
    pub oldest: Option<f64>,
    /// How many of each queue are ready or scheduled.
    pub queues: BTreeMap<String, u64>,
    /// Jobs that run here, and wait for a worker.
    pub queued: usize,
    /// Jobs that run here, are in a wait, and need no worker.
    #[serde(default)]
    pub parked: usize,
    /// Requests, and other jobs, that wait for the end of one.
    pub watched: usize,
}

impl JobsReport {
    pub fn new(counts: &JobCounts, oldest: Option<f64>) -> Self {
        Self {
            ready: counts.ready,
            scheduled: counts.scheduled,
            running: counts.running,
            dead: counts.dead,
            unknown: counts.unknown,
            completed: counts.completed,
            cancelled: counts.cancelled,
            oldest,
            queues: counts.queues.iter().map(|(name, depth)| (name.to_string(), *depth)).collect(),
            ..Self::default()
        }
    }

    /// With what the core knows.
    pub fn with(self, status: &Status) -> Self {
        Self { queued: status.runs.routed, parked: status.runs.parked, watched: status.jobs_watched, ..self }
    }

    /// How many there are in each state, by the state's own word.
    pub fn by_state(&self) -> [(&'static str, u64); JobState::ALL.len()] {
        JobState::ALL.map(|state| {
            let count = match state {
                JobState::Scheduled => self.scheduled,
                JobState::Ready => self.ready,
                JobState::Running => self.running,
                JobState::Completed => self.completed,
                JobState::Dead => self.dead,
                JobState::Cancelled => self.cancelled,
                JobState::Unknown => self.unknown,
            };
            (state.word(), count)
        })
    }
}
