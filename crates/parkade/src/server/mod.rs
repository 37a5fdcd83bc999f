//! The server: owns all mutable state. It passes events to the core, and effects to the parts that carry them out.

mod backlog;
mod checking;
mod commits;
mod cpu;
mod effects;
mod event_loop;
mod events;
mod held_output;
mod incidents;
mod limits;
mod payloads;
mod report;
mod snapshot;
mod turns;

use std::io;

use parkade_core::{CancelEvent, Core, Effect, Event, ExitReason, Moment, PressureEvent, WorkerEffect};
use parkade_jobs::Reply;
use parkade_jobs::sqlite::OpenError;
use parkade_model::PayloadId;

use crate::application::Routes;
use crate::clients::{Clients, Messages, Step};
use crate::clock::Clock;
use crate::databases::Databases;
use crate::http::Http;
use crate::jobs::{CancelFailed, JobContext, Jobs, TransactionJobs, Waited};
use crate::loading::Loading;
use crate::log::AccessLog;
use crate::queries::Queries;
use crate::share::Share;
use crate::statistics::OpenRequests;
use crate::upstream::Upstream;
use backlog::Backlog;
use held_output::HeldOutput;
use incidents::Casualties;
use payloads::{Payload, Payloads};

pub use event_loop::{EventLoop, Failed, Input};
pub use report::About;

/// One field for each part that carries out effects, and for data in transit between the parts and the core.
pub struct Server {
    core: Core,
    clients: Clients,
    upstream: Upstream,
    databases: Databases,
    jobs: Jobs,
    transaction_jobs: TransactionJobs,
    queries: Queries,
    messages: Messages,
    routes: Routes,
    payloads: Payloads,
    backlog: Backlog,
    held_output: HeldOutput,
    loading: Loading,
    /// Reused for the effects of each event.
    effects: Vec<Effect>,
    clock: Clock,
    /// When the current batch was read: one reading of the clock for all its events.
    now: Moment,
    about: About,
    /// While the core hears that a worker has exited.
    casualties: Option<Casualties>,
    /// Set when everything has ended.
    exit: Option<ExitReason>,
}

/// The parts of a server.
pub struct Parts {
    pub config: parkade_core::Config,
    pub http: Http,
    pub upstream: Upstream,
    pub databases: Databases,
    pub jobs: Jobs,
    /// The maximum size of a result that a worker gets, or that several requests share.
    pub result_bytes_max: usize,
    pub access_log: Option<AccessLog>,
    pub about: About,
}

impl Server {
    pub fn new(parts: Parts) -> Self {
        Self {
            core: Core::new(parts.config),
            clients: Clients::new(parts.http, parts.access_log),
            upstream: parts.upstream,
            databases: parts.databases,
            jobs: parts.jobs,
            transaction_jobs: TransactionJobs::default(),
            queries: Queries::new(parts.result_bytes_max, parts.about.is_dev),
            messages: Messages::default(),
            routes: Routes::default(),
            payloads: Payloads::default(),
            backlog: Backlog::default(),
            held_output: HeldOutput::default(),
            loading: Loading::new(parts.about.is_dev),
            effects: Vec::new(),
            clock: Clock::start(),
            now: Moment::default(),
            about: parts.about,
            casualties: None,
            exit: None,
        }
    }

    /// Where clients reach it.
    pub fn addresses(&self) -> &[String] {
        &self.about.addresses
    }

    /// Opens the store of jobs before the first worker starts.
    pub fn begin_jobs(&mut self) -> Result<(), OpenError> {
        self.with_jobs(|jobs, cx| jobs.store.open(cx))
    }

    /// Starts the first workers and connects to the databases.
    fn begin(&mut self) {
        let mut effects = std::mem::take(&mut self.effects);
        self.core.begin(self.clock.now(), &mut effects);
        self.carry_out(effects);
        self.databases.start(self.clock.at(self.clock.now()));
    }

    fn look_at_clock(&mut self) {
        self.now = self.clock.now();
    }

    /// Handles one event after the other until the share is over; returns the rest.
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

    /// Passes an event to the core and carries out its effects.
    fn tell(&mut self, event: Event) {
        let mut effects = std::mem::take(&mut self.effects);
        self.core.handle(self.now, event, &mut effects);
        self.carry_out(effects);
    }

    /// Passes an event with a payload to the core. The rest of the payload is dropped after the effects.
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
                // Calls with the same outcome are written in one frame.
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

    /// Has jobs handle something, and tells the core what follows.
    fn with_jobs<T>(&mut self, handle: impl FnOnce(&mut Jobs, &mut JobContext<'_>) -> T) -> T {
        let mut events = Vec::new();
        let Self { core, clients, messages, clock, now, .. } = self;
        let mut cx = JobContext { core, clients, messages, clock: *clock, now: *now, events: &mut events };
        let handled = handle(&mut self.jobs, &mut cx);
        for event in events {
            self.tell(event);
        }
        handled
    }

    /// Handles replies of the job store until the share is over. Returns how many there were.
    fn turn_jobs(&mut self, share: Share) -> io::Result<usize> {
        let (replies, opened) = self.jobs.store.turn()?;
        let count = replies.len();
        let left = self.hear(replies, share, Self::hear_store);
        self.jobs.store.put_back(left);
        self.tell_standing();
        match self.with_jobs(|jobs, cx| jobs.end_turn(cx, opened)) {
            Some(Waited::Ready(workers)) => workers.into_iter().for_each(|waiting| self.worker_ready(waiting)),
            Some(Waited::Unfit(workers, why)) => workers.into_iter().for_each(|worker| self.unfit(worker, &why)),
            None => {}
        }
        Ok(count)
    }

    fn hear_store(&mut self, reply: Reply) {
        if let Some(CancelFailed { job, fault }) = self.with_jobs(|jobs, cx| jobs.hear(cx, reply)) {
            self.tell_with(Payload::Fault(fault), |payload| Event::Cancel(CancelEvent::Refused { job, payload }));
        }
    }

    /// A step of stopping. Returns whether the store of jobs is closed. `began`: the time of the first step.
    fn settle_jobs(&mut self, began: tokio::time::Instant) -> io::Result<bool> {
        if !self.jobs.store.is_open() {
            return Ok(true);
        }
        self.turn_jobs(Share::endless())?;
        Ok(self.jobs.settle(began))
    }

    /// Continues with deferred responses. Returns the number of steps.
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
            for worker in self.backlog.let_on() {
                self.tell(Event::Pressure(PressureEvent::ClientsCaughtUp { worker }));
            }
        }
        count
    }

    /// Logs messages that the core has refused, at most once a second.
    fn log_refused_messages(&mut self) {
        self.messages.refused.log(self.now, self.core.config().channels_count_max);
    }

    /// Once a second: rates, the memory of workers, retries of the job store, throttled log lines.
    fn measure(&mut self) {
        self.look_at_clock();
        self.clients.sample(self.now, load(&self.core));
        self.with_jobs(Jobs::tick);
        self.log_refused_messages();
        for (worker, resident_bytes) in self.upstream.resident_bytes() {
            self.tell(Event::Measured { worker, resident_bytes });
        }
    }
}

/// What the core holds at this moment, runs of jobs included.
fn load(core: &Core) -> OpenRequests {
    let lives = core.lives();
    OpenRequests { queued: lives.routed, running: lives.running, parked: lives.parked }
}
