//! Jobs as the world knows them: which are run, whose answers wait for the store, what the shell keeps.

use std::collections::{BTreeMap, BTreeSet};

use parkade_core::{
    Allowance, AppId, Effect, Errand, Failure, HttpEffect, JobCaller, JobId, JobLookup, JobPolicy, Moment, Outcome,
    QueueId, RequestId, StoreEffect, Then, Verdict, Wait, WorkerEffect, WorkerId,
};

use crate::cancels::Cancels;
use crate::model::{Answer, Model, Place, Request, Waiting};
use crate::outputs::HeldOutput;
use crate::store::{Command, Store};

#[derive(Debug, Default)]
pub struct Jobs {
    pub store: Store,
    /// How jobs ended, as long as the shell keeps it.
    pub results: BTreeSet<JobId>,
    /// What the claim that is on its way allows.
    pub claim: Option<Vec<Allowance<QueueId>>>,
    pub bounds: BTreeMap<QueueId, (Option<u32>, Option<f64>)>,
    /// When the jobs of each queue were claimed.
    pub begun: BTreeMap<QueueId, Vec<Moment>>,
    /// Something has happened since the store was asked that is a reason to ask again.
    pub has_reason: bool,
    /// Ghosts that keep a place in a queue.
    pub ghosts_count: usize,
    /// What was allowed of the claim that has just come back, if that gives none either.
    pub vain: Option<Vec<Allowance<QueueId>>>,
    /// So many that wait for workers of one application keep those of a queue from the others.
    pub elsewhere_count_max: usize,
    /// Until then none is begun or claimed, if none ends well before.
    pub put_off: BTreeMap<AppId, Moment>,
    /// Requests for which the store is asked, and about which job.
    pub looked_up: BTreeMap<RequestId, LookedUp>,
    pub cancels: Cancels,
    /// Output of workers that the shell holds, and what it is to hear now.
    pub outputs: BTreeMap<RequestId, HeldOutput>,
    pub released: Option<(RequestId, HeldOutput)>,
    /// The step in hand brings what the store has given.
    pub is_claim_answered: bool,
    /// By the step in hand.
    pub found: Option<(RequestId, JobId, JobLookup)>,
    pub dropped: Option<JobId>,
    pub unfound: Option<RequestId>,
    pub handed_back: BTreeSet<RequestId>,
    /// The server has ended, and what the store still says is told.
    pub settles: bool,
}

/// What a request is that no client sent.
#[derive(Debug, Clone)]
pub struct Run {
    pub job: JobId,
    pub attempt: u32,
    pub queue: QueueId,
    pub policy: Option<JobPolicy>,
    /// A worker has been given it.
    pub begun: bool,
    pub returned: bool,
    /// It does not want to be tried again.
    pub discarded: bool,
    pub verdict: Option<Verdict>,
}

/// What the store is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookedUp {
    pub job: JobId,
    pub asker: JobCaller,
}

/// How far a job is that a request has enqueued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    Pending,
    Stored,
    Failed,
}

impl Request {
    pub fn is_unstored(&self) -> bool {
        self.enqueued.values().any(|enqueued| *enqueued == Enqueued::Pending)
    }

    pub fn has_failed_to_store(&self) -> bool {
        self.enqueued.values().any(|enqueued| *enqueued == Enqueued::Failed)
    }

    /// Its worker is gone and had not touched it. The deadline of a run begins when it does; one that comes with other routes begins now.
    pub fn goes_back(&mut self, now: Moment) {
        self.place = Place::Queue;
        if self.deadline.is_none() {
            self.spell = now;
        }
        if let Some(run) = &mut self.run {
            run.begun &= self.called.is_some();
            self.deadline = None;
        }
    }

    /// Claimed, and no worker has it.
    pub fn is_claimed_only(&self) -> bool {
        self.place == Place::Queue && self.run.as_ref().is_some_and(|run| !run.begun)
    }
}

impl Model {
    pub(crate) fn is_run(&self, id: RequestId) -> bool {
        self.requests.get(&id).is_some_and(|request| request.run.is_some())
    }

