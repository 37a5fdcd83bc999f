//! Passes the effects of the core to the parts that carry them out.
//!
//! Only methods of the server, on purpose: one match for each group of effects, whose arms need different parts.

use crate::body_rest::BodyRest;
use parkade_core::{
    CommitAnswer, CommitEffect, CommitEvent, CommitFault, DatabaseEffect, Effect, Event, HttpEffect, KillReason,
    Outcome, ServerEffect, StatementSource, StoreEffect, WorkerEffect, WorkerError,
};
use parkade_model::{QueryWork, Refusal, RequestId, Role, WorkerId};
use parkade_sql::{DatabaseWork, QueryEnd};
use parkade_wire::WaitOutcome;
use parkade_wire::limits::STORED_COUNT_MAX;

use super::{Server, file_answers, scripts};
use crate::application::{Routes, StaticRoute, waits};
use crate::clients::exchange::Exchange;
use crate::clients::left_behind::WorkName;
use crate::clients::{Clients, IdText, closing};
use crate::databases::Databases;
use crate::jobs;
use crate::loading::RefusedHead;
use crate::queries::{QueryOrigin, Start, WorkRequest};
use crate::statistics::NamedRoutes as _;
use crate::traces::QueryDescription;
use crate::words;

impl Server {
    pub(super) fn act(&mut self, effect: Effect) {
        match effect {
            Effect::Http(effect) => self.act_for_client(effect),
            Effect::Worker(effect) => self.act_on_worker(effect),
            Effect::Database(effect) => self.act_on_database(effect),
            Effect::File(effect) => file_answers::act(effect, &mut self.clients, &mut self.files),
            Effect::Store(effect) => self.act_on_store(effect),
            Effect::Server(effect) => self.act_on_server(effect),
            Effect::Recurring(effect) => self.with_jobs(|jobs, cx| jobs.recur(cx, effect)),
            Effect::Cancel(effect) => self.jobs.cancel(effect, |payload| self.payloads.take_fault(payload)),
            Effect::Commit(effect) => self.act_on_commit(effect),
        }
    }

