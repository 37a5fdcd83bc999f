//! The event loop: waits until there is input, handles all of it in turns of bounded length, and ends when every request has ended.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use parkade_core::{CancelEvent, Core, Event, ExitReason, Moment, PressureEvent, QueryStatus, State};
use parkade_heap::Burst;
use parkade_model::{AppId, Refusal};
use parkade_wire::Application;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, timeout};

use super::Server;
use super::limits::{ANSWERS_SHARE, SHARE};
use super::payloads::Payload;
use super::turns::{Part, Turns};
use super::{report, scripts, snapshot};
use crate::admin::{Ask, CancelRefused, PublishRefused, ReloadId, ReloadRefused};
use crate::clients::NewMessage;
use crate::clients::Step;
use crate::databases::DatabaseEvent;
use crate::files::FileEvent;
use crate::http::{FIRST_REQUEST_TIME, HttpEvent, SWEEP_INTERVAL};
use crate::jobs::{CancelFailed, Jobs, Waited};
use crate::loop_timer::LoopTimer;
use crate::poll::{NextTurn, Pollable, ready};
use crate::service_manager::{ServiceManager, ServicePhase};
use crate::share::Share;
use crate::statistics::OpenRequests;
use crate::words;

/// Turns before the rest of the runtime (admin, HTTP/2, signals) gets its turn.
const TURNS_WITHOUT_YIELD: u32 = 8;
/// How often the memory of workers is measured.
const MEASURE_INTERVAL: Duration = Duration::from_secs(1);
/// This many turns empty a full backlog (`TURN_ACCEPTS_MAX` each) and read what its clients have sent.
const LAST_CALL_TURNS: u32 = 96;
/// The same, including turns for what the others left over.
const LAST_CALL_TURNS_MAX: u32 = 1_000;
/// When everything has ended, connections have this long to close properly.
const FAREWELL: Duration = Duration::from_secs(2);

/// If the store turns out to be unusable within this time, the start fails. Later, clients depend on the server: it
/// continues, and refuses only jobs.
const START: Duration = Duration::from_secs(5);
/// While an application is checked: the pause between two looks at the store.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Input that comes from neither clients nor workers.
#[derive(Debug)]
pub enum Input {
    Ask(Ask),
    Reload,
    /// SIGTERM, or the first SIGINT.
    Drain,
    /// The second SIGINT, or SIGQUIT.
    Stop,
}

/// Why a server ended without being asked to.
#[derive(Debug)]
pub enum Failed {
    Io(io::Error),
    JobsUnusable(Box<str>),
    /// Its applications cannot be served together.
    Refused(String),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Why a turn begins.
enum Woken {
    /// Something is ready, or due.
    Ready,
    Input(Input),
    Sweep,
    Measure,
}

pub struct EventLoop {
    server: Server,
    service_manager: ServiceManager,
    turns: Turns,
    burst: Burst,
    /// Events that the core has not seen, because their share of a turn was over.
    from_clients: Vec<HttpEvent>,
    from_databases: Vec<DatabaseEvent>,
    from_files: Vec<FileEvent>,
    /// Set during shutdown: the drain begins when all new connections have been served, at the latest at this time.
    drain_at: Option<Moment>,
    /// How many requests are arriving, as the core was told last.
    arriving: usize,
    /// The application has been loaded once.
    has_been_ready: bool,
    grace: Duration,
}

impl EventLoop {
    /// `grace`: the time that requests get to finish when the server stops.
    pub fn new(server: Server, grace: Duration) -> Self {
        Self {
            server,
            service_manager: ServiceManager::from_environment(),
            turns: Turns::default(),
            burst: Burst::default(),
            from_clients: Vec::new(),
            from_databases: Vec::new(),
            from_files: Vec::new(),
            drain_at: None,
            arriving: 0,
            has_been_ready: false,
            grace,
        }
    }

