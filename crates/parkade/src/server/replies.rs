//! Answers that the core asks for, written to clients.

use std::rc::Rc;

use bytes::Bytes;
use parkade_core::limits::RETRY_AFTER_MAX;
use parkade_core::{Event, RouteId};
use parkade_model::{Cursor, MessageId, PayloadId, QueryId, Reason, Refusal, RequestId};

use super::exchange::Kept;
use super::messages::Event as StreamEvent;
use super::put_off::What;
use super::tables::Standing;
use super::{Server, refusal};
use crate::http::StreamedContent;
use crate::http::answer::{BadAnswer, HeaderField, Prepared};
use crate::queries::QueryAnswer;
use crate::routing::HeldRoute;

/// Clients of streams that end come back after a moment drawn from this range, so that they do not all come at once.
const RETRY_MILLISECONDS: std::ops::Range<u32> = 1_000..5_000;

const JSON: HeaderField<'static> = (b"content-type", b"application/json");

impl Server {
    pub(super) fn refuse(&mut self, request: RequestId, refused: Refusal) {
        let (status, _, _, retry_after) = refusal::explain(refused);
        let queue_goes = refusal::is_about_the_queue(refused).then(|| self.seconds_of_the_queue());
        let retry_after = queue_goes.as_deref().map(str::as_bytes).or(retry_after);
        let allow = self
            .exchanges
            .of(request)
            .and_then(|exchange| exchange.arrival.as_mut())
            .and_then(|arrival| arrival.allow.take());
        let mut fields: Vec<HeaderField<'_>> = vec![JSON];
        fields.extend(retry_after.map(|seconds| (&b"retry-after"[..], seconds)));
        fields.extend(allow.as_ref().map(|allow| (&b"allow"[..], allow.as_bytes())));
        fields.extend(self.fields_of_job(request));
        let body = refusal::body(refused);
        self.exchanges.note_answer(request, Some(status), body.len());
        let outcome = self.http_answer(request, status, &fields, &body.into());
        sent(outcome);
    }

    /// How long those take who are queued now: whole seconds, at least one.
    fn seconds_of_the_queue(&self) -> String {
        let wait = self.core.queue_wait(self.now).unwrap_or_default().min(RETRY_AFTER_MAX);
        (wait.as_millis().div_ceil(1_000)).max(1).to_string()
    }

    /// An answer whose rows follow as they come begins.
    pub(super) fn begin_rows(&mut self, request: RequestId, query: QueryId) {
        let held = self.queries.flow(query);
        self.exchanges.note_answer(request, Some(200), 0);
        let begun = self.http.begin(request, 200, [JSON].into_iter(), StreamedContent::Body);
        sent(begun);
        if self.http.is_head(request) {
            // Its answer is complete: the rows are wanted by nobody.
            self.http.finish(request);
            self.tell(Event::Left { request });
            return;
        }
        if let Some(held) = held {
            self.send_rows(request, &held);
        }
    }

    pub(super) fn send_rows(&mut self, request: RequestId, rows: &Bytes) {
        let Some(exchange) = self.exchanges.of(request) else { return };
        exchange.untaken.add(rows.len());
        if let Ok(taken) = self.http.piece(request, rows) {
            self.exchanges.note_answer(request, None, rows.len());
            self.client_took(request, taken);
        }
    }

    /// What came of a query is the answer.
    pub(super) fn answer_query(&mut self, request: RequestId, query: QueryId, late: Option<Reason>) {
        let Some(QueryAnswer { status, body, retry_after }) = self.queries.answer(query, late) else {
            return tracing::error!("a bug in parkade: a result was dropped before it was needed");
        };
        let fields = [Some(JSON), retry_after.map(|seconds| (&b"retry-after"[..], seconds))];
        self.exchanges.note_answer(request, Some(status), body.len());
        let outcome = self.http.answer(request, status, fields.into_iter().flatten(), &body);
        sent(outcome);
    }

