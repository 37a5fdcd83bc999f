//! The server task: the one owner of everything that changes. It carries events to the core, and effects to whoever does them.

mod act;
mod cpu;
mod hear;
pub mod jobs;
mod limits;
mod payloads;
mod publishing;
mod report;
mod tables;
mod turns;
mod waits;

use std::io;
use std::time::Duration;

use parkade_core::{Core, Effect, Event, ExitReason, Moment, PayloadId, Refusal, WorkerEffect, WorkerId};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

use crate::admin::Ask;
use crate::clients::{Clients, Messages, Step};
use crate::clock::Clock;
use crate::databases::{DatabaseEvent, Databases};
use crate::http::{FIRST_REQUEST_TIME, Http, HttpEvent, SWEEP_INTERVAL};
use crate::log::AccessLog;
use crate::queries::Queries;
use crate::share::Share;
use crate::workers::{WorkerEvent, Workers};
pub use jobs::Jobs;
use limits::{ANSWERS_SHARE, SHARE};
use payloads::{Payload, Payloads};
use publishing::HeldBack;
use tables::Tables;
use turns::{Part, Turns};

/// Turns between two looks at what else the runtime has to do (admin, HTTP/2, signals).
const TURNS_WITHOUT_YIELD: u32 = 8;
/// How often the memory of workers is measured.
const MEASURE_INTERVAL: Duration = Duration::from_secs(1);
/// So many turns empty a full backlog (`TURN_ACCEPTS_MAX` each) and read what its clients have sent.
const LAST_CALL_TURNS: u32 = 96;
/// With what was left over from each.
const LAST_CALL_TURNS_MAX: u32 = 1_000;
/// When everything has ended, connections have this long to close properly.
const FAREWELL: Duration = Duration::from_secs(2);

/// A store that is found unusable so soon ends the start. Later somebody is being served: the server goes on, and only jobs are refused.
const START: Duration = Duration::from_secs(5);

/// What comes from neither clients nor workers.
#[derive(Debug)]
pub enum Input {
    Ask(Ask),
    Reload,
    /// SIGTERM, or the first SIGINT.
    Drain,
    /// The second SIGINT, or SIGQUIT.
    Stop,
}

/// Why a turn begins.
enum Woken {
    /// Somebody is ready, or it is time for something.
    Ready,
    Input(Input),
    Sweep,
    Measure,
}

pub struct Server {
    core: Core,
    clients: Clients,
    workers: Workers,
    databases: Databases,
    jobs: Jobs,
    queries: Queries,
    messages: Messages,
    unpublished: publishing::Unpublished,
    tables: Tables,
    payloads: Payloads,
    effects: Vec<Effect>,
    held_back: HeldBack,
    turns: Turns,
    /// What clients and workers have said and the core has not been told, for its share of a turn was over.
    said: Vec<HttpEvent>,
    told: Vec<WorkerEvent>,
    reported: Vec<DatabaseEvent>,
    clock: Clock,
    /// When the batch in hand was read: one look at the clock for all that came together.
    now: Moment,
    /// It stops: the drain begins when nobody new is left to be heard, at the latest then.
    drain_at: Option<Moment>,
    grace: Duration,
    /// Workers that could not be started: the core is told when it has said all it has to say.
    failed_starts: Vec<WorkerId>,
    about: About,
    standard_history: parkade_core::HistoryLimits,
    exit: Option<ExitReason>,
}

/// What the status page says of the server itself.
#[derive(Debug, Clone)]
pub struct About {
    pub target: String,
    pub dropped: crate::log::Dropped,
    pub connections_count_max: usize,
    pub body_bytes_max: usize,
    /// Whether this is `parkade dev`: developers see what a failed query was.
    pub is_dev: bool,
}

