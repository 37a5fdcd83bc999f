//! Converts the events of clients, workers and databases into events of the core.
//!
//! Methods of the server alone, on purpose: each event takes only a few lines, which need the core and the parts that
//! its effects concern.

use bytes::Bytes;
use parkade_core::{Destination, Event, Manner, PressureEvent, Publisher, State, WorkerError};
use parkade_model::{ChannelName, Cursor, QueryId, Reason, Refusal, RequestId, Role, TableId, Then, Wait, WorkerId};
use parkade_sql::QueryEnd;
use parkade_wire::{Application, ErrorReason, Response, ThenRequest, WaitRequest};

use super::payloads::Payload;
use super::turns::Turns;
use super::{Server, held_output, report, snapshot};
use crate::admin::{Ask, CancelRefused, PublishRefused, ReloadId, ReloadRefused};
use crate::application::{self, surroundings, waits, worker_error};
use crate::clients::exchange::{Arrival, Exchange, JobAsked};
use crate::clients::publishing;
use crate::databases::DatabaseEvent;
use crate::http::HttpEvent;
use crate::http::answer::BadAnswer;
use crate::jobs::{self, JobDeclarations, WaitingWorker};
use crate::queries::Rows;
use crate::routing::RouteMatch;
use crate::upstream::WorkerEvent;

impl Server {
    pub(super) fn hear_http(&mut self, event: HttpEvent) {
        match event {
            HttpEvent::Arrived { request, head, body, origin, share } => {
                let found = self.routes.find(&self.core, head.method(), head.path());
                let route_number = self.routes.number(&found.destination, head.method());
                let given_id = crate::clients::given_id(&head, origin.is_trusted);
                let arrival = Arrival {
                    head,
                    body,
                    share,
                    origin,
                    parameters: found.parameters,
                    allow: found.allow,
                    deadline: None,
                    guarded_job: None,
                    given_id,
                };
                let is_shown = self.loading.takes(&arrival.head);
                self.clients.arrived(request, route_number, arrival);
                // A page about the code is shown instead: `Server::refuse`.
                let destination = if is_shown {
                    Destination::NotFound
                } else {
                    self.directed(request, self.core.table(), found.destination)
                };
                self.tell(Event::Arrived { request, destination });
            }
            HttpEvent::Taken { request, bytes } => {
                let taken = self.clients.took(request, bytes);
                self.client_took(request, taken);
            }
            HttpEvent::Left { request } => self.tell(Event::Left { request }),
            HttpEvent::Refused(refused) => self.clients.refused(&refused, self.now),
        }
    }

    /// Repeats the look-up for a request that was queued while the routes changed.
    pub(super) fn look_up_route(&mut self, request: RequestId, table: TableId) {
        let Some(exchange) = self.clients.exchanges.of(request) else { return };
        let Some(arrival) = exchange.arrival.as_mut() else { return };
        let RouteMatch { destination, parameters, allow } =
            self.routes.find_in(Some(table), &self.core, arrival.head.method(), arrival.head.path());
        exchange.route_number = self.routes.number(&destination, arrival.head.method());
        arrival.parameters = parameters;
        arrival.allow = allow;
        arrival.guarded_job = None;
        if let Some(jobs) = &mut exchange.jobs {
            jobs.asks = JobAsked::Nothing;
        }
        let destination = self.directed(request, Some(table), destination);
        self.tell(Event::RouteFound { request, destination });
    }

