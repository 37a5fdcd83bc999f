//! Runs of jobs: claimed, given to a worker, ended.

use std::time::Duration;

use crate::core::Core;
use crate::effect::{Effect, ServerEffect, StoreEffect};
use crate::event::WorkerError;
use crate::jobs::{Fate, Run};
use crate::life::Times;
use crate::life::happening::Happening;
use crate::life::journey::Journey;
use crate::life::{Bell, Life, Routed, Running, Work};
use crate::limits::{CLAIM_PAUSE, CLAIMED_EARLY, CLAIMED_IN_VAIN, JOB_RESCUES_MAX};
use crate::moment::Moment;
use parkade_model::{ClaimedJob, Ending, Failure, JobId, JobPolicy, Reason, Refusal, RequestId, Verdict};

impl Core {
    pub(crate) fn jobs_ready(&mut self, after: Option<Duration>) {
        self.expect_jobs(self.cx.now + after.unwrap_or_default());
    }

    /// There may be some at that moment, if not before. A server that stops expects none.
    fn expect_jobs(&mut self, due: Moment) {
        if !self.fleet.is_open() {
            return;
        }
        if due <= self.cx.now {
            return self.jobs.pull.hint();
        }
        if let Some(alarm) = self.jobs.pull.alarm {
            if self.cx.timers.due(alarm) <= due {
                return;
            }
            self.cx.timers.clear(alarm);
        }
        self.jobs.pull.alarm = Some(self.cx.timers.set(due, Bell::JobsReady));
    }

    /// At the exit: no alarm rings any more.
    pub(crate) fn expect_no_jobs(&mut self) {
        for alarm in [self.jobs.pull.alarm.take(), self.jobs.pull.in_vain.take()].into_iter().flatten() {
            self.cx.timers.clear(alarm);
        }
    }

    pub(crate) fn jobs_due(&mut self) {
        self.jobs.pull.alarm = None;
        self.jobs.pull.hint();
    }

    /// Asks the store for jobs when there may be some and workers could begin them.
    pub(crate) fn pull_jobs(&mut self) {
        if !self.jobs.pull.may_ask() || !self.fleet.is_open() {
            return;
        }
        let count = self.jobs_wanted();
        if count == 0 {
            return;
        }
        let limited = self.jobs.queues.allowances(self.cx.now);
        self.jobs.pull.is_hinted = false;
        self.jobs.pull.asked = Some(limited.clone());
        self.cx.effects.push(Effect::Store(StoreEffect::ClaimJobs { count, limited }));
    }

    fn jobs_wanted(&mut self) -> u32 {
        let Some(room) = self.fleet.room_for_jobs(self.cx.now) else { return 0 };
        if self.first_waits_since().is_some_and(|since| self.cx.now - since > CLAIMED_EARLY) {
            self.jobs.pull.was_early();
            return 0;
        }
        let waiting = u32::try_from(self.jobs.waiting.count()).unwrap_or(u32::MAX);
        (room + self.jobs.pull.ahead()).saturating_sub(waiting)
    }

    fn first_waits_since(&self) -> Option<Moment> {
        self.jobs.waiting.firsts().into_iter().flatten().filter_map(|first| self.queued_since(first)).min()
    }

    /// Whoever waits here for a worker is to be looked at in time. An application with jobs of both kinds has room for the one while the other
    /// waits: what goes back would come again at once.
    pub(crate) fn watch_the_waiting(&mut self) {
        let jobs = self.fleet.declared_jobs();
        if self.jobs.pull.in_vain.is_some() || jobs.plain && jobs.coroutines || !self.fleet.is_open() {
            return;
        }
        if let Some(since) = self.first_waits_since() {
            let due = self.cx.now.max(since + CLAIMED_IN_VAIN);
            self.jobs.pull.in_vain = Some(self.cx.timers.set(due, Bell::ClaimedInVain));
        }
    }

    pub(crate) fn claimed_in_vain(&mut self) {
        self.jobs.pull.in_vain = None;
        let is_late =
            |core: &Self, first| core.queued_since(first).is_some_and(|since| core.cx.now - since >= CLAIMED_IN_VAIN);
        while let Some(first) = self.jobs.waiting.firsts().into_iter().flatten().find(|&first| is_late(self, first)) {
            self.jobs.pull.was_in_vain();
            self.turn(first, Happening::Cancelled(Reason::Stopping));
        }
    }

    pub(crate) fn jobs_claimed(&mut self, jobs: &[ClaimedJob], more: bool, next: Option<Duration>) {
        let allowed = self.jobs.pull.asked.take().unwrap_or_default();
        let of = |queue| jobs.iter().filter(|job| job.queue == queue).count();
        let claimed = |queue| u32::try_from(of(queue)).unwrap_or(u32::MAX);
        if more {
            self.jobs.pull.hint();
            if self.jobs.waiting.is_empty() {
                self.jobs.pull.was_late();
            }
        }
        for job in jobs {
            self.begin_run(job);
        }
        let another = self.jobs.queues.claimed(self.cx.now, &allowed, claimed);
        for due in another.into_iter().chain(next.map(|next| self.cx.now + next)) {
            self.expect_jobs(due);
        }
    }

    pub(crate) fn jobs_not_claimed(&mut self) {
        self.jobs.pull.asked = None;
        self.expect_jobs(self.cx.now + CLAIM_PAUSE);
    }

