//! Converts the events of clients, workers and databases into events of the core.
//!
//! Only methods of the server, on purpose: each event takes a few lines, which need the core and the parts that its
//! effects concern.

use std::any::Any;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::Arc;

use parkade_core::{
    CommitAnswer, CommitEvent, Core, Destination, Event, Extent, Manner, PressureEvent, Publisher, State, WorkerError,
};
use parkade_model::{AppId, ChannelName, Cursor, Reason, Refusal, RequestId, TableId, Then, Wait, WorkerId};
use parkade_sql::QueryEvent;
use parkade_wire::{
    ErrorReason, Headers, Published, RequestBody, Response, SWITCHING_PROTOCOLS, ThenRequest, WaitOutcome, WaitRequest,
};

use super::payloads::Payload;
use super::{Server, held_output, scripts};
use crate::admin::PublishRefused;
use crate::application::waits::{self, WaitResource};
use crate::application::{self, Routes, surroundings, worker_error};
use crate::clients::casualties::{Casualties, DeadWorker};
use crate::clients::exchange::{Arrival, Exchange, JobAsked, Kept};
use crate::clients::{Clients, NewMessage, publishing};
use crate::databases::DatabaseEvent;
use crate::files::{GivenResponse, WantedFile};
use crate::http::answer::{self, BadAnswer};
use crate::http::limits::STREAMED_PIECE_BYTES;
use crate::http::{Http, HttpEvent, OutgoingMessage, StreamRules, StreamTerms};
use crate::jobs::{self, Unfit, WaitingWorker};
use crate::log::{self, Record, RecordOrigin};
use crate::queries::Rows;
use crate::routing::mounts::seen;
use crate::routing::{BodyWay, RouteMatch};
use crate::upstream::{AnswerEvent, NamedFile, WorkerEvent};
use crate::words;

/// Both would come on the same stream.
const UNREAD_BODY: &str =
    "it waits for a query in the middle of the body of its request: read the body to its end first";

/// How the end of a WebSocket is told whose connection was lost (RFC 6455, section 7.1.5).
const NO_CLOSE: u16 = 1006;

/// A client that did not ask for a WebSocket would not understand one.
const NO_SOCKET: &str = "socket() answers only a request for a WebSocket, of a route that has one (@app.websocket)";

/// What the client of a WebSocket has said is answered with one message.
const NO_MESSAGE: &str = "what is called for a message of a WebSocket returned a stream, a WebSocket or a file: it may return a wait \
                          whose outcome is one message";

impl Server {
    pub(super) fn hear_http(&mut self, event: HttpEvent) {
        match event {
            HttpEvent::Arrived { request, head, body, rest, origin, share } => {
                let mounted = self.routes.find(&self.core, head.method(), head.path());
                let app = mounted.as_ref().map(|(app, ..)| *app);
                let (found, seen_from) =
                    mounted.map_or_else(|| (RouteMatch::nowhere(), 0), |(_, found, seen_from)| (found, seen_from));
                let route_number = self.routes.number(&found.destination, head.method());
                let mut correlation = crate::clients::given_correlation(&head, origin.is_trusted);
                let own = self.traces.arrived(request, correlation.as_deref(), (&head, &origin), self.now);
                let traceparent = own.as_ref().and_then(|own| Some(own.trace?.text()));
                if let Some(own) = own {
                    correlation = Some(Rc::new(own));
                }
                let arrival = Arrival {
                    head,
                    body,
                    rest,
                    share: share.arrived(),
                    origin,
                    parameters: found.parameters,
                    seen_from,
                    allow: found.allow,
                    deadline: None,
                    guarded_job: None,
                    websocket: found.websocket,
                    correlation,
                    traceparent,
                };
                let is_shown = app.is_some_and(|app| self.loading.takes(app, &arrival.head));
                self.clients.arrived(request, route_number, arrival);
                // A page about the code is shown instead: `Server::refuse`.
                let exchange = self.clients.exchanges.of(request).filter(|_| !is_shown);
                let destination = exchange.map_or(Destination::NotFound, |exchange| {
                    let table = app.and_then(|app| self.core.table(app));
                    directed((&self.routes, &self.core), table, exchange, found.destination)
                });
                self.tell(Event::Arrived { request, app: app.unwrap_or_default(), destination });
            }
            HttpEvent::Piece { request, bytes, rest } => {
                self.upstream.piece(request, bytes, rest);
                self.tell(Event::BodyProgressed { request });
            }
            HttpEvent::Taken { request, bytes } => self.flow().taken(request, bytes),
            // It is over already, and only the application is still to be told.
            HttpEvent::Message { request, .. }
            | HttpEvent::SocketClosed { request, .. }
            | HttpEvent::Left { request }
            | HttpEvent::Served { request }
                if self.clients.closed_sockets.contains(request) => {}
            // No worker holds it.
            HttpEvent::Message { request, is_text, bytes } if self.core.state(request) == Some(State::Parked) => {
                if let Some(call) = self.clients.said(request, is_text, bytes) {
                    self.tell(Event::Said { socket: request, call });
                }
            }
            HttpEvent::Message { request, is_text, bytes } => self.upstream.message(request, is_text, bytes),
            HttpEvent::SocketClosed { request, code, text } => {
                self.clients.note_closed(request, code);
                self.upstream.close_socket(request, code, text);
                self.tell(Event::SocketClosed { request });
            }
            HttpEvent::Left { request } => {
                self.clients.note_closed(request, NO_CLOSE);
                self.tell(Event::Left { request });
            }
            HttpEvent::Served { request } => {
                self.clients.note_closed(request, NO_CLOSE);
                self.tell(Event::Served { request });
            }
            HttpEvent::Refused(refused) => self.clients.refused(&refused, self.now),
        }
    }

