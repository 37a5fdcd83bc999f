//! Jobs as the server carries them: what is enqueued and what became of it goes to the store, what the store gives goes to workers.

mod answers;
mod asked;
mod enqueueing;
mod learning;
mod progress;
mod recurring;
mod results;
mod routes;
mod runs;
mod within;

use std::collections::{HashMap, HashSet};

use parkade_core::{DatabaseId, Event, JobId, QueueId, RequestId};
use parkade_jobs::sqlite::OpenError;
use parkade_jobs::{Command, Counts, Fault, Reply, Tag};

use super::Server;
use crate::admin::JobAnswer;
use crate::store::{Store, wall};
use asked::{Canceller, Question, RunEnd};
use learning::Spec;
use recurring::Timetables;
use results::Results;
use runs::RunKept;
use within::Committing;
pub use within::Waiting;

/// The queue of jobs that say nothing else.
pub const QUEUE_DEFAULT: &str = "default";

/// A disk that takes longer than this for the last words will not have them: the next start rescues what ran.
const SETTLE_MAX: std::time::Duration = std::time::Duration::from_secs(5);

pub struct Jobs {
    store: Store,
    specs: HashMap<Box<str>, Spec>,
    /// By their numbers.
    queues: Vec<Box<str>>,
    runs: HashMap<RequestId, RunKept>,
    /// What the store has been asked and has not answered.
    questions: HashMap<Tag, Question>,
    tags: u64,
    results: Results,
    timetables: Timetables,
    /// What the store could not note: it is asked again, about once a second.
    unnoted: Vec<RunEnd>,
    /// What the store could not say of them is asked likewise: how they stand, for those who follow them; how they ended elsewhere.
    unannounced: HashSet<JobId>,
    unheard: HashSet<JobId>,
    /// Of an attempt, where the application says nothing.
    deadline: Option<std::time::Duration>,
    /// As the store said last.
    counts: Counts,
    /// All that the store has taken from here since the start, whoever enqueued them.
    enqueued: u64,
    replies: Vec<Reply>,
    /// Requests that ask for a job of which there cannot be one: nothing was ever stored.
    never_stored: Vec<RequestId>,
    /// Transactions that enqueue jobs and commit, by the statement that they are at.
    committing: HashMap<parkade_sql::QueryId, Committing>,
    statements: u64,
    /// The databases by whose transactions jobs can be enqueued, and those whose role may not do it.
    homes: HashSet<DatabaseId>,
    closed: HashSet<DatabaseId>,
    /// Where clients find jobs: what stands before the id in the path, and what behind.
    place: Option<(Box<str>, Box<str>)>,
}

