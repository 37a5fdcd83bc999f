//! The server's end of the job store: it is opened when it is needed, commands go to it, and replies come back.

use std::collections::HashMap;
use std::io;
use std::task::{Context, Poll};

use parkade_core::{Event, Moment};
use parkade_jobs::sqlite::OpenError;
use parkade_jobs::{Command, Fault, JobCounts, NewJob, Reply, Tag, Wall, postgres};
use parkade_model::{JobId, WorkerId};
use parkade_wire::Application;

use super::context::JobContext;
use super::opening::{StoreOpening, WaitingWorker};
use super::questions::Question;
use super::refusals::Refusals;
use crate::poll::{NextTurn, Pollable};
use crate::store::Store;

/// Clocks whose times diverge by more than this within a second, in ms, were set. A clock that is slewed diverges less.
const JUMP_MS_MIN: u64 = 1_000;

pub struct StoreLink {
    store: Store,
    opening: StoreOpening,
    /// What commands without a reply were for.
    questions: HashMap<Tag, Question>,
    tags: u64,
    /// Replies that have not been handled, because the share of a turn was over.
    replies: Vec<Reply>,
    refusals: Refusals,
    /// As last reported by the store.
    counts: JobCounts,
    /// Jobs that the store has accepted from this server since the start, from any source.
    enqueued: u64,
    /// Both clocks when they were last compared: the store's in ms.
    compared: Option<(i64, Moment)>,
}

/// The outcome of opening the store, as the store reports it.
pub type OpenResult = Result<(), OpenError>;

/// What other servers that share the store have done.
#[derive(Debug)]
pub struct StoreNews {
    /// They have enqueued jobs.
    pub has_jobs: bool,
    /// These jobs have ended for good.
    pub ended: Vec<JobId>,
    /// They were asked to cancel these jobs, which run here.
    pub cancelled: Vec<JobId>,
}

/// The workers that waited until the store was open.
#[derive(Debug)]
pub enum Waited {
    Ready(Vec<WaitingWorker>),
    /// The store can never be used. The text is for the operator's log.
    Unfit(Vec<WorkerId>, String),
}

impl StoreLink {
    pub fn new(store: Store) -> Self {
        Self {
            store,
            opening: StoreOpening::default(),
            questions: HashMap::new(),
            tags: 0,
            replies: Vec::new(),
            refusals: Refusals::default(),
            counts: JobCounts::default(),
            enqueued: 0,
            compared: None,
        }
    }

    // Commands and replies.

    pub fn ask(&mut self, question: Question, command: impl FnOnce(Tag) -> Command) {
        self.tags += 1;
        let tag = Tag(self.tags);
        self.questions.insert(tag, question);
        self.store.submit(command(tag));
    }

    pub fn enqueue(&mut self, question: Question, job: NewJob) {
        self.ask(question, |tag| Command::Enqueue { tag, job });
    }

    pub fn find(&mut self, question: Question, job: JobId) {
        self.ask(question, |tag| Command::Find { tag, job });
    }

    /// Has the store count its jobs, for the status page, unless it is doing that already.
    pub fn count_jobs(&mut self) {
        let is_counting = self.questions.values().any(|question| matches!(question, Question::Count));
        if self.is_open() && !is_counting {
            self.ask(Question::Count, |tag| Command::Count { tag });
        }
    }

    /// What the reply is for.
    pub fn take_question(&mut self, reply: &Reply, now: Moment) -> Option<Question> {
        let Some(question) = self.questions.remove(&reply.tag()) else {
            tracing::error!("a bug in parkade: the job store answered a question that was not asked");
            return None;
        };
        self.refusals.hear(&question, reply, now);
        self.enqueued += u64::from(question.has_added(reply));
        Some(question)
    }

    /// Whether there are replies that have not been handled.
    pub fn has_replies(&self) -> bool {
        !self.replies.is_empty()
    }

    /// The replies for this turn, and whether the store has been opened since the last one.
    pub fn turn(&mut self) -> io::Result<(Vec<Reply>, Option<OpenResult>)> {
        let opened = self.store.take_opened();
        let mut replies = std::mem::take(&mut self.replies);
        if replies.is_empty() {
            self.store.turn(&mut replies)?;
        }
        Ok((replies, opened))
    }

    /// Keeps replies for the next turn.
    pub fn put_back(&mut self, replies: Vec<Reply>) {
        self.replies = replies;
    }

    pub fn take_news(&mut self) -> StoreNews {
        StoreNews {
            has_jobs: self.store.take_hint(),
            ended: self.store.take_ended(),
            cancelled: self.store.take_cancelled(),
        }
    }

    // Opening and closing.

    pub fn is_open(&self) -> bool {
        self.store.is_open()
    }

    /// Whether the store is open, or is being opened for the first time: commands wait until it is.
    pub fn takes_commands(&self) -> bool {
        self.store.is_open() || !self.opening.has_failed() && self.store.is_opening()
    }

    /// Whether the last attempt to open the store failed.
    pub fn has_failed(&self) -> bool {
        self.opening.has_failed()
    }

    /// Why this program can never use the store.
    pub fn unusable(&self) -> Option<&str> {
        self.store.unusable()
    }