    /// Serves until everything has ended. The reason is the process's exit status.
    pub async fn run(mut self, mut inputs: mpsc::Receiver<Input>) -> Result<ExitReason, Failed> {
        self.server.begin();
        let mut sweep = tokio::time::interval(SWEEP_INTERVAL);
        let mut measure = tokio::time::interval(MEASURE_INTERVAL);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        measure.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut timer = LoopTimer::new();
        let mut turns = 0;
        while self.server.exit.is_none() {
            let mut goes_on = self.has_more();
            let server = &mut self.server;
            let due = [server.core.next_due(), self.drain_at, self.service_manager.due()].into_iter().flatten().min();
            let due = due.map(|due| server.clock.instant(due));
            match server.next_turn() {
                NextTurn::AtOnce => {
                    tokio::task::yield_now().await;
                    goes_on = true;
                }
                NextTurn::By(also) => timer.set(due.into_iter().chain([also]).min()),
                NextTurn::WhenReady => timer.set(due),
            }
            let woken = poll_fn(|cx| {
                let mut is_ready = server.poll_ready(cx)?.is_ready() || goes_on;
                if timer.poll_rings(cx).is_ready() {
                    server.look();
                    is_ready = true;
                }
                // What comes at intervals leaves time for the rest.
                if sweep.poll_tick(cx).is_ready() {
                    return Poll::Ready(Ok(Woken::Sweep));
                }
                if measure.poll_tick(cx).is_ready() {
                    return Poll::Ready(Ok(Woken::Measure));
                }
                if let Poll::Ready(Some(input)) = inputs.poll_recv(cx) {
                    return Poll::Ready(Ok(Woken::Input(input)));
                }
                if is_ready { Poll::Ready(io::Result::Ok(Woken::Ready)) } else { Poll::Pending }
            })
            .await?;
            server.look_at_clock();
            self.turns.begin(self.server.now);
            self.wake(woken);
            self.turn()?;
            if self.burst.falls_far(self.server.clients.http.request_bytes()) {
                self.give_memory_back();
            }
            self.turns.end(self.server.clock.now());
            self.tell_service_manager();
            if self.server.now.since(Moment::default()) < START
                && let Some(why) = self.server.jobs.store.unusable()
            {
                return Err(Failed::JobsUnusable(why.into()));
            }
            if let Some(why) = self.server.loading.refused.take() {
                return Err(Failed::Refused(why));
            }
            turns += 1;
            if turns % TURNS_WITHOUT_YIELD == 0 {
                tokio::task::yield_now().await;
            }
        }
        self.farewell(&mut inputs).await?;
        self.server.traces.pass_on(self.server.clock);
        Ok(self.server.exit.unwrap_or(ExitReason::Drained))
    }

    fn tell_service_manager(&mut self) {
        if !self.service_manager.is_there() {
            return;
        }
        let server = &self.server;
        let (is_ready, last_error) = (server.core.ready(), server.loading.reloads.last_error());
        let phase = if server.core.is_draining() || self.drain_at.is_some() || server.exit.is_some() {
            ServicePhase::Stopping
        } else if !self.has_been_ready && !is_ready {
            ServicePhase::Starting
        } else if server.loading.reloads.is_running() {
            ServicePhase::Reloading
        } else {
            ServicePhase::Serving
        };
        self.has_been_ready |= is_ready;
        self.service_manager.tell(phase, server.now, || match (phase, last_error) {
            (ServicePhase::Serving, Some(error)) => {
                let why = words::reason_of_load_error(error);
                format!("Serving the old code: the new code does not load ({why})")
            }
            (ServicePhase::Serving, None) => format!("Serving {}", server.about.addresses.join(", ")),
            (ServicePhase::Reloading, _) => "Loading the new code; the old code is still serving".into(),
            (ServicePhase::Starting, _) => "Loading the application".into(),
            (ServicePhase::Stopping, _) => "Waiting for requests to finish".into(),
        });
    }

    fn wake(&mut self, woken: Woken) {
        let part = match woken {
            Woken::Ready => return,
            Woken::Input(input) => {
                self.hear_input(input);
                Part::Inputs
            }
            Woken::Sweep => {
                self.server.clients.http.sweep();
                self.server.upstream.rest();
                if self.burst.is_over(self.server.clients.http.request_bytes()) {
                    self.give_memory_back();
                }
                Part::Sweep
            }
            Woken::Measure => {
                self.measure();
                self.server.traces.pass_on(self.server.clock);
                Part::Sweep
            }
        };
        self.did(part, 1);
    }