    /// Repeats the look-up for a request that was queued while the routes changed.
    pub(super) fn look_up_route(&mut self, request: RequestId, table: TableId) {
        let Some(exchange) = self.clients.exchanges.of(request) else { return };
        let Some(arrival) = exchange.arrival_mut() else { return };
        let (RouteMatch { destination, parameters, allow, websocket }, seen_from) =
            self.routes.find_in(Some(table), &self.core, arrival.head.method(), arrival.head.path());
        let number = self.routes.number(&destination, arrival.head.method());
        (arrival.parameters, arrival.seen_from) = (parameters, seen_from);
        (arrival.allow, arrival.websocket) = (allow, websocket);
        arrival.guarded_job = None;
        exchange.route_number = number;
        if let Some(jobs) = exchange.jobs() {
            jobs.asks = JobAsked::Nothing;
        }
        let destination = directed((&self.routes, &self.core), Some(table), exchange, destination);
        self.tell(Event::RouteFound { request, destination });
    }

    pub(super) fn hear_worker(&mut self, event: WorkerEvent) {
        if let Some((worker, request, output)) = held_output::output(&event)
            && self.core.holds_output(worker, request, output)
        {
            self.held_output.hold(request, event);
            return self.tell(Event::OutputHeld { worker, request, output });
        }
        match event {
            WorkerEvent::Ready { worker, credit, application, .. } => {
                let waiting = WaitingWorker { worker, credit, application: *application };
                if let Some(ready) = self.with_jobs(|jobs, cx| jobs.store.wait_until_open(cx, waiting)) {
                    self.worker_ready(ready);
                }
            }
            WorkerEvent::Failed { worker, text, watch } => {
                self.worker_logged(worker, None, &Record::of_load_error(&text));
                self.loading.fail(app_of(&self.core, worker), &text, &watch);
                self.tell(Event::WorkerFailed { worker });
            }
            WorkerEvent::Violated { worker, why } => {
                tracing::error!(
                    worker = worker.0,
                    mount = mount_of(self, worker),
                    "a worker violated the protocol and is being replaced: {why}"
                );
                self.loading.note_death(app_of(&self.core, worker), &format!("a worker violated the protocol: {why}"));
                self.tell(Event::WorkerViolated { worker });
            }
            WorkerEvent::Left { worker } => {
                self.loading.note_death(app_of(&self.core, worker), "a worker left (GOODBYE) without serving anything");
                self.tell(Event::WorkerLeft { worker });
            }
            WorkerEvent::Unstarted { worker, why } => {
                let mount = mount_of(self, worker);
                tracing::error!(worker = worker.0, mount, "cannot start a worker; will retry: {why}");
                self.loading.note_death(app_of(&self.core, worker), &format!("a worker cannot be started: {why}"));
                self.tell(Event::WorkerExited { worker });
            }
            WorkerEvent::Exited { worker, how, announced } => worker_exited(self, worker, &how, announced),
            WorkerEvent::Logged { worker, request, record } => self.worker_logged(worker, request, &record),
            WorkerEvent::Response { worker, request, response, more } => {
                self.worker_answered(worker, request, response, more);
            }
            WorkerEvent::Data { worker, request, bytes, more } => match self.flow().send(request, &bytes) {
                Err(fault) => self.bad_answer(worker, request, fault, more),
                Ok(()) if more => {}
                Ok(()) => self.tell(Event::AnswerEnded { worker, request, trailers: None }),
            },
            WorkerEvent::Answer { worker, request, event } => self.hear_answer(worker, request, event),
            WorkerEvent::Enqueued { worker, request, job } if job.options.within => {
                // Without a request there is no transaction: both have ended.
                let Some(request) = request else { return };
                let job = self.jobs.new_job(*job, Some(self.clients.correlation(request)));
                scripts::enqueued_within(self, Some(worker), request, job);
            }
            WorkerEvent::Enqueued { worker, request, job } => {
                self.with_jobs(|jobs, cx| jobs.worker_enqueued(cx, worker, request, *job));
            }
            WorkerEvent::Returned { worker, request, result } => {
                if !self.jobs.runs.keep_result(request, &result) {
                    tracing::error!(worker = worker.0, "a worker sent a job's result for a request; the request fails");
                }
                self.tell(Event::JobReturned { worker, request });
            }
            WorkerEvent::Progressed { worker, request, fraction, text } => {
                self.with_jobs(|jobs, cx| jobs.worker_progressed(cx, request, fraction, &text));
                self.slow_down(worker);
            }
            WorkerEvent::Errored { worker, request, error, text } if self.jobs.runs.contains(request) => {
                self.jobs.runs.keep_error(request, &text);
                self.tell(Event::Errored { worker, request, error: worker_error(error) });
            }
            WorkerEvent::Errored { worker, request, error, text } => {
                // A worker that has logged the failure itself sends no text.
                if error == ErrorReason::Application && !text.is_empty() {
                    let request = self.describe(request);
                    tracing::error!(worker = worker.0, request, "the application failed: {}", text.trim_end());
                }
                self.tell(Event::Errored { worker, request, error: worker_error(error) });
            }
            WorkerEvent::Parked { worker, request, wait, then, named } => {
                self.worker_parked(worker, request, wait, then, named);
            }
            WorkerEvent::Branched { worker, request, stream, wait } => {
                self.worker_branched(worker, request, stream, wait);
            }
            WorkerEvent::BranchUnparked { worker, stream, .. } => {
                if let Some(request) = self.upstream.branch_on(worker, stream) {
                    self.tell(Event::Unparked { worker, request });
                }
            }
            WorkerEvent::Began { worker, request } => self.tell(Event::Began { worker, request }),
            WorkerEvent::Unparked { worker, request } => self.tell(Event::Unparked { worker, request }),
            // The event only gives the worker its credit back.
            WorkerEvent::Closed { worker, request } => {
                self.tell(Event::Errored { worker, request, error: WorkerError::Cancelled });
            }
            WorkerEvent::Published { worker, request, message } => self.worker_published(worker, request, message),
            WorkerEvent::Credit { worker, delta } => self.tell(Event::Credit { worker, delta: delta.into() }),
            WorkerEvent::Pong { worker, token } => self.tell(Event::Pong { worker, token }),
        }
    }

