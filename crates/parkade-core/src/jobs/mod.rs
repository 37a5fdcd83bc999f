//! Jobs: which ones run, how many more are wanted, which requests wait for a job to end, and which responses wait for the store.
//!
//! A job's run is a request that no client sent: it has a life like the others, so its waits, its deadline and its cancelling are theirs. What
//! becomes of the job when that life ends is its [`Verdict`](parkade_model::Verdict).
//!
//! | question | where |
//! |---|---|
//! | a run, how it ended, and what becomes of the job: retried, dead, handed back | `run` |
//! | how many jobs are claimed, and when | `pull` |
//! | `concurrency` and `rate` of a queue | `queues` |
//! | recurring jobs: which times are due | `recurring` |
//! | cancelling a job, wherever it is | `cancels`; its events and effects: `cancel` |
//! | runs that have ended, until the store has recorded it | `run_ends` |
//! | requests that wait for a job, or ask about it | `job_waits`, `watchers` |
//! | clients that may not see a job before the application has decided | `visitors` |
//! | workers that enqueue or publish too fast | `pressure` |

mod cancel;
mod cancels;
mod job_waits;
mod pressure;
mod pull;
mod queues;
mod recurring;
mod run;
mod run_ends;
mod visitors;
mod watchers;

use crate::context::Context;
use crate::event::WorkerError;
use crate::moment::Moment;
pub use cancel::{CancelAnswer, CancelEffect, CancelEvent, CancelId, CancelOutcome};
pub use cancels::{Canceller, Decided};
use cancels::{Cancels, Next, Seen};
pub use job_waits::{Found, Granted, JobWaits, NewJobWait};
use parkade_model::{Ending, Failure, IdMap, JobId, QueueId, Refusal, RequestId, Verdict};
pub use pressure::PressureEvent;
pub use pressure::{Pressure, Reading};
pub use pull::{LeftOut, Pull};
pub use queues::Queues;
pub use recurring::Recurring;
pub use recurring::{RecurringEffect, RecurringEvent, RecurringJob};
pub use run::{Fate, Run};
use run_ends::RunEnds;

#[derive(Debug, Default)]
pub struct Jobs {
    runs: IdMap<RequestId, Run>,
    by_job: IdMap<JobId, RequestId>,
    pub pull: Pull,
    pub queues: Queues,
    pub recurring: Recurring,
    cancels: Cancels,
    run_ends: RunEnds,
    pub pressure: Pressure,
}

impl Jobs {
    pub fn begin_run(&mut self, request: RequestId, run: Run) {
        if let Some(queue) = run.place {
            self.queues.begin(queue);
        }
        self.by_job.insert(run.job, request);
        self.runs.insert(request, run);
    }