    fn act_for_client(&mut self, effect: HttpEffect) {
        let clients = &mut self.clients;
        match effect {
            HttpEffect::Refuse { request, refusal } => self.refuse(request, refusal),
            HttpEffect::Constant { request, route } => answer_static(clients, request, self.routes.standing(route)),
            HttpEffect::Preflight { request } => {
                let head = clients.head(request);
                let fields = head.and_then(|head| {
                    self.routes.preflight(self.core.table(self.core.app_of(request)), &self.core, head)
                });
                clients.response(request).preflight(&fields.unwrap_or_default());
            }
            HttpEffect::Relay { request, payload, whole } => {
                if let Some(response) = self.payloads.take_response(payload) {
                    clients.response(request).relay(&response, whole);
                }
            }
            HttpEffect::EarlyHints { request, payload } => {
                if let Some(headers) = self.payloads.take_headers(payload) {
                    clients.http.early_hints(request, headers.iter());
                }
            }
            HttpEffect::End { request, trailers } => {
                let trailers = trailers.and_then(|payload| self.payloads.take_headers(payload));
                if !clients.response(request).finish(&trailers.unwrap_or_default()) {
                    clients.note_broken_off(request);
                    let what = self.describe(request);
                    tracing::error!(
                        request = what,
                        "the application's response is shorter than its Content-Length; the connection was reset"
                    );
                }
            }
            HttpEffect::Abort { request } => clients.break_off(request),
            HttpEffect::OpenSocket { request, payload } => {
                if let Some(response) = self.payloads.take_response(payload) {
                    let takes_long = self.upstream.takes_long_messages(request);
                    clients.response(request).open_socket(&response, takes_long);
                }
            }
            HttpEffect::CloseSocket { request, refusal } => {
                let is_stopping = self.core.is_draining();
                clients.note_closed(request, closing(refusal, is_stopping).0);
                clients.response(request).close_socket(refusal, is_stopping);
            }
            HttpEffect::HoldSocket { request } => clients.response(request).hold_socket(),
            HttpEffect::ReadSocket { request } => clients.http.read_socket(request),
            HttpEffect::Keep { request, payload } => clients.keep(request, self.payloads.take_kept(payload)),
            HttpEffect::Release { request } => {
                if let Some(route) = clients.release(request) {
                    answer_static(clients, request, self.routes.standing(route));
                }
            }
            HttpEffect::Deliver { message, cursor, gap, requests } => {
                clients.deliver(&self.messages, message, (cursor, gap), &requests);
            }
            HttpEffect::AnswerHistory { request, history } => {
                if let Some(history) = self.messages.histories.of(history) {
                    clients.response(request).history(history);
                }
            }
            HttpEffect::AnswerPublished { request, cursor } => clients.response(request).published(cursor),
            HttpEffect::Empty { request, cursor } => clients.response(request).empty(cursor),
            HttpEffect::OpenStream { request, cursor, gap, reconnect_spread } => {
                if clients.open_stream(request, (cursor, gap), reconnect_spread) {
                    self.with_jobs(|jobs, cx| jobs.stream_opened(cx, request));
                } else {
                    self.tell(Event::Left { request });
                }
            }
            HttpEffect::Feed { message, cursor, requests } => {
                clients.feed(&mut self.messages, message, cursor, &requests);
            }
            HttpEffect::FeedGap { cursor, requests } => clients.feed_gap(cursor, &requests),
            HttpEffect::EndStream { request, reconnect_spread } => clients.end_stream(request, reconnect_spread),
            HttpEffect::BeginRows { request, query } => {
                let rows = self.queries.flow(query);
                if !clients.response(request).begin_rows() {
                    self.tell(Event::Left { request });
                } else if let Some(rows) = rows {
                    self.flow().send_rows(request, &rows);
                }
            }
            HttpEffect::AnswerQuery { request, query, .. } if self.jobs.runs.contains(request) => {
                let failure = self.queries.failure(query).map(|failure| &*failure.message);
                self.jobs.runs.keep_error(request, failure.unwrap_or("its query was cancelled"));
            }
            HttpEffect::AnswerQuery { request, query, late } => {
                if let Some(answer) = self.queries.answer(query, late) {
                    clients.response(request).query(&answer);
                } else {
                    tracing::error!("a bug in parkade: a result was dropped before it was needed");
                }
            }
            HttpEffect::AnswerJob { request, job, standing } => {
                self.with_jobs(|jobs, cx| jobs.answer(cx, request, job, standing));
            }
            HttpEffect::AnswerCancel { request, job, standing, will_end } => {
                self.with_jobs(|jobs, cx| jobs.answer_cancel(cx, request, (job, standing), will_end));
            }
        }
    }

    pub(super) fn refuse(&mut self, request: RequestId, refusal: Refusal) {
        let app = self.core.app_of(request);
        let head = self.clients.head(request);
        let other = head.filter(|_| refusal == Refusal::NotFound);
        let other = other.and_then(|head| self.routes.with_other_slash(&self.core, head));
        let refused = head.map(|head| RefusedHead { head, refusal, other: other.as_deref() });
        if let Some(page) = refused.and_then(|refused| self.loading.page(app, refused)) {
            let fields = [(&b"content-type"[..], page.content_type), (b"cache-control", b"no-store")];
            return self.clients.response(request).answer(page.status, fields.into_iter(), &page.body);
        }
        if refusal == Refusal::WorkerDied
            && let Some(casualties) = &mut self.casualties
        {
            casualties.note(|| self.clients.describe(request, &self.routes.names()));
        }
        if let Some(other) = other {
            return self.clients.response(request).not_found(&other);
        }
        let mount = self.routes.mounts().name(app).filter(|_| refusal == Refusal::NoApplication);
        self.clients.response(request).refuse(refusal, mount, || self.core.queue_wait(self.now, app));
    }