    pub(crate) fn apply_of_jobs(&mut self, effect: &Effect) {
        match effect {
            Effect::Store(StoreEffect::ClaimJobs { count, limited }) => self.claim(*count, limited),
            Effect::Worker(WorkerEffect::RunJob { request, worker }) => self.run_job(*request, *worker),
            Effect::Store(StoreEffect::EndRun { request, verdict }) => self.end_run(*request, *verdict),
            Effect::Store(StoreEffect::NoteAgain { request }) => self.note_again(*request),
            Effect::Http(HttpEffect::AnswerCancel { request, job, standing, will_end }) => {
                self.answer_cancel(*request, *job, *standing, *will_end);
            }
            Effect::Store(StoreEffect::LookUpJob { request, job, asker }) => {
                let waiting = self.request(*request).waiting().expect("it waits");
                let is_it = matches!(waiting.wait, Wait::Job { job: asked, .. } | Wait::Visit { job: asked, .. } if asked == *job);
                assert!(is_it, "asked for another");
                self.check_asker(*request, *job, *asker);
                let asked = LookedUp { job: *job, asker: *asker };
                assert_eq!(self.jobs.looked_up.insert(*request, asked), None, "asked again before it was answered");
                self.jobs.store.ask(Command::Find { request: *request, id: *job });
            }
            Effect::Http(HttpEffect::AnswerJob { request, job, standing }) => {
                self.answer_job(*request, *job, *standing);
            }
            Effect::Store(StoreEffect::DropJobResult { job }) => {
                assert!(self.jobs.results.remove(job), "dropped twice");
            }
            _ => panic!("not of jobs: {effect:?}"),
        }
    }

    fn claim(&mut self, count: u32, limited: &[Allowance<QueueId>]) {
        assert!(!self.drains && !self.may_fail, "claimed while the server stops");
        assert!(count > 0 && self.jobs.claim.is_none(), "claimed in vain");
        if let Some(vain) = &self.jobs.vain {
            let none_before = |now: &Allowance<QueueId>| vain.iter().any(|it| it.queue == now.queue && it.count == 0);
            let is_new = |now: &Allowance<QueueId>| now.count > 0 && none_before(now);
            assert!(limited.iter().any(is_new), "claimed again and again");
        }
        self.jobs.has_reason = false;
        for (queue, (concurrency, rate)) in &self.jobs.bounds {
            let allowed = limited.iter().find(|allowed| allowed.queue == *queue).expect("every bound is told").count;
            let running = self.running(*queue) + self.haunting(*queue);
            let places = concurrency.map(|most| most.saturating_sub(running));
            assert!(places.is_none_or(|places| allowed <= places), "more than may run at a time");
            let is_left_out = allowed == 0 && self.is_crowded(*queue);
            assert!(rate.is_some() || is_left_out || places.is_none_or(|places| allowed == places), "a place is lost");
            assert!(rate.is_none_or(|rate| f64::from(allowed) <= rate.max(1.0)), "more than may begin in a second");
        }
        self.jobs.claim = Some(limited.to_vec());
        self.jobs.store.ask(Command::Claim { count, limited: limited.to_vec() });
    }

    /// Whether so many of its jobs wait for workers of one application that nothing of it is claimed.
    fn is_crowded(&self, queue: QueueId) -> bool {
        let waits = |request: &&Request| {
            request.is_claimed_only() && request.run.as_ref().is_some_and(|run| run.queue == queue)
        };
        let mut waiting: BTreeMap<AppId, usize> = BTreeMap::new();
        for request in self.requests.values().filter(waits) {
            *waiting.entry(request.app).or_default() += 1;
        }
        waiting.values().any(|count| *count >= self.jobs.elsewhere_count_max)
    }

    pub fn running(&self, queue: QueueId) -> u32 {
        let of =
            |request: &&Request| request.run.as_ref().is_some_and(|run| run.queue == queue && run.policy.is_some());
        u32::try_from(self.requests.values().filter(of).count()).unwrap()
    }

    /// Of that queue, ended, and held by a worker that may still be at them. Those of one that is just dying are not any more.
    pub fn haunting(&self, queue: QueueId) -> u32 {
        let lives = self.processes.values().filter(|process| Some(process.id) != self.dying);
        let ghosts = lives.flat_map(|process| &process.streams).filter(|stream| stream.ghost);
        u32::try_from(ghosts.filter(|ghost| ghost.queue == Some(queue)).count()).unwrap()
    }

    /// A place that a ghost gives up is a reason to ask for jobs.
    pub fn count_ghosts(&mut self) {
        let streams = self.processes.values().flat_map(|process| &process.streams);
        let count = streams.filter(|stream| stream.ghost && stream.queue.is_some()).count();
        self.jobs.has_reason |= count < self.jobs.ghosts_count;
        self.jobs.ghosts_count = count;
    }

    fn check_that_jobs_may_begin(&self, app: AppId) {
        let until = self.jobs.put_off.get(&app);
        assert!(until.is_none_or(|until| *until <= self.now), "workers died of jobs, and others begin");
    }

