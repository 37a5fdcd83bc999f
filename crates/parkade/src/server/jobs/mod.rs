//! Jobs as the server carries them: what is enqueued and what became of it goes to the store, what the store gives goes to workers.

mod answers;
mod asked;
mod cancels;
mod enqueueing;
mod learning;
mod progress;
mod queues;
mod recurring;
mod results;
mod routes;
mod runs;
mod shut;
mod visits;
mod within;

use std::collections::{HashMap, HashSet};

use parkade_core::{DatabaseId, Event, RecurringEvent, RequestId};
use parkade_jobs::sqlite::OpenError;
use parkade_jobs::{Command, Fault, JobCounts, Reply, Tag};
use parkade_model::{JobId, QueryId};

use super::Server;
use crate::log::LineThrottle;
use crate::share::Share;
use crate::statistics::{RunOutcome, RunStatistics};
use crate::store::{Store, wall};
use asked::{Question, RunEnd};
use cancels::Operators;
use learning::Spec;
use queues::QueueNames;
use recurring::Timetables;
use results::Results;
use runs::RunKept;
use shut::{Held, Shut};
use within::Committing;
pub use within::Waiting;

/// The queue of jobs that say nothing else.
pub const QUEUE_DEFAULT: &str = "default";

/// A disk that takes longer than this for the last words will not have them: the next start rescues what ran.
const SETTLE_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// Between two times that a store is asked by a stop to note what it has refused.
const NOTE_AGAIN_PAUSE: std::time::Duration = std::time::Duration::from_millis(500);

/// Of the time for which no job begins, what is left when it is worth a line in the log.
const PUT_OFF_TOLD_MIN: std::time::Duration = std::time::Duration::from_secs(1);

/// Clocks that part by more than this, in ms, have been put forward or back. Those that are slewed part by less in a second.
const JUMP_MS_MIN: u64 = 1_000;

pub struct Jobs {
    store: Store,
    specs: HashMap<Box<str>, Spec>,
    /// Of the code whose application has told them.
    generation: Option<u32>,
    queues: QueueNames,
    runs: HashMap<RequestId, RunKept>,
    /// What the store has been asked and has not answered.
    questions: HashMap<Tag, Question>,
    tags: u64,
    results: Results,
    operators: Operators,
    timetables: Timetables,
    /// That they are put off has been said.
    are_put_off: bool,
    /// What the store could not note, until the core says that it is to be asked again.
    unnoted: HashMap<RequestId, RunEnd>,
    /// A stop asks for that again, but not in every step.
    noted_again: Option<tokio::time::Instant>,
    refusals: LineThrottle,
    /// Some were found unknown: perhaps by code that serves no more.
    are_unknown: bool,
    /// What the store could not say of them is asked likewise: how they stand, for those who follow them; how they ended elsewhere.
    unannounced: HashMap<RequestId, JobId>,
    unheard: HashSet<JobId>,
    /// Of an attempt, where the application says nothing.
    deadline: Option<std::time::Duration>,
    /// As last reported by the store.
    counts: JobCounts,
    /// All that the store has taken from here since the start, whoever enqueued them.
    enqueued: u64,
    run_statistics: RunStatistics,
    replies: Vec<Reply>,
    /// What both clocks said when they were compared last: the store's in ms.
    seen: Option<(i64, parkade_core::Moment)>,
    /// Requests that ask for a job of which there cannot be one: nothing was ever stored.
    never_stored: Vec<RequestId>,
    /// Why the store could not be opened, until it is.
    shut: Option<Shut>,
    held: Vec<Held>,
    /// Transactions that enqueue jobs and commit, by the statement that they are at.
    committing: HashMap<QueryId, Committing>,
    /// Those that wait until the store is open: each holds a connection, so there are never many.
    early: Vec<Committing>,
    statements: u64,
    /// The databases by whose transactions jobs can be enqueued, and those whose role may not do it.
    homes: HashSet<DatabaseId>,
    closed: HashSet<DatabaseId>,
    /// Where clients find jobs: what stands before the id in the path, and what behind.
    place: Option<(Box<str>, Box<str>)>,
}

