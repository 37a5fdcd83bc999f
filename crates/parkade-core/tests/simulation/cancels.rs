//! Jobs that operators and clients end while the store gives them away, another server runs them, or how they ended cannot be noted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parkade_core::limits::{CANCEL_PAUSE_MIN, CANCEL_TRIES_COUNT, NOTE_PAUSE};
use parkade_core::{
    CancelAnswer, CancelEffect, CancelEvent, CancelId, CancelOutcome, Errand, Event, JobId, JobLookup, Moment,
    RequestId, Then, Verdict, Wait,
};

use crate::model::{Answer, Model};
use crate::store::{Command, Reply, State, Store};
use crate::world::World;

#[derive(Debug, Default)]
pub struct Cancels {
    /// Operators who have not been told.
    operators: BTreeMap<CancelId, JobId>,
    minted: u64,
    /// Which jobs somebody has ever wanted to end, who may.
    wanted: BTreeSet<JobId>,
    /// Of which it was said that they will end.
    doomed: BTreeSet<JobId>,
    /// How often the store was asked for each, since somebody wanted it first.
    asks: BTreeMap<JobId, u32>,
    /// What the store could not note.
    pub unnoted: BTreeMap<RequestId, Unnoted>,
    /// The end of a job has just come out of the store's hands.
    told_ended: Option<JobId>,
    /// Somebody wanted them to end when the store had refused to note that they are to be tried again.
    awaited_record: BTreeSet<JobId>,
}

#[derive(Debug, Clone)]
pub struct Unnoted {
    pub refused_at: Moment,
    pub job: JobId,
    pub attempt: u32,
    pub verdict: Verdict,
}

impl Store {
    /// One that does not run here or elsewhere.
    pub fn cancel(&mut self, id: JobId) -> CancelAnswer {
        match self.jobs.get_mut(&id) {
            Some(job) if matches!(job.state, State::Ready | State::Scheduled(_) | State::Stranger) => {
                job.state = State::Ended;
                self.cancelled.insert(id);
                CancelAnswer::Ended
            }
            Some(job) if matches!(job.state, State::Elsewhere { .. }) => {
                job.state = State::Elsewhere { is_asked: true };
                CancelAnswer::AskedElsewhere
            }
            Some(_) | None => CancelAnswer::NotWaiting,
        }
    }

    fn is_over(&self, id: JobId) -> bool {
        self.jobs.get(&id).is_none_or(|job| job.state == State::Ended)
    }

    fn is_asked_to_end(&self, id: JobId) -> bool {
        let is_asked = |command: &Command| match command {
            Command::Cancel { id: asked } | Command::FindCancelled { id: asked } => *asked == id,
            _ => false,
        };
        let is_told = |reply: &Reply| match reply {
            Reply::Cancelled { id: asked, .. } | Reply::FoundCancelled { id: asked, .. } => *asked == id,
            _ => false,
        };
        self.asked.iter().any(is_asked) || self.answers.iter().any(is_told)
    }

    fn is_noting_the_end_of(&self, id: JobId) -> bool {
        let is_asked = |command: &Command| matches!(command, Command::End { id: ended, .. } if *ended == id);
        let is_told = |reply: &Reply| matches!(reply, Reply::Ended { id: ended, .. } | Reply::NotEnded { id: ended, .. } if *ended == id);
        self.asked.iter().any(is_asked) || self.answers.iter().any(is_told)
    }
}

impl Model {
    pub(crate) fn may_be_cancelled(&self, job: JobId) -> bool {
        self.jobs.cancels.wanted.contains(&job)
    }

    /// Whoever was told that a job will end sees no more of it.
    pub(crate) fn check_that_it_may_run(&self, job: JobId) {
        assert!(!self.jobs.cancels.doomed.contains(&job), "{job:?} was to end, and runs");
    }

    pub(crate) fn apply_of_cancels(&mut self, effect: &CancelEffect) {
        match effect {
            CancelEffect::Ask { job } => {
                assert!(self.may_be_cancelled(*job), "nobody wants {job:?} to end");
                let asks = self.jobs.cancels.asks.entry(*job).or_default();
                *asks += 1;
                if *asks > 1 {
                    self.seen.insert("cancel asked again");
                }
                self.jobs.store.ask(Command::Cancel { id: *job });
            }
            CancelEffect::LookUp { job } => self.jobs.store.ask(Command::FindCancelled { id: *job }),
            CancelEffect::Tell { operators, outcome } => {
                let jobs: BTreeSet<JobId> = operators
                    .iter()
                    .map(|operator| self.jobs.cancels.operators.remove(operator).expect("nobody waits to be told"))
                    .collect();
                assert_eq!(jobs.len(), 1, "told of another's job");
                for job in jobs {
                    self.check_cancelled(job, *outcome);
                }
            }
        }
    }

    fn check_cancelled(&mut self, job: JobId, outcome: CancelOutcome) {
        match outcome {
            CancelOutcome::Ends(true) => self.will_end(job),
            CancelOutcome::Ends(false) => self.check_that_it_cannot_be_ended(job),
            CancelOutcome::Refused(payload) => {
                self.has_come(payload);
                self.seen.insert("cancel refused");
            }
            CancelOutcome::TooMany => panic!("so many there are not"),
        }
    }

