//! Jobs: what the seed makes workers and the store do with them.

use std::time::Duration;

use parkade_core::{
    ClaimedJob, Errand, Event, Extent, JobCaller, JobId, JobLookup, Output, Publisher, QueueBounds, QueueId, RequestId,
    Then, Wait, WorkerError,
};

use crate::cancels::Unnoted;
use crate::jobs::{Enqueued, Run};
use crate::model::{Place, Request, Waiting};
use crate::process::{Process, Stream};
use crate::queries::Asked;
use crate::settings::is_guarded;
use crate::store::{Claimed, Command, JOBS_COUNT_MAX, Reply, State};
use crate::workers::is_chosen;
use crate::world::World;

impl World {
    pub(crate) fn works_on_a_run(&mut self, process: &Process, stream: Stream) {
        let (worker, request) = (process.id, stream.request);
        let is_held_back = self.model.is_unstored(request);
        let is_open = self.model.databases.lease_of(request).is_some();
        if self.random.below(if self.jobs_are_deadly { 2 } else { 30 }) == 0 {
            // Its code ends the process.
            return self.exits(process);
        }
        if !stream.begun && is_chosen(request) {
            self.hints(process, stream);
        }
        match (stream.begun, self.random.below(20)) {
            (true, _) if is_held_back => self.says(process, stream, Output::End),
            (true, _) => self.closes(process, Event::AnswerEnded { worker, request, trailers: None }),
            (false, 0..8) => {
                self.model.request(request).run.as_mut().unwrap().returned = true;
                self.closes(process, Event::JobReturned { worker, request });
            }
            (false, 8..11) => {
                let after = (self.random.below(2) == 0).then(|| Duration::from_millis(self.random.below(900)));
                let errors = [
                    WorkerError::Application,
                    WorkerError::Retry { after },
                    WorkerError::Discarded,
                    WorkerError::Overloaded,
                    WorkerError::UnknownJob,
                ];
                let error = *self.one_of(&errors);
                self.model.request(request).run.as_mut().unwrap().discarded = error == WorkerError::Discarded;
                self.closes(process, Event::Errored { worker, request, error });
            }
            (false, 11 | 12) if is_open => self.enqueues_within(process, request, false),
            (false, 11 | 12) => self.enqueues(process, stream.request, !stream.ghost),
            (false, 13) => self.publish(Some(Publisher { worker, request, number: None })),
            (false, 14) if !is_held_back => {
                self.model.process(worker).stream(request).unwrap().begun = true;
                self.tell(Event::Answered { worker, request, payload: self.payload(), extent: Extent::Begun });
            }
            (false, 15) if is_held_back && !is_open => self.says(process, stream, Output::Wait),
            (false, 16) if is_held_back => self.says(process, stream, Output::Head),
            (false, _) if is_held_back => self.awaits_the_store(process, stream),
            (false, _) => self.parks(process, stream),
        }
    }

    /// `is_wanted`: the request has not ended.
    pub(crate) fn enqueues(&mut self, process: &Process, id: RequestId, is_wanted: bool) {
        let (now, is_full) = (self.now, self.model.jobs.store.jobs.len() > JOBS_COUNT_MAX);
        if is_full {
            return;
        }
        let (job, stored) = self.model.jobs.store.mint(&mut self.random, now);
        if is_wanted {
            self.model.request(id).enqueued.insert(job, Enqueued::Pending);
        }
        let by = self.enqueuer(Some(process.id));
        self.model.jobs.store.ask(Command::Enqueue { by, request: is_wanted.then_some(id), id: job, job: stored });
        assert_eq!(self.core.awaits_write(process.id, id), is_wanted, "{id:?} is there, or not");
        if is_wanted {
            self.tell(Event::JobEnqueued { request: id });
        }
        self.write_began(by);
    }

    pub(crate) fn awaits_the_store(&mut self, process: &Process, stream: Stream) {
        let (worker, request, now) = (process.id, stream.request, self.now);
        if !process.concurrent || stream.begun || stream.ghost {
            return self.time_passes();
        }
        self.model.close(now, worker, request);
        let parked = self.model.request(request);
        let until = parked.deadline.map(|deadline| now + deadline);
        let mut waiting = Waiting::new(Wait::Stored, Then::Await, Some(worker), now, Asked::default());
        waiting.asked.until = until;
        (parked.place, parked.kept) = (Place::Waiting(waiting), false);
        (parked.holds, parked.holds_job) = (None, None);
        self.model.process(worker).awaiting.push(request);
        self.tell(Event::Parked { worker, request, wait: Wait::Stored, then: Then::Await, payload: self.payload() });
    }