    /// Whether the store is in a database, and it is not known yet whether that can be used.
    pub fn is_connecting(&self) -> bool {
        self.store.is_open() && matches!(self.store.within(), Some(Err(_) | Ok(None)))
    }

    /// Opens the store while nobody is served: at the start, or for the first worker. A failure that may pass does not
    /// count. After one, only [`Self::ensure_open`] opens the store, because it reports that, and keeps the pauses.
    pub fn open(&mut self, cx: &mut JobContext<'_>) -> OpenResult {
        if self.opening.has_failed() {
            return Ok(());
        }
        match self.open_now(cx) {
            Err(error) if error.may_pass() => {
                self.opening.fail(&error, cx.now);
                Ok(())
            }
            opened => opened,
        }
    }

    /// The store is open from now on, or is being opened, and commands wait for that; otherwise the reason why not. A
    /// disk is tried again after a pause, not by every caller, and in a thread, because it may take any time.
    pub fn ensure_open(&mut self, cx: &mut JobContext<'_>) -> Result<(), Fault> {
        if self.takes_commands() {
            return Ok(());
        }
        let Some((fault, is_due)) = self.opening.fault(cx.now) else {
            if self.store.needs_a_disk() {
                self.store.begin_to_open();
                return Ok(());
            }
            return self.open_now(cx).map_err(|error| self.opening.fail(&error, cx.now));
        };
        if is_due {
            self.store.begin_to_open();
        }
        Err(fault)
    }

    /// A worker whose code brings the first jobs is ready when their store is open: while other workers serve, nobody
    /// waits for a disk. Returns the application if it need not wait.
    pub fn wait_until_open(&mut self, cx: &JobContext<'_>, waiting: WaitingWorker) -> Option<WaitingWorker> {
        let Application { jobs, queues, recurring, .. } = &waiting.application;
        let has_jobs = !(jobs.is_empty() && queues.is_empty() && recurring.is_empty());
        let waits = self.store.is_opening() || cx.core.ready() && self.store.needs_a_disk();
        if !has_jobs || self.is_open() || self.opening.has_failed() || !waits {
            return Some(waiting);
        }
        self.store.begin_to_open();
        self.opening.wait(waiting);
        None
    }

    /// The store has been opened, or could not be.
    pub fn hear_opened(&mut self, cx: &mut JobContext<'_>, opened: OpenResult) -> Waited {
        let mut waiting = self.opening.take_waiting();
        waiting.retain(|waiting| cx.core.role(waiting.worker).is_some());
        match opened {
            Ok(()) => {
                self.opening.succeed();
                self.begin(cx);
            }
            Err(error) if waiting.is_empty() || error.may_pass() => drop(self.opening.fail(&error, cx.now)),
            Err(error) => {
                return Waited::Unfit(waiting.iter().map(|waiting| waiting.worker).collect(), error.to_string());
            }
        }
        Waited::Ready(waiting)
    }

    fn open_now(&mut self, cx: &mut JobContext<'_>) -> OpenResult {
        self.store.open()?;
        self.begin(cx);
        Ok(())
    }

    fn begin(&mut self, cx: &mut JobContext<'_>) {
        if cx.core.config().apps.iter().all(|workers| workers.jobs == 0) {
            tracing::info!(
                "this server stores jobs but runs none (--job-workers 0); other servers with the same --jobs run them"
            );
        }
        self.compared = Some((self.store.time().0, cx.clock.now()));
        cx.tell(Event::JobsReady { after: None });
    }

    /// Whether every command has its reply.
    pub fn is_settled(&self) -> bool {
        self.store.outstanding() == 0
    }

    /// Carries out what was submitted, and closes. Returns whether that is done.
    pub fn end(&mut self) -> bool {
        self.store.end()
    }

    // What is known of the store.

    /// The number of jobs in each state, about a second ago.
    pub fn counts(&self) -> &JobCounts {
        &self.counts
    }

    pub fn set_counts(&mut self, counts: JobCounts) {
        self.counts = counts;
    }

    /// Jobs that the store has accepted from this server since the start.
    pub fn enqueued(&self) -> u64 {
        self.enqueued
    }

    /// A transaction has enqueued this many jobs itself.
    pub fn add_enqueued(&mut self, count: u64) {
        self.enqueued += count;
    }

    /// What a transaction needs in order to enqueue jobs itself; see [`Store::within`].
    pub fn within(&self) -> Option<Result<Option<postgres::Within>, Fault>> {
        self.store.within()
    }

    /// The time by the clock of the store.
    pub fn time(&self) -> Wall {
        self.store.time()
    }

    /// By how many ms the wall clock was set since the last call, if it was. Scheduled and recurring jobs follow it.
    pub fn clock_jump(&mut self, now: Moment) -> Option<i64> {
        let wall = self.store.time().0;
        let (wall_before, before) = self.compared.replace((wall, now))?;
        let passed = i64::try_from(now.since(before).as_millis()).unwrap_or(i64::MAX);
        let jump = wall - wall_before - passed;
        (jump.unsigned_abs() > JUMP_MS_MIN).then_some(jump)
    }
}

impl Pollable for StoreLink {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.store.poll_ready(cx)
    }

    fn next_turn(&self) -> NextTurn {
        self.store.next_turn()
    }

    fn look(&mut self) {
        self.store.look();
    }
}