    fn will_end(&mut self, job: JobId) {
        let store = &self.jobs.store;
        let seen = match store.jobs.get(&job).map(|job| job.state) {
            Some(State::Elsewhere { is_asked }) => {
                assert!(is_asked, "nobody has asked the other server");
                "cancelled elsewhere"
            }
            _ if self.jobs.cancels.awaited_record.remove(&job) => "cancelled when its end was noted at last",
            _ if self.jobs.cancels.told_ended == Some(job) => "cancelled where it waited",
            _ if self.jobs.is_claim_answered => "cancelled when the claim had it",
            _ => "cancelled where it ran",
        };
        self.seen.insert(seen);
        self.jobs.cancels.doomed.insert(job);
    }

    fn check_that_it_cannot_be_ended(&mut self, job: JobId) {
        let cancels = &self.jobs.cancels;
        let is_tired = cancels.asks.get(&job).is_some_and(|asks| *asks >= CANCEL_TRIES_COUNT);
        let is_over = self.jobs.store.is_over(job);
        let has_ended = self.drains && self.exited.is_some();
        assert!(is_over || is_tired || has_ended, "{job:?} could be ended");
        self.seen.insert(if is_over { "cancelled too late" } else { "cancel given up" });
    }

    pub(crate) fn note_again(&mut self, request: RequestId) {
        let Unnoted { job, attempt, verdict, .. } =
            self.jobs.cancels.unnoted.remove(&request).expect("the store has refused that");
        self.seen.insert("end noted again");
        self.jobs.store.ask(Command::End { request, id: job, attempt, verdict, now: self.now });
    }

    /// After the exit the server has everything noted again that the store has refused. Whether there is anything.
    pub(crate) fn notes_again(&mut self) -> bool {
        let unnoted: Vec<RequestId> = self.jobs.cancels.unnoted.keys().copied().collect();
        for request in &unnoted {
            self.note_again(*request);
        }
        !unnoted.is_empty()
    }

    pub(crate) fn answer_cancel(&mut self, id: RequestId, job: JobId, standing: JobLookup, will_end: bool) {
        let waiting = self.request(id).waiting().expect("it waited").clone();
        assert_eq!(waiting.then, Then::Answer);
        let Wait::Visit { job: asked, errand: Errand::Cancel } = waiting.wait else {
            panic!("{waiting:?} ends no job")
        };
        assert_eq!(job, asked, "told of another job");
        assert!(self.may_know(id, &waiting, standing), "told of a job of which nobody has said that it may be");
        match standing {
            JobLookup::Ended => assert!(self.jobs.results.contains(&job), "told of an end that is not there"),
            JobLookup::Pending if will_end => {
                assert!(self.may_be_cancelled(job));
                self.jobs.cancels.doomed.insert(job);
                self.seen.insert("ended for a client");
            }
            JobLookup::Pending => self.check_that_it_cannot_be_ended(job),
            JobLookup::Missing => {
                let found = self.jobs.found == Some((id, job, JobLookup::Missing));
                assert!(found || self.jobs.dropped == Some(job), "told what the store has not said");
            }
        }
        if standing == JobLookup::Ended && self.jobs.store.cancelled.contains(&job) {
            self.seen.insert("ended for a client at once");
        }
        self.answer(id, Answer::Awaited, Answer::Ended);
    }

    /// It is let in, and what the store says of the job that it ends, or cannot say, is its answer.
    pub(crate) fn is_ending_a_job(&self, id: RequestId) -> bool {
        match self.requests[&id].waiting().map(|waiting| &waiting.wait) {
            Some(Wait::Visit { job, errand: Errand::Cancel }) => self.may_be_cancelled(*job),
            _ => false,
        }
    }

    /// A client waits until it is known whether it will.
    pub(crate) fn is_ended_for_a_client(&self, id: JobId) -> bool {
        let waiting = self.requests.values().filter_map(|request| request.waiting());
        waiting.into_iter().any(|waiting| waiting.wait == Wait::Visit { job: id, errand: Errand::Cancel })
    }

    /// A client that wants a job to end may have it.
    pub(crate) fn wants_to_end(&mut self, request: RequestId, id: JobId) {
        let waiting = self.requests.get(&request).and_then(|request| request.waiting());
        if waiting.is_some_and(|waiting| waiting.wait == Wait::Visit { job: id, errand: Errand::Cancel }) {
            self.jobs.cancels.wanted.insert(id);
        }
    }
}

impl World {
    pub(crate) fn operator_cancels_a_job(&mut self) {
        let unnoted: Vec<JobId> = self.model.jobs.cancels.unnoted.values().map(|end| end.job).collect();
        let job = if unnoted.is_empty() { self.some_job() } else { *self.one_of(&unnoted) };
        let cancels = &mut self.model.jobs.cancels;
        cancels.minted += 1;
        let by = CancelId(cancels.minted);
        if !cancels.operators.values().any(|other| *other == job) {
            cancels.asks.remove(&job);
        }
        cancels.operators.insert(by, job);
        cancels.wanted.insert(job);
        let is_refused = |end: &Unnoted| end.job == job && matches!(end.verdict, Verdict::Retry { .. });
        let (runs, is_refused) = (self.core.runs_job(job), cancels.unnoted.values().any(is_refused));
        if is_refused && !runs {
            cancels.awaited_record.insert(job);
        }
        self.tell(Event::Cancel(CancelEvent::Wanted { job, by }));
        assert!(!runs || !self.core.runs_job(job), "cancelled, and still there");
    }

