//! The store: the only part that uses the database driver.

use std::io;
use std::time::Instant;

use parkade_postgres::{Database, Event};
use parkade_sql::{Certainty, FailureKind, QueryEnd, QueryFailure, QueryId};

use super::changes::ChangeResult;
use super::clocks::Clocks;
use super::command_queue::{FOR_COMMANDS, PendingCommand, StatementKind};
use super::commands::Commands;
use super::count_cache::CountCache;
use super::in_flight::{InFlight, Purpose, SubmittedStatement};
use super::limits::CONTENDED;
use super::maintenance::{MaintenanceSchedule, MaintenanceTask};
use super::notifications::{self, Notice};
use super::options::{Intervals, PostgresStoreOptions};
use super::statement::StoreStatement;
use super::within::Within;
use super::{Settings, changes, claim, connection, end, enqueue, faults, reading, steps, tasks};
use crate::cluster::{InstanceId, Member, MemberStep, SharedLimits, Timing};
use crate::{Command, Fault, JobId, Reply, Wall};

/// Jobs in a PostgreSQL database, for one owner on one thread that polls, as for [`Database`].
///
/// Replies come in the order of the commands only if these are about the same job.
// More than ten fields: each is a part with its own state, and this struct connects them.
#[derive(Debug)]
pub struct PostgresStore {
    database: Database,
    options: PostgresStoreOptions,
    commands: Commands,
    in_flight: InFlight,
    member: Member,
    maintenance: MaintenanceSchedule,
    limits: SharedLimits,
    counts: CountCache,
    clocks: Clocks,
    news: PendingNews,
    /// Work was submitted or begun since the driver's last turn.
    is_asked: bool,
    events: Vec<Event>,
}

/// Events that the owner has not taken yet.
#[derive(Debug, Default)]
struct PendingNews {
    has_hint: bool,
    ended: Vec<JobId>,
    cancelled: Vec<JobId>,
}

impl PostgresStore {
    /// Connects to nothing yet. `first_token` and the following [`TOKENS`](super::TOKENS) are reserved for it in that
    /// registry.
    pub fn new(
        settings: Settings,
        options: PostgresStoreOptions,
        registry: mio::Registry,
        first_token: usize,
    ) -> io::Result<Self> {
        let Intervals { heartbeat, lost, poll, .. } = options.intervals;
        let timing = Timing { heartbeat, dead_after: lost, rescue: poll };
        Ok(Self {
            database: connection::database(settings, registry, first_token)?,
            commands: Commands::default(),
            in_flight: InFlight::new(options.fail_every),
            member: Member::new(fastrand::Rng::new(), timing),
            maintenance: MaintenanceSchedule::new(options.intervals),
            limits: SharedLimits::default(),
            counts: CountCache::default(),
            clocks: Clocks::new(options.clock),
            news: PendingNews::default(),
            is_asked: false,
            events: Vec::new(),
            options,
        })
    }

    /// Begins to connect; creates missing tables. Commands that are submitted meanwhile wait.
    pub fn open(&mut self, now: Instant) {
        self.maintenance.open(now);
        self.database.start(now);
        self.is_asked = true;
    }

    /// Every command is answered exactly once.
    pub fn submit(&mut self, now: Wall, command: Command) {
        self.clocks.set_owner(now);
        self.is_asked = true;
        let refusal = self.refusal().or_else(|| self.commands.refusal(&self.options, &command));
        match refusal {
            Some(fault) => self.commands.turn_away(&command, fault),
            None => self.commands.add(PendingCommand { now, command, tries: 0, is_alone: false }),
        }
    }

    /// Takes an event of the poll. Events of other tokens are ignored.
    pub fn ready(&mut self, event: &mio::event::Event) {
        self.database.ready(event);
    }