impl Jobs {
    /// A run of a job has ended.
    fn count_run(&mut self, name: &str, outcome: RunOutcome, took: Option<std::time::Duration>) {
        let declared = self.specs.contains_key(name).then_some(name);
        self.run_statistics.record(declared, outcome, took);
    }

    pub fn run_statistics(&self) -> &RunStatistics {
        &self.run_statistics
    }

    /// Whether some of what the store has answered was not heard yet.
    pub fn has_replies(&self) -> bool {
        !self.replies.is_empty()
    }

    /// `deadline`: of an attempt, where the application says nothing.
    pub fn new(store: Store, deadline: Option<std::time::Duration>) -> Self {
        Self {
            store,
            specs: HashMap::new(),
            generation: None,
            queues: QueueNames::default(),
            runs: HashMap::new(),
            questions: HashMap::new(),
            tags: 0,
            results: Results::default(),
            operators: Operators::default(),
            timetables: Timetables::default(),
            are_put_off: false,
            unnoted: HashMap::new(),
            noted_again: None,
            refusals: LineThrottle::default(),
            are_unknown: false,
            unannounced: HashMap::new(),
            unheard: HashSet::new(),
            deadline,
            counts: JobCounts::default(),
            enqueued: 0,
            run_statistics: RunStatistics::default(),
            replies: Vec::new(),
            seen: None,
            never_stored: Vec::new(),
            shut: None,
            held: Vec::new(),
            committing: HashMap::new(),
            early: Vec::new(),
            statements: 0,
            homes: HashSet::new(),
            closed: HashSet::new(),
            place: None,
        }
    }

    /// Waits until the store has answered. Cancel safe.
    pub async fn ready(&self) -> std::io::Result<()> {
        if !self.never_stored.is_empty() {
            tokio::task::yield_now().await;
            return Ok(());
        }
        self.store.ready().await
    }

    /// Why the store can never be used by this program.
    pub fn unusable(&self) -> Option<&str> {
        self.store.unusable()
    }

    /// The names of all jobs, if the application that serves does not declare this one; nothing while none serves.
    fn declared_without(&self, name: &str) -> Option<Vec<String>> {
        let is_known = self.generation.is_none() || self.specs.contains_key(name);
        (!is_known).then(|| self.specs.keys().map(ToString::to_string).collect())
    }

    /// Whether the store is in a database, and it is not known yet whether that can be used.
    pub fn is_connecting(&self) -> bool {
        self.store.is_open() && matches!(self.store.within(), Some(Err(_) | Ok(None)))
    }

    /// Whether the store is open, or is being opened for the first time.
    fn takes_questions(&self) -> bool {
        self.store.is_open() || self.shut.is_none() && self.store.is_opening()
    }

    /// As the store said last, about a second ago.
    pub fn counts(&self) -> &JobCounts {
        &self.counts
    }

    /// How many the store has taken from here since the start.
    pub fn enqueued(&self) -> u64 {
        self.enqueued
    }

    pub fn is_run(&self, request: RequestId) -> bool {
        !self.runs.is_empty() && self.runs.contains_key(&request)
    }

    /// Where a client finds that job.
    fn location(&self, job: JobId) -> Option<String> {
        let (before, behind) = self.place.as_ref()?;
        Some(format!("{before}{job}{behind}"))
    }

    /// Whether there is an address for clients, who may have to be let in.
    fn has_address(&self, name: &str) -> bool {
        self.specs.get(name).is_some_and(|spec| spec.access != parkade_wire::JobAccess::Private)
    }

    pub fn drop_result(&mut self, job: JobId) {
        self.results.drop(job);
    }

    /// What a function or a coroutine is told of a job that it waited for.
    pub fn wire_outcome(&self, job: JobId, standing: parkade_core::JobLookup) -> parkade_wire::WaitOutcome<'_> {
        results::wire_outcome(&self.results, job, standing)
    }

    fn ask(&mut self, question: Question, command: impl FnOnce(Tag) -> Command) {
        self.tags += 1;
        let tag = Tag(self.tags);
        self.questions.insert(tag, question);
        self.store.submit(command(tag));
    }

    fn is_asked(&self, is_it: impl Fn(&Question) -> bool) -> bool {
        self.questions.values().any(is_it)
    }
}