    fn begin_run(&mut self, claimed: &ClaimedJob) {
        let ClaimedJob { request, job, attempt, queue, policy } = *claimed;
        self.cx.counts.jobs_claimed += 1;
        let vacant = self.lives.vacant(request);
        let kills = |policy: JobPolicy| attempt > policy.retries.saturating_add(1 + JOB_RESCUES_MAX);
        let unrun = match policy {
            None => Some(Verdict::Unknown),
            Some(policy) if kills(policy) => Some(Verdict::Dead { why: Failure::ServerDied }),
            Some(_) => None,
        };
        let (Some(JobPolicy { concurrent, retries, deadline }), None, Ok(())) = (policy, unrun, vacant) else {
            self.tell_verdict(request, unrun.unwrap_or(Verdict::HandedBack));
            self.cx.effects.push(Effect::Server(ServerEffect::Forget {
                request,
                ending: Ending::Done,
                times: Times::default(),
            }));
            if vacant.is_err() {
                self.expect_jobs(self.cx.now + CLAIM_PAUSE);
            }
            return;
        };
        self.jobs.begin_run(request, Run { job, attempt, place: Some(queue), retries, fate: None });
        let journey = Journey::new(self.cx.now, deadline.into(), None);
        let place = self.jobs.waiting.line(concurrent).push_back(request);
        self.lives.begin(request, Life::Routed(Routed { journey, place, work: Work::Job { concurrent } }));
        if !self.fleet.is_open() {
            self.turn(request, Happening::Cancelled(Reason::Stopping));
        }
    }

    /// `RESULT`. What the run has enqueued is stored before the store hears that it is done.
    pub(crate) fn job_returned(&mut self, request: RequestId, life: Running) -> Life {
        let is_held = self.is_unstored(request) || self.waits.fault_of(request).is_some();
        match self.jobs.runs.get_mut(&request) {
            None => self.errored(request, life, WorkerError::BadAnswer),
            Some(_) if is_held => self.hold_answer(request, life, None),
            Some(run) => {
                run.fate = Some(Fate::Returned);
                self.finish(request, life)
            }
        }
    }

    pub(crate) fn run_errored(&mut self, request: RequestId, error: WorkerError) {
        let Some(run) = self.jobs.runs.get_mut(&request) else { return };
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
        if let Some(run) = self.jobs.runs.get_mut(&request) {
            run.fate.get_or_insert(Fate::Failed { why: Failure::Raised, after: None });
        }
    }

    /// The core could not give the run what it needs.
    pub(crate) fn run_refused(&mut self, request: RequestId, refusal: Refusal) {
        if let Some(run) = self.jobs.runs.get_mut(&request) {
            run.fate.get_or_insert(Fate::Failed { why: Failure::Refused(refusal), after: None });
        }
    }

    /// The life of a run has ended.
    pub(crate) fn end_run(&mut self, request: RequestId, run: &Run, ending: Ending) {
        let verdict = run.verdict(ending, &mut self.cx.random);
        match verdict {
            Verdict::Completed => self.fleet.note_completed_run(),
            // It is ready again, for the next worker of a server that goes on.
            Verdict::HandedBack => self.jobs.pull.hint(),
            Verdict::Retry { .. } | Verdict::Dead { .. } | Verdict::Cancelled | Verdict::Unknown => {}
        }
        self.tell_verdict(request, verdict);
    }

    fn tell_verdict(&mut self, request: RequestId, verdict: Verdict) {
        let count = match verdict {
            Verdict::Completed => &mut self.cx.counts.jobs_completed,
            Verdict::Retry { .. } => &mut self.cx.counts.jobs_retried,
            Verdict::Dead { .. } => &mut self.cx.counts.jobs_dead,
            Verdict::Cancelled => &mut self.cx.counts.jobs_cancelled,
            Verdict::HandedBack => &mut self.cx.counts.jobs_handed_back,
            Verdict::Unknown => &mut self.cx.counts.jobs_unknown,
        };
        *count += 1;
        self.cx.effects.push(Effect::Store(StoreEffect::EndRun { request, verdict }));
    }

    /// Nobody will begin them here, or not soon: another start, or another machine, does.
    pub(crate) fn hand_back_waiting(&mut self) {
        let waiting: Vec<RequestId> = self.jobs.waiting.values().collect();
        for request in waiting {
            self.turn(request, Happening::Cancelled(Reason::Stopping));
        }
    }

    /// The code that serves has no jobs any more: what is left is another server's, or the next reload's.
    pub(crate) fn hand_back_resuming(&mut self) {
        let resuming: Vec<RequestId> = self.jobs.resuming.values().collect();
        for request in resuming {
            self.turn(request, Happening::Cancelled(Reason::Stopping));
        }
    }

    pub(crate) fn job_cancelled(&mut self, job: JobId) {
        if let Some(request) = self.jobs.run_of(job) {
            self.turn(request, Happening::Cancelled(Reason::Operator));
        }
    }

    /// How long no job begins here, because workers of jobs keep dying, and none is there.
    #[must_use]
    pub fn jobs_put_off(&self, now: Moment) -> Option<Duration> {
        self.fleet.jobs_put_off(now)
    }

    /// Whether jobs of that queue run, or it has bounds: else nobody knows its number any more.
    #[must_use]
    pub fn knows_queue(&self, queue: parkade_model::QueueId) -> bool {
        self.jobs.queues.knows(queue)
    }

    /// Whether this core runs that job, or is about to.
    #[must_use]
    pub fn runs_job(&self, job: JobId) -> bool {
        self.jobs.run_of(job).is_some()
    }
}
