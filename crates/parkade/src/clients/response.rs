//! The response to one request: written to its client's connection, with its id and what is added to it.
//!
//! It is checked before the core hears of it, so sending it cannot fail.

use std::time::Duration;

use bytes::Bytes;
use parkade_core::limits::RETRY_AFTER_MAX;
use parkade_model::{Cursor, Refusal, RequestId};
use parkade_wire::{Headers, MessageWindow, Response, SWITCHING_PROTOCOLS};

use super::added::OwnedHeader;
use super::exchange::{Exchange, Exchanges};
use super::histories::HeldHistory;
use super::refusal::{self, explain};
use super::request_id::{IdText, RequestIds};
use super::socket_calls::{CallAnswer, SocketCalls};
use crate::files::{FileFields, FileHead};
use crate::http::answer::{BadAnswer, HeaderField};
use crate::http::problem::Problem;
use crate::http::{Http, OutgoingMessage, SocketMaker, StreamedContent, WebSocket};
use crate::queries::QueryAnswer;

const JSON: HeaderField<'static> = (b"content-type", b"application/json");

/// The response to one request, which has not ended.
pub struct ClientResponse<'a> {
    request: RequestId,
    http: &'a mut Http,
    exchanges: &'a mut Exchanges,
    calls: &'a mut SocketCalls,
    ids: &'a RequestIds,
}

impl<'c> ClientResponse<'c> {
    pub(super) fn new(
        request: RequestId,
        http: &'c mut Http,
        exchanges: &'c mut Exchanges,
        calls: &'c mut SocketCalls,
        ids: &'c RequestIds,
    ) -> Self {
        Self { request, http, exchanges, calls, ids }
    }