    fn act_on_worker(&mut self, effect: WorkerEffect) {
        match effect {
            WorkerEffect::Assign { request, worker, route } => {
                let mut buffer = IdText::default();
                if let Some((arrival, texts)) = self.clients.arrival(request, &mut buffer) {
                    if arrival.rest == BodyRest::Follows && !self.upstream.takes_incremental_bodies(worker) {
                        // Only after a reload: the code before it asked for such bodies, and this code does not.
                        let error = WorkerError::Overloaded;
                        return self.tell(Event::Errored { worker, request, error });
                    }
                    let parts = arrival.parts(texts, route.map(|route| route.index));
                    self.upstream.request(worker, request, parts, arrival.worker_body());
                }
            }
            WorkerEffect::Call { request, worker, outcome } => self.call(worker, outcome, &[request]),
            WorkerEffect::Resume { worker, outcome, requests } if waits::differs(outcome) => {
                for request in requests {
                    let ids = self.clients.exchanges.of(request).and_then(|exchange| exchange.jobs());
                    let ids = ids.map_or_else(Vec::new, |jobs| jobs.tell_stored(STORED_COUNT_MAX));
                    self.upstream.resume(worker, &waits::stored(ids), &[request], None);
                }
            }
            WorkerEffect::Resume { worker, outcome, requests } => {
                let behind = self.queries.rows_after(outcome);
                let job = |job, lookup| self.jobs.observers.results.wire_outcome(job, lookup);
                if let Some(outcome) = waits::wire_outcome(outcome, &self.messages, &self.queries, job) {
                    self.upstream.resume(worker, &outcome, &requests, behind.as_ref());
                }
            }
            WorkerEffect::Cancel { request, worker, reason } => {
                let name = work_name(self, request);
                self.clients.left_behind.note(request, name);
                self.upstream.cancel(worker, request, reason);
            }
            WorkerEffect::CloseSocket { request, refusal, .. } => {
                let (code, text) = closing(refusal, self.core.is_draining());
                self.upstream.close_socket(request, code, text.to_owned());
            }
            WorkerEffect::StartWorker { worker, app } => self.upstream.start(worker, app),
            WorkerEffect::DrainWorker { worker, within } => self.upstream.drain(worker, within),
            WorkerEffect::DismissWorker { worker } => self.upstream.dismiss(worker),
            WorkerEffect::KillWorker { worker, why } => {
                let (pid, role) = (self.upstream.pid(worker), self.core.role(worker));
                let (what, reason) = (words::a_worker(role), kill_reason(why, role));
                if why == KillReason::StartedTooSlowly {
                    let app = self.core.app(worker).unwrap_or_default();
                    self.loading.note_error(app, "a new worker was not ready within --start-timeout");
                }
                if why == KillReason::NotNeeded {
                    // Nothing is wrong with it; the reason why it is not needed has been logged.
                    tracing::debug!(worker = worker.0, pid, "killing {what}: {reason}");
                } else {
                    tracing::warn!(worker = worker.0, pid, "killing {what}: {reason}");
                }
                self.upstream.kill(worker);
            }
            WorkerEffect::DumpStack { worker, why, request } => {
                let pid = self.upstream.pid(worker);
                let why = dump_reason(why, self.core.role(worker));
                let (request, job) = match request.and_then(|request| known_name(self, request)) {
                    Some(WorkName::Request(name)) => (Some(name), None),
                    Some(WorkName::Job(name)) => (None, Some(name)),
                    None => (None, None),
                };
                tracing::warn!(worker = worker.0, pid, request, job, "{why}; its worker's stack follows");
                self.upstream.dump_stack(worker);
            }
            WorkerEffect::PauseReading { worker } => self.upstream.pause_reading(worker),
            WorkerEffect::ResumeReading { worker } => self.upstream.resume_reading(worker),
            WorkerEffect::Ping { worker, token } => self.upstream.ping(worker, token),
            WorkerEffect::RunJob { request, worker } => {
                if let Some(run) = self.jobs.runs.assign(request, self.now) {
                    self.upstream.run(worker, request, &run);
                }
            }
        }
    }

    fn act_on_database(&mut self, effect: DatabaseEffect) {
        match effect {
            DatabaseEffect::StartQuery { query, request, source, database, work, lease, collect } => {
                self.start_query(&Start { query, request, database, work, lease, collect }, source);
            }
            DatabaseEffect::CancelQuery { query, database } => {
                self.queries.cancelled(query, self.now);
                self.databases.cancel(database, self.clock.at(self.now), query);
            }
            DatabaseEffect::EndLease { lease, database } => {
                self.databases.release(database, self.clock.at(self.now), lease);
            }
            DatabaseEffect::DropResult { query } => self.queries.drop_result(query),
        }
    }