/// Why a server ended without being told to.
#[derive(Debug)]
pub enum Failed {
    Io(io::Error),
    JobsUnusable(Box<str>),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// What a server is made of.
pub struct Parts {
    pub config: parkade_core::Config,
    pub http: Http,
    pub workers: Workers,
    pub databases: Databases,
    pub jobs: Jobs,
    /// Rows that a worker is given, or that several requests share.
    pub result_bytes_max: usize,
    pub grace: Duration,
    pub access_log: Option<AccessLog>,
    pub about: About,
}

impl Server {
    pub fn new(parts: Parts) -> Self {
        Self {
            standard_history: parts.config.history,
            core: Core::new(parts.config),
            clients: Clients::new(parts.http, parts.access_log),
            workers: parts.workers,
            databases: parts.databases,
            jobs: parts.jobs,
            queries: Queries::new(parts.result_bytes_max, parts.about.is_dev),
            messages: Messages::default(),
            unpublished: publishing::Unpublished::default(),
            tables: Tables::default(),
            payloads: Payloads::default(),
            effects: Vec::new(),
            held_back: HeldBack::default(),
            turns: Turns::default(),
            said: Vec::new(),
            told: Vec::new(),
            reported: Vec::new(),
            clock: Clock::start(),
            now: Moment::default(),
            drain_at: None,
            grace: parts.grace,
            failed_starts: Vec::new(),
            about: parts.about,
            exit: None,
        }
    }

    /// Serves until everything has ended. The reason is the process's exit status.
    pub async fn run(mut self, mut inputs: mpsc::Receiver<Input>) -> Result<ExitReason, Failed> {
        let mut effects = std::mem::take(&mut self.effects);
        self.core.begin(self.clock.now(), &mut effects);
        self.carry_out(effects);
        self.databases.start(self.clock.at(self.clock.now()));
        let mut sweep = tokio::time::interval(SWEEP_INTERVAL);
        let mut measure = tokio::time::interval(MEASURE_INTERVAL);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        measure.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut turns = 0;
        while self.exit.is_none() {
            let due = [self.core.next_due(), self.drain_at].into_iter().flatten().min();
            let goes_on = self.has_more();
            let woken = tokio::select! {
                ready = self.clients.http.ready() => ready.map(|()| Woken::Ready)?,
                ready = self.workers.ready() => ready.map(|()| Woken::Ready)?,
                ready = self.databases.ready() => self.databases.wake(ready).map(|()| Woken::Ready)?,
                ready = self.jobs.ready() => ready.map(|()| Woken::Ready)?,
                Some(input) = inputs.recv() => Woken::Input(input),
                () = sleep_until(self.clock, due) => Woken::Ready,
                () = std::future::ready(()), if goes_on => Woken::Ready,
                _ = sweep.tick() => Woken::Sweep,
                _ = measure.tick() => Woken::Measure,
            };
            self.now = self.clock.now();
            self.turns.begin(self.now);
            self.wake(woken);
            self.turn()?;
            self.turns.end(self.clock.now());
            if self.now.since(Moment::default()) < START
                && let Some(why) = self.jobs.unusable()
            {
                return Err(Failed::JobsUnusable(why.into()));
            }
            turns += 1;
            if turns % TURNS_WITHOUT_YIELD == 0 {
                tokio::task::yield_now().await;
            }
        }
        self.farewell(&mut inputs).await?;
        Ok(self.exit.unwrap_or(ExitReason::Drained))
    }

    fn wake(&mut self, woken: Woken) {
        let part = match woken {
            Woken::Ready => return,
            Woken::Input(input) => {
                self.hear_input(input);
                Part::Inputs
            }
            Woken::Sweep => {
                self.clients.http.sweep();
                Part::Sweep
            }
            Woken::Measure => {
                self.measure();
                Part::Sweep
            }
        };
        self.did(part, 1);
    }

    /// A part of the turn is done, and the next begins. The clock is not read for a part with nothing in it.
    fn did(&mut self, part: Part, count: usize) {
        if count > 0 {
            self.now = self.clock.now();
            self.turns.did(self.now, part, count);
        }
    }

    /// Whether shares of a turn were over before everything was done.
    fn has_more(&self) -> bool {
        self.has_unheard() || self.clients.has_put_off()
    }

    /// Whether somebody has said what was not heard.
    fn has_unheard(&self) -> bool {
        !(self.said.is_empty() && self.told.is_empty() && self.reported.is_empty()) || self.jobs.has_replies()
    }