    /// Sends a complete response, with what is added to it. It was checked before the core heard of it.
    pub fn answer<'a>(&mut self, status: u16, fields: impl Iterator<Item = HeaderField<'a>> + Clone, body: &Bytes) {
        if let Some(call) = self.calls.of(self.request) {
            call.answer = CallAnswer::new(status, fields, body);
            return;
        }
        let Some(exchange) = self.exchanges.of(self.request) else { return };
        let status = exchange.added().map_or(status, |added| added.status(status));
        exchange.note_answer(Some(self.http.sent_status(self.request, status)), body.len());
        let mut buffer = IdText::default();
        let id = self.ids.bytes(self.request, exchange.given_id(), &mut buffer);
        sent(match exchange.added() {
            None => self.http.answer(self.request, status, fields, id, body),
            Some(added) => self.http.answer(self.request, status, added.fields(status, fields), id, body),
        });
    }

    /// Begins a response whose body follows in pieces, with what is added to it.
    pub(super) fn begin<'a>(
        &mut self,
        status: u16,
        fields: impl Iterator<Item = HeaderField<'a>> + Clone,
        content: StreamedContent,
        bytes: usize,
    ) {
        let Some(exchange) = self.exchanges.of(self.request) else { return };
        // A stream of events with another status would be none for its client.
        let status = match (content, exchange.added()) {
            (StreamedContent::Body, Some(added)) => added.status(status),
            (StreamedContent::Body | StreamedContent::Events, _) => status,
        };
        exchange.note_answer(Some(self.http.sent_status(self.request, status)), bytes);
        let mut buffer = IdText::default();
        let id = self.ids.bytes(self.request, exchange.given_id(), &mut buffer);
        sent(match exchange.added() {
            None => self.http.begin(self.request, status, fields, id, content),
            Some(added) => self.http.begin(self.request, status, added.fields(status, fields), id, content),
        });
    }

    /// Answers which requests of other origins the application permits.
    pub fn preflight(&mut self, fields: &[OwnedHeader]) {
        self.answer(204, fields.iter().map(|(name, value)| (&name[..], &value[..])), &Bytes::new());
    }

    pub fn send(&mut self, response: &Response) {
        self.answer(response.status, response.headers.iter(), &response.body);
    }

    /// The response of a timer that has none: 204.
    pub fn nothing(&mut self) {
        self.answer(204, std::iter::empty(), &Bytes::new());
    }

    /// The response when no message came in time.
    pub fn empty(&mut self, cursor: Cursor) {
        let etag = format!("\"{cursor}\"");
        let fields: [HeaderField<'_>; 2] = [(b"etag", etag.as_bytes()), (b"cache-control", b"no-store")];
        self.answer(204, fields.into_iter(), &Bytes::new());
    }

    /// The response with what a channel holds.
    pub fn history(&mut self, history: &HeldHistory) {
        let etag = format!("\"{}\"", history.cursor);
        let fields: [HeaderField<'_>; 3] = [JSON, (b"etag", etag.as_bytes()), (b"cache-control", b"no-store")];
        self.answer(200, fields.into_iter(), &history.json());
    }

    /// The response with the cursor of a message.
    pub fn published(&mut self, cursor: Cursor) {
        let body = format!("{{\"cursor\":\"{cursor}\"}}");
        self.answer(200, [JSON].into_iter(), &body.into());
    }

    /// Answers with the outcome of a query.
    pub fn query(&mut self, answer: &QueryAnswer) {
        match answer {
            QueryAnswer::Rows(rows) => self.answer(200, [JSON].into_iter(), rows),
            QueryAnswer::Problem(problem, retry_after) => {
                let retry_after = retry_after.map(|seconds| (&b"retry-after"[..], seconds));
                self.problem(problem, retry_after.as_slice());
            }
        }
    }

    /// Answers with an error, in the form that the client prefers.
    pub fn problem(&mut self, problem: &Problem<'_>, fields: &[HeaderField<'_>]) {
        let form = self.exchanges.peek(self.request).map(Exchange::representation).unwrap_or_default();
        let vary: HeaderField<'_> = (b"vary", b"Accept");
        let varies = fields.iter().any(|(name, _)| *name == b"vary");
        let own = [Some((&b"content-type"[..], form.content_type())), (!varies).then_some(vary)];
        let all = own.into_iter().flatten().chain(fields.iter().copied());
        self.answer(problem.status, all, &problem.body(form));
    }

    /// Answers that no route matches. `other`: the path that has one.
    pub fn not_found(&mut self, other: &str) {
        let (status, fault, detail, _) = explain(Refusal::NotFound);
        self.problem(&Problem::new(status, fault, format!("{detail}; there is a route for {other}")), &[]);
    }

    /// Answers with an error of the core's own. `mount`: of the application, where that is said. `queue_wait`: the current
    /// waiting time of its queue.
    pub fn refuse(&mut self, refused: Refusal, mount: Option<&str>, queue_wait: impl FnOnce() -> Option<Duration>) {
        let (_, _, _, retry_after) = explain(refused);
        let queue_goes = refusal::is_about_the_queue(refused).then(|| seconds_of_the_queue(queue_wait()));
        let retry_after = queue_goes.as_deref().map(str::as_bytes).or(retry_after);
        let exchange = self.exchanges.of(self.request);
        let allow = exchange.and_then(Exchange::arrival_mut).and_then(|arrival| arrival.allow.take());
        let mut fields: Vec<HeaderField<'_>> = Vec::new();
        fields.extend(retry_after.map(|seconds| (&b"retry-after"[..], seconds)));
        fields.extend(allow.as_ref().map(|allow| (&b"allow"[..], allow.as_bytes())));
        fields.extend(self.exchanges.job_fields(self.request));
        let mut problem = refusal::problem(refused);
        if let Some(mount) = mount {
            problem.detail = format!("{} (mounted at {mount})", problem.detail).into();
        }
        self.problem(&problem, &fields);
    }

    /// The `RESPONSE` of a worker. `whole`: nothing follows it.
    pub fn relay(&mut self, response: &Response, whole: bool) {
        if whole {
            return self.send(response);
        }
        if let Some(call) = self.calls.of(self.request) {
            return call.begin(response);
        }
        self.begin(response.status, response.headers.iter(), StreamedContent::Body, response.body.len());
        if !response.body.is_empty() {
            sent(self.http.piece(self.request, &response.body).map(|_| ()));
        }
        if let Some(exchange) = self.exchanges.of(self.request) {
            exchange.take_arrival();
        }
    }

    /// The `RESPONSE` of a worker that accepts a WebSocket.
    /// `takes_long`: also messages that do not fit into one of its frames.
    pub fn open_socket(&mut self, response: &Response, takes_long: bool) {
        let make = if takes_long { WebSocket::new } else { WebSocket::with_short_messages };
        self.accept(response.headers.iter(), make);
        if let Some(exchange) = self.exchanges.of(self.request) {
            exchange.take_arrival();
        }
    }

    /// The request becomes a WebSocket that no worker holds.
    pub fn hold_socket(&mut self) {
        self.accept(std::iter::empty(), WebSocket::held);
    }

    fn accept<'a>(&mut self, fields: impl Iterator<Item = HeaderField<'a>> + Clone, make: SocketMaker) {
        let Some(exchange) = self.exchanges.of(self.request) else { return };
        exchange.note_answer(Some(SWITCHING_PROTOCOLS), 0);
        let mut buffer = IdText::default();
        let id = self.ids.bytes(self.request, exchange.given_id(), &mut buffer);
        sent(self.http.open_socket(self.request, fields, id, make));
    }

    /// Sends a message to the client of a WebSocket. Returns how much of what its worker may send is free again.
    pub fn message(&mut self, message: OutgoingMessage<'_>) -> usize {
        let Some(exchange) = self.exchanges.of(self.request) else { return 0 };
        let cost = MessageWindow::cost(message.bytes.len());
        exchange.untaken.add(cost);
        exchange.note_answer(None, message.bytes.len());
        let taken = self.http.message(self.request, message).unwrap_or(cost);
        self.exchanges.took(self.request, taken)
    }

    /// The WebSocket of a request is closed by the server.
    pub fn close_socket(&mut self, refusal: Refusal, is_stopping: bool) {
        let (code, text) = refusal::closing(refusal, is_stopping);
        self.http.close_socket(self.request, code, text.to_owned());
    }

    /// Sends a piece of a response that has begun. Returns how many bytes of such pieces the client has just taken.
    pub fn piece(&mut self, bytes: &Bytes) -> Result<usize, BadAnswer> {
        if let Some(call) = self.calls.of(self.request) {
            return call.add(bytes).map(|()| bytes.len());
        }
        let Some(exchange) = self.exchanges.of(self.request) else { return Ok(0) };
        exchange.untaken.add(bytes.len());
        let taken = self.http.piece(self.request, bytes)?;
        exchange.note_answer(None, bytes.len());
        Ok(self.exchanges.took(self.request, taken))
    }

    /// The streamed response is complete, with these trailers. False if it is shorter than its Content-Length: then the
    /// connection was reset.
    pub fn finish(&mut self, trailers: &Headers) -> bool {
        if let Some(call) = self.calls.of(self.request) {
            call.finish();
            return true;
        }
        self.http.finish(self.request, trailers.iter())
    }

    /// Answers with a file, if it is small: this is all of it.
    pub fn file(&mut self, head: &FileHead, body: &Bytes) {
        match head {
            FileHead::Described { status, fields } => self.answer(*status, borrowed(fields), body),
            FileHead::Given(response) => self.answer(response.status, response.headers.iter(), body),
        }
    }

    /// Begins a response of a file, whose pieces follow.
    pub fn begin_file(&mut self, head: &FileHead) {
        match head {
            FileHead::Described { status, fields } => {
                self.begin(*status, borrowed(fields), StreamedContent::Body, 0);
            }
            FileHead::Given(response) => {
                self.begin(response.status, response.headers.iter(), StreamedContent::Body, 0);
            }
        }
    }

    /// The conditions of a client do not hold for its file.
    pub fn file_failed(&mut self, status: u16, fields: &FileFields) {
        let detail = match status {
            416 => "the file has no such bytes",
            _ => "the file is not in the state that the request requires",
        };
        let fields: Vec<HeaderField<'_>> = borrowed(fields).collect();
        self.problem(&Problem::new(status, "client", detail), &fields);
    }

    /// Begins a response of rows, which follow as they arrive. Returns whether its client wants them.
    pub fn begin_rows(&mut self) -> bool {
        self.begin(200, [JSON].into_iter(), StreamedContent::Body, 0);
        self.wants_body()
    }

    pub(super) fn wants_body(&mut self) -> bool {
        let is_head = self.http.is_head(self.request);
        if is_head {
            // The response has no body, so it is complete.
            self.http.finish(self.request, std::iter::empty());
        }
        !is_head
    }
}

fn borrowed(fields: &FileFields) -> impl Iterator<Item = HeaderField<'_>> + Clone {
    fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()))
}

/// Whole seconds, at least one.
fn seconds_of_the_queue(wait: Option<Duration>) -> String {
    let wait = wait.unwrap_or_default().min(RETRY_AFTER_MAX);
    wait.as_millis().div_ceil(1_000).max(1).to_string()
}

/// Logs a failure to send. There should be none: responses are checked before the core hears of them.
pub(super) fn sent(outcome: Result<(), BadAnswer>) {
    if let Err(fault) = outcome {
        tracing::error!("a bug in parkade: a response was checked and could not be sent: {fault}");
    }
}