    /// A burst of requests is over.
    fn give_memory_back(&mut self) {
        self.from_clients.shrink_to_fit();
        self.server.backlog.give_room_back();
        self.server.upstream.give_room_back();
        parkade_heap::give_back();
    }

    fn hear_input(&mut self, input: Input) {
        self.server.look_at_clock();
        match input {
            Input::Ask(Ask::Stop { at_once, reply }) => {
                // Whoever asked may have given up.
                let _ = reply.send(());
                self.hear_input(if at_once { Input::Stop } else { Input::Drain });
            }
            Input::Ask(ask) => self.reply(ask),
            Input::Reload => {
                if let Err(refused) = self.reload() {
                    tracing::info!("{refused}");
                }
            }
            Input::Drain => {
                tracing::info!(grace = ?self.grace, "shutting down: waiting for open requests and running jobs until the grace period expires");
                self.last_call();
            }
            Input::Stop => {
                tracing::info!("shutting down immediately: open requests get 503");
                self.server.tell(Event::Drain { grace: Duration::ZERO });
            }
        }
    }

    /// Records that a part of the turn is done. The clock is not read if the part was empty.
    fn did(&mut self, part: Part, count: usize) {
        if count > 0 {
            self.server.look_at_clock();
            self.turns.did(self.server.now, part, count);
        }
    }

    /// Whether a share of a turn ended before everything was done.
    fn has_more(&self) -> bool {
        self.has_unheard() || self.server.clients.has_put_off()
    }

    /// Whether there are events that have not been handled.
    fn has_unheard(&self) -> bool {
        let server = &self.server;
        let is_empty = self.from_clients.is_empty() && self.from_databases.is_empty() && self.from_files.is_empty();
        !(is_empty && server.backlog.is_empty()) || server.jobs.store.has_replies()
    }

    /// Does everything that is possible without waiting. All parts are polled, not only those that are ready, so that
    /// work comes in batches. Each part has a share of the time; no new events are read from a part that has events
    /// left over.
    fn turn(&mut self) -> io::Result<()> {
        self.turn_clients()?;
        self.turn_workers()?;
        self.turn_databases()?;
        self.turn_files();
        self.turn_jobs(Share::of(SHARE))?;
        self.turn_timers();
        self.server.upstream.flush();
        // Workers read bodies that are arriving: as much as their windows accept is read from the clients.
        for request in self.server.upstream.take_wanting() {
            self.server.clients.http.want_piece(request);
        }
        if self.server.clients.has_put_off() {
            self.did(Part::Sending, 1);
            let count = self.send_deferred(Share::of(ANSWERS_SHARE));
            self.did(Part::Answers, count);
        }
        Ok(())
    }

    fn turn_clients(&mut self) -> io::Result<()> {
        let mut events = std::mem::take(&mut self.from_clients);
        if events.is_empty() {
            self.server.clients.turn(&mut events)?;
            self.did(Part::Sockets, events.len());
        }
        let count = events.len();
        self.from_clients = hear(&mut self.server, events, Share::of(SHARE), Server::hear_http);
        self.did(Part::Requests, count - self.from_clients.len());
        Ok(())
    }

    fn turn_workers(&mut self) -> io::Result<()> {
        let mut events = self.server.backlog.take();
        if events.is_empty() {
            self.server.upstream.turn(&mut events, &mut Share::of(SHARE))?;
            self.did(Part::Links, events.len());
        }
        let count = events.len();
        let left = hear(&mut self.server, events, Share::of(SHARE), |server, event| {
            // The frames of a worker that is held back wait.
            if let Some(event) = server.backlog.hold(event) {
                server.hear_worker(event);
            }
        });
        self.did(Part::Frames, count - left.len());
        self.server.backlog.put_back(left);
        Ok(())
    }

    /// Submits the work of this turn, and handles the events of databases.
    fn turn_databases(&mut self) -> io::Result<()> {
        let server = &mut self.server;
        // Notifications are messages, too.
        let is_held_back = server.clients.are_behind();
        if is_held_back || !server.databases.are_due() && self.from_databases.is_empty() {
            return Ok(());
        }
        let mut events = std::mem::take(&mut self.from_databases);
        if events.is_empty() {
            server.databases.turn(server.clock.at(server.now), &mut events)?;
        }
        let count = events.len();
        self.from_databases = hear(server, events, Share::of(SHARE), Server::hear_database);
        self.did(Part::Databases, count);
        Ok(())
    }