    fn hear_answer(&mut self, worker: WorkerId, request: RequestId, event: AnswerEvent) {
        match event {
            // Without them the response is the same.
            AnswerEvent::Hints(headers) => match answer::check_hints(headers.iter()) {
                Ok(()) => self.tell_with(Payload::Headers(headers), |payload| Event::Answered {
                    worker,
                    request,
                    payload,
                    extent: Extent::Hints,
                }),
                Err(fault) => {
                    let request = self.describe(request);
                    tracing::error!(worker = worker.0, request, "early hints cannot be sent: {fault}");
                }
            },
            AnswerEvent::Trailers(headers) => match answer::check_trailers(headers.iter()) {
                Ok(()) => self.tell_with(Payload::Headers(headers), |payload| Event::AnswerEnded {
                    worker,
                    request,
                    trailers: Some(payload),
                }),
                Err(fault) => self.bad_answer(worker, request, fault, false),
            },
            AnswerEvent::Message { is_text, more, bytes } => {
                self.flow().message(request, OutgoingMessage { is_text, more, bytes: &bytes });
            }
            AnswerEvent::ClosedByCall { code, text } if self.clients.calls.contains(request) => {
                let response = Response { status: code, headers: Headers::default(), body: text.into() };
                let extent = Extent::Whole;
                let answered = |payload| Event::Answered { worker, request, payload, extent };
                self.tell_with(Payload::Response(response), answered);
            }
            AnswerEvent::ClosedByCall { .. } => {
                let what = self.describe(request);
                tracing::error!(
                    worker = worker.0,
                    request = what,
                    "a function that was not called for a WebSocket returned a close; the request fails"
                );
                self.tell(Event::Errored { worker, request, error: WorkerError::BadAnswer });
            }
            AnswerEvent::Closed { code, text } => {
                self.clients.http.close_socket(request, code, text);
                self.tell(Event::AnswerEnded { worker, request, trailers: None });
            }
            AnswerEvent::Window { bytes } => self.clients.http.grant_socket(request, bytes),
        }
    }

