//! Clients and their requests: the data kept for each request while the core keeps its life, and the responses that the core asks for.
//!
//! The contents of a response (a message, rows, a worker's response) are arguments; nothing is decided here.
//!
//! | question | where |
//! |---|---|
//! | what is kept for a request | `exchange` |
//! | its id | `request_id` |
//! | its response; header fields that are added to it | `response`, `added` |
//! | fields and functions that many requests have, kept once | `equal_ones` |
//! | status and text of each refusal of the core | `refusal` |
//! | messages as bytes: long polls and event streams; histories | `messages`, `histories` |
//! | what clients of WebSockets say, and what they get for it | `socket_calls` |
//! | checks before a message is published | `publishing` |
//! | responses to thousands of clients, a part in each turn | `put_off` |
//! | the access log, and sums of ended requests | `request_log` |

pub mod added;
pub mod casualties;
mod client_text;
mod closed_sockets;
mod equal_ones;
pub mod exchange;
mod histories;
pub mod left_behind;
mod limits;
mod messages;
pub mod publishing;
mod put_off;
mod recent;
mod refusal;
mod request_id;
mod request_log;
mod response;
mod socket_calls;

use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;

use parkade_core::{Effect, HttpEffect, Moment, RouteId, ServerEffect, Times};
use parkade_model::{Correlation, Cursor, Ending, MessageId, RequestId, RequestIdText, Then};

use crate::files::WantedFile;
use crate::http::answer::{HeaderField, Prepared};
use crate::http::limits::{LEAVING_TIME, LEAVING_TIME_BESIDE_ANSWERS};
use crate::http::{Head, Http, HttpEvent, RefusedRequest, StreamedContent};
use crate::log::{AccessLog, LineThrottle};
use crate::routing::HeldRoute;
use crate::statistics::{NamedRoutes as _, RouteName, RouteNumber};
use added::AddedHeaders;
use client_text::ClientText;
use closed_sockets::ClosedSockets;
use equal_ones::EqualOnes;
use exchange::{Arrival, ConnectionText, Exchange, Exchanges, Function, Kept};
use left_behind::LeftBehind;
use limits::SHARED_STATE_BYTES_MAX;
use messages::Event as StreamEvent;
use put_off::{Next, PutOff, What, audience};
use recent::{Ended, RecentlyEnded};
use request_id::RequestIds;
use request_log::RequestLog;
use response::{ClientResponse, sent};
use socket_calls::{CallAnswer, SocketCall, SocketCalls};

pub use messages::{Messages, NewMessage};
pub use refusal::{closing, explain, is_about_a_query};
pub use request_id::{IdText, given as given_correlation};

/// The shortest time after which clients of streams that end come back; the core says over which time they spread.
const RETRY_MILLISECONDS_MIN: u64 = 1_000;

pub struct Clients {
    /// Their connections.
    pub http: Http,
    /// What is kept for their requests.
    pub exchanges: Exchanges,
    /// What is being dealt with that clients of WebSockets have said.
    pub calls: SocketCalls,
    /// WebSockets that are over, of which the application is still to be told.
    pub closed_sockets: ClosedSockets,
    put_off: PutOff,
    text: ClientText,
    /// What is added to requests now.
    added: EqualOnes<AddedHeaders>,
    /// With what requests wait now.
    functions: EqualOnes<Function>,
    /// Requests that have ended.
    pub log: RequestLog,
    /// Requests that met a limit of the operator.
    too_large: LineThrottle,
    recently_ended: RecentlyEnded,
    /// Requests that have ended, and whose code may still run.
    pub left_behind: LeftBehind,
    ids: RequestIds,
}

/// What remains to be done after a step through the deferred responses.
#[derive(Debug)]
pub enum Step {
    Done,
    /// This effect was put off, and has to be carried out now.
    Effect(Effect),
}

impl Clients {
    pub fn new(http: Http, access_log: Option<AccessLog>) -> Self {
        Self {
            http,
            exchanges: Exchanges::default(),
            calls: SocketCalls::default(),
            closed_sockets: ClosedSockets::default(),
            put_off: PutOff::default(),
            text: ClientText::default(),
            added: EqualOnes::default(),
            functions: EqualOnes::default(),
            log: RequestLog::new(access_log),
            too_large: LineThrottle::default(),
            recently_ended: RecentlyEnded::default(),
            left_behind: LeftBehind::default(),
            ids: RequestIds::default(),
        }
    }