impl Server {
    /// Opens the store when there is one already, so that what was left is gone on with.
    fn open_jobs(&mut self) -> Result<(), OpenError> {
        self.jobs.store.open()?;
        self.begin_with_jobs();
        Ok(())
    }

    /// The store is open.
    fn begin_with_jobs(&mut self) {
        if self.core.config().job_workers == 0 {
            tracing::info!(
                "this server stores jobs but runs none (--job-workers 0); other servers with the same --jobs run them"
            );
        }
        self.jobs.seen = Some((self.jobs.store.time().0, self.clock.now()));
        self.tell(Event::JobsReady { after: None });
    }

    /// What the store has answered since, until the share is over. How many answers that were.
    pub(super) fn turn_jobs(&mut self, share: Share) -> std::io::Result<usize> {
        let opened = self.jobs.store.take_opened();
        let mut replies = std::mem::take(&mut self.jobs.replies);
        if replies.is_empty() {
            self.jobs.store.turn(&mut replies)?;
        }
        let count = replies.len();
        self.jobs.replies = self.hear(replies, share, Self::hear_store);
        self.begin_the_early();
        if self.jobs.store.take_hint() {
            self.tell(Event::JobsReady { after: None });
        }
        for job in self.jobs.store.take_ended() {
            self.job_has_ended_elsewhere(job);
        }
        for job in self.jobs.store.take_cancelled() {
            self.tell(Event::JobCancelled { job });
        }
        for request in std::mem::take(&mut self.jobs.never_stored) {
            self.tell(match self.jobs.shut {
                Some(_) => Event::JobNotLookedUp { request },
                None => Event::JobFound { request, standing: parkade_core::JobLookup::Missing },
            });
        }
        // Last: what was asked while it was shut has been told so.
        if let Some(opened) = opened {
            self.hear_opened(opened);
        }
        Ok(count)
    }

    /// A step to the end: the last that runs have come to is noted, then the store is closed. Whether it is. `began`: when the steps did.
    pub(super) fn settle_jobs(&mut self, began: tokio::time::Instant) -> std::io::Result<bool> {
        if !self.jobs.store.is_open() {
            return Ok(true);
        }
        self.turn_jobs(Share::endless())?;
        // What was refused has this time, too.
        if self.jobs.noted_again.is_none_or(|noted| noted.elapsed() >= NOTE_AGAIN_PAUSE) {
            self.jobs.noted_again = Some(tokio::time::Instant::now());
            for (request, end) in std::mem::take(&mut self.jobs.unnoted) {
                self.note(request, end);
            }
        }
        let is_noted = self.jobs.store.outstanding() == 0 && self.jobs.unnoted.is_empty();
        let waits = !is_noted && began.elapsed() < SETTLE_MAX;
        Ok(!waits && self.jobs.store.end())
    }

    fn hear_store(&mut self, reply: Reply) {
        let tag = reply.tag();
        let Some(question) = self.jobs.questions.remove(&tag) else {
            return tracing::error!("a bug in parkade: the job store answered a question that was not asked");
        };
        if let Reply::Refused { fault, .. } = &reply {
            self.jobs.refusals.note();
            if let Some(count) = self.jobs.refusals.take(self.now) {
                tracing::error!(count, "the job store refuses commands: {fault}");
            }
        }
        self.jobs.enqueued += u64::from(adds_a_job(&question, &reply));
        match question {
            Question::Enqueue { id, request, asked } => self.hear_enqueued(id, request, asked, reply),
            Question::Claim => self.hear_claimed(reply),
            Question::End { request, end } => self.hear_run_noted(request, *end, reply),
            Question::LookUp { request, asker } => self.hear_found(request, asker, reply),
            Question::EndedElsewhere { job } => self.hear_ended_elsewhere(job, reply),
            Question::Announce { job, request } => self.hear_announced(job, request, reply),
            Question::Cancel { job } => self.hear_cancelled(job, reply),
            Question::Cancelled { job } => self.hear_of_cancelled(job, reply),
            Question::Asked(back) => asked::answer(back, reply),
            Question::Retried(back) => {
                self.hear_changed(&reply);
                asked::answer(back, reply);
            }
            Question::Dropped { job, back } => {
                if matches!(reply, Reply::Changed { changed: true, .. }) {
                    self.job_is_no_more(job);
                }
                asked::answer(back, reply);
            }
            Question::Recognise => self.hear_changed(&reply),
            Question::Schedules => self.hear_schedules(reply),
            Question::Recur { name, at, .. } => self.hear_recurred(name, at, &reply),
            Question::Count => {
                if let Reply::Counted { counts, .. } = reply {
                    self.jobs.counts = counts;
                }
            }
        }
    }