    fn turn_files(&mut self) {
        let mut events = std::mem::take(&mut self.from_files);
        if events.is_empty() {
            self.server.files.turn(&mut events);
        }
        let count = events.len();
        self.from_files = hear(&mut self.server, events, Share::of(SHARE), Server::hear_file);
        self.did(Part::Files, count - self.from_files.len());
    }

    fn turn_timers(&mut self) {
        let server = &mut self.server;
        if server.core.next_due().is_some_and(|due| due <= server.now) {
            server.tell(Event::Tick);
            self.did(Part::Timers, 1);
        }
        let server = &mut self.server;
        let count = server.clients.http.arriving_count();
        if count != self.arriving && (self.drain_at.is_some() || server.core.is_draining()) {
            self.arriving = count;
            server.tell(Event::Arriving { count });
        }
        if self.drain_at.is_some_and(|at| at <= server.now || !server.clients.http.has_fresh()) {
            self.drain_at = None;
            server.tell(Event::Drain { grace: self.grace });
        }
    }

    /// Handles replies of the job store until the share is over.
    fn turn_jobs(&mut self, share: Share) -> io::Result<()> {
        let server = &mut self.server;
        let (replies, opened) = server.jobs.store.turn()?;
        let count = replies.len();
        let left = hear(server, replies, share, |server, reply| {
            if let Some(CancelFailed { job, fault }) = server.with_jobs(|jobs, cx| jobs.hear(cx, reply)) {
                let event = |payload| Event::Cancel(CancelEvent::Refused { job, payload });
                server.tell_with(Payload::Fault(fault), event);
            }
        });
        server.jobs.store.put_back(left);
        server.tell_standing();
        match server.with_jobs(|jobs, cx| jobs.end_turn(cx, opened)) {
            Some(Waited::Ready(workers)) => workers.into_iter().for_each(|waiting| server.worker_ready(waiting)),
            Some(Waited::Unfit(workers, why)) => workers.into_iter().for_each(|worker| server.unfit(worker, &why)),
            None => {}
        }
        self.did(Part::Jobs, count);
        Ok(())
    }

    /// Continues with deferred responses. Returns the number of steps.
    fn send_deferred(&mut self, mut share: Share) -> usize {
        let server = &mut self.server;
        let mut count = 0;
        while let Some(step) = server.clients.go_on() {
            if let Step::Effect(effect) = step {
                server.act(effect);
            }
            count += 1;
            if share.is_over() {
                break;
            }
        }
        if server.clients.have_caught_up() {
            for worker in server.backlog.let_on() {
                server.tell(Event::Pressure(PressureEvent::ClientsCaughtUp { worker }));
            }
        }
        count
    }

    /// Once a second: rates, the memory of workers, retries of the job store, throttled log lines.
    fn measure(&mut self) {
        let server = &mut self.server;
        server.look_at_clock();
        server.clients.log.sample(server.now, open_requests(&server.core));
        server.with_jobs(Jobs::tick);
        server.clients.closed_sockets.log();
        server.messages.refused.log(server.now, server.core.config().channels_count_max);
        for (worker, resident_bytes) in server.upstream.resident_bytes() {
            server.tell(Event::Measured { worker, resident_bytes });
        }
    }