    fn act_on_commit(&mut self, effect: CommitEffect) {
        match effect {
            CommitEffect::Keep { lease, payload } => {
                if let Some(job) = self.payloads.take_job(payload) {
                    self.transaction_jobs.keep(lease, job);
                }
            }
            CommitEffect::NoTransaction { worker, payload } => {
                let job = self.payloads.take_job(payload).map(|job| job.name);
                tracing::error!(
                    worker = worker.map(|worker| worker.0),
                    job,
                    "a job was enqueued within a transaction, but none is open; the request fails"
                );
            }
            CommitEffect::Begin { commit: query, request, lease, database } => {
                let (work, lease) = (QueryWork::Commit, Some(lease));
                let start = Start { query, request, database, work, lease, collect: true };
                let (owner, asked) = (self.core.owner_of(request), WorkRequest::End);
                self.traces.query(owner, query, self.now, || described(&self.databases, &start, &asked));
                if let Err(failure) = self.queries.start(&start, asked, None, self.now) {
                    self.databases.end_without(query, QueryEnd::Failed(failure));
                }
            }
            CommitEffect::Ask { statement, lease, database, ask } => {
                if let Some(work) = self.transaction_jobs.begin(statement, (lease, database), ask, &self.jobs.store) {
                    self.databases.submit(database, self.clock.at(self.now), statement, work);
                } else {
                    self.tell_standing();
                    let answer = CommitAnswer::NotOpen;
                    self.tell(Event::Commit(CommitEvent::Answered { statement, answer }));
                }
            }
            CommitEffect::Cancel { commit, statement, database } => {
                self.queries.cancelled(commit, self.now);
                self.databases.cancel(database, self.clock.at(self.now), statement);
            }
            CommitEffect::Commit { commit, lease, database } => {
                self.databases.submit(database, self.clock.at(self.now), commit, DatabaseWork::Commit { lease });
            }
            CommitEffect::Fail { commit, why } => {
                if why == CommitFault::Cancelled {
                    self.queries.cancelled(commit, self.now);
                }
                let end = jobs::unstored(why, &self.jobs.store, |payload| self.payloads.take_end(payload));
                self.databases.end_without(commit, end);
            }
            CommitEffect::TablesClosed { database } => {
                let database = self.databases.name(database);
                tracing::warn!(
                    database,
                    "jobs of transactions on the database {database} are enqueued after the COMMIT instead of with it: the role of the transactions has no access to the schema parkade (see docs/jobs.md, In a transaction)"
                );
            }
            CommitEffect::Enqueued { request, job, id } => {
                self.jobs.store.add_enqueued(u64::from(job == id));
                self.clients.exchanges.note_stored(request, job, id);
            }
            CommitEffect::Give { lease, worker, request } => {
                for job in self.transaction_jobs.take(lease) {
                    self.with_jobs(|jobs, cx| jobs.enqueue_for(cx, worker, Some((request, true)), job));
                }
            }
            CommitEffect::Drop { lease } => drop(self.transaction_jobs.take(lease)),
        }
    }

    fn act_on_store(&mut self, effect: StoreEffect) {
        match effect {
            StoreEffect::ClaimJobs { count, limited } => self.with_jobs(|jobs, cx| jobs.claim(cx, count, &limited)),
            StoreEffect::EndRun { request, verdict } => {
                self.traces.run_ends(request, &self.jobs.runs.ending(request, verdict));
                self.jobs.end_run(request, verdict, self.now);
            }
            StoreEffect::NoteAgain { request } => self.jobs.record_again(request),
            StoreEffect::LookUpJob { request, job, asker } => self.jobs.look_up(request, job, asker),
            // It may have been needed again while this effect was put off.
            StoreEffect::DropJobResult { job } if self.core.holds_result(job) => {}
            StoreEffect::DropJobResult { job } => self.jobs.observers.results.drop(job),
        }
    }