    pub(super) fn http_answer(
        &mut self,
        request: RequestId,
        status: u16,
        fields: &[HeaderField<'_>],
        body: &Bytes,
    ) -> Result<(), BadAnswer> {
        self.http.answer(request, status, fields.iter().copied(), body)
    }

    pub(super) fn relay(&mut self, request: RequestId, payload: PayloadId, whole: bool) {
        let Some(response) = self.payloads.take_response(payload) else { return };
        self.exchanges.note_answer(request, Some(response.status), response.body.len());
        if whole {
            let outcome = self.http.answer(request, response.status, response.headers.iter(), &response.body);
            sent(outcome);
            return;
        }
        let begun = self.http.begin(request, response.status, response.headers.iter(), StreamedContent::Body);
        sent(begun);
        if !response.body.is_empty() {
            let inline = self.http.piece(request, &response.body).map(|_| ());
            sent(inline);
        }
        if let Some(exchange) = self.exchanges.of(request) {
            exchange.arrival = None;
        }
    }

    pub(super) fn keep(&mut self, request: RequestId, payload: PayloadId) {
        let kept = self.payloads.take_kept(payload);
        if let Some(exchange) = self.exchanges.of(request) {
            // Nobody will run the request itself again: only what was kept goes on.
            exchange.arrival = None;
            exchange.kept = kept.map(Box::new);
        }
    }

    pub(super) fn release(&mut self, request: RequestId) {
        let Some(exchange) = self.exchanges.of(request) else { return };
        match (exchange.kept.take().map(|kept| *kept), exchange.route.as_ref().map(HeldRoute::id)) {
            (Some(Kept::Response(response)), _) => self.send(request, &response),
            (None, Some(route)) => self.answer_standing(request, route),
            (Some(Kept::Function { .. }) | None, _) => self.answer_nothing(request),
        }
    }

    pub(super) fn answer_standing(&mut self, request: RequestId, route: RouteId) {
        if let Standing::Answer(response) = self.tables.standing(route) {
            let response = response.clone();
            self.send(request, &response);
        } else {
            self.answer_nothing(request);
        }
    }

    /// A timer without a response: 204.
    fn answer_nothing(&mut self, request: RequestId) {
        self.exchanges.note_answer(request, Some(204), 0);
        let outcome = self.http_answer(request, 204, &[], &Bytes::new());
        sent(outcome);
    }

    fn send(&mut self, request: RequestId, response: &parkade_wire::Response) {
        self.exchanges.note_answer(request, Some(response.status), response.body.len());
        let outcome = self.http.answer(request, response.status, response.headers.iter(), &response.body);
        sent(outcome);
    }

    pub(super) fn deliver(&mut self, message: MessageId, cursor: Cursor, gap: bool, requests: &[RequestId]) {
        if let Some(prepared) = self.prepared(message, cursor, gap) {
            self.deliver_to(&prepared, requests);
        }
    }

    /// The message as an answer.
    pub(super) fn prepared(&self, message: MessageId, cursor: Cursor, gap: bool) -> Option<Rc<Prepared>> {
        match self.messages.answer(message, cursor, gap, self.http.date()) {
            Some(Ok(prepared)) => return Some(prepared),
            Some(Err(fault)) => sent(Err(fault)),
            None => tracing::error!("a bug in parkade: a message was dropped before it was delivered"),
        }
        None
    }

    pub(super) fn deliver_to(&mut self, prepared: &Rc<Prepared>, requests: &[RequestId]) {
        for request in requests {
            self.exchanges.note_answer(*request, Some(200), prepared.body.len());
            self.http.answer_prepared(*request, prepared);
        }
    }

    pub(super) fn empty(&mut self, request: RequestId, cursor: Cursor) {
        let etag = format!("\"{cursor}\"");
        let fields: [HeaderField<'_>; 2] = [(b"etag", etag.as_bytes()), (b"cache-control", b"no-store")];
        self.exchanges.note_answer(request, Some(204), 0);
        let outcome = self.http_answer(request, 204, &fields, &Bytes::new());
        sent(outcome);
    }

    pub(super) fn open_stream(&mut self, request: RequestId, cursor: Cursor, gap: bool) {
        let fields: [HeaderField<'_>; 3] = [
            (b"content-type", b"text/event-stream"),
            (b"cache-control", b"no-cache, no-transform"),
            (b"x-accel-buffering", b"no"),
        ];
        self.exchanges.note_answer(request, Some(200), 0);
        let vary = self.fields_of_job(request).iter().filter(|(name, _)| *name == b"vary");
        let begun = self.http.begin(request, 200, fields.iter().chain(vary).copied(), StreamedContent::Events);
        sent(begun);
        if self.http.is_head(request) {
            // Its answer is complete: nobody watches the stream.
            self.http.finish(request);
            self.tell(Event::Left { request });
            return;
        }
        let mut opening = format!("retry: {}\nid: {cursor}\n", fastrand::u32(RETRY_MILLISECONDS));
        if gap {
            opening.push_str("event: gap\n");
        }
        let told = format!("{{\"cursor\":\"{cursor}\"}}");
        let event = StreamEvent::new(&opening, gap.then_some(told.as_bytes()));
        self.exchanges.note_answer(request, None, event.plain.len());
        self.http.event(request, &event.chunked, &event.plain);
        self.stream_opened(request);
    }

    pub(super) fn feed(&mut self, message: MessageId, cursor: Cursor, requests: &[RequestId]) {
        if let Some(event) = self.messages.event(message, cursor) {
            self.feed_to(&event, requests);
        }
    }

    pub(super) fn feed_to(&mut self, event: &StreamEvent, requests: &[RequestId]) {
        for request in requests {
            self.exchanges.note_answer(*request, None, event.plain.len());
            self.http.event(*request, &event.chunked, &event.plain);
        }
    }

    /// What is no message of the channel, behind what this stream has had of it.
    pub(super) fn feed_alone(&mut self, request: RequestId, cursor: Cursor, told: &[u8]) {
        let event = StreamEvent::new(&format!("id: {cursor}\n"), Some(told));
        if self.exchanges.has_put_off(request) {
            self.put_off_for(What::Event(event), vec![request]);
        } else {
            self.feed_to(&event, &[request]);
        }
    }

    /// Politely: the client comes back elsewhere.
    pub(super) fn end_stream(&mut self, request: RequestId) {
        let event = StreamEvent::new(&format!("retry: {}\n", fastrand::u32(RETRY_MILLISECONDS)), None);
        self.exchanges.note_answer(request, None, event.plain.len());
        self.http.event(request, &event.chunked, &event.plain);
        self.http.finish(request);
    }
}

/// Answers were checked before the core was told of them.
pub(super) fn sent(outcome: Result<(), BadAnswer>) {
    if let Err(fault) = outcome {
        tracing::error!("a bug in parkade: an answer was checked and could not be sent: {fault}");
    }
}