    /// Answers a question of operators or scripts.
    fn reply(&mut self, ask: Ask) {
        let server = &mut self.server;
        // The client may be gone: then nobody receives the reply.
        match ask {
            Ask::Ready { reply } => {
                let now = server.clock.at(server.clock.now());
                let _ = reply.send(report::readiness(&server.core, &server.databases, now));
            }
            Ask::Status { reply } => {
                let _ = reply.send(Box::new(report::report(server, &self.turns)));
            }
            Ask::Snapshot { reply } => {
                let _ = reply.send(Box::new(snapshot::snapshot(server, &self.turns)));
            }
            Ask::CancelRequest { request, reply } => {
                let is_run = server.jobs.runs.contains(request);
                let cancelled = check_request_cancellable(server.core.state(request), is_run);
                if cancelled.is_ok() {
                    server.tell(Event::CancelledByOperator { request });
                }
                let _ = reply.send(cancelled);
            }
            Ask::CancelQuery { query, reply } => {
                let cancelled = check_cancellable(server.core.query(query));
                if cancelled.is_ok() {
                    server.tell(Event::QueryCancelledByOperator { query });
                }
                let _ = reply.send(cancelled);
            }
            Ask::ScriptCame { tell, reply } => scripts::came(server, tell, reply),
            Ask::ScriptSaid { script, said } => scripts::said(server, script, said),
            Ask::Jobs { ask, reply } => server.with_jobs(|jobs, cx| jobs.answer_operator(cx, ask, reply)),
            Ask::Reload { reply } => {
                let _ = reply.send(self.reload());
            }
            Ask::ReloadEnd { reload, reply } => server.loading.reloads.tell_end(reload, reply),
            // It has been handled: see `hear_input`.
            Ask::Stop { .. } => {}
            Ask::Publish { channel, content_type, body, event, reply } => {
                let outcome = if server.clients.are_behind() {
                    Err(PublishRefused::TooFast)
                } else {
                    let message = NewMessage { content_type: &content_type, body: &body, event };
                    server.publish(&channel, message, None)
                };
                let _ = reply.send(outcome);
            }
        }
    }

    /// Has the code loaded again, next to the old one.
    fn reload(&mut self) -> Result<ReloadId, ReloadRefused> {
        let server = &mut self.server;
        if server.core.is_draining() {
            return Err(ReloadRefused::Stopping);
        }
        tracing::info!("reloading: starting new workers");
        let reload = server.loading.reloads.request();
        server.tell(Event::Reload);
        Ok(reload)
    }

    /// A step of stopping. Returns whether the store of jobs is closed. `began`: the time of the first step.
    fn settle_jobs(&mut self, began: Instant) -> io::Result<bool> {
        if !self.server.jobs.store.is_open() {
            return Ok(true);
        }
        self.turn_jobs(Share::endless())?;
        Ok(self.server.jobs.settle(began))
    }

    /// For `parkade serve --check`: why these applications could not be served, if they could not. Nothing is started.
    pub async fn check(mut self, applications: Vec<Application>) -> io::Result<Result<(), String>> {
        let server = &mut self.server;
        for (app, mut application) in (0..).map(AppId).zip(applications) {
            let mount = server.routes.mounts().name(app).map(|mount| format!("at {mount}: ")).unwrap_or_default();
            if let Err(why) = server.with_jobs(|jobs, cx| jobs.check(cx, app, &mut application)) {
                return Ok(Err(mount + &why));
            }
            if let Err(why) = server.routes.learn(&server.core, app, application, &server.databases) {
                return Ok(Err(format!("{mount}{why}")));
            }
        }
        let end = Instant::now() + START;
        let mut verdict = Ok(());
        while self.server.jobs.store.is_connecting() && Instant::now() < end {
            self.server.look_at_clock();
            self.turn_jobs(Share::endless())?;
            if let Some(why) = self.server.jobs.store.unusable() {
                verdict = Err(format!("--jobs: {why}"));
                break;
            }
            let _ = timeout(CHECK_INTERVAL, ready(&mut self.server.jobs)).await;
        }
        let began = Instant::now();
        while !self.settle_jobs(began)? && Instant::now() < end {
            let _ = timeout(CHECK_INTERVAL, ready(&mut self.server.jobs)).await;
        }
        Ok(verdict)
    }

    /// Stops accepting without resetting a connection. A client in a backlog considers itself connected, and may have
    /// sent a request already; one that has just been accepted is about to. The drain begins when they have been
    /// served.
    fn last_call(&mut self) {
        let mut turns = 0;
        while turns < LAST_CALL_TURNS || self.has_unheard() && turns < LAST_CALL_TURNS_MAX {
            turns += 1;
            if let Err(error) = self.turn() {
                tracing::warn!(%error, "accepting connections failed while shutting down; clients that are still in the backlog are not served");
                break;
            }
        }
        self.server.clients.http.drain();
        self.drain_at = Some(self.server.now + FIRST_REQUEST_TIME);
    }