    pub(super) fn worker_ready(&mut self, ready: WaitingWorker) {
        let WaitingWorker { worker, credit, mut application } = ready;
        let manner =
            if application.concurrent { Manner::Loop { threads: application.threads } } else { Manner::OneByOne };
        let app = app_of(&self.core, worker);
        let jobs = match self.with_jobs(|jobs, cx| jobs.read(cx, app, &mut application)) {
            Ok(jobs) => jobs,
            Err(fault) => {
                if let Unfit::Together(why) = &fault {
                    self.loading.refuse_at_start(app, why);
                }
                return self.unfit(worker, fault.why());
            }
        };
        for (pattern, options) in &application.channels {
            let limits = application::history(*options, self.core.config().history);
            self.tell(Event::ChannelConfigured { pattern: pattern.clone(), limits });
        }
        let interface = application.interface.clone();
        self.loading.note_code(&application.watch);
        self.loading.learn_routes(app, &application, self.routes.mounts().prefix(app));
        match self.routes.learn(&self.core, app, application, &self.databases) {
            Ok(table) => {
                let what = words::a_worker(self.core.role(worker));
                let pid = self.upstream.pid(worker);
                let interface_name = words::interface(&interface);
                let mount = self.routes.mounts().name(app);
                tracing::info!(worker = worker.0, pid, mount, interface = %interface_name, "{what} is ready");
                self.loading.worker_ready(app, interface);
                let declared = jobs.declared();
                self.with_jobs(|all, cx| all.take_over(cx, worker, jobs));
                self.tell(Event::WorkerReady { worker, table, credit: credit.into(), manner, jobs: declared });
                note_streamed_bodies(&self.core, &self.routes, &self.clients.http);
                note_sockets(&self.core, &self.routes, &self.clients.http);
            }
            Err(fault) => self.unfit(worker, &fault.to_string()),
        }
    }

    pub(super) fn unfit(&mut self, worker: WorkerId, fault: &str) {
        tracing::error!(worker = worker.0, "the application cannot be served: {fault}");
        self.loading.fail(app_of(&self.core, worker), fault, &[]);
        self.tell(Event::WorkerFailed { worker });
        self.upstream.kill(worker);
    }

    /// A request as the log names it: method, path, and its id.
    pub(super) fn describe(&self, request: RequestId) -> String {
        if self.scripts.contains(request) {
            return "a script".to_owned();
        }
        self.clients.describe(request, &self.routes.names())
    }

    /// The code of a worker has logged something.
    pub(super) fn worker_logged(&self, worker: WorkerId, request: Option<RequestId>, record: &Record) {
        let pid = self.upstream.pid(worker);
        let mount = self.routes.mounts().name(app_of(&self.core, worker)).map(ToOwned::to_owned);
        let route = request.and_then(|request| self.clients.route(request, &self.routes.names()));
        let request_id = request.and_then(|request| self.clients.id(request));
        log::record(record, &RecordOrigin { worker: worker.0, pid, mount, route, request_id });
    }

    fn worker_answered(&mut self, worker: WorkerId, request: RequestId, response: Response, more: bool) {
        if self.jobs.runs.contains(request) {
            self.jobs.runs.keep_error(request, "it was answered with a response; a job must return a result");
            // If the response has not ended, its worker is not done with the request.
            let error = WorkerError::BadAnswer;
            return if more {
                self.tell(Event::Left { request });
            } else {
                self.tell(Event::Errored { worker, request, error });
            };
        }
        if let Err(fault) = application::check(&response, !more) {
            self.bad_answer(worker, request, fault, more);
            return;
        }
        let extent = match (response.status, more) {
            (SWITCHING_PROTOCOLS, _) => Extent::Socket,
            (_, true) => Extent::Begun,
            (_, false) => Extent::Whole,
        };
        self.tell_with(Payload::Response(response), |payload| Event::Answered { worker, request, payload, extent });
    }