    pub(crate) fn the_store_acts(&mut self) {
        if self.store_stands_still() {
            return self.time_passes();
        }
        let (now, answers) = (self.now, self.model.jobs.store.answers.len() as u64);
        if answers == 0 || self.random.below(2) == 0 {
            return self.model.jobs.store.act(now, &mut self.random);
        }
        let nth = usize::try_from(self.random.below(answers)).unwrap();
        let reply = self.model.jobs.store.answers.swap_remove(nth);
        self.note(|| format!("store {reply:?}"));
        self.hears(reply);
    }

    pub(crate) fn hears(&mut self, reply: Reply) {
        match reply {
            Reply::Enqueued { by, request, id, fault, due } => {
                self.write_ended(by);
                if fault.is_none() {
                    self.tell(Event::JobsReady { after: due.map(|due| due - self.now) });
                }
                let Some(request) = request else { return };
                let how = if fault.is_none() { Enqueued::Stored } else { Enqueued::Failed };
                let waiting = self.model.requests.get_mut(&request);
                if let Some(enqueued) = waiting.and_then(|request| request.enqueued.get_mut(&id)) {
                    *enqueued = how;
                }
                self.tell(Event::JobStored { request, fault });
                self.hears_what_was_held();
            }
            Reply::Claimed(claimed) => self.hears_claimed(claimed),
            Reply::Ended { request, id, for_good, is_ready, due } => {
                self.tell(Event::RunNoted { request, is_stale: false });
                if is_ready {
                    self.tell(Event::JobsReady { after: None });
                }
                if let Some(due) = due {
                    self.tell(Event::JobsReady { after: Some(due - self.now) });
                }
                if for_good && self.core.is_watched(id) {
                    self.has_ended(id);
                }
            }
            Reply::NotEnded { request, id, attempt, verdict } => {
                self.model
                    .jobs
                    .cancels
                    .unnoted
                    .insert(request, Unnoted { refused_at: self.now, job: id, attempt, verdict });
                self.tell(Event::RunNotNoted { request });
            }
            Reply::Cancelled { id, answer } => self.hears_cancelled(id, answer),
            Reply::FoundCancelled { id, is_over } => self.hears_of_cancelled(id, is_over),
            Reply::Found { request, id, standing } => self.hears_found(request, id, standing),
            Reply::Schedules(last) => self.hears_schedules(last),
            Reply::Recurred { name, at, changed } => self.hears_recurred(name, at, changed),
        }
    }

    pub(crate) fn has_ended(&mut self, id: JobId) {
        self.model.jobs.results.insert(id);
        self.tell(Event::JobEnded { job: id });
        let is_asked = self.model.jobs.looked_up.values().any(|asked| asked.job == id);
        let is_being_cancelled = self.model.is_ended_for_a_client(id);
        assert!(is_asked || is_being_cancelled || !self.core.is_watched(id), "somebody still waits for {id:?}");
    }

    fn hears_claimed(&mut self, claimed: Option<Claimed>) {
        let allowed = self.model.jobs.claim.take().expect("nobody else has asked");
        let Some(Claimed { jobs, more, next }) = claimed else {
            self.model.seen.insert("jobs not claimed");
            return self.tell(Event::JobsNotClaimed);
        };
        let jobs: Vec<ClaimedJob> = jobs.into_iter().map(|id| self.claimed(id)).collect();
        let next = next.map(|next| next - self.now);
        let is_due = next.is_some_and(|next| next.is_zero());
        let is_vain = jobs.is_empty() && !more && !is_due && !self.model.jobs.has_reason;
        self.model.jobs.vain = Some(allowed).filter(|_| is_vain);
        self.model.jobs.is_claim_answered = true;
        self.tell(Event::JobsClaimed { jobs, more, next });
        self.model.jobs.is_claim_answered = false;
        self.model.jobs.vain = None;
    }

