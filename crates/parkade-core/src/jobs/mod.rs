//! Jobs: which are being run, how many more are wanted, who waits for one to end, whose answer waits for the store.
//!
//! A job's run is a request that no client sent: it has a life like the others, so its waits, its deadline and its cancelling are theirs. What
//! becomes of the job when that life ends is its [`Verdict`](parkade_model::Verdict).

mod enqueued;
mod job_waits;
mod pressure;
mod pull;
mod queues;
mod recurring;
mod verdict;
mod visitors;
mod watchers;

use std::collections::HashMap;

use crate::queue::Queue;
pub use enqueued::EnqueuedJobs;
pub use job_waits::{Granted, JobWaits, NewJobWait};
use parkade_model::{JobId, QueueId, RequestId};
pub use pressure::PressureEvent;
pub(crate) use pressure::{Pressure, Reading};
pub(crate) use pull::Pull;
pub(crate) use queues::Queues;
pub(crate) use recurring::Recurring;
pub use recurring::{RecurringEffect, RecurringEvent, RecurringJob};
pub(crate) use verdict::Fate;

/// A job that is being run, or is about to be.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) job: JobId,
    pub(crate) attempt: u32,
    /// The queue in which it has a place, until an abandoned stream keeps that.
    pub(crate) place: Option<QueueId>,
    pub(crate) retries: u32,
    /// How it went, as soon as that is known.
    pub(crate) fate: Option<Fate>,
}

#[derive(Debug, Default)]
pub(crate) struct Jobs {
    pub(crate) runs: HashMap<RequestId, Run>,
    by_job: HashMap<JobId, RequestId>,
    /// Claimed, and not given to a worker.
    pub(crate) waiting: Queue,
    /// Begun, behind a wait, and about to go on with a function.
    pub(crate) resuming: Queue,
    pub(crate) pull: Pull,
    pub(crate) queues: Queues,
    pub(crate) recurring: Recurring,
    pub(crate) pressure: Pressure,
}

impl Jobs {
    pub(crate) fn begin_run(&mut self, request: RequestId, run: Run) {
        if let Some(queue) = run.place {
            self.queues.begin(queue);
        }
        self.by_job.insert(run.job, request);
        self.runs.insert(request, run);
    }

    /// Nothing when the request is no run: most are none.
    pub(crate) fn end_run(&mut self, request: RequestId) -> Option<Run> {
        if self.runs.is_empty() {
            return None;
        }
        let run = self.runs.remove(&request)?;
        if self.by_job.get(&run.job) == Some(&request) {
            self.by_job.remove(&run.job);
        }
        if let Some(queue) = run.place {
            self.leave(queue);
        }
        Some(run)
    }

    /// A worker still holds the run that is about to end: its place in its queue is not free before that lets it go.
    pub(crate) fn keep_place(&mut self, request: RequestId) -> Option<QueueId> {
        if self.runs.is_empty() {
            return None;
        }
        self.runs.get_mut(&request)?.place.take()
    }

    pub(crate) fn leave(&mut self, queue: QueueId) {
        if self.queues.end(queue) {
            self.pull.hint();
        }
    }

    pub(crate) fn is_run(&self, request: RequestId) -> bool {
        !self.runs.is_empty() && self.runs.contains_key(&request)
    }

    pub(crate) fn run_of(&self, job: JobId) -> Option<RequestId> {
        self.by_job.get(&job).copied()
    }
}