impl Jobs {
    /// `deadline`: of an attempt, where the application says nothing.
    pub fn new(store: Store, deadline: Option<std::time::Duration>) -> Self {
        Self {
            store,
            specs: HashMap::new(),
            queues: vec![QUEUE_DEFAULT.into()],
            runs: HashMap::new(),
            questions: HashMap::new(),
            tags: 0,
            results: Results::default(),
            timetables: Timetables::default(),
            unnoted: Vec::new(),
            unannounced: HashSet::new(),
            unheard: HashSet::new(),
            deadline,
            counts: Counts::default(),
            enqueued: 0,
            replies: Vec::new(),
            never_stored: Vec::new(),
            committing: HashMap::new(),
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

    /// As the store said last, about a second ago.
    pub fn counts(&self) -> &Counts {
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
        Some(format!("{before}{}{behind}", stored(job)))
    }

    /// The path of the route for jobs.
    fn is_found_at(&mut self, path: &str) {
        self.place =
            path.split_once('{').and_then(|(before, rest)| Some((before.into(), rest.split_once('}')?.1.into())));
    }

    pub fn drop_result(&mut self, job: JobId) {
        self.results.drop(job);
    }

    /// What a function or a coroutine is told of a job that it waited for.
    pub fn wire_outcome(&self, job: JobId, standing: parkade_core::Standing) -> parkade_wire::Outcome<'_> {
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

    fn queue(&mut self, name: &str) -> QueueId {
        let place = self.queues.iter().position(|known| &**known == name).unwrap_or_else(|| {
            self.queues.push(name.into());
            self.queues.len() - 1
        });
        // Names beyond the last number share it, and its bounds: an application with 65,535 queues has other worries.
        QueueId(u16::try_from(place).unwrap_or(u16::MAX))
    }

    fn queue_name(&self, queue: QueueId) -> &str {
        self.queues.get(usize::from(queue.0)).map_or(QUEUE_DEFAULT, |name| name)
    }
}

impl Server {
    /// Opens the store when there is one already, so that what was left is gone on with.
    pub fn open_jobs(&mut self) -> Result<(), OpenError> {
        self.jobs.store.open()?;
        self.jobs.ask(Question::Schedules, |tag| Command::Schedules { tag });
        self.tell(Event::JobsReady { after: None });
        Ok(())
    }

    /// What the store has answered since.
    pub(super) fn turn_jobs(&mut self) -> std::io::Result<()> {
        let mut replies = std::mem::take(&mut self.jobs.replies);
        self.jobs.store.turn(&mut replies)?;
        for reply in replies.drain(..) {
            self.hear_store(reply);
        }
        self.jobs.replies = replies;
        if self.jobs.store.take_hint() {
            self.tell(Event::JobsReady { after: None });
        }
        for job in self.jobs.store.take_ended() {
            self.job_has_ended_elsewhere(core(job));
        }
        for request in std::mem::take(&mut self.jobs.never_stored) {
            self.tell(Event::JobFound { request, standing: parkade_core::Standing::Missing });
        }
        self.recur_when_due();
        Ok(())
    }

    /// The last that runs have come to is noted, then the store is closed.
    pub(super) async fn settle_jobs(&mut self) -> std::io::Result<()> {
        let end = tokio::time::Instant::now() + SETTLE_MAX;
        while self.jobs.store.outstanding() > 0 && tokio::time::Instant::now() < end {
            let _ = tokio::time::timeout_at(end, self.jobs.store.ready()).await;
            self.now = self.clock.now();
            self.turn_jobs()?;
        }
        if self.jobs.store.is_open() {
            self.jobs.store.end();
        }
        Ok(())
    }

    fn hear_store(&mut self, reply: Reply) {
        let tag = tag_of(&reply);
        let Some(question) = self.jobs.questions.remove(&tag) else {
            return tracing::error!("a bug in parkade: the store answers what nobody has asked");
        };
        if let Reply::Refused { fault, .. } = &reply {
            tracing::error!("the store of jobs: {fault}");
        }
        self.jobs.enqueued += u64::from(adds_a_job(&question, &reply));
        match question {
            Question::Enqueue { id, request, asked } => self.hear_enqueued(id, request, asked, reply),
            Question::Claim => self.hear_claimed(reply),
            Question::End(end) => self.hear_run_noted(*end, reply),
            Question::LookUp { request } => self.hear_found(request, reply),
            Question::EndedElsewhere { job } => self.hear_ended_elsewhere(job, reply),
            Question::Announce { job } => self.hear_announced(job, reply),
            Question::Cancel { job, by } => self.hear_cancelled(job, by, reply),
            Question::Asked(back) => asked::answer(back, reply),
            Question::Retried(back) => {
                self.hear_changed(&reply);
                asked::answer(back, reply);
            }
            Question::Recognise => self.hear_changed(&reply),
            Question::Schedules => self.hear_schedules(reply),
            Question::Recur { .. } => self.hear_recurred(&reply),
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

    /// About once a second: what is left to be noted or told, and the counts for whoever looks.
    pub(super) fn look_after_jobs(&mut self) {
        for end in std::mem::take(&mut self.jobs.unnoted) {
            self.note(end);
        }
        for job in std::mem::take(&mut self.jobs.unannounced) {
            if self.is_followed(job) {
                self.announce(job);
            }
        }
        for job in std::mem::take(&mut self.jobs.unheard) {
            self.job_has_ended_elsewhere(job);
        }
        if self.jobs.timetables.is_ignorant() && !self.jobs.is_asked(|question| matches!(question, Question::Schedules))
        {
            self.jobs.ask(Question::Schedules, |tag| Command::Schedules { tag });
        }
        if self.jobs.store.is_open() && !self.jobs.is_asked(|question| matches!(question, Question::Count)) {
            self.jobs.ask(Question::Count, |tag| Command::Count { tag });
        }
    }

    /// Ends a job, wherever it is. A client is told nothing by this: it asks afterwards.
    pub(super) fn cancel_job(&mut self, job: JobId, by: Canceller) {
        if self.core.runs_job(job) {
            self.tell(Event::JobCancelled { job });
            if let Canceller::Operator(back) = by {
                let _ = back.send(JobAnswer::Changed(true));
            }
            return;
        }
        self.jobs.ask(Question::Cancel { job, by }, |tag| Command::Cancel { tag, job: stored(job) });
    }

    fn hear_cancelled(&mut self, job: JobId, by: Canceller, reply: Reply) {
        if matches!(reply, Reply::Changed { changed: true, .. }) {
            self.job_has_ended(parkade_jobs::Ended { id: stored(job), ending: parkade_jobs::Ending::Cancelled });
        }
        match (by, &reply) {
            (Canceller::Operator(back), _) => asked::answer(back, reply),
            (Canceller::Client { is_curious: false, .. }, _) => {}
            (Canceller::Client { request, .. }, Reply::Refused { .. }) => self.tell(Event::JobNotLookedUp { request }),
            (Canceller::Client { request, .. }, _) => self.find_job(request, job),
        }
    }
}

fn stored(job: JobId) -> parkade_jobs::JobId {
    parkade_jobs::JobId(job.0)
}

fn core(job: parkade_jobs::JobId) -> JobId {
    JobId(job.0)
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
        (Question::Recur { is_skipped }, Reply::Changed { changed, .. }) => *changed && !is_skipped,
        _ => false,
    }
}

fn tag_of(reply: &Reply) -> Tag {
    match reply {
        Reply::Enqueued { tag, .. }
        | Reply::Claimed { tag, .. }
        | Reply::AttemptEnded { tag, .. }
        | Reply::Changed { tag, .. }
        | Reply::Found { tag, .. }
        | Reply::Listed { tag, .. }
        | Reply::Counted { tag, .. }
        | Reply::Schedules { tag, .. }
        | Reply::Refused { tag, .. } => *tag,
    }
}