    /// Does everything that needs no waiting. `wall`: the owner's time, from the same clock as at
    /// [`submit`](Self::submit).
    pub fn turn(&mut self, now: Instant, wall: Wall, replies: &mut Vec<Reply>) {
        self.clocks.set_owner(wall);
        self.launch_all(now);
        self.is_asked = false;
        self.database.turn(now, &mut self.events);
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            self.hear(now, event);
        }
        self.events = events;
        if self.commands.has_answers() {
            self.maintenance.carried_out();
        }
        self.launch_all(now);
        self.commands.take_answers(replies);
    }

    /// Whether another turn is due at once.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.is_asked || self.database.has_more() || self.commands.has_answers()
    }

    /// The latest time for the next turn.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        let step = self.member.step_due().into_iter().chain(self.maintenance.next_due(self.is_open()));
        let step = step.filter(|_| !self.in_flight.is_busy(StatementKind::Maintenance));
        let heartbeat = self.member.heartbeat_due();
        self.database.next_due().into_iter().chain(step).chain(heartbeat).min()
    }

    /// Why the tables cannot be created or used, if that will not change by itself: they belong to a newer program, or
    /// the role may not create them.
    #[must_use]
    pub fn unusable(&self) -> Option<&str> {
        self.maintenance.unusable()
    }

    /// Whether there may be jobs to claim that the owner does not know about. Returned once.
    pub fn take_hint(&mut self) -> bool {
        std::mem::take(&mut self.news.has_hint)
    }

    /// Jobs that have ended for good in other servers, or were dropped there; some may be named twice.
    pub fn take_ended(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.news.ended)
    }

    /// Jobs that run here, and that another server was asked to cancel.
    pub fn take_cancelled(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.news.cancelled)
    }

    /// The store's time for a time of the owner.
    #[must_use]
    pub fn time(&self, wall: Wall) -> Wall {
        self.clocks.store_time(wall)
    }

    /// For a transaction that enqueues jobs. `None`: the store is being opened, so it is not known yet where the jobs
    /// are. Afterwards it is open, or refuses.
    pub fn within(&self) -> Result<Option<Within>, Fault> {
        match self.refusal() {
            Some(fault) => Err(fault),
            None if self.member.is_joined() => Ok(Some(Within::new(self.clocks.parameter(), self.member.instance()))),
            None => Ok(None),
        }
    }

    /// Nothing is under way, and nothing is due.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let is_quiet = self.member.is_gone() || self.member.is_idle() && self.maintenance.is_idle();
        is_quiet && self.in_flight.is_empty() && self.commands.is_settled() && !self.commands.has_answers()
    }

    /// Accepts nothing new. Submitted commands are carried out, running jobs are handed back, and the connections are
    /// closed. This takes turns until [`is_ended`](Self::is_ended).
    pub fn end(&mut self, now: Instant) {
        self.is_asked = true;
        self.member.leave();
        if self.member.is_gone() {
            self.close(now);
        }
    }

    /// Whether all connections are closed.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.member.is_gone() && self.database.is_ended()
    }

    /// Why no command is accepted.
    fn refusal(&self) -> Option<Fault> {
        if self.member.is_ending() {
            Some(faults::stopping())
        } else if self.member.is_joined() {
            None
        } else {
            self.maintenance.refusal()
        }
    }

    fn is_open(&self) -> bool {
        self.member.is_joined() && !self.member.is_ending()
    }

    /// Refuses the commands that still wait.
    fn close(&mut self, now: Instant) {
        self.commands.refuse_all(&faults::stopping());
        self.database.end(now);
    }

    /// Submits a statement for each kind that has work due and no statement under way.
    fn launch_all(&mut self, now: Instant) {
        if let Some(heartbeat) = self.member.next_heartbeat(now) {
            // One that hangs, or that was sent by an instance which is dead.
            self.in_flight.abandon(&mut self.database, now, StatementKind::Heartbeat);
            self.launch_step(now, heartbeat);
        }
        if !self.in_flight.is_busy(StatementKind::Maintenance) {
            self.launch_maintenance(now);
        }
        if !self.member.is_joined() {
            return;
        }
        for kind in FOR_COMMANDS {
            if self.in_flight.is_busy(kind) || kind == StatementKind::Claim && !self.member.may_claim() {
                continue;
            }
            let there = if kind == StatementKind::Enqueue { self.commands.take_to_look_up() } else { Vec::new() };
            if !there.is_empty() {
                let statement = enqueue::prepare_look_up(self.clocks.parameter(), &enqueue::jobs(&there));
                self.launch(now, Purpose::LookUp(there), statement);
                continue;
            }
            let batch = self.commands.batch(kind);
            if !batch.is_empty() {
                self.launch_batch(now, kind, batch);
            }
        }
    }

    fn launch_maintenance(&mut self, now: Instant) {
        self.news.has_hint |= self.maintenance.poll_is_due(now, self.is_open());
        if let Some(step) = self.member.next_step(now, self.commands.is_settled()) {
            self.launch_step(now, step);
        } else if let Some(task) = self.maintenance.next(now, self.member.is_joined()) {
            let names = self.maintenance.names();
            let statement = tasks::prepare(task, &self.clocks, &self.member, names, &self.options);
            self.launch(now, Purpose::Task(task), statement);
        }
    }

    fn launch_step(&mut self, now: Instant, step: MemberStep) {
        let statement = steps::prepare(step, &self.member, self.options.intervals.lost);
        self.launch(now, Purpose::Step(step), statement);
    }

    fn launch_batch(&mut self, now: Instant, kind: StatementKind, mut batch: Vec<PendingCommand>) {
        match kind {
            StatementKind::Enqueue => {
                let statement = enqueue::prepare(&self.clocks, &self.member, &batch);
                self.launch(now, Purpose::Enqueue(batch), statement);
            }
            StatementKind::End => {
                let statement = end::prepare(&self.clocks, &self.member, &batch);
                self.launch(now, Purpose::End(batch), statement);
            }
            StatementKind::Find => {
                let statement = reading::prepare_find(&batch);
                self.launch(now, Purpose::Find(batch), statement);
            }
            StatementKind::Claim => batch.drain(..).for_each(|waiting| self.launch_claim(now, waiting)),
            StatementKind::Single | StatementKind::Maintenance | StatementKind::Heartbeat => {
                batch.drain(..).for_each(|waiting| self.launch_single(now, waiting));
            }
        }
    }

    fn launch_claim(&mut self, now: Instant, waiting: PendingCommand) {
        let claim = self.member.begin_claim();
        match claim::prepare(&self.clocks, &self.member, claim, &waiting.command) {
            Some(statement) => {
                self.limits.asked();
                self.launch(now, Purpose::Claim { waiting, claim }, statement);
            }
            None => self.commands.misplaced(&waiting),
        }
    }

    fn launch_single(&mut self, now: Instant, waiting: PendingCommand) {
        match &waiting.command {
            Command::Recognise { names, .. } => self.maintenance.recognises(names),
            Command::Count { tag } => {
                if let Some(counts) = self.counts.fresh(now) {
                    return self.commands.answer(&waiting, Reply::Counted { tag: *tag, counts });
                }
            }
            _ => {}
        }
        match changes::prepare(&waiting, &self.clocks, &self.member) {
            Some(statement) => self.launch(now, Purpose::Single(waiting), statement),
            None => self.commands.misplaced(&waiting),
        }
    }

    fn launch(&mut self, now: Instant, purpose: Purpose, statement: StoreStatement) {
        self.is_asked = true;
        self.in_flight.begin(&mut self.database, now, purpose, statement);
    }

    fn hear(&mut self, now: Instant, event: Event) {
        match event {
            // What it does not hear is looked up as soon as it listens again.
            Event::Query(parkade_sql::QueryEvent::Started { .. }) | Event::ListeningLost { .. } => {}
            Event::Query(parkade_sql::QueryEvent::Piece { query, bytes }) => {
                self.database.taken(query, bytes.len());
                self.in_flight.received(query, &bytes);
            }
            Event::Query(parkade_sql::QueryEvent::Ended { query, end }) => self.ended(now, query, end),
            Event::Notification { channel, payload } => self.notified(&channel, &payload),
            Event::ListeningAgain => {
                self.news.has_hint = true;
                self.maintenance.wants(MaintenanceTask::CatchUp);
            }
        }
    }

    /// The owner knows what this server has done itself.
    fn notified(&mut self, channel: &str, payload: &str) {
        let notification = notifications::read(channel, payload);
        let is_own = notification.instance.is_some_and(|instance| self.member.is_own(instance));
        match notification.about {
            Notice::Cancel(jobs) if is_own => self.news.cancelled.extend(jobs),
            Notice::Cancel(_) => {}
            _ if is_own => {}
            Notice::Vacated => self.news.has_hint |= self.limits.vacated(),
            Notice::Ready => self.news.has_hint = true,
            Notice::Ended(jobs) => self.news.ended.extend(jobs),
        }
    }

    fn ended(&mut self, now: Instant, query: QueryId, end: QueryEnd) {
        let Some(statement) = self.in_flight.ended(query) else { return };
        match end {
            QueryEnd::Completed(_) => self.carried_out(now, statement),
            // Only the end of the server cancels a statement whose answer is still needed.
            QueryEnd::Cancelled => {
                let failure = QueryFailure::new(FailureKind::Unreachable, "the server is stopping");
                self.failed(now, statement.purpose, &QueryFailure { certainty: Certainty::Unknown, ..failure });
            }
            QueryEnd::Failed(failure) => self.failed(now, statement.purpose, &failure),
        }
    }

    fn carried_out(&mut self, now: Instant, statement: SubmittedStatement) {
        let rows = &statement.rows;
        match statement.purpose {
            Purpose::Enqueue(batch) => {
                let replies = enqueue::read(rows, &self.clocks, &batch);
                let there = self.commands.answer_some(batch, replies);
                self.commands.look_up(there);
            }
            Purpose::LookUp(batch) => {
                let replies = enqueue::read_look_up(rows, &self.clocks, &batch);
                let again = self.commands.answer_some(batch, replies);
                self.commands.again(again);
            }
            Purpose::Claim { waiting, claim } => match claim::read(rows, claim) {
                Ok(taken) => self.claimed(now, waiting, claim.instance, taken),
                Err(why) => {
                    // No server runs the jobs that it took.
                    self.member.claim_unanswered(claim);
                    self.commands.garbled(&[waiting], &why);
                }
            },
            Purpose::End(batch) => {
                let ends = end::read(rows, &batch);
                if ends.as_ref().is_ok_and(|ends| ends.is_vacated) {
                    self.news.has_hint |= self.limits.vacated();
                }
                let unclear = self.commands.answer_some(batch, ends.map(|ends| ends.replies));
                self.commands.again(unclear);
            }
            Purpose::Find(batch) => self.commands.answer_all(&batch, reading::read_found(rows, &batch)),
            Purpose::Single(waiting) => match self.read_single(now, statement.began, &waiting.command, rows) {
                Ok(ChangeResult::Reply(reply)) => self.commands.answer(&waiting, reply),
                Ok(ChangeResult::Again) => self.commands.again(vec![waiting]),
                Err(why) => self.commands.garbled(&[waiting], &why),
            },
            Purpose::Step(step) => {
                let read = self.step_done(now, step, rows);
                self.maintained(now, read);
            }
            Purpose::Task(task) => {
                let read = self.task_done(now, task, rows);
                self.maintained(now, read);
            }
        }
    }

    /// `instance`: the one that claimed.
    fn claimed(
        &mut self,
        now: Instant,
        waiting: PendingCommand,
        instance: InstanceId,
        taken: Option<claim::ClaimResult>,
    ) {
        // The jobs of an instance that is known to be dead are rescued, so none of them begins here.
        let taken = taken.filter(|_| instance == self.member.instance());
        let Some(claim::ClaimResult { jobs, mut more, is_full, next }) = taken else {
            if self.member.declared_dead(instance) {
                self.await_rejoin();
            }
            if self.member.is_ending() {
                // It does not join again, so another claim would find no more.
                let none = Reply::Claimed { tag: waiting.command.tag(), jobs: Vec::new(), more: false, next: None };
                return self.commands.answer(&waiting, none);
            }
            return self.commands.again(vec![waiting]);
        };
        let wanted_some = matches!(waiting.command, Command::Claim { count: 1.., .. });
        if jobs.is_empty() && more && wanted_some {
            // Another server is claiming them: without a pause this would be repeated endlessly.
            more = false;
            self.maintenance.look_again(now + CONTENDED);
        }
        self.news.has_hint |= self.limits.found(is_full);
        let next = next.map(|(next, now)| self.clocks.owner_time(next, now));
        self.commands.answer(&waiting, Reply::Claimed { tag: waiting.command.tag(), jobs, more, next });
    }

    fn read_single(
        &mut self,
        now: Instant,
        began: Instant,
        command: &Command,
        rows: &[u8],
    ) -> Result<ChangeResult, serde_json::Error> {
        match command {
            Command::Count { tag } => {
                let counts = reading::read_counts(rows)?;
                self.counts.put(now, began, counts.clone(), self.options.intervals.count);
                Ok(ChangeResult::Reply(Reply::Counted { tag: *tag, counts }))
            }
            Command::Recognise { tag, .. } => {
                let outcome = changes::read_outcome(rows)?;
                if outcome.is_there {
                    self.maintenance.wants(MaintenanceTask::Recognise);
                }
                Ok(ChangeResult::Reply(Reply::Changed { tag: *tag, changed: outcome.changed }))
            }
            _ => changes::read(command, rows),
        }
    }

    fn step_done(&mut self, now: Instant, step: MemberStep, rows: &[u8]) -> Result<(), serde_json::Error> {
        if !matches!(step, MemberStep::Heartbeat { .. }) {
            self.member.done(now, step);
        }
        match step {
            MemberStep::Heartbeat { instance, .. } => {
                if let Some(answer) = steps::read_heartbeat(rows)? {
                    self.clocks.compare(answer.now_ms);
                    if self.member.heartbeat_answered(now, instance, answer) {
                        self.await_rejoin();
                    }
                }
            }
            MemberStep::Join => {
                self.maintenance.refuse_with(None);
                if let Some(now_ms) = steps::read_join(rows)? {
                    self.clocks.compare(now_ms);
                }
            }
            MemberStep::HandBack(_) => self.news.has_hint = true,
            MemberStep::Rescue => {
                let jobs = steps::read_rescue(rows)?;
                if jobs > 0 {
                    tracing::warn!(jobs, "other servers were declared dead; their jobs are ready to run again");
                    self.news.has_hint = true;
                }
            }
            MemberStep::Fence(_) | MemberStep::Leave | MemberStep::HandOver => {}
        }
        Ok(())
    }

    fn task_done(&mut self, now: Instant, task: MaintenanceTask, rows: &[u8]) -> Result<(), serde_json::Error> {
        match task {
            MaintenanceTask::PrepareTables => {
                self.maintenance.tables_are_there();
                self.member.join(now);
            }
            MaintenanceTask::CatchUp => self.news.ended.extend(tasks::read_catch_up(rows)?),
            MaintenanceTask::Recognise => {
                let outcome = changes::read_outcome(rows)?;
                self.news.has_hint |= outcome.changed;
                if outcome.is_there {
                    self.maintenance.wants(MaintenanceTask::Recognise);
                }
            }
            MaintenanceTask::Tidy => self.maintenance.tidied(now, tasks::read_tidy(rows)?),
        }
        Ok(())
    }

    fn maintained(&mut self, now: Instant, read: Result<(), serde_json::Error>) {
        if let Err(why) = read {
            tracing::error!("cannot read a result of the job store's maintenance: {}", faults::garbled(&why));
        }
        if self.member.is_gone() {
            self.close(now);
        }
    }

    /// Commands wait until this server has joined again.
    fn await_rejoin(&mut self) {
        self.maintenance.refuse_with(None);
    }

    fn failed(&mut self, now: Instant, purpose: Purpose, failure: &QueryFailure) {
        let fault = faults::of(failure);
        match &purpose {
            Purpose::Step(step) => {
                self.member.failed(now, *step);
                if *step == MemberStep::Join {
                    self.maintenance.refuse_with(Some(fault.clone()));
                }
                self.not_maintained(now, &purpose, failure, &fault);
            }
            Purpose::Task(task) => {
                self.maintenance.failed(now, *task, &fault);
                self.member.give_up_leaving();
                self.not_maintained(now, &purpose, failure, &fault);
            }
            Purpose::Claim { claim, .. } if failure.certainty == Certainty::Unknown => {
                self.member.claim_unanswered(*claim);
            }
            _ => {}
        }
        self.commands.retry_or_refuse(purpose.into_waiting(), failure, &fault);
    }

    fn not_maintained(&mut self, now: Instant, purpose: &Purpose, failure: &QueryFailure, fault: &Fault) {
        tracing::debug!(?purpose, "maintenance of the job store failed; retrying: {}", failure.message);
        if self.member.is_gone() {
            self.close(now);
        } else if !self.member.is_joined() {
            self.commands.refuse_all(fault);
        }
    }
}