    fn claimed(&mut self, id: JobId) -> ClaimedJob {
        let (now, request) = (self.now, self.slot());
        let job = self.model.jobs.store.jobs[&id].clone();
        let (attempt, queue) = (job.attempt, job.queue);
        let apps = self.core.status(now).apps;
        let policy = job.policy.filter(|policy| apps.len() == 1 || apps[usize::from(policy.app.0)].runs_jobs);
        let mut run = Request::new(policy.map(|policy| policy.app).unwrap_or_default(), "", now);
        run.run = Some(Run {
            job: id,
            attempt,
            queue,
            policy,
            begun: false,
            returned: false,
            discarded: false,
            verdict: None,
        });
        self.model.requests.insert(request, run);
        self.model.jobs.begun.entry(queue).or_default().push(now);
        ClaimedJob { request, job: id, attempt, queue, policy }
    }

    fn hears_found(&mut self, request: RequestId, id: JobId, standing: Option<JobLookup>) {
        let asked = self.model.jobs.looked_up.remove(&request).expect("it was asked");
        let Some(standing) = standing else {
            self.model.jobs.unfound = Some(request);
            self.tell(Event::JobNotLookedUp { request });
            self.model.jobs.unfound = None;
            return;
        };
        if asked.asker == JobCaller::Visitor && standing != JobLookup::Missing && is_guarded(id) {
            return self.hears_that_it_is_guarded(request);
        }
        if standing == JobLookup::Ended {
            self.model.jobs.results.insert(id);
        }
        self.model.jobs.found = Some((request, id, standing));
        if standing == JobLookup::Pending {
            self.model.wants_to_end(request, id);
        }
        self.tell(Event::JobFound { request, standing });
        self.model.jobs.found = None;
        let waiting = self.model.requests.get(&request).and_then(|request| request.waiting());
        let only_asks = |waiting: &Waiting| match waiting.wait {
            Wait::Job { job, timeout } | Wait::Visit { job, errand: Errand::Result { timeout } } => {
                job == id && timeout.is_some_and(|timeout| timeout.is_zero())
            }
            Wait::Visit { errand: Errand::Cancel, .. } => false,
            Wait::Visit { job, .. } => job == id,
            _ => false,
        };
        let asks_again = self.model.jobs.looked_up.contains_key(&request);
        assert!(asks_again || !waiting.is_some_and(only_asks), "it only asked, and waits");
    }

    pub(crate) fn operator_drops_a_job(&mut self) {
        let job = self.some_job();
        let jobs = &mut self.model.jobs;
        if jobs.store.jobs.get(&job).is_none_or(|known| matches!(known.state, State::Running | State::Elsewhere { .. }))
        {
            return;
        }
        jobs.store.jobs.remove(&job);
        jobs.store.acknowledged.remove(&job);
        jobs.store.dropped.insert(job);
        if self.core.is_watched(job) {
            self.model.seen.insert("job dropped");
            self.model.jobs.dropped = Some(job);
            self.tell(Event::JobDropped { job });
            self.model.jobs.dropped = None;
            assert!(!self.core.is_watched(job), "somebody still waits for {job:?}");
        }
    }

    /// Of those that were ever enqueued, or none; often one that runs.
    pub(crate) fn some_job(&mut self) -> JobId {
        let runs = |job: &crate::store::Job| matches!(job.state, State::Running | State::Elsewhere { .. });
        let running = self.model.jobs.store.jobs.iter().filter(|(_, job)| runs(job)).map(|(id, _)| *id);
        let running: Vec<JobId> = running.collect();
        if !running.is_empty() && self.random.below(12) == 0 {
            return *self.one_of(&running);
        }
        let minted = u64::try_from(self.model.jobs.store.minted).unwrap();
        JobId::new((minted - self.random.below(minted.min(12) + 1)).into())
    }

    pub(crate) fn queue_bounds(&mut self) {
        let mut queues = Vec::new();
        for (queue, concurrency, rate) in crate::settings::BOUNDS {
            let queue = QueueId(queue);
            self.model.jobs.bounds.insert(queue, (concurrency, rate));
            queues.push(QueueBounds { queue, concurrency, rate });
        }
        self.tell(Event::QueuesConfigured { queues });
    }
}