    /// `PUBLISH`. If it fails, the request that it belongs to gets an error, because its response must not report
    /// success.
    fn worker_published(&mut self, worker: WorkerId, request: Option<RequestId>, message: Published) {
        let number = message.number.map(NonZeroU64::get);
        let by = request.map(|request| Publisher { worker, request, number });
        match publishing::check(&message.channel, &message.content_type) {
            Ok(channel) => {
                let Published { content_type, body, event, .. } = message;
                let _ = self.publish(&channel, NewMessage { content_type: &content_type, body: &body, event }, by);
                self.slow_down(worker);
            }
            Err(fault) => {
                let channel = &*message.channel;
                let request = request.map(|request| self.describe(request));
                tracing::error!(worker = worker.0, request, channel, "a message was not published: {fault}");
                if let Some(by) = by {
                    self.tell(Event::PublishedNothing { by });
                }
            }
        }
    }

    /// Publishes a message. Returns the channel's cursor after it.
    pub(super) fn publish(
        &mut self,
        channel: &ChannelName,
        message: NewMessage<'_>,
        by: Option<Publisher>,
    ) -> Result<Cursor, PublishRefused> {
        let (message, event) = self.messages.published(channel.clone(), message, by);
        self.tell(event);
        if self.messages.refused.is_last(message) {
            return Err(PublishRefused::ChannelsFull);
        }
        // A channel without history and without waiting clients is forgotten at once: any cursor will do.
        Ok(self.core.cursor(channel).unwrap_or(Cursor::NOWHERE))
    }

    /// A worker that publishes to more clients than can be served at once is held back until most of them have been.
    fn slow_down(&mut self, worker: WorkerId) {
        if self.clients.are_behind() && self.backlog.hold_back(worker) {
            self.tell(Event::Pressure(PressureEvent::ClientsBehind { worker }));
        }
    }

    fn bad_answer(&mut self, worker: WorkerId, request: RequestId, fault: BadAnswer, more: bool) {
        let what = self.describe(request);
        tracing::error!(
            worker = worker.0,
            request = what,
            "the application returned a response that cannot be sent: {fault}"
        );
        if !more {
            self.tell(Event::Errored { worker, request, error: WorkerError::BadAnswer });
            return;
        }
        // The worker is not done with the request: the client is answered now, and for the core it has left.
        if let Some(call) = self.clients.calls.of(request) {
            call.spoil();
        } else if self.clients.exchanges.awaits_answer(request) {
            self.refuse(request, Refusal::BadAnswer);
        } else {
            self.clients.break_off(request);
        }
        self.tell(Event::Left { request });
    }