    /// Responses that wait for their clients to read them have the grace period, unless it is over; then connections
    /// get a moment to close. Meanwhile the databases and the job store finish.
    async fn farewell(&mut self, inputs: &mut mpsc::Receiver<Input>) -> io::Result<()> {
        let server = &mut self.server;
        let grace = if server.exit == Some(ExitReason::Drained) { self.grace } else { Duration::ZERO };
        let began = Instant::now();
        let (last, mut end, mut swept) = (began + grace, began + FAREWELL, began);
        server.databases.end(server.clock.at(server.clock.now()));
        let (mut are_jobs_settled, mut hurries) = (false, false);
        loop {
            self.server.look_at_clock();
            self.service_manager.tell(ServicePhase::Stopping, self.server.now, || "Closing connections".into());
            self.send_deferred(Share::of(SHARE));
            are_jobs_settled = are_jobs_settled || self.settle_jobs(began)?;
            let server = &mut self.server;
            let has_put_off = server.clients.has_put_off();
            // A client with a deferred response is still connected.
            let is_unsent = (server.clients.http.has_unsent() || has_put_off) && Instant::now() < last;
            if is_unsent {
                // What has just been written is still in transit: the moment begins after the last write.
                end = Instant::now() + FAREWELL;
            }
            let are_leaving = server.scripts.are_leaving();
            let is_ending =
                server.clients.http.is_closing() || !server.databases.are_ended() || has_put_off || are_leaving;
            let waits = is_unsent || is_ending && Instant::now() < end;
            if are_jobs_settled && (hurries || !waits) {
                return Ok(());
            }
            server.databases.turn(server.clock.at(server.now), &mut Vec::new())?;
            let mut heard = None;
            let _ = tokio::time::timeout(SWEEP_INTERVAL, async {
                tokio::select! {
                    ready = ready(&mut server.clients.http) => ready,
                    ready = ready(&mut server.databases) => ready,
                    ready = ready(&mut server.jobs), if !are_jobs_settled => ready,
                    input = inputs.recv(), if are_leaving => {
                        heard = input;
                        Ok(())
                    }
                    () = std::future::ready(()), if has_put_off => Ok(()),
                }
            })
            .await;
            let mut events = std::mem::take(&mut self.from_clients);
            server.clients.turn(&mut events)?;
            for event in events {
                if let HttpEvent::Arrived { request, .. } = event {
                    server.refuse(request, Refusal::Stopping);
                }
            }
            if swept.elapsed() >= SWEEP_INTERVAL {
                server.clients.http.sweep();
                swept = Instant::now();
            }
            match heard.or_else(|| inputs.try_recv().ok()) {
                Some(Input::Stop) => hurries = true,
                Some(Input::Ask(Ask::ScriptSaid { script, said })) => scripts::said(server, script, said),
                Some(Input::Ask(_) | Input::Reload | Input::Drain) | None => {}
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Handles one event after the other until the share is over; returns the rest.
fn hear<T>(server: &mut Server, mut events: Vec<T>, mut share: Share, handle: impl Fn(&mut Server, T)) -> Vec<T> {
    if events.is_empty() {
        return events;
    }
    let mut rest = events.drain(..);
    for event in rest.by_ref() {
        handle(server, event);
        if share.is_over() {
            break;
        }
    }
    let left: Vec<T> = rest.collect();
    if left.is_empty() { events } else { left }
}

fn check_cancellable(query: Option<QueryStatus>) -> Result<(), CancelRefused> {
    match query {
        None => Err(CancelRefused::Unknown),
        Some(known) if !known.is_cancellable => Err(CancelRefused::EndsATransaction),
        Some(_) => Ok(()),
    }
}

/// `is_run`: it is a run of a job, which is cancelled as a job.
fn check_request_cancellable(state: Option<State>, is_run: bool) -> Result<(), CancelRefused> {
    match state {
        None | Some(State::Done | State::Cancelled) => Err(CancelRefused::UnknownRequest),
        Some(_) if is_run => Err(CancelRefused::RunOfAJob),
        Some(_) => Ok(()),
    }
}

/// What the core holds at this moment, runs of jobs included.
fn open_requests(core: &Core) -> OpenRequests {
    let lives = core.lives();
    OpenRequests { queued: lives.routed, running: lives.running, parked: lives.parked }
}
