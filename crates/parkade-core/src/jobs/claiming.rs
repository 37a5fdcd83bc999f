//! Runs of jobs: claimed, given to a worker, ended.

use std::time::Duration;

use crate::bell::Bell;
use crate::core::Core;
use crate::effect::{Effect, ServerEffect, StoreEffect};
use crate::jobs::Run;
use crate::limits::{CLAIM_PAUSE, CLAIMED_EARLY, CLAIMED_IN_VAIN, JOB_RESCUES_MAX};
use crate::moment::Moment;
use crate::requests::{Happening, Times};
use parkade_model::{ClaimedJob, Ending, Failure, JobId, JobPolicy, Reason, Verdict};

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
        let waiting = u32::try_from(self.requests.waiting_runs_count()).unwrap_or(u32::MAX);
        (room + self.jobs.pull.ahead()).saturating_sub(waiting)
    }

    fn first_waits_since(&self) -> Option<Moment> {
        self.requests.first_waiting_runs().map(|(_, since)| since).min()
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
        let is_late = |core: &Self, since| core.cx.now - since >= CLAIMED_IN_VAIN;
        loop {
            let late = self.requests.first_waiting_runs().find(|&(_, since)| is_late(self, since));
            let Some((first, _)) = late else { break };
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
            if self.requests.waiting_runs_count() == 0 {
                self.jobs.pull.was_late();
            }
        }
        for job in jobs {
            self.begin_run(job);
        }
        let decided = self.jobs.claim_answered(&mut self.cx);
        self.end_as_decided(decided);
        let another = self.jobs.queues.claimed(self.cx.now, &allowed, claimed);
        for due in another.into_iter().chain(next.map(|next| self.cx.now + next)) {
            self.expect_jobs(due);
        }
    }

    pub(crate) fn jobs_not_claimed(&mut self) {
        self.jobs.pull.asked = None;
        let decided = self.jobs.claim_answered(&mut self.cx);
        self.end_as_decided(decided);
        self.expect_jobs(self.cx.now + CLAIM_PAUSE);
    }

    fn begin_run(&mut self, claimed: &ClaimedJob) {
        let ClaimedJob { request, job, attempt, queue, policy } = *claimed;
        self.cx.counts.jobs_claimed += 1;
        let is_vacant = self.requests.is_vacant(request);
        let kills = |policy: JobPolicy| attempt > policy.retries.saturating_add(1 + JOB_RESCUES_MAX);
        let unrun = match policy {
            None => Some(Verdict::Unknown),
            Some(policy) if kills(policy) => Some(Verdict::Dead { why: Failure::ServerDied }),
            Some(_) => None,
        };
        let (Some(JobPolicy { concurrent, retries, deadline }), None, true) = (policy, unrun, is_vacant) else {
            self.jobs.tell_verdict(&mut self.cx, request, job, unrun.unwrap_or(Verdict::HandedBack));
            self.cx.effects.push(Effect::Server(ServerEffect::Forget {
                request,
                ending: Ending::Done,
                times: Times::default(),
            }));
            if !is_vacant {
                self.expect_jobs(self.cx.now + CLAIM_PAUSE);
            }
            return;
        };
        self.jobs.begin_run(request, Run { job, attempt, place: Some(queue), retries, fate: None });
        self.with_requests(|requests, with| requests.begin_run(with, request, concurrent, deadline));
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