    /// `named`: what its worker keeps a file for, if it has named one.
    fn worker_parked(
        &mut self,
        worker: WorkerId,
        request: RequestId,
        wait: WaitRequest,
        then: ThenRequest,
        named: Option<NamedFile>,
    ) {
        if matches!(then, ThenRequest::Answer { .. }) && self.jobs.runs.contains(request) {
            self.jobs.runs.keep_error(request, "it returned a wait as its answer; a job must return its result itself");
            return self.tell(Event::Errored { worker, request, error: WorkerError::BadAnswer });
        }
        if let Err(fault) = read_answer(&mut self.clients, request, &wait, &then) {
            self.bad_answer(worker, request, fault, false);
            return;
        }
        let wait = self.clients.exchanges.with_stored_job(request, wait);
        let is_reading = then == ThenRequest::Await && self.upstream.has_arriving_body(request);
        let mut members = Vec::new();
        let on_close = if let WaitRequest::Socket { on_close, .. } = &wait { on_close.clone() } else { None };
        let known = match wait {
            WaitRequest::Group { until, waits } => {
                let waits =
                    waits.into_iter().map(|wait| self.clients.exchanges.with_stored_job(request, wait)).collect();
                waits::group(until, waits, &self.databases).map(|(group, each)| {
                    members = each;
                    (Wait::Group(group), WaitResource::Nothing)
                })
            }
            WaitRequest::Access { granted }
                if self.clients.exchanges.peek(request).is_some_and(Exchange::is_about_job) =>
            {
                Ok((Wait::Access { granted }, WaitResource::Nothing))
            }
            WaitRequest::Query(_) if is_reading => Err(UNREAD_BODY.to_owned()),
            WaitRequest::Stream { .. }
            | WaitRequest::Socket { .. }
            | WaitRequest::File { .. }
            | WaitRequest::Files(_)
            | WaitRequest::Part(_)
                if self.clients.calls.contains(request) =>
            {
                Err(NO_MESSAGE.to_owned())
            }
            WaitRequest::Socket { ref subprotocols, .. } if !self.clients.agree_on_socket(request, subprotocols) => {
                Err(NO_SOCKET.to_owned())
            }
            wait => waits::wait(wait, &self.databases),
        };
        let (wait, (query, file)) = match known {
            Ok((wait, needed)) => (wait, needed.parts()),
            Err(why) => {
                let what = self.describe(request);
                tracing::error!(worker = worker.0, request = what, "invalid wait returned by the application: {why}");
                if then == ThenRequest::Await {
                    // Otherwise its coroutine would wait for ever.
                    self.upstream.cancel(worker, request, Reason::Operator);
                }
                self.tell(Event::Errored { worker, request, error: WorkerError::BadAnswer });
                return;
            }
        };
        let (then, kept) = application::kept(then, on_close.as_ref());
        let exchange = self.clients.exchanges.peek(request);
        let file = file.and_then(|file| Some(exchange?.wanted(&file)));
        let kept = match (kept, file) {
            (Some(Kept::Response(response)), Some(file)) => {
                let until_open = named.map(|named| Box::new(named) as Box<dyn Any + Send>);
                let given = Some(Box::new(GivenResponse::new((*response).into(), until_open)));
                Some(Kept::File(Box::new(WantedFile { given, ..file })))
            }
            (kept, file) => kept.or_else(|| Some(Kept::File(Box::new(file?)))),
        };
        let wait = match (then, self.clients.exchanges.of(request)) {
            (Then::Answer, Some(exchange)) => as_its_client_wants(exchange, wait),
            _ => wait,
        };
        // A request that joins a shared query does not need its own.
        self.tell_with(Payload::Park { kept, query }, |payload| Event::Parked { worker, request, wait, then, payload });
        if let Some(exchange) = self.clients.exchanges.of(request) {
            // It must not keep its head and body in memory while it waits.
            exchange.forget_arrival(then);
        }
        // Each of the waits that it is parked for as one needs an id like a request.
        for (wait, needed) in members {
            // The server may be full, or one of them is over already, and that was enough.
            if self.core.state(request) != Some(State::Parked) {
                break;
            }
            let (owner, member) = (request, self.clients.http.insert_clientless());
            let (query, _) = needed.parts();
            self.tell_with(Payload::Park { kept: None, query }, |payload| Event::Joined {
                owner,
                member,
                wait,
                payload,
            });
        }
    }

    /// The coroutine of a request waits for one more thing, which needs an id like a request.
    fn worker_branched(&mut self, worker: WorkerId, owner: RequestId, stream: u32, wait: WaitRequest) {
        let branch = self.clients.http.insert_clientless();
        if !self.upstream.branch(worker, stream, branch) {
            return self.clients.http.forget(branch);
        }
        match waits::wait(self.clients.exchanges.with_stored_job(owner, wait), &self.databases) {
            Ok((wait, needed)) => {
                let (query, _) = needed.parts();
                self.tell_with(Payload::Park { kept: None, query }, |payload| Event::Branched {
                    worker,
                    owner,
                    branch,
                    wait,
                    payload,
                });
            }
            Err(why) => {
                let what = self.describe(owner);
                tracing::error!(worker = worker.0, request = what, "invalid wait awaited by the application: {why}");
                let refused = WaitOutcome::Refused { text: why.into(), status: 500 };
                self.upstream.resume(worker, &refused, &[branch], None);
                self.clients.http.forget(branch);
            }
        }
    }

    pub(super) fn hear_database(&mut self, event: DatabaseEvent) {
        match event {
            DatabaseEvent::Query(event) if self.transaction_jobs.is_about(&event) => self.hear_commit(event),
            DatabaseEvent::Query(event) => self.hear_query(event),
            DatabaseEvent::Notified { channel, payload } => match ChannelName::parse(&channel) {
                Ok(name) => {
                    let content_type = publishing::content_type(&payload);
                    let message = NewMessage { content_type, body: payload.as_bytes(), event: None };
                    let _ = self.publish(&name, message, None);
                }
                Err(error) => tracing::error!(channel, "a notification was not published: {error}"),
            },
            DatabaseEvent::ListeningLost { why } => {
                let database = self.databases.listener();
                tracing::warn!(
                    database,
                    "LISTEN is not active, because its connection to the database {database} was lost; it is being opened again, and notifications sent until then are missed: {why}"
                );
            }
            DatabaseEvent::ListeningAgain => {
                let database = self.databases.listener();
                tracing::info!(
                    database,
                    "LISTEN is active again on the database {database}; notifications may have been missed, so waiting clients are told about a gap"
                );
                for channel in self.databases.listened().to_vec() {
                    self.tell(Event::MessagesLost { channel });
                }
            }
        }
    }