    /// Records what will be needed for a destination, and gives a wait its client's cursor.
    fn directed(&mut self, request: RequestId, table: Option<TableId>, destination: Destination) -> Destination {
        let destination = self.surrounded(request, table, destination);
        if let Destination::Wait { route, deadline, .. } = destination
            && self.routes.is_for_jobs(route)
        {
            let exchange = self.clients.exchanges.of(request);
            return exchange
                .map_or(Destination::NotFound, |exchange| jobs::destination(exchange, &self.routes, route, deadline));
        }
        let Some(exchange) = self.clients.exchanges.of(request) else { return destination };
        match destination {
            Destination::Handler { deadline, .. } => {
                if let Some(arrival) = &mut exchange.arrival {
                    arrival.deadline = deadline;
                }
                destination
            }
            Destination::Wait { route, wait, then, deadline } => {
                exchange.route = self.routes.hold(route);
                // The core parks it at once, and no worker will get it, so nothing else of it is kept.
                let cursor = exchange.take_arrival().and_then(|arrival| arrival.cursor());
                Destination::Wait { route, wait: waits::with_cursor(wait, cursor), then, deadline }
            }
            Destination::Constant { .. }
            | Destination::Fallback { .. }
            | Destination::Preflight
            | Destination::NotFound
            | Destination::MethodNotAllowed
            | Destination::Unknown => destination,
        }
    }

    /// Records what the application adds to the response. A preflight goes nowhere else.
    fn surrounded(&mut self, request: RequestId, table: Option<TableId>, destination: Destination) -> Destination {
        let Some(head) = self.clients.head(request) else { return destination };
        let is_preflight = self.routes.preflight(table, &self.core, head).is_some();
        let destination = if is_preflight { Destination::Preflight } else { destination };
        let added = self.routes.added(table, &destination, head);
        if let Some(exchange) = self.clients.exchanges.of(request) {
            exchange.added = added;
        }
        destination
    }