    fn run_job(&mut self, id: RequestId, worker: WorkerId) {
        self.check_that_jobs_may_begin(self.requests[&id].app);
        self.returned(id);
        let now = self.now;
        let request = self.request(id);
        assert!(request.is_claimed_only(), "run from elsewhere");
        let run = request.run.as_mut().expect("only runs are run");
        run.begun = true;
        let job = run.job;
        (request.deadline, request.spell) = (None, now);
        request.coroutine = run.policy.is_some_and(|policy| policy.concurrent);
        self.check_that_it_may_run(job);
        self.seen.insert("run");
        self.give(id, worker);
    }

    fn end_run(&mut self, id: RequestId, verdict: Verdict) {
        let (now, stops) = (self.now, self.drains || self.may_fail);
        self.jobs.has_reason = true;
        if verdict == Verdict::HandedBack {
            // The worker dies while the server stops, and had not touched it.
            self.returned(id);
        }
        if let Verdict::Retry { why: Failure::WorkerDied, .. } | Verdict::Dead { why: Failure::WorkerDied } = verdict {
            assert!(self.dying.is_some(), "no worker died");
            self.note_death_of(id);
        }
        if verdict == Verdict::HandedBack {
            self.returned(id);
            self.jobs.handed_back.insert(id);
        }
        let operated = self.operated == Some(id);
        let wanted = self.requests.get(&id).and_then(|request| request.run.as_ref()).map(|run| run.job);
        let is_wanted = wanted.is_some_and(|job| self.may_be_cancelled(job));
        let holder = match &self.request(id).place {
            Place::Worker(worker) => Some(*worker),
            Place::Waiting(waiting) => waiting.worker,
            Place::Queue | Place::Ending => None,
        };
        let drained_at = holder.and_then(|holder| self.processes.get(&holder)?.drained_at);
        let is_drained = drained_at.is_some_and(|until| until <= now);
        let request = self.request(id);
        let is_stored = !request.is_unstored() && !request.has_failed_to_store();
        let (is_claimed_only, late) = (request.is_claimed_only(), request.deadline_at().is_some_and(|at| at <= now));
        let (running, waits) = (matches!(request.place, Place::Worker(_)), request.waiting().is_some());
        let is_published = request.unpublished == 0;
        // It would go on, and new code has no jobs.
        let is_left = !running && !is_claimed_only;
        let run = request.run.as_mut().expect("only runs end as such");
        let mut ends_well = false;
        let (is_last, failed) = match verdict {
            Verdict::Completed => {
                assert!(
                    run.returned && is_stored && is_published,
                    "completed though it has not returned, or said so in vain"
                );
                ends_well = true;
                (false, None)
            }
            Verdict::Retry { why, .. } => (false, Some(why)),
            Verdict::Dead { why } => (true, Some(why)),
            Verdict::Cancelled => {
                assert!(operated || is_wanted, "nobody cancelled it");
                (false, None)
            }
            Verdict::HandedBack => {
                assert!(stops || is_claimed_only || is_drained || is_left, "handed back by a server that goes on");
                (false, None)
            }
            Verdict::Unknown => (false, None),
        };
        if let Some(policy) = run.policy.filter(|_| failed.is_some()) {
            let tired = run.attempt > policy.retries;
            assert_eq!(tired || run.discarded, is_last, "tried again too often, or not often enough");
        }
        if failed == Some(Failure::DeadlinePassed) && !waits {
            assert!(late, "ended before its deadline, or while it was queued");
        }
        assert_eq!(run.verdict.replace(verdict), None, "two verdicts");
        let (job, attempt, app) = (run.job, run.attempt, request.app);
        if ends_well {
            self.jobs.put_off.remove(&app);
        }
        self.jobs.store.ask(Command::End { request: id, id: job, attempt, verdict, now });
        self.seen.insert(match verdict {
            Verdict::Completed => "completed job",
            Verdict::Retry { .. } => "tried again",
            Verdict::Dead { .. } => "dead",
            Verdict::Cancelled => "cancelled job",
            Verdict::HandedBack => "handed back",
            Verdict::Unknown => "stranger",
        });
    }

    fn answer_job(&mut self, id: RequestId, job: JobId, standing: JobLookup) {
        let waiting = self.request(id).waiting().expect("it waited").clone();
        assert_eq!(waiting.then, Then::Answer);
        self.check_of_jobs(id, &waiting, Outcome::Job { job, standing });
        self.answer(id, Answer::Awaited, Answer::Ended);
    }