    /// Jobs have become ready that were not.
    fn hear_changed(&mut self, reply: &Reply) {
        if matches!(reply, Reply::Changed { changed: true, .. }) {
            self.tell(Event::JobsReady { after: None });
        }
    }

    /// The wall clock was put forward or back: what is put off, and what recurs, goes by it.
    fn look_at_the_clock(&mut self) {
        let (wall, now) = (self.jobs.store.time().0, self.now);
        let Some((wall_before, before)) = self.jobs.seen.replace((wall, now)) else { return };
        let passed = i64::try_from(now.since(before).as_millis()).unwrap_or(i64::MAX);
        if (wall - wall_before).abs_diff(passed) > JUMP_MS_MIN {
            tracing::info!(
                "the wall clock has jumped by {} ms; the times of waiting jobs are checked again",
                wall - wall_before - passed
            );
            self.tell(Event::JobsReady { after: None });
            self.tell(Event::Recurring(RecurringEvent::ClockJumped));
        }
    }

    /// Once for each time that they are.
    fn tell_of_jobs_put_off(&mut self) {
        // Shorter ones are over before anybody looks.
        let left = self.core.jobs_put_off(self.clock.now()).filter(|left| *left >= PUT_OFF_TOLD_MIN);
        if let Some(left) = left
            && !self.jobs.are_put_off
        {
            tracing::warn!("workers keep dying while they run jobs; no job is started for {:.1} s", left.as_secs_f64());
        }
        self.jobs.are_put_off = left.is_some();
    }

    /// About once a second: what is left to be told, and the counts for whoever looks.
    pub(super) fn look_after_jobs(&mut self) {
        if self.jobs.store.is_open() {
            self.look_at_the_clock();
        } else if self.jobs.shut.is_some() {
            let _ = self.opened();
        }
        let core = &self.core;
        self.jobs.queues.forget(|queue| core.knows_queue(queue));
        self.tell_of_jobs_put_off();
        if std::mem::take(&mut self.jobs.are_unknown) {
            self.recognise();
        }
        for (request, job) in std::mem::take(&mut self.jobs.unannounced) {
            if self.follows(request, job) {
                self.announce(job, request);
            }
        }
        for job in std::mem::take(&mut self.jobs.unheard) {
            self.job_has_ended_elsewhere(job);
        }
        if self.jobs.store.is_open() && !self.jobs.is_asked(|question| matches!(question, Question::Count)) {
            self.jobs.ask(Question::Count, |tag| Command::Count { tag });
        }
    }
}

/// Milliseconds from now until then.
fn until(due: parkade_jobs::Wall) -> std::time::Duration {
    std::time::Duration::from_millis(u64::try_from(due.0 - wall().0).unwrap_or(0))
}

fn store_fault(fault: &Fault) -> parkade_core::StoreFault {
    match fault {
        Fault::Full(_) => parkade_core::StoreFault::Full,
        Fault::Unavailable(_) | Fault::QueueFull | Fault::Failed(_) => parkade_core::StoreFault::Unavailable,
    }
}

/// Whether the store has a job more. One that was enqueued again, or whose key another has, is none.
fn adds_a_job(question: &Question, reply: &Reply) -> bool {
    match (question, reply) {
        (Question::Enqueue { id, .. }, Reply::Enqueued { job, .. }) => id == job,
        (Question::Recur { is_skipped, .. }, Reply::Changed { changed, .. }) => *changed && !is_skipped,
        _ => false,
    }
}