    pub(super) fn hear_worker(&mut self, event: WorkerEvent) {
        if let Some((worker, request, output)) = held_output::output(&event)
            && self.core.holds_output(worker, request, output)
        {
            self.held_output.hold(request, event);
            return self.tell(Event::OutputHeld { worker, request, output });
        }
        match event {
            WorkerEvent::Ready { worker, credit, application } => {
                let waiting = WaitingWorker { worker, credit, application: *application };
                if let Some(ready) = self.with_jobs(|jobs, cx| jobs.store.wait_until_open(cx, waiting)) {
                    self.worker_ready(ready);
                }
            }
            WorkerEvent::Failed { worker, text } => {
                tracing::error!(worker = worker.0, "the application does not load:\n{}", text.trim_end());
                self.loading.fail(&text);
                self.tell(Event::WorkerFailed { worker });
            }
            WorkerEvent::Violated { worker, why } => {
                tracing::error!(worker = worker.0, "a worker violated the protocol and is being replaced: {why}");
                self.loading.reloads.note_death(&format!("a worker violated the protocol: {why}"));
                self.tell(Event::WorkerViolated { worker });
            }
            WorkerEvent::Unstarted { worker, why } => {
                tracing::error!(worker = worker.0, "cannot start a worker; will retry: {why}");
                self.loading.reloads.note_death(&format!("a worker cannot be started: {why}"));
                self.tell(Event::WorkerExited { worker });
            }
            WorkerEvent::Exited { worker, how, announced } => self.worker_exited(worker, &how, announced),
            WorkerEvent::Logged { worker, request, record } => self.worker_logged(worker, request, &record),
            WorkerEvent::Response { worker, request, response, more } => {
                self.worker_answered(worker, request, response, more);
            }
            WorkerEvent::Data { worker, request, bytes, more } => self.worker_went_on(worker, request, &bytes, more),
            WorkerEvent::Enqueued { worker, request, job } if job.options.within => {
                self.worker_enqueued_within(worker, request, *job);
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
            WorkerEvent::Parked { worker, request, wait, then } => self.worker_parked(worker, request, wait, then),
            WorkerEvent::Began { worker, request } => self.tell(Event::Began { worker, request }),
            WorkerEvent::Unparked { worker, request } => self.tell(Event::Unparked { worker, request }),
            // The event only gives the worker its credit back.
            WorkerEvent::Closed { worker, request } => {
                self.tell(Event::Errored { worker, request, error: WorkerError::Cancelled });
            }
            WorkerEvent::Published { worker, request, channel, content_type, body } => {
                self.worker_published(worker, request, &channel, (&content_type, &body));
            }
            WorkerEvent::Credit { worker, delta } => self.tell(Event::Credit { worker, delta: delta.into() }),
            WorkerEvent::Pong { worker, token } => self.tell(Event::Pong { worker, token }),
        }
    }

    pub(super) fn worker_ready(&mut self, ready: WaitingWorker) {
        let WaitingWorker { worker, credit, mut application } = ready;
        let manner =
            if application.concurrent { Manner::Loop { threads: application.threads } } else { Manner::OneByOne };
        let jobs = match self.read_jobs(&mut application) {
            Ok(jobs) => jobs,
            Err(fault) => return self.unfit(worker, &fault),
        };
        for (pattern, options) in &application.channels {
            let limits = application::history(*options, self.core.config().history);
            self.tell(Event::ChannelConfigured { pattern: pattern.clone(), limits });
        }
        match self.routes.learn(&self.core, application, &self.databases) {
            Ok(table) => {
                self.loading.worker_ready();
                let what = match self.core.role(worker) {
                    Some(Role::Jobs) => "a job worker is ready",
                    Some(Role::Requests) | None => "a worker is ready",
                };
                tracing::info!(worker = worker.0, pid = self.upstream.pid(worker), "{what}");
                let declared = jobs.declared();
                self.with_jobs(|all, cx| all.take_over(cx, worker, jobs));
                self.tell(Event::WorkerReady { worker, table, credit: credit.into(), manner, jobs: declared });
            }
            Err(fault) => self.unfit(worker, &fault.to_string()),
        }
    }

    /// What the application declares about jobs. If there are any, the store is opened.
    pub(super) fn read_jobs(&mut self, application: &mut Application) -> Result<JobDeclarations, String> {
        let declarations = JobDeclarations::read(application)?;
        if !declarations.are_empty() && !self.jobs.store.is_open() {
            self.begin_jobs().map_err(|error| error.to_string())?;
        }
        Ok(declarations)
    }

    pub(super) fn unfit(&mut self, worker: WorkerId, fault: &str) {
        tracing::error!(worker = worker.0, "the application cannot be served: {fault}");
        self.loading.fail(fault);
        self.tell(Event::WorkerFailed { worker });
        self.upstream.kill(worker);
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
        self.tell_with(Payload::Response(response), |payload| Event::Answered {
            worker,
            request,
            payload,
            whole: !more,
        });
    }

    fn worker_went_on(&mut self, worker: WorkerId, request: RequestId, bytes: &Bytes, more: bool) {
        match self.clients.piece(request, bytes) {
            Ok(taken) => self.client_took(request, taken),
            Err(fault) => return self.bad_answer(worker, request, fault, more),
        }
        if !more {
            self.tell(Event::AnswerEnded { worker, request });
        }
    }

    /// `PUBLISH`. If it fails, the request that it belongs to gets an error, because its response must not report
    /// success.
    fn worker_published(
        &mut self,
        worker: WorkerId,
        request: Option<RequestId>,
        channel: &str,
        (content_type, body): (&str, &[u8]),
    ) {
        let by = request.map(|request| Publisher { worker, request });
        match publishing::check(channel, content_type) {
            Ok(name) => {
                let _ = self.publish(&name, content_type, body, by);
                self.slow_down(worker);
            }
            Err(fault) => {
                tracing::error!(worker = worker.0, channel, "a message was not published: {fault}");
                if let Some(by) = by {
                    self.tell(Event::PublishedNothing { by });
                }
            }
        }
    }

    /// Publishes a message. Returns the channel's cursor after it.
    fn publish(
        &mut self,
        channel: &ChannelName,
        content_type: &str,
        body: &[u8],
        by: Option<Publisher>,
    ) -> Result<Cursor, PublishRefused> {
        let (message, event) = self.messages.published(channel.clone(), content_type, body, by);
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

    pub(super) fn send_rows(&mut self, request: RequestId, rows: &Bytes) {
        if let Ok(taken) = self.clients.piece(request, rows) {
            self.client_took(request, taken);
        }
    }

    /// Its worker, or its database, may send this many more bytes.
    fn client_took(&mut self, request: RequestId, bytes: usize) {
        match self.queries.flowing_to(request) {
            _ if bytes == 0 => {}
            Some((query, database)) => self.databases.taken(database, query, bytes),
            None => self.upstream.grant(request, bytes),
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
        if self.clients.awaits_answer(request) {
            self.refuse(request, Refusal::BadAnswer);
        } else {
            self.clients.http.abort(request);
        }
        self.tell(Event::Left { request });
    }

    fn worker_parked(&mut self, worker: WorkerId, request: RequestId, wait: WaitRequest, then: ThenRequest) {
        if matches!(then, ThenRequest::Answer { .. }) && self.jobs.runs.contains(request) {
            self.jobs.runs.keep_error(request, "it returned a wait as its answer; a job must return its result itself");
            return self.tell(Event::Errored { worker, request, error: WorkerError::BadAnswer });
        }
        if let Err(fault) = self.read_answer(request, &then) {
            self.bad_answer(worker, request, fault, false);
            return;
        }
        let wait = match wait {
            WaitRequest::Result { job, timeout } => {
                let job = self.clients.exchanges.stored_as(request, job);
                let timeout = match then {
                    ThenRequest::Answer { .. } => jobs::timeout(&self.clients.exchanges, request, timeout),
                    ThenRequest::Call { .. } | ThenRequest::Await => timeout,
                };
                WaitRequest::Result { job, timeout }
            }
            wait => wait,
        };
        let known = match wait {
            WaitRequest::Access { granted }
                if self.clients.exchanges.peek(request).is_some_and(Exchange::is_about_job) =>
            {
                Ok((Wait::Access { granted }, None))
            }
            wait => waits::wait(wait, &self.databases),
        };
        let (wait, asked) = match known {
            Ok(known) => known,
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
        let (then, kept) = application::kept(then);
        let cursor = match (then, self.clients.exchanges.of(request)) {
            (Then::Answer, Some(exchange)) => exchange.cursor(),
            _ => None,
        };
        let wait = waits::with_cursor(wait, cursor);
        // A request that joins a shared query does not need its own.
        self.tell_with(Payload::Park { kept, asked }, |payload| Event::Parked { worker, request, wait, then, payload });
        if let Some(exchange) = self.clients.exchanges.of(request) {
            // It must not keep its head and body in memory while it waits.
            exchange.forget_arrival(then == Then::Await);
        }
    }
}

impl Server {
    /// Records what a worker adds to the response that the core will give.
    fn read_answer(&mut self, request: RequestId, then: &ThenRequest) -> Result<(), BadAnswer> {
        let ThenRequest::Answer { response, added } = then else { return Ok(()) };
        if let Some(response) = response {
            application::check(response, true)?;
        }
        if let Some(added) = added {
            let fields = surroundings::fields(&added.headers)?;
            let usual = self.clients.exchanges.added(request).cloned().unwrap_or_default();
            self.clients.add(request, usual.with(added.status, fields));
        }
        Ok(())
    }

    pub(super) fn hear_database(&mut self, event: DatabaseEvent) {
        match event {
            DatabaseEvent::Query(event) if self.transaction_jobs.is_about(&event) => self.hear_statement(event),
            DatabaseEvent::Query(parkade_sql::QueryEvent::Started { query }) => self.queries.started(query, self.now),
            DatabaseEvent::Query(parkade_sql::QueryEvent::Piece { query, bytes }) => self.rows_came(query, bytes),
            DatabaseEvent::Query(parkade_sql::QueryEvent::Ended { query, end }) => self.query_ended(query, end),
            DatabaseEvent::Notified { channel, payload } => match ChannelName::parse(&channel) {
                Ok(name) => {
                    let _ = self.publish(&name, publishing::content_type(&payload), payload.as_bytes(), None);
                }
                Err(error) => tracing::error!(channel, "a notification was not published: {error}"),
            },
            DatabaseEvent::ListeningAgain => {
                tracing::warn!(
                    "LISTEN is active again; notifications may have been missed, so waiting clients are told about a gap"
                );
                for channel in self.databases.listened().to_vec() {
                    self.tell(Event::MessagesLost { channel });
                }
            }
        }
    }

    fn rows_came(&mut self, query: QueryId, rows: Bytes) {
        let count = rows.len();
        match self.queries.take(query, rows) {
            Rows::Nowhere => {}
            Rows::Collected { database } => self.databases.taken(database, query, count),
            Rows::NoRoom { database } => self.databases.cancel(database, self.clock.at(self.now), query),
            Rows::Flow { request, rows } => self.send_rows(request, &rows),
            Rows::Begin(rows) => {
                self.tell(Event::QueryBegan { query });
                if let Some(request) = self.queries.taker(query) {
                    self.send_rows(request, &rows);
                }
            }
        }
    }

    fn query_ended(&mut self, query: QueryId, end: QueryEnd) {
        if let Some(failed) = self.queries.failed(query, &end) {
            self.log_failure(&failed, &end);
        }
        let Some((completed, bytes)) = self.queries.ended(query, end, self.now) else { return };
        self.tell(Event::QueryEnded { query, completed, bytes });
    }

    /// Answers a question of operators or scripts.
    pub(super) fn reply(&mut self, ask: Ask, turns: &Turns) {
        // The client may be gone: then nobody receives the reply.
        match ask {
            Ask::Ready { reply } => {
                let _ = reply.send(report::readiness(&self.core, &self.databases, self.clock.at(self.clock.now())));
            }
            Ask::Status { reply } => {
                let _ = reply.send(Box::new(report::report(self, turns)));
            }
            Ask::Snapshot { reply } => {
                let _ = reply.send(Box::new(snapshot::snapshot(self, turns)));
            }
            Ask::CancelQuery { query, reply } => {
                let _ = reply.send(self.cancel_by_operator(query));
            }
            Ask::CancelRequest { request, reply } => {
                let _ = reply.send(self.cancel_request_by_operator(request));
            }
            Ask::Jobs { ask, reply } => self.with_jobs(|jobs, cx| jobs.answer_operator(cx, ask, reply)),
            Ask::Reload { reply } => {
                let _ = reply.send(self.reload());
            }
            Ask::ReloadEnd { reload, reply } => self.loading.reloads.tell_end(reload, reply),
            // The event loop has taken it: only it can stop.
            Ask::Stop { .. } => {}
            Ask::Publish { channel, content_type, body, reply } => {
                let outcome = if self.clients.are_behind() {
                    Err(PublishRefused::TooFast)
                } else {
                    self.publish(&channel, &content_type, &body, None)
                };
                let _ = reply.send(outcome);
            }
        }
    }

    /// Has the code loaded afresh, next to the old one.
    pub(super) fn reload(&mut self) -> Result<ReloadId, ReloadRefused> {
        if self.core.is_draining() {
            return Err(ReloadRefused::Stopping);
        }
        tracing::info!("reloading: starting new workers");
        let reload = self.loading.reloads.request();
        self.tell(Event::Reload);
        Ok(reload)
    }

    fn cancel_request_by_operator(&mut self, request: RequestId) -> Result<(), CancelRefused> {
        match self.core.state(request) {
            None | Some(State::Done | State::Cancelled) => Err(CancelRefused::UnknownRequest),
            Some(_) if self.jobs.runs.contains(request) => Err(CancelRefused::RunOfAJob),
            Some(_) => {
                self.tell(Event::CancelledByOperator { request });
                Ok(())
            }
        }
    }

    fn cancel_by_operator(&mut self, query: QueryId) -> Result<(), CancelRefused> {
        match self.core.query(query) {
            None => Err(CancelRefused::Unknown),
            Some(known) if !known.is_cancellable => Err(CancelRefused::EndsATransaction),
            Some(_) => {
                self.tell(Event::QueryCancelledByOperator { query });
                Ok(())
            }
        }
    }
}