    /// The life of the request has ended. Whether it was a run, and the job is completed by it.
    pub fn end_run(&mut self, cx: &mut Context, request: RequestId, ending: Ending) -> bool {
        let Some(run) = self.remove_run(request) else { return false };
        let verdict = run.verdict(ending, &mut cx.random);
        if verdict == Verdict::HandedBack {
            // It is ready again, for the next worker of a server that goes on.
            self.pull.hint();
        }
        self.tell_verdict(cx, request, run.job, verdict);
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
    pub fn run_returned(&mut self, request: RequestId) -> bool {
        let run = self.runs.get_mut(&request);
        run.map(|run| run.fate = Some(Fate::Returned)).is_some()
    }

    /// Its worker has given it up.
    pub fn run_errored(&mut self, request: RequestId, error: WorkerError) {
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

    /// Its wait failed; the shell has the reason.
    pub fn run_failed(&mut self, request: RequestId) {
        self.fail(request, Failure::Raised);
    }

    /// The core could not give the run what it needs.
    pub fn run_refused(&mut self, request: RequestId, refusal: Refusal) {
        self.fail(request, Failure::Refused(refusal));
    }

    fn fail(&mut self, request: RequestId, why: Failure) {
        if let Some(run) = self.runs.get_mut(&request) {
            run.fate.get_or_insert(Fate::Failed { why, after: None });
        }
    }

    /// A worker still holds the run that is about to end: its place in its queue is not free before that lets it go.
    pub fn keep_place(&mut self, request: RequestId) -> Option<QueueId> {
        if self.runs.is_empty() {
            return None;
        }
        self.runs.get_mut(&request)?.place.take()
    }

    pub fn leave(&mut self, queue: QueueId) {
        if self.queues.end(queue) {
            self.pull.hint();
        }
    }

    pub fn is_run(&self, request: RequestId) -> bool {
        !self.runs.is_empty() && self.runs.contains_key(&request)
    }

    pub fn queue_of(&self, run: RequestId) -> Option<QueueId> {
        self.runs.get(&run)?.place
    }

    pub fn run_of(&self, job: JobId) -> Option<RequestId> {
        self.by_job.get(&job).copied()
    }

    pub fn runs(&self) -> impl Iterator<Item = RequestId> {
        self.runs.keys().copied()
    }

    pub fn runs_count(&self) -> usize {
        self.runs.len()
    }

    /// When to look again at jobs that are to be cancelled, and at runs whose end the store could not record.
    pub fn next_due(&self) -> Option<Moment> {
        [self.cancels.next_due(), self.run_ends.next_due()].into_iter().flatten().min()
    }

    /// The time has come.
    pub fn look(&mut self, cx: &mut Context) -> Decided {
        self.run_ends.look(cx);
        let mut decided = Decided::default();
        for job in self.cancels.due(cx.now) {
            let seen = self.seen(job);
            decided = decided.and(self.cancels.begin(cx, job, seen));
        }
        decided
    }

    /// The server has ended. The store may still answer; what it refuses now, the server has it note again as long as it waits for that.
    pub fn stop(&mut self, cx: &mut Context) -> Decided {
        self.cancels.stop(cx)
    }

    /// Somebody who may wants the job to end.
    pub fn want_to_end(&mut self, cx: &mut Context, job: JobId, by: Canceller) -> Decided {
        let seen = self.seen(job);
        self.cancels.want(cx, job, by, seen)
    }

    pub fn cancel(&mut self, cx: &mut Context, event: CancelEvent) -> Decided {
        match event {
            CancelEvent::Wanted { job, by } => self.want_to_end(cx, job, Canceller::Operator(by)),
            CancelEvent::Answered { job, answer } => {
                let seen = self.seen(job);
                self.cancels.answered(cx, job, answer, seen)
            }
            CancelEvent::Found { job, is_over } => {
                let seen = self.seen(job);
                self.cancels.found(cx, job, is_over, seen)
            }
            CancelEvent::Refused { job, payload } => self.cancels.refused(cx, job, payload),
        }
    }

    /// What the store has given is begun, or it could not give anything.
    pub fn claim_answered(&mut self, cx: &mut Context) -> Decided {
        let seen = self.cancels.jobs().into_iter().map(|job| (job, self.seen(job))).collect();
        self.cancels.claim_answered(cx, seen)
    }

    /// Asks the store for jobs.
    pub fn ask(&mut self, cx: &mut Context, count: u32, left_out: &LeftOut) {
        let mut allowed = self.queues.allowances(cx.now);
        allowed.retain(|allowance| !left_out.queues.contains(&allowance.queue));
        self.pull.ask(cx, count, allowed, left_out);
    }

    /// A run has ended: the store records what becomes of its job.
    pub fn tell_verdict(&mut self, cx: &mut Context, request: RequestId, job: JobId, verdict: Verdict) {
        let count = match verdict {
            Verdict::Completed => &mut cx.counts.jobs_completed,
            Verdict::Retry { .. } => &mut cx.counts.jobs_retried,
            Verdict::Dead { .. } => &mut cx.counts.jobs_dead,
            Verdict::Cancelled => &mut cx.counts.jobs_cancelled,
            Verdict::HandedBack => &mut cx.counts.jobs_handed_back,
            Verdict::Unknown => &mut cx.counts.jobs_unknown,
        };
        *count += 1;
        self.run_ends.begin(cx, request, job, verdict);
    }

    /// `is_stale`: the job had been taken from the run, and has not ended by it.
    pub fn run_noted(&mut self, cx: &mut Context, request: RequestId, is_stale: bool) -> Decided {
        match self.run_ends.noted(request) {
            Some((job, _)) if is_stale => self.cancels.end_noted(cx, job, Next::Waits),
            Some((job, next)) => self.cancels.end_noted(cx, job, next),
            None => Decided::default(),
        }
    }

    /// Whoever wants the job to end waits until it is.
    pub fn run_not_noted(&mut self, cx: &mut Context, request: RequestId) {
        self.run_ends.not_noted(cx, request);
    }

    /// Jobs that somebody wants to end.
    pub fn cancels_count(&self) -> usize {
        self.cancels.count()
    }

    /// Runs that have ended, and the store has not noted how.
    pub fn unnoted_count(&self) -> usize {
        self.run_ends.count()
    }

    /// Where a job is that is to end.
    fn seen(&self, job: JobId) -> Seen {
        if let Some(request) = self.run_of(job) {
            return Seen::Runs(request);
        }
        match self.run_ends.next_of(job) {
            Some(next) => Seen::Ends(next),
            None if self.pull.is_asked() => Seen::Claimed,
            None => Seen::Nowhere,
        }
    }
}