    fn act_on_server(&mut self, effect: ServerEffect) {
        match effect {
            ServerEffect::LookUpRoute { request, table } => self.look_up_route(request, table),
            ServerEffect::Spent { request, spell, since, until } => self.traces.spent(request, spell, since, until),
            ServerEffect::TellScript { script, outcome } => scripts::tell(self, script, outcome),
            ServerEffect::Forget { request, ending, times } => {
                self.scripts.end(request, ending);
                self.traces.ended(request, ending, (&self.clients, &self.routes), self.now);
                self.queries.stop_flow(request);
                self.held_output.forget(request);
                self.clients.forget(request, ending, times);
            }
            ServerEffect::CloseCallLost { request, refusal } => {
                let (clients, names) = (&mut self.clients, self.routes.names());
                let name = clients.describe(request, &names);
                clients.closed_sockets.lose(refusal, || name);
            }
            ServerEffect::ReleaseOutput { request } => {
                for event in self.held_output.take(request) {
                    self.hear_worker(event);
                }
            }
            ServerEffect::NotPublished { message } => {
                self.messages.refused.add(message);
                self.messages.refused.log(self.now, self.core.config().channels_count_max);
            }
            ServerEffect::KeepHistory { history, cursor, messages } => {
                self.messages.keep_history(history, cursor, &messages);
            }
            ServerEffect::DropHistory { history } => self.messages.histories.drop(history),
            ServerEffect::DropMessage { message } => self.messages.drop(message),
            ServerEffect::Reloaded { app, outcome } => {
                let generation = self.core.generation(app);
                self.loading.end_reload(app, outcome, generation);
            }
            ServerEffect::StopAccepting => {
                self.loading.reloads.stop();
                self.clients.http.drain();
            }
            ServerEffect::Exit { reason } => {
                self.clients.closed_sockets.log();
                self.exit = Some(reason);
            }
        }
    }

    pub(super) fn call(&mut self, worker: WorkerId, outcome: Outcome, requests: &[RequestId]) {
        let job = |job, lookup| self.jobs.observers.results.wire_outcome(job, lookup);
        let wire = |outcome| waits::wire_outcome(outcome, &self.messages, &self.queries, job);
        let rows = |outcome| self.queries.rows_after(outcome);
        let told = match outcome {
            Outcome::Group { request } => {
                self.core.group(request).and_then(|group| waits::group_outcome(group, wire, rows))
            }
            // The function is that of its WebSocket.
            Outcome::Said { request } => {
                let (calls, exchanges) = (&self.clients.calls, &self.clients.exchanges);
                let exchange = calls.socket_of(request).and_then(|socket| exchanges.peek(socket));
                let called = exchange.and_then(|exchange| function(exchange, &self.routes));
                if let (Some((outcome, behind)), Some((name, state))) = (calls.outcome(request), called) {
                    self.upstream.call(worker, &outcome, name, &[(request, state)], behind.as_ref());
                }
                return;
            }
            Outcome::Closed { request } => {
                let called = self.clients.exchanges.peek(request).and_then(Exchange::on_close);
                if let (Some(code), Some((name, state))) = (self.clients.closed_sockets.code(request), called) {
                    self.upstream.call(worker, &WaitOutcome::Closed { code }, name, &[(request, state)], None);
                } else {
                    tracing::error!("a bug in parkade: a WebSocket ended whose code or function is not known");
                }
                return;
            }
            outcome => wire(outcome).map(|told| (told, rows(outcome))),
        };
        let Some((outcome, behind)) = told else { return };
        let (exchanges, routes) = (&self.clients.exchanges, &self.routes);
        let functions =
            requests.iter().filter_map(|request| Some((*request, function(exchanges.peek(*request)?, routes)?)));
        let functions: Vec<_> = functions.collect();
        for same in functions.chunk_by(|(_, (name, _)), (_, (next, _))| name == next) {
            let calls: Vec<_> = same.iter().map(|(request, (_, state))| (*request, *state)).collect();
            self.upstream.call(worker, &outcome, same[0].1.0, &calls, behind.as_ref());
        }
    }