    pub(crate) fn hears_cancelled(&mut self, id: JobId, answer: Option<CancelAnswer>) {
        let Some(answer) = answer else { return self.cancelling_is_refused(id) };
        self.model.jobs.cancels.told_ended = (answer == CancelAnswer::Ended).then_some(id);
        if answer == CancelAnswer::Ended && self.core.is_watched(id) {
            self.has_ended(id);
        }
        self.tell(Event::Cancel(CancelEvent::Answered { job: id, answer }));
        self.model.jobs.cancels.told_ended = None;
    }

    pub(crate) fn hears_of_cancelled(&mut self, id: JobId, is_over: Option<bool>) {
        match is_over {
            Some(is_over) => self.tell(Event::Cancel(CancelEvent::Found { job: id, is_over })),
            None => self.cancelling_is_refused(id),
        }
    }

    fn cancelling_is_refused(&mut self, job: JobId) {
        let payload = self.payload();
        self.tell(Event::Cancel(CancelEvent::Refused { job, payload }));
    }

    /// Jobs that another server claims, and ends or hands back: also some that it is asked to end.
    pub(crate) fn another_server_runs_jobs(&mut self) {
        let store = &mut self.model.jobs.store;
        let elsewhere = store.jobs.iter().find_map(|(id, job)| match job.state {
            State::Elsewhere { is_asked } => Some((*id, is_asked)),
            _ => None,
        });
        let Some((id, is_asked)) = elsewhere.filter(|_| self.random.below(3) > 0) else {
            if let Some(job) = store.jobs.values_mut().find(|job| job.state == State::Ready) {
                job.state = State::Elsewhere { is_asked: false };
            }
            return;
        };
        let is_back = !is_asked && self.random.below(2) == 0;
        let state = if is_back { State::Ready } else { State::Ended };
        store.jobs.get_mut(&id).unwrap().state = state;
        if is_asked {
            store.cancelled.insert(id);
        }
        if is_back {
            self.tell(Event::JobsReady { after: None });
        } else if self.core.is_watched(id) {
            self.has_ended(id);
        }
    }
}

/// Whoever wants a job to end waits for something: for the store, for what it is giving or noting, or for the next try.
pub fn nobody_waits_in_vain(world: &World) {
    let jobs = &world.model.jobs;
    if jobs.settles {
        return;
    }
    for job in jobs.cancels.operators.values().filter(|job| jobs.cancels.told_ended != Some(**job)) {
        let waits_for_the_store = jobs.store.is_asked_to_end(*job)
            || jobs.store.is_noting_the_end_of(*job)
            || jobs.claim.is_some()
            || jobs.cancels.unnoted.values().any(|end| end.job == *job);
        let longest = CANCEL_PAUSE_MIN * (1 << CANCEL_TRIES_COUNT) + Duration::from_millis(1);
        let is_due = world.core.next_due().is_some_and(|due| due <= world.now + longest);
        assert!(waits_for_the_store || is_due, "somebody wants {job:?} to end, and waits for nothing");
    }
}

/// What the store could not note is said again in time.
pub fn nothing_is_noted_too_late(world: &World) {
    let now = world.now;
    let late = world.model.jobs.cancels.unnoted.values().find(|end| end.refused_at + NOTE_PAUSE <= now);
    assert!(late.is_none(), "an end that nobody notes: {late:?}");
}

/// What was to end has ended: nobody waits, and nothing of it is left but what another server has.
pub fn check_the_end(world: &World) {
    let jobs = &world.model.jobs;
    assert!(jobs.cancels.operators.is_empty(), "operators were not told: {:?}", jobs.cancels.operators);
    assert!(jobs.cancels.unnoted.is_empty(), "ends were not noted: {:?}", jobs.cancels.unnoted);
    for id in &jobs.cancels.doomed {
        let Some(job) = jobs.store.jobs.get(id) else { continue };
        let is_elsewhere = matches!(job.state, State::Elsewhere { is_asked: true });
        assert!(
            is_elsewhere || job.state == State::Ended && jobs.store.cancelled.contains(id),
            "{id:?} was to end: {job:?}"
        );
    }
}

impl Model {
    /// Runs that have ended, and the core has not heard that this is noted.
    pub(crate) fn ends_under_way(&self) -> usize {
        let jobs = &self.jobs;
        let asked = jobs.store.asked.iter().filter(|command| matches!(command, Command::End { .. })).count();
        let told = |reply: &&Reply| matches!(reply, Reply::Ended { .. } | Reply::NotEnded { .. });
        asked + jobs.store.answers.iter().filter(told).count() + jobs.cancels.unnoted.len()
    }
}
