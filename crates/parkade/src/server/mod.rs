//! The server: owns all mutable state. It passes events to the core, and effects to the parts that carry them out.
//!
//! | question | where |
//! |---|---|
//! | waiting for input; turns; stopping | `event_loop` |
//! | how long turns take | `turns`, `cpu` |
//! | input, as events of the core | `events` |
//! | effects of the core, carried out | `effects`; files: `file_answers` |
//! | what an event carries while the core decides | `payloads` |
//! | frames of workers that are put off, or wait for a durable write | `backlog`, `held_output` |
//! | scripts with transactions | `scripts` |
//! | bytes for a client, as fast as it reads | `flow` |
//! | what `/status` and the admin page show | `report`, `snapshot` |

mod backlog;
mod cpu;
mod effects;
mod event_loop;
mod events;
mod file_answers;
mod flow;
mod held_output;
mod limits;
mod payloads;
mod report;
mod scripts;
mod snapshot;
mod turns;

use std::io;
use std::task::{Context, Poll};

use parkade_core::{Core, Effect, Event, ExitReason, Moment, WorkerEffect};
use parkade_jobs::sqlite::OpenError;
use parkade_model::PayloadId;

use crate::application::Routes;
use crate::clients::casualties::Casualties;
use crate::clients::{Clients, Messages};
use crate::clock::Clock;
use crate::config::SqlComments;
use crate::databases::Databases;
use crate::dev::LoadedCode;
use crate::files::Files;
use crate::http::Http;
use crate::jobs::{JobContext, Jobs, TransactionJobs};
use crate::loading::Loading;
use crate::log::AccessLog;
use crate::poll::{NextTurn, Pollable};
use crate::queries::Queries;
use crate::routing::mounts::Mounts;
use crate::scripts::OpenScripts;
use crate::traces::Traces;
use crate::upstream::Upstream;
use backlog::Backlog;
use flow::Flow;
use held_output::HeldOutput;
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
    scripts: OpenScripts,
    queries: Queries,
    files: Files,
    messages: Messages,
    routes: Routes,
    payloads: Payloads,
    backlog: Backlog,
    held_output: HeldOutput,
    loading: Loading,
    traces: Traces,
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
    pub mounts: Mounts,
    pub files: Files,
    /// The maximum size of a result that a worker gets, or that several requests share.
    pub result_bytes_max: usize,
    pub sql_comments: SqlComments,
    pub access_log: Option<AccessLog>,
    pub traces: Traces,
    /// For `parkade dev`.
    pub loaded_code: Option<LoadedCode>,
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
            scripts: OpenScripts::default(),
            queries: Queries::new(parts.result_bytes_max, parts.sql_comments, parts.about.is_dev),
            files: parts.files,
            messages: Messages::default(),
            loading: Loading::new(&parts.mounts, parts.about.is_dev, parts.loaded_code),
            routes: Routes::new(parts.mounts),
            payloads: Payloads::default(),
            backlog: Backlog::default(),
            held_output: HeldOutput::default(),
            traces: parts.traces,
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
            } else if self.clients.has_to_wait(&effect, count) {
                self.clients.put_off(effect, &mut self.messages);
            } else {
                self.act(effect);
            }
        }
        drop(rest);
        self.effects = effects;
    }

    /// Has jobs handle something, and tells the core what follows.
    fn with_jobs<T>(&mut self, handle: impl FnOnce(&mut Jobs, &mut JobContext<'_>) -> T) -> T {
        let mut events = Vec::new();
        let Self { core, clients, messages, traces, clock, now, .. } = self;
        let mut cx = JobContext { core, clients, messages, traces, clock: *clock, now: *now, events: &mut events };
        let handled = handle(&mut self.jobs, &mut cx);
        for event in events {
            self.tell(event);
        }
        handled
    }

    fn flow(&mut self) -> Flow<'_> {
        let Self { clients, queries, databases, files, upstream, .. } = self;
        Flow { clients, queries, databases, files, upstream }
    }
}

impl Pollable for Server {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut is_ready = false;
        // All are asked: one that is always ready keeps no other waiting.
        for part in parts(self) {
            if let Poll::Ready(ready) = part.poll_ready(cx) {
                ready?;
                is_ready = true;
            }
        }
        if is_ready { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn next_turn(&self) -> NextTurn {
        self.upstream.next_turn().min(self.databases.next_turn()).min(self.jobs.next_turn())
    }

    fn look(&mut self) {
        parts(self).into_iter().for_each(Pollable::look);
    }
}

/// What the event loop waits for.
fn parts(server: &mut Server) -> [&mut dyn Pollable; 5] {
    let Server { clients, upstream, databases, jobs, files, .. } = server;
    [&mut clients.http, upstream, databases, jobs, files]
}