    /// What somebody is told of a job, or of the store.
    pub(crate) fn check_of_jobs(&mut self, id: RequestId, waiting: &Waiting, outcome: Outcome) {
        let (now, drains) = (self.now, self.drains);
        match (outcome, &waiting.wait) {
            (Outcome::Stored, Wait::Stored) => {
                let request = &self.requests[&id];
                assert!(!request.is_unstored() && !request.has_failed_to_store(), "told that it is stored");
                self.seen.insert("awaited the store");
            }
            (Outcome::Refused { refusal }, Wait::Stored) => {
                use parkade_core::Refusal::{StoreFull, StoreUnavailable};
                let request = self.request(id);
                if matches!(refusal, StoreFull | StoreUnavailable) {
                    assert!(!request.is_unstored() && request.has_failed_to_store(), "told that it is not stored");
                    request.enqueued.clear();
                }
            }
            (
                Outcome::Refused { refusal: parkade_core::Refusal::StoreUnreadable },
                Wait::Job { .. } | Wait::Visit { .. },
            ) => {
                assert_eq!(self.jobs.unfound, Some(id), "the store has not said so");
                self.seen.insert("not looked up");
            }
            (Outcome::Job { job, standing: JobLookup::Missing }, Wait::Visit { job: asked, .. })
                if self.requests[&id].visit.as_ref().is_some_and(|visit| visit.is_turned_away) =>
            {
                assert_eq!(job, *asked, "told of another job");
                self.seen.insert("turned away");
            }
            (
                Outcome::Job { job, standing: JobLookup::Missing },
                Wait::Visit { job: asked, errand: Errand::Events { .. } },
            ) => {
                let found = self.jobs.found == Some((id, job, JobLookup::Missing));
                assert!(job == *asked && (found || self.jobs.dropped == Some(job)), "not told by the store");
                self.seen.insert("followed in vain");
            }
            (
                Outcome::Job { job, standing },
                Wait::Job { job: asked, timeout } | Wait::Visit { job: asked, errand: Errand::Result { timeout } },
            ) => {
                assert_eq!(job, *asked, "told of another job");
                assert!(self.may_know(id, waiting, standing), "told of a job of which nobody has said that it may be");
                let found = self.jobs.found == Some((id, job, standing));
                let in_a_hurry = drains || timeout.is_some_and(|timeout| timeout.is_zero());
                match standing {
                    JobLookup::Ended => assert!(self.jobs.results.contains(&job), "told of an end that is not there"),
                    JobLookup::Pending => {
                        assert!(in_a_hurry || waiting.due().is_some_and(|due| due <= now), "told too early");
                    }
                    JobLookup::Missing => {
                        assert!(found || self.jobs.dropped == Some(job), "told what the store has not said");
                    }
                }
                self.seen.insert(match standing {
                    JobLookup::Ended => "job ended",
                    JobLookup::Pending => "job pending",
                    JobLookup::Missing => "job missing",
                });
            }
            (Outcome::Stored | Outcome::Job { .. }, _) => panic!("{outcome:?} for {waiting:?}"),
            _ => {}
        }
    }

    /// Promise 9: who is told that all is well has everything stored.
    pub(crate) fn acknowledge(&mut self, id: RequestId) {
        let request = &self.requests[&id];
        assert!(request.run.is_none(), "a run is answered");
        for (job, enqueued) in &request.enqueued {
            assert_eq!(*enqueued, Enqueued::Stored, "answered before {job:?} was stored");
            let store = &mut self.jobs.store;
            if !store.dropped.contains(job) {
                assert!(store.jobs.contains_key(job), "acknowledged and not there");
                store.acknowledged.insert(*job);
            }
            self.seen.insert("acknowledged");
        }
    }

    /// Whether something that the request has enqueued is not stored yet.
    pub(crate) fn is_unstored(&self, id: RequestId) -> bool {
        self.requests.get(&id).is_some_and(Request::is_unstored)
    }

    /// The answer is here, and waits for the store: the worker has let go of it.
    pub(crate) fn hold(&mut self, id: RequestId) {
        let now = self.now;
        let Some(request) = self.requests.get_mut(&id).filter(|request| request.is_unstored()) else { return };
        let mut waiting = Waiting::new(Wait::Stored, Then::Answer, None, now, crate::queries::Asked::default());
        waiting.asked.until = request.deadline_at();
        (request.place, request.kept) = (Place::Waiting(waiting), false);
        (request.holds, request.holds_job) = (None, None);
        self.drop_body(id);
        self.seen.insert("held");
    }
}