    /// Everything that can be done without waiting: whoever was ready, the others are asked too, so that work comes in batches. Each has a share
    /// of the time; who has not been heard to the end is not read from before.
    fn turn(&mut self) -> io::Result<()> {
        self.turn_clients()?;
        self.turn_workers()?;
        self.turn_databases()?;
        let count = self.turn_jobs(Share::of(SHARE))?;
        self.did(Part::Jobs, count);
        self.turn_timers();
        self.workers.flush();
        if self.clients.has_put_off() {
            self.did(Part::Sending, 1);
            let count = self.go_on(Share::of(ANSWERS_SHARE));
            self.did(Part::Answers, count);
        }
        Ok(())
    }

    fn turn_timers(&mut self) {
        if self.core.next_due().is_some_and(|due| due <= self.now) {
            self.tell(Event::Tick);
            self.did(Part::Timers, 1);
        }
        for worker in std::mem::take(&mut self.failed_starts) {
            self.tell(Event::WorkerExited { worker });
        }
        if self.drain_at.is_some_and(|at| at <= self.now || !self.clients.http.has_fresh()) {
            self.drain_at = None;
            self.tell(Event::Drain { grace: self.grace });
        }
    }

    fn turn_clients(&mut self) -> io::Result<()> {
        let mut said = std::mem::take(&mut self.said);
        if said.is_empty() {
            self.clients.http.turn(&mut said)?;
            self.did(Part::Sockets, said.len());
        }
        let count = said.len();
        self.said = self.hear(said, Share::of(SHARE), Self::hear_http);
        self.did(Part::Requests, count - self.said.len());
        Ok(())
    }

    fn turn_workers(&mut self) -> io::Result<()> {
        let mut told = std::mem::take(&mut self.told);
        if told.is_empty() {
            self.workers.turn(&mut told, &mut Share::of(SHARE))?;
            self.did(Part::Links, told.len());
        }
        let count = told.len();
        self.told = self.hear(told, Share::of(SHARE), Self::hear_in_turn);
        self.did(Part::Frames, count - self.told.len());
        Ok(())
    }

    /// Hears one after the other until the share is over; gives what is left.
    fn hear<T>(&mut self, mut events: Vec<T>, mut share: Share, hear: impl Fn(&mut Self, T)) -> Vec<T> {
        if events.is_empty() {
            return events;
        }
        let mut rest = events.drain(..);
        for event in rest.by_ref() {
            hear(self, event);
            if share.is_over() {
                break;
            }
        }
        let left: Vec<T> = rest.collect();
        if left.is_empty() { events } else { left }
    }

    /// What was asked of them in this turn goes out in it, and what they have said is heard.
    fn turn_databases(&mut self) -> io::Result<()> {
        // Notifications are messages, too.
        let is_held_back = self.clients.are_behind();
        if is_held_back || !self.databases.are_due() && self.reported.is_empty() {
            return Ok(());
        }
        let mut reported = std::mem::take(&mut self.reported);
        if reported.is_empty() {
            self.databases.turn(self.clock.at(self.now), &mut reported)?;
        }
        let count = reported.len();
        self.reported = self.hear(reported, Share::of(SHARE), Self::hear_database);
        self.did(Part::Databases, count);
        Ok(())
    }

    /// Closes the doors, politely. Who stands in a backlog believes to be connected, and may have sent a request already; who has just come in
    /// is about to. The drain begins when they have been heard.
    fn last_call(&mut self) {
        let mut turns = 0;
        while turns < LAST_CALL_TURNS || self.has_unheard() && turns < LAST_CALL_TURNS_MAX {
            turns += 1;
            if let Err(error) = self.turn() {
                tracing::warn!(%error, "the last call before the stop was cut short");
                break;
            }
        }
        self.clients.http.drain();
        self.drain_at = Some(self.now + FIRST_REQUEST_TIME);
    }

    fn measure(&mut self) {
        self.now = self.clock.now();
        self.look_after_jobs();
        self.tell_unpublished();
        for worker in self.workers.all() {
            if let Some(resident_bytes) = self.workers.resident_bytes(worker) {
                self.tell(Event::Measured { worker, resident_bytes });
            }
        }
    }

    /// Tells the core and does what it asks for.
    fn tell(&mut self, event: Event) {
        let mut effects = std::mem::take(&mut self.effects);
        self.core.handle(self.now, event, &mut effects);
        self.carry_out(effects);
    }