    /// A statement of a COMMIT that stores jobs has rows, or has ended.
    fn hear_commit(&mut self, event: QueryEvent) {
        match event {
            QueryEvent::Started { .. } => {}
            QueryEvent::Piece { query, bytes } => {
                if let Some(database) = self.transaction_jobs.add_rows(query, &bytes) {
                    self.databases.taken(database, query, bytes.len());
                }
            }
            QueryEvent::Ended { query: statement, end } => match self.transaction_jobs.end(statement, end) {
                None => {}
                Some(Ok(answer)) => self.tell(Event::Commit(CommitEvent::Answered { statement, answer })),
                Some(Err(end)) => self.tell_with(Payload::End(Box::new(end)), |payload| {
                    let answer = CommitAnswer::Failed(payload);
                    Event::Commit(CommitEvent::Answered { statement, answer })
                }),
            },
        }
    }

    /// Tells the core how the job store stands for transactions, if that has changed.
    pub(super) fn tell_standing(&mut self) {
        if let Some(standing) = self.transaction_jobs.new_standing(&self.jobs.store) {
            self.tell(Event::Commit(CommitEvent::Store(standing)));
        }
    }

    fn hear_query(&mut self, event: QueryEvent) {
        match event {
            QueryEvent::Started { query } => {
                self.queries.started(query, self.now);
                self.traces.query_began(query, self.now);
            }
            QueryEvent::Piece { query, bytes } => {
                let count = bytes.len();
                match self.queries.take(query, bytes) {
                    Rows::Nowhere => {}
                    Rows::Collected { database } => self.databases.taken(database, query, count),
                    Rows::NoRoom { database } => self.databases.cancel(database, self.clock.at(self.now), query),
                    Rows::Flow { request, rows } => self.flow().send_rows(request, &rows),
                    Rows::Begin(rows) => {
                        self.tell(Event::QueryBegan { query });
                        if let Some(request) = self.queries.taker(query) {
                            self.flow().send_rows(request, &rows);
                        }
                    }
                }
            }
            QueryEvent::Ended { query, end } => {
                self.traces.query_ended(query, &end, self.now);
                if let Some(failed) = self.queries.failed(query, &end) {
                    let (request, database) = (self.describe(failed.request), self.databases.name(failed.database));
                    self.queries.log_failure(&failed, &end, (&request, database), self.now);
                }
                let Some((completed, bytes)) = self.queries.ended(query, end, self.now) else { return };
                self.tell(Event::QueryEnded { query, completed, bytes });
            }
        }
    }
}

/// Records what a worker adds to the response that the core will give.
fn read_answer(
    clients: &mut Clients,
    request: RequestId,
    wait: &WaitRequest,
    then: &ThenRequest,
) -> Result<(), BadAnswer> {
    let ThenRequest::Answer { response, added } = then else { return Ok(()) };
    match (response, wait) {
        (Some(response), WaitRequest::Part(part)) => application::check_part(response, part.length)?,
        (Some(response), _) => application::check(response, true)?,
        (None, _) => {}
    }
    if let Some(added) = added {
        let fields = surroundings::fields(&added.headers)?;
        let usual = clients.exchanges.added(request).cloned().unwrap_or_default();
        clients.add(request, usual.with(added.status, fields));
    }
    Ok(())
}

/// A wait whose outcome is the response: from the client's cursor on, and as short as the client prefers.
fn as_its_client_wants(exchange: &mut Exchange, wait: Wait) -> Wait {
    let wait = waits::with_cursor(wait, || exchange.cursor());
    let (wait, preferred) = waits::preferred(wait, || exchange.patience());
    if let Some(seconds) = preferred {
        exchange.note_preference(seconds);
    }
    wait
}

