//! What the owner can ask of the store.

use std::collections::HashMap;
use std::io;
use std::time::Instant;

use parkade_postgres::{Database, Event};
use parkade_sql::QueryId;

use super::flight::Flight;
use super::lanes::{FOR_COMMANDS, Lane, Lanes, Waiting};
use super::limits::{CHECK_INTERVAL, CONNECT_TIME_MAX, ROW_BYTES_MAX, SLOTS, WINDOW_BYTES};
use super::maintenance::{Maintenance, Task};
use super::options::{Clock, Options, Pace};
use super::{Settings, faults, rows};
use crate::cluster::{InstanceId, Member, SharedLimits, Timing};
use crate::{Command, Counts, Fault, JobId, Reply, Wall};

/// Jobs in a PostgreSQL database, for one owner on one thread, who polls, as for [`Database`].
///
/// Answers come in the order of the commands only where these are about the same job.
#[derive(Debug)]
pub struct PostgresStore {
    pub(super) database: Database,
    pub(super) options: Options,
    pub(super) lanes: Lanes,
    /// Statements under way.
    pub(super) flights: HashMap<QueryId, Flight>,
    pub(super) queries: u64,
    /// Statements of commands, those that an injected fault may hit.
    pub(super) commits: u32,
    pub(super) member: Member,
    pub(super) maintenance: Maintenance,
    pub(super) limits: SharedLimits,
    /// Enqueued ones that were there already: which are they?
    pub(super) known: Vec<Waiting>,
    pub(super) counted: Option<Counted>,
    /// What the owner's clock said last.
    pub(super) wall: Wall,
    /// By how much the database's clock was ahead of the owner's when they were compared last, in ms.
    pub(super) ahead: i64,
    pub(super) answered: Vec<Reply>,
    pub(super) has_hint: bool,
    pub(super) ended: Vec<JobId>,
    cancelled: Vec<JobId>,
    /// Something was submitted or begun since the last turn of the driver.
    pub(super) is_asked: bool,
    events: Vec<Event>,
}

/// Counting a million jobs takes long: what came of it does for a while.
#[derive(Debug)]
pub(super) struct Counted {
    pub counts: Counts,
    pub until: Instant,
}

/// Every plan goes by index, row by row: also one that was made while the tables were empty and is kept, also one that was made when they had
/// been analysed, for what is taken is a few rows of however many.
const PLANS: &str = "-c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off \
                     -c jit=off -c statement_timeout=60s -c default_transaction_isolation=read\\ committed";

impl PostgresStore {
    /// Connects to nothing yet. `first_token` and the [`TOKENS`](super::TOKENS) from it on are its own in that registry.
    pub fn new(
        mut settings: Settings,
        options: Options,
        registry: mio::Registry,
        first_token: usize,
    ) -> io::Result<Self> {
        settings.options = Some(settings.options.map_or(PLANS.to_owned(), |given| format!("{given} {PLANS}")));
        let driver = parkade_postgres::Options {
            slots: SLOTS,
            queue_count_max: SLOTS * 2,
            row_bytes_max: ROW_BYTES_MAX,
            window_bytes: WINDOW_BYTES,
            application_name: "parkade jobs".into(),
            listen: vec!["parkade_jobs".into(), "parkade_job_ended".into(), "parkade_job_cancel".into()],
            connect_timeout: CONNECT_TIME_MAX,
            check_interval: CHECK_INTERVAL,
        };
        let Pace { beat, lost, poll, .. } = options.pace;
        let timing = Timing { heartbeat: beat, dead_after: lost, rescue: poll };
        Ok(Self {
            database: Database::new(settings, driver, registry, first_token)?,
            member: Member::new(fastrand::Rng::new(), timing),
            maintenance: Maintenance::new(options.pace),
            limits: SharedLimits::default(),
            options,
            lanes: Lanes::default(),
            flights: HashMap::new(),
            queries: 0,
            commits: 0,
            known: Vec::new(),
            counted: None,
            wall: Wall::default(),
            ahead: 0,
            answered: Vec::new(),
            has_hint: false,
            ended: Vec::new(),
            cancelled: Vec::new(),
            is_asked: false,
            events: Vec::new(),
        })
    }

    /// Begins to connect; the tables are made when they are missing. What is submitted meanwhile waits for it.
    pub fn open(&mut self, now: Instant) {
        self.maintenance.open(now);
        self.database.start(now);
        self.is_asked = true;
    }

    /// Every command is answered exactly once.
    pub fn submit(&mut self, now: Wall, command: Command) {
        self.wall = now;
        self.is_asked = true;
        let refusal = self.not_taken().or_else(|| self.lanes.refusal(&self.options, &command));
        match refusal {
            Some(fault) => self.answered.push(Reply::Refused { tag: command.tag(), fault }),
            None => self.lanes.add(Waiting { now, command, tries: 0, is_alone: false }),
        }
    }

    /// What the poll says. Events of other tokens are passed over.
    pub fn ready(&mut self, event: &mio::event::Event) {
        self.database.ready(event);
    }