    /// Tells the core what brings a payload. What the effects do not take of it is dropped.
    fn tell_with(&mut self, payload: Payload, event: impl FnOnce(PayloadId) -> Event) {
        let id = self.payloads.hold(payload);
        self.tell(event(id));
        self.payloads.drop(id);
    }

    fn carry_out(&mut self, mut effects: Vec<Effect>) {
        let count = effects.len();
        let mut rest = effects.drain(..);
        while let Some(effect) = rest.next() {
            if let Effect::Worker(WorkerEffect::Call { request, worker, outcome }) = effect {
                // Whatever woke many calls is written once.
                let mut requests = vec![request];
                while let Some(Effect::Worker(WorkerEffect::Call { request, worker: same, outcome: alike })) =
                    rest.as_slice().first()
                    && (*same, *alike) == (worker, outcome)
                {
                    requests.push(*request);
                    rest.next();
                }
                self.call(worker, outcome, &requests);
            } else if let Some(effect) = self.clients.put_off(effect, count, &mut self.messages) {
                self.act(effect);
            }
        }
        drop(rest);
        self.effects = effects;
    }

    /// Goes on with what was put off. How many steps that were.
    fn go_on(&mut self, mut share: Share) -> usize {
        let mut count = 0;
        while let Some(step) = self.clients.go_on() {
            if let Step::Effect(effect) = step {
                self.act(effect);
            }
            count += 1;
            if share.is_over() {
                break;
            }
        }
        if self.clients.have_caught_up() {
            self.let_publishers_on();
        }
        count
    }

    /// Answers that wait for their clients to read have the grace for it, unless it is over; then a moment for connections to end. Meanwhile
    /// the stores hear the last of what ran.
    async fn farewell(&mut self, inputs: &mut mpsc::Receiver<Input>) -> io::Result<()> {
        let grace = if self.exit == Some(ExitReason::Drained) { self.grace } else { Duration::ZERO };
        let began = Instant::now();
        let (last, mut end, mut swept) = (began + grace, began + FAREWELL, began);
        self.databases.end(self.clock.at(self.clock.now()));
        let (mut are_jobs_settled, mut hurries) = (false, false);
        loop {
            self.now = self.clock.now();
            self.go_on(Share::of(SHARE));
            are_jobs_settled = are_jobs_settled || self.settle_jobs(began)?;
            // A client whose answer was put off is there.
            let is_unsent = (self.clients.http.has_unsent() || self.clients.has_put_off()) && Instant::now() < last;
            if is_unsent {
                // What has been handed on is not on the wire yet: the moment is that behind the last of it.
                end = Instant::now() + FAREWELL;
            }
            let is_ending = self.clients.http.is_closing() || !self.databases.are_ended() || self.clients.has_put_off();
            let waits = is_unsent || is_ending && Instant::now() < end;
            if are_jobs_settled && (hurries || !waits) {
                return Ok(());
            }
            self.databases.turn(self.clock.at(self.now), &mut Vec::new())?;
            let _ = tokio::time::timeout(SWEEP_INTERVAL, async {
                tokio::select! {
                    ready = self.clients.http.ready() => ready,
                    ready = self.databases.ready() => ready,
                    ready = self.jobs.ready(), if !are_jobs_settled => ready,
                    () = std::future::ready(()), if self.clients.has_put_off() => Ok(()),
                }
            })
            .await;
            let mut said = std::mem::take(&mut self.said);
            self.clients.http.turn(&mut said)?;
            for event in said {
                if let HttpEvent::Arrived { request, .. } = event {
                    self.refuse(request, Refusal::Stopping);
                }
            }
            if swept.elapsed() >= SWEEP_INTERVAL {
                self.clients.http.sweep();
                swept = Instant::now();
            }
            hurries |= matches!(inputs.try_recv(), Ok(Input::Stop));
            tokio::task::yield_now().await;
        }
    }
}

async fn sleep_until(clock: Clock, due: Option<Moment>) {
    match due {
        Some(due) => tokio::time::sleep_until(clock.instant(due)).await,
        None => std::future::pending().await,
    }
}
