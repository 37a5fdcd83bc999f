//! Jobs: which are being run, how many more are wanted, who waits for one to end, whose answer waits for the store.
//!
//! A job's run is a request that no client sent: it has a life like the others, so its waits, its deadline and its cancelling are theirs. What
//! becomes of the job when that life ends is its [`Verdict`](parkade_model::Verdict).

mod claiming;
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

use crate::context::Context;
use crate::effect::{Effect, StoreEffect};
use crate::event::WorkerError;
pub use enqueued::EnqueuedJobs;
pub use job_waits::{Granted, JobWaits, NewJobWait};
use parkade_model::{Ending, Failure, JobId, QueueId, Refusal, RequestId, Verdict};
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
    runs: HashMap<RequestId, Run>,
    by_job: HashMap<JobId, RequestId>,
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

    /// The life of the request has ended. Whether it was a run, and the job is completed by it.
    pub(crate) fn end_run(&mut self, cx: &mut Context, request: RequestId, ending: Ending) -> bool {
        let Some(run) = self.remove_run(request) else { return false };
        let verdict = run.verdict(ending, &mut cx.random);
        if verdict == Verdict::HandedBack {
            // It is ready again, for the next worker of a server that goes on.
            self.pull.hint();
        }
        tell_verdict(cx, request, verdict);
        verdict == Verdict::Completed
    }

    /// Nothing when the request is no run: most are none.
    fn remove_run(&mut self, request: RequestId) -> Option<Run> {
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

    /// Its code has returned, and all that it enqueued is stored. Returns whether the request is a run.
    pub(crate) fn run_returned(&mut self, request: RequestId) -> bool {
        let run = self.runs.get_mut(&request);
        run.map(|run| run.fate = Some(Fate::Returned)).is_some()
    }

    /// Its worker has given it up.
    pub(crate) fn run_errored(&mut self, request: RequestId, error: WorkerError) {
        let Some(run) = self.runs.get_mut(&request) else { return };
        let failed = |why| Fate::Failed { why, after: None };
        run.fate = Some(match error {
            WorkerError::Application | WorkerError::Cancelled => failed(Failure::Raised),
            WorkerError::Overloaded => failed(Failure::Refused(Refusal::WorkerOverloaded)),
            WorkerError::BadAnswer => failed(Failure::Refused(Refusal::BadAnswer)),
            WorkerError::Retry { after } => Fate::Failed { why: Failure::Raised, after },
            WorkerError::Discarded => Fate::Discarded,
            WorkerError::UnknownJob => Fate::Unknown,
        });
    }

    /// What it waited for failed; the shell has what is said of it.
    pub(crate) fn run_failed(&mut self, request: RequestId) {
        self.fail(request, Failure::Raised);
    }

    /// The core could not give the run what it needs.
    pub(crate) fn run_refused(&mut self, request: RequestId, refusal: Refusal) {
        self.fail(request, Failure::Refused(refusal));
    }

    fn fail(&mut self, request: RequestId, why: Failure) {
        if let Some(run) = self.runs.get_mut(&request) {
            run.fate.get_or_insert(Fate::Failed { why, after: None });
        }
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

    pub(crate) fn runs(&self) -> impl Iterator<Item = RequestId> {
        self.runs.keys().copied()
    }

    pub(crate) fn runs_count(&self) -> usize {
        self.runs.len()
    }
}

/// A run has ended: the store is told what becomes of its job.
pub(crate) fn tell_verdict(cx: &mut Context, request: RequestId, verdict: Verdict) {
    let count = match verdict {
        Verdict::Completed => &mut cx.counts.jobs_completed,
        Verdict::Retry { .. } => &mut cx.counts.jobs_retried,
        Verdict::Dead { .. } => &mut cx.counts.jobs_dead,
        Verdict::Cancelled => &mut cx.counts.jobs_cancelled,
        Verdict::HandedBack => &mut cx.counts.jobs_handed_back,
        Verdict::Unknown => &mut cx.counts.jobs_unknown,
    };
    *count += 1;
    cx.effects.push(Effect::Store(StoreEffect::EndRun { request, verdict }));
}