    /// Everything that needs no waiting. `wall`: what the owner's clock says, in the same words as at [`submit`](Self::submit).
    pub fn turn(&mut self, now: Instant, wall: Wall, replies: &mut Vec<Reply>) {
        self.wall = wall;
        self.launch_all(now);
        self.is_asked = false;
        self.database.turn(now, &mut self.events);
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            self.hear(now, event);
        }
        self.events = events;
        self.launch_all(now);
        replies.append(&mut self.answered);
    }

    /// Whether another turn is due at once.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.is_asked || self.database.has_more() || !self.answered.is_empty()
    }

    /// When the next turn is due at the latest.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        let step = self.member.step_due().into_iter().chain(self.maintenance.next_due(self.is_open()));
        let step = step.filter(|_| !self.is_busy(Lane::Upkeep));
        let heartbeat = self.member.heartbeat_due().filter(|_| !self.is_busy(Lane::Beat));
        self.database.next_due().into_iter().chain(step).chain(heartbeat).min()
    }

    /// Why the tables cannot be made or used, where that will not pass by itself: they are a newer program's, or the role may not make them.
    #[must_use]
    pub fn unusable(&self) -> Option<&str> {
        self.maintenance.unusable()
    }

    /// Whether there may be jobs to claim that the owner has not heard of. Said once.
    pub fn take_hint(&mut self) -> bool {
        std::mem::take(&mut self.has_hint)
    }

    /// Jobs that have ended for good in other servers, or were dropped there; some may be named twice.
    pub fn take_ended(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.ended)
    }

    /// Jobs that run here, and that somebody at another server wants to end.
    pub fn take_cancelled(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.cancelled)
    }

    /// What time it is in the store, when the owner's clock says this.
    #[must_use]
    pub fn time(&self, wall: Wall) -> Wall {
        match self.options.clock {
            Clock::Database => Wall(wall.0.saturating_add(self.ahead)),
            Clock::Owner => wall,
        }
    }

    /// Nothing is under way, and nothing is due.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let is_quiet = self.member.is_gone() || self.member.is_idle() && self.maintenance.is_idle();
        is_quiet && self.flights.is_empty() && self.lanes.count() == 0 && self.answered.is_empty()
    }

    /// Nothing new. What was submitted is carried out, what runs is handed to the others, the connections are closed: turns are needed until
    /// [`is_ended`](Self::is_ended).
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

    /// Whoever still waits is told that it will not be.
    pub(super) fn close(&mut self, now: Instant) {
        self.refuse_all(&faults::stopping());
        self.database.end(now);
    }

    pub(super) fn answer(&mut self, waiting: &Waiting, reply: Reply) {
        self.lanes.answered(&waiting.command);
        self.maintenance.carried_out();
        self.answered.push(reply);
    }

    pub(super) fn refuse(&mut self, waiting: &Waiting, fault: &Fault) {
        self.answer(waiting, Reply::Refused { tag: waiting.command.tag(), fault: fault.clone() });
    }

    /// All that no statement has been begun for.
    pub(super) fn refuse_all(&mut self, fault: &Fault) {
        for waiting in std::mem::take(&mut self.known) {
            self.refuse(&waiting, fault);
        }
        // Answering one lets the next about its job into its lane.
        while let Some(batch) =
            FOR_COMMANDS.into_iter().map(|lane| self.lanes.batch(lane)).find(|batch| !batch.is_empty())
        {
            for waiting in batch {
                self.refuse(&waiting, fault);
            }
        }
    }

    /// Why no command is taken.
    pub(super) fn not_taken(&self) -> Option<Fault> {
        if self.member.is_ending() {
            Some(faults::stopping())
        } else if self.member.is_joined() {
            None
        } else {
            self.maintenance.refusal()
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.member.is_joined() && !self.member.is_ending()
    }

    pub(super) fn is_busy(&self, lane: Lane) -> bool {
        self.flights.values().any(|flight| flight.carried.lane() == lane)
    }

    fn hear(&mut self, now: Instant, event: Event) {
        match event {
            Event::Query(parkade_sql::Event::Started { .. }) => {}
            Event::Query(parkade_sql::Event::Piece { query, bytes }) => {
                self.database.taken(query, bytes.len());
                if let Some(flight) = self.flights.get_mut(&query) {
                    flight.rows.extend_from_slice(&bytes);
                }
            }
            Event::Query(parkade_sql::Event::Ended { query, end }) => self.landed(now, query, end),
            Event::Notification { channel, payload } => self.hear_notification(&channel, &payload),
            Event::ListeningAgain => {
                self.has_hint = true;
                self.maintenance.wants(Task::CatchUp);
            }
        }
    }

    /// What this server has done itself its owner knows.
    fn hear_notification(&mut self, channel: &str, payload: &str) {
        let mut words = payload.split(' ');
        let instance = words.next().and_then(|word| word.parse::<JobId>().ok()).map(|id| InstanceId(id.0));
        let is_own = instance.is_some_and(|instance| self.member.is_own(instance));
        match channel {
            // It says whose it is, the others who says it.
            "parkade_job_cancel" if is_own => {
                self.cancelled.extend(words.filter_map(|word| word.parse::<JobId>().ok()));
            }
            "parkade_job_cancel" => {}
            _ if is_own => {}
            "parkade_jobs" if words.next() == Some("vacated") => self.has_hint |= self.limits.vacated(),
            "parkade_jobs" => self.has_hint = true,
            _ => self.ended.extend(words.filter_map(|word| word.parse::<JobId>().ok())),
        }
    }

    /// When that is for the owner's clock, which may differ from the database's.
    pub(super) fn told(&self, at: Wall, now: Wall) -> Wall {
        Wall(self.wall.0.saturating_add(rows::pause(now, at)))
    }
}