/// Where a request goes. What will be needed there is recorded in its exchange, and a wait gets its client's cursor.
fn directed(
    (routes, core): (&Routes, &Core),
    table: Option<TableId>,
    exchange: &mut Exchange,
    destination: Destination,
) -> Destination {
    let destination = surrounded((routes, core), table, exchange, destination);
    match destination {
        Destination::Wait { route, deadline, .. } if routes.is_for_jobs(route) => {
            jobs::destination(exchange, routes, route, deadline)
        }
        Destination::Wait { route, wait, then, deadline } => {
            exchange.hold_route(routes.hold(route));
            let file = routes.file(route).map(|file| exchange.wanted(file));
            let wait = match then {
                Then::Answer => as_its_client_wants(exchange, wait),
                Then::Call { .. } | Then::Await => waits::with_cursor(wait, || exchange.cursor()),
            };
            // The core parks it at once, and no worker will get it, so nothing else of it is kept.
            exchange.forget_arrival(then);
            exchange.keep(file.map(|file| Kept::File(Box::new(file))));
            Destination::Wait { route, wait, then, deadline }
        }
        Destination::Handler { deadline, .. } => {
            if let Some(arrival) = exchange.arrival_mut() {
                arrival.deadline = deadline;
            }
            destination
        }
        Destination::Fallback { .. } => {
            if let Some(arrival) = exchange.arrival_mut() {
                arrival.deadline = core.config().deadline;
            }
            destination
        }
        Destination::Constant { .. }
        | Destination::Preflight
        | Destination::NotFound
        | Destination::MethodNotAllowed
        | Destination::DotSegment
        | Destination::Unknown => destination,
    }
}

/// Records what the application adds to the response. A preflight goes nowhere else.
fn surrounded(
    (routes, core): (&Routes, &Core),
    table: Option<TableId>,
    exchange: &mut Exchange,
    destination: Destination,
) -> Destination {
    let Some(head) = exchange.arrival().map(|arrival| &arrival.head) else { return destination };
    let is_preflight = routes.preflight(table, core, head).is_some();
    let destination = if is_preflight { Destination::Preflight } else { destination };
    let added = routes.added(table, &destination, head);
    exchange.add(added);
    destination
}

fn worker_exited(server: &mut Server, worker: WorkerId, how: &str, announced: bool) {
    // The core forgets whose worker it was, and what for.
    let (app, role) = (app_of(&server.core, worker), server.core.role(worker));
    server.loading.note_death(app, &format!("a worker has exited: {how}"));
    server.casualties = Some(Casualties::default());
    server.tell(Event::WorkerExited { worker });
    let (pid, mount) = (server.upstream.pid(worker), server.routes.mounts().name(app));
    let dead = DeadWorker { worker, pid, role, mount, how, announced };
    server.casualties.take().unwrap_or_default().log(&dead);
}

/// Where the application of the worker is mounted, if there are several.
fn mount_of(server: &Server, worker: WorkerId) -> Option<&str> {
    server.routes.mounts().name(app_of(&server.core, worker))
}

/// Whose code the worker runs.
fn app_of(core: &Core, worker: WorkerId) -> AppId {
    core.app(worker).unwrap_or_default()
}

/// The applications that serve say which requests are passed on before their bodies have arrived.
fn note_streamed_bodies(core: &Core, routes: &Routes, http: &Http) {
    let mounts = routes.mounts().clone();
    let apps = (0..).map(AppId).take(mounts.count());
    let bodies: Vec<_> = apps.map(|app| core.table(app).and_then(|table| routes.bodies(table))).collect();
    let (collected_max, usual) = (http.limits().body_bytes_max as u64, http.limits().stream_bytes_max as u64);
    let streams_any = bodies.iter().any(Option::is_some);
    http.stream_bodies(streams_any.then(|| {
        let rules = move |method: &str, path: &str| {
            let app = mounts.find(path)?;
            let bodies = bodies[usize::from(app.0)].as_ref()?;
            let BodyWay { body, concurrent } = bodies.of(method, seen(&path[mounts.start_below(app, path)..]));
            let RequestBody::Streamed { bytes_max } = body else { return None };
            let collected_max = if concurrent { STREAMED_PIECE_BYTES as u64 } else { collected_max };
            Some(StreamTerms { bytes_max: bytes_max.unwrap_or(usual), collected_max, by_coroutine: concurrent })
        };
        Arc::new(rules) as Arc<StreamRules>
    }));
}

/// The applications that serve say whether requests may become WebSockets.
fn note_sockets(core: &Core, routes: &Routes, http: &Http) {
    let mut tables = (0..).map(AppId).take(routes.mounts().count()).filter_map(|app| core.table(app));
    http.take_sockets(tables.any(|table| routes.takes_sockets(table)));
}