    /// Serves their connections, as far as possible without waiting. Deferred responses take precedence over closing the connections of clients that
    /// have left: nobody waits for that, and when a crowd is answered, the first clients leave before the last ones have their response.
    pub fn turn(&mut self, events: &mut Vec<HttpEvent>) -> io::Result<()> {
        let leaving = if self.put_off.is_empty() { LEAVING_TIME } else { LEAVING_TIME_BESIDE_ANSWERS };
        self.http.turn(events, leaving)
    }

    /// The response to a request that has not ended.
    pub fn response(&mut self, request: RequestId) -> ClientResponse<'_> {
        ClientResponse::new(request, &mut self.http, &mut self.exchanges, &mut self.calls, &self.ids)
    }

    /// A request has arrived.
    pub fn arrived(&mut self, request: RequestId, route_number: RouteNumber, arrival: Arrival) {
        let note = self.log.is_on().then(|| Box::new(arrival.note()));
        self.exchanges.insert(request, Exchange::new(arrival, note, route_number));
    }

    /// Whether the request may become a WebSocket: its client asks for one, and its route has them. It will have the first
    /// of these sub-protocols that its client offers.
    pub fn agree_on_socket(&mut self, request: RequestId, subprotocols: &[String]) -> bool {
        self.http.agree_on_socket(request, subprotocols)
    }

    /// The client of a WebSocket that waits on a channel has said something. Returns the id of the call.
    pub fn said(&mut self, socket: RequestId, is_text: bool, bytes: Bytes) -> Option<RequestId> {
        let exchange = self.exchanges.peek(socket)?.of_call();
        let call = self.http.insert_clientless();
        self.exchanges.insert(call, exchange);
        self.calls.begin(call, socket, is_text, bytes);
        Some(call)
    }

    /// The WebSocket of the request is over: if its application wants to know, this is the code.
    pub fn note_closed(&mut self, request: RequestId, code: u16) {
        if self.exchanges.peek(request).is_some_and(|exchange| exchange.on_close().is_some()) {
            self.closed_sockets.add(request, code);
        }
    }

    /// The request that a worker is about to get, and the addresses of its connection.
    pub fn arrival<'a>(
        &'a mut self,
        request: RequestId,
        buffer: &'a mut IdText,
    ) -> Option<(&'a Arrival, ConnectionText<'a>)> {
        let exchange = self.exchanges.peek(request)?;
        let arrival = exchange.arrival()?;
        let id = self.ids.of(request, exchange.given_id(), buffer);
        let server = self.http.address_of(arrival.origin.listener);
        Some((arrival, ConnectionText { client: self.text.of(arrival.origin.client), server, id }))
    }

    /// The id of a request that has not ended, or has just ended. A run of a job has that of the request that enqueued
    /// the job.
    pub fn id(&self, request: RequestId) -> Option<String> {
        let (given, route) = if let Some(exchange) = self.exchanges.peek(request) {
            (exchange.given_id(), exchange.route_number)
        } else {
            let ended = self.recently_ended.find(request)?;
            (ended.given_id.as_ref().map(RequestIdText::as_str), ended.route)
        };
        let has_own = route != RouteNumber::JOB;
        (has_own || given.is_some()).then(|| self.ids.of(request, given, &mut IdText::default()).to_owned())
    }

    /// What a job that this request or run enqueues is given of it.
    pub fn correlation(&self, request: RequestId) -> Correlation {
        match self.exchanges.peek(request).and_then(Exchange::correlation) {
            Some(known) => known.clone(),
            None => Correlation { request_id: Some(RequestIdText::Hex(self.ids.text(request))), trace: None },
        }
    }

    /// Whatever answers this request, this is added to it.
    pub fn add(&mut self, request: RequestId, added: AddedHeaders) {
        let added = self.added.one(added);
        if let Some(exchange) = self.exchanges.of(request) {
            exchange.add(Some(added));
        }
    }

    /// What a request that has not been passed on asks for.
    pub fn head(&self, request: RequestId) -> Option<&Head> {
        Some(&self.exchanges.peek(request)?.arrival()?.head)
    }

    /// Keeps with the request how to continue after its wait: no worker will get the request itself again.
    pub fn keep(&mut self, request: RequestId, kept: Option<Kept>) {
        if let Some(exchange) = self.exchanges.of(request) {
            if let Some(Kept::File(_)) = &kept {
                // The log names it if the file cannot be sent.
                exchange.note_arrival();
            }
            match &kept {
                Some(Kept::Function(_)) => exchange.forget_arrival(Then::Call { concurrent: false }),
                Some(Kept::Response(_) | Kept::File(_)) | None => exchange.forget_arrival(Then::Answer),
            }
            exchange.keep(kept.map(|kept| match kept {
                Kept::Function(function) if function.state.len() <= SHARED_STATE_BYTES_MAX => {
                    Kept::Function(self.functions.one(function))
                }
                kept => kept,
            }));
        }
    }

    /// Sends the kept response. If there is none, returns the route, which has the response.
    pub fn release(&mut self, request: RequestId) -> Option<RouteId> {
        let exchange = self.exchanges.of(request)?;
        if let Some(response) = exchange.take_response() {
            self.response(request).send(&response);
            return None;
        }
        let route = exchange.route().filter(|_| !exchange.has_kept()).map(HeldRoute::id);
        exchange.keep(None);
        if route.is_none() {
            self.response(request).nothing();
        }
        route
    }

    /// The file that is kept as the answer of this request, and whether its client wants no content.
    pub fn take_wanted(&mut self, request: RequestId) -> Option<(WantedFile, bool)> {
        let is_head = self.http.is_head(request);
        let exchange = self.exchanges.of(request)?;
        Some((*exchange.take_file()?, is_head))
    }

    /// Answers all these requests with a message.
    pub fn deliver(&mut self, messages: &Messages, message: MessageId, at: (Cursor, bool), requests: &[RequestId]) {
        if let Some(prepared) = self.prepared(messages, message, at) {
            self.deliver_to(&prepared, requests);
        }
    }

    /// Sends a message on all these streams.
    pub fn feed(&mut self, messages: &mut Messages, message: MessageId, cursor: Cursor, requests: &[RequestId]) {
        if let Some(event) = messages.event(message, cursor) {
            self.feed_to(&event, requests);
        }
    }

    /// Tells these streams that messages before this cursor were lost.
    pub fn feed_gap(&mut self, cursor: Cursor, requests: &[RequestId]) {
        self.feed_to(&StreamEvent::gap(cursor), requests);
    }

    /// Sends an event that is not a message of the channel, after the events that are deferred for this stream.
    pub fn feed_alone(&mut self, request: RequestId, cursor: Cursor, data: &[u8]) {
        let event = StreamEvent::new(&format!("id: {cursor}\n"), Some(data));
        if self.exchanges.has_put_off(request) {
            self.put_off_for(What::Event(event), vec![request]);
        } else {
            self.feed_to(&event, &[request]);
        }
    }

    /// Begins a stream of server-sent events. Returns whether its client wants them.
    pub fn open_stream(
        &mut self,
        request: RequestId,
        (cursor, gap): (Cursor, bool),
        reconnect_spread: Duration,
    ) -> bool {
        let fields: [HeaderField<'_>; 4] = [
            (b"content-type", b"text/event-stream"),
            // Proxies must not wait for the end (RFC 10036).
            (b"incremental", b"?1"),
            (b"cache-control", b"no-cache, no-transform"),
            (b"x-accel-buffering", b"no"),
        ];
        let vary = self.exchanges.job_fields(request).iter().filter(|(name, _)| *name == b"vary");
        self.response(request).begin(200, fields.iter().chain(vary).copied(), StreamedContent::Events, 0);
        if !self.response(request).wants_body() {
            return false;
        }
        let mut opening = format!("retry: {}\nid: {cursor}\n", retry_milliseconds(reconnect_spread));
        if gap {
            opening.push_str("event: gap\n");
        }
        let data = format!("{{\"cursor\":\"{cursor}\"}}");
        let event = StreamEvent::new(&opening, gap.then_some(data.as_bytes()));
        self.feed_to(&event, &[request]);
        true
    }

    /// Ends a stream politely: its client reconnects, to another server.
    pub fn end_stream(&mut self, request: RequestId, reconnect_spread: Duration) {
        let event = StreamEvent::new(&format!("retry: {}\n", retry_milliseconds(reconnect_spread)), None);
        self.feed_to(&event, &[request]);
        self.http.finish(request, std::iter::empty());
    }

    /// Whether the effect is to be put off. `count`: how many effects came with it.
    pub fn has_to_wait(&self, effect: &Effect, count: usize) -> bool {
        self.put_off.has_to_wait(effect, count, &self.exchanges)
    }

    /// Puts off an effect that has to wait.
    pub fn put_off(&mut self, effect: Effect, messages: &mut Messages) {
        let (what, requests) = match effect {
            Effect::Http(HttpEffect::Deliver { message, cursor, gap, requests }) => {
                let Some(prepared) = self.prepared(messages, message, (cursor, gap)) else { return };
                (What::Answer(prepared), requests)
            }
            Effect::Http(HttpEffect::Feed { message, cursor, requests }) => {
                let Some(event) = messages.event(message, cursor) else { return };
                (What::Event(event), requests)
            }
            Effect::Http(HttpEffect::FeedGap { cursor, requests }) => (What::Event(StreamEvent::gap(cursor)), requests),
            effect => {
                let request = audience(&effect).one();
                if let (Effect::Server(ServerEffect::Forget { .. }), Some(request)) = (&effect, request) {
                    self.exchanges.note_over(request);
                }
                if let Some(request) = request {
                    self.exchanges.note_put_off(request);
                }
                return self.put_off.push_effect(effect);
            }
        };
        self.put_off_for(what, requests);
    }

    /// Whether there are deferred responses.
    pub fn has_put_off(&self) -> bool {
        !self.put_off.is_empty()
    }

    /// Whether too many responses are deferred: then workers that add to them have to be slowed down.
    pub fn are_behind(&self) -> bool {
        self.put_off.is_full()
    }

    /// Whether workers that were slowed down may continue.
    pub fn have_caught_up(&self) -> bool {
        self.put_off.has_room()
    }

    /// Handles the next part of the deferred responses, if there are any.
    pub fn go_on(&mut self) -> Option<Step> {
        let (what, requests) = match self.put_off.next()? {
            Next::Tell(what, requests) => (what, requests),
            Next::Act(effect) => {
                if let Some(request) = audience(&effect).one() {
                    self.exchanges.note_told(request);
                }
                return Some(Step::Effect(effect));
            }
        };
        for request in &requests {
            self.exchanges.note_told(*request);
        }
        match what {
            What::Answer(prepared) => self.deliver_to(&prepared, &requests),
            What::Event(event) => self.feed_to(&event, &requests),
        }
        Some(Step::Done)
    }

    /// The request is over: it is logged, and its data dropped.
    pub fn forget(&mut self, request: RequestId, ending: Ending, times: Times) {
        self.http.forget(request);
        self.closed_sockets.remove(request);
        let Some(exchange) = self.exchanges.remove(request) else { return };
        if let Some(call) = self.calls.end(request) {
            self.tell(call);
        } else if !exchange.is_run() {
            self.log.ended((request, &exchange), &self.ids, ending, times);
        }
        let given_id = exchange.correlation().and_then(|correlation| correlation.request_id.clone());
        self.recently_ended.note(Ended { request, route: exchange.route_number, given_id });
    }

    /// A WebSocket gets what the function has returned for what its client has said.
    fn tell(&mut self, SocketCall { socket, answer, .. }: SocketCall) {
        match answer {
            CallAnswer::Nothing | CallAnswer::Begun { .. } => {}
            CallAnswer::Message(message) if self.exchanges.has_put_off(socket) => {
                self.put_off_for(What::Event(StreamEvent::said(message)), vec![socket]);
            }
            CallAnswer::Message(message) => self.feed_to(&StreamEvent::said(message), &[socket]),
            CallAnswer::Close { code, text } => self.http.close_held(socket, code, text),
        }
    }

    /// The route of a request that has not ended, or has just ended: method and pattern.
    pub fn route(&self, request: RequestId, names: &[RouteName]) -> Option<String> {
        names.name(self.route_number(request)?)
    }

    /// The route of a request that has not ended, or has just ended, in the statistics.
    pub fn route_number(&self, request: RequestId) -> Option<RouteNumber> {
        let open = self.exchanges.peek(request).map(|exchange| exchange.route_number);
        open.or_else(|| Some(self.recently_ended.find(request)?.route))
    }

    /// Resets the connection of a client, or its stream of HTTP/2: its response will never be complete.
    pub fn break_off(&mut self, request: RequestId) {
        self.note_broken_off(request);
        self.http.abort(request);
    }

    /// The response was not complete, and is not any more.
    pub fn note_broken_off(&mut self, request: RequestId) {
        if let Some(exchange) = self.exchanges.of(request) {
            exchange.note_broken_off();
        }
    }

    /// A request as the log names it: by its method and path, or by its route if these are no longer known, and its id.
    pub fn describe(&self, request: RequestId, names: &[RouteName]) -> String {
        let exchange = self.exchanges.peek(request);
        let nameless = if self.route_number(request) == Some(RouteNumber::JOB) { "a job" } else { "a request" };
        let name = match exchange.map(|exchange| (exchange.arrival(), exchange.note())) {
            Some((Some(arrival), _)) => format!("{} {}", arrival.head.method(), arrival.head.path()),
            Some((None, Some(note))) => format!("{} {}", note.method, note.path),
            Some((None, None)) | None => self.route(request, names).unwrap_or_else(|| nameless.to_owned()),
        };
        self.id(request).map_or_else(|| name.clone(), |id| format!("{name} ({id})"))
    }

    /// A malformed request was answered; it never became a request.
    pub fn refused(&mut self, refused: &RefusedRequest, now: Moment) {
        self.log.refused(refused);
        if refused.fault.is_about_a_limit() {
            self.too_large.note();
        }
        if let Some(count) = self.too_large.take(now) {
            let (method, path) = refused.line.as_deref().map_or(("-", "-"), |(method, path)| (method, path));
            let status = refused.fault.explain().0;
            let detail = refused.fault.detail(self.http.limits());
            let client = self.text.of(refused.peer);
            tracing::warn!(method, path, status, client, refused = count, "a request was refused: {detail}");
        }
    }

    /// The message as a response. `at`: its cursor, and whether messages before it were lost.
    fn prepared(&self, messages: &Messages, message: MessageId, (cursor, gap): (Cursor, bool)) -> Option<Rc<Prepared>> {
        match messages.answer(message, cursor, gap, self.http.date()) {
            Some(Ok(prepared)) => return Some(prepared),
            Some(Err(fault)) => sent(Err(fault)),
            None => tracing::error!("a bug in parkade: a message was dropped before it was delivered"),
        }
        None
    }

    fn deliver_to(&mut self, prepared: &Rc<Prepared>, requests: &[RequestId]) {
        for request in requests {
            let Some(exchange) = self.exchanges.of(*request) else { continue };
            if exchange.added().is_some() || self.calls.contains(*request) {
                let fields = prepared.fields.iter().map(|(name, value)| (&name[..], &value[..]));
                self.response(*request).answer(prepared.status, fields, &prepared.body);
                continue;
            }
            exchange.note_answer(Some(self.http.sent_status(*request, prepared.status)), prepared.body.len());
            let mut buffer = IdText::default();
            let id = self.ids.bytes(*request, exchange.given_id(), &mut buffer);
            self.http.answer_prepared(*request, prepared, id);
        }
    }

    fn feed_to(&mut self, event: &StreamEvent, requests: &[RequestId]) {
        for request in requests {
            if let Some(exchange) = self.exchanges.of(*request) {
                exchange.note_answer(None, event.bytes());
            }
            self.http.event(*request, &event.chunked, &event.plain, event.message.as_deref());
        }
    }

    fn put_off_for(&mut self, what: What, requests: Vec<RequestId>) {
        for request in &requests {
            self.exchanges.note_put_off(*request);
        }
        self.put_off.push(what, requests);
    }
}

/// A moment of the spread, after the shortest time.
fn retry_milliseconds(spread: Duration) -> u64 {
    let spread = u64::try_from(spread.as_millis()).unwrap_or(u64::MAX);
    RETRY_MILLISECONDS_MIN + fastrand::u64(..spread.max(1))
}