    fn start_query(&mut self, start: &Start, source: StatementSource) {
        let query = match source {
            StatementSource::Payload(payload) => self.payloads.take_query(payload),
            StatementSource::Route(route) => self.routes.query(route).cloned(),
        };
        let Some(request) = query else {
            return tracing::error!("a bug in parkade: the core began a query that no request asked for");
        };
        let Start { query, database, .. } = *start;
        let owner = self.core.owner_of(start.request);
        let is_postgres = self.databases.is_postgres(database);
        let own = self.traces.query(owner, query, self.now, || described(&self.databases, start, &request));
        let names;
        let by = if self.queries.has_comments() && is_postgres {
            names = self.routes.names();
            let route = self.clients.route_number(owner).and_then(|number| names.pattern(number));
            let asker = match (self.jobs.runs.job(owner), route) {
                (Some((name, _)), _) => QueryOrigin::Job(name),
                (None, Some(pattern)) => QueryOrigin::Route(pattern),
                (None, None) => QueryOrigin::Unknown,
            };
            Some((asker, own.or_else(|| self.clients.correlation(owner).trace)))
        } else {
            None
        };
        let work = match self.queries.start(start, request, by, self.now) {
            Ok(work) => work,
            Err(failure) => return self.databases.end_without(query, QueryEnd::Failed(failure)),
        };
        self.databases.submit(database, self.clock.at(self.now), query, work);
    }
}

/// A query for its span.
fn described<'a>(databases: &'a Databases, start: &Start, asked: &WorkRequest) -> QueryDescription<'a> {
    QueryDescription {
        system: if databases.is_postgres(start.database) { "postgresql" } else { "sqlite" },
        database: databases.name(start.database),
        text: asked.text(start.work),
        parameters: asked.parameters_count(),
    }
}

/// The function that a waiting request continues with, and its state.
fn function<'a>(exchange: &'a Exchange, routes: &'a Routes) -> Option<(&'a str, &'a [u8])> {
    if let Some(function) = exchange.function() {
        return Some((&function.name, &function.state));
    }
    let route = exchange.route().filter(|_| !exchange.has_kept())?;
    match routes.standing(route.id()) {
        StaticRoute::Function { name, state } => Some((name, state)),
        StaticRoute::None | StaticRoute::Answer(_) | StaticRoute::Job => None,
    }
}

/// Answers with the constant response of a route.
fn answer_static(clients: &mut Clients, request: RequestId, route: &StaticRoute) {
    match route {
        StaticRoute::Answer(response) => clients.response(request).send(response),
        StaticRoute::None | StaticRoute::Function { .. } | StaticRoute::Job => clients.response(request).nothing(),
    }
}

/// What a worker works on, as long as it has not ended.
fn work_name(server: &Server, request: RequestId) -> WorkName {
    match server.jobs.runs.job(request) {
        Some((name, id)) => WorkName::Job(format!("{name} ({id})")),
        None => WorkName::Request(server.describe(request)),
    }
}

/// The same also after its end. `None`: it ended long ago.
fn known_name(server: &Server, request: RequestId) -> Option<WorkName> {
    let is_open = server.jobs.runs.contains(request) || server.clients.exchanges.peek(request).is_some();
    if is_open { Some(work_name(server, request)) } else { server.clients.left_behind.find(request).cloned() }
}

/// Why the stack of a worker is logged before it is killed.
fn dump_reason(why: KillReason, role: Option<Role>) -> &'static str {
    match (why, role) {
        (KillReason::Deadline, Some(Role::Jobs)) => "a job passed its deadline and is still running",
        (KillReason::Deadline, _) => "a request passed its deadline and is still running",
        (KillReason::Stuck, _) => "an event loop is blocked",
        (why, role) => kill_reason(why, role),
    }
}

/// The reason for the operator's log.
fn kill_reason(why: KillReason, role: Option<Role>) -> &'static str {
    match why {
        KillReason::Deadline if role == Some(Role::Jobs) => "it is still running a job past its deadline",
        KillReason::Deadline => "it is still running a request past its deadline",
        KillReason::Stuck => "its event loop is blocked",
        KillReason::StartedTooSlowly => "it was not ready within --start-timeout",
        KillReason::Violation => "it violated the protocol",
        KillReason::GraceOver => "the grace period has expired",
        KillReason::NotNeeded => "it is no longer needed",
    }
}
