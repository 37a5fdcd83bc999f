//! HTTP: turns sockets into requests, and responses into bytes. It decides nothing about a request's life.
//!
//! | question | where |
//! |---|---|
//! | listening and accepting | `listen`, `acceptor` |
//! | all HTTP/1 connections; one of them | `lot`, `connection` |
//! | HTTP/2 | `h2` |
//! | the request line and the header fields; the target; the body | `head`, `target`, `body` |
//! | a request that cannot be read: status and text | `fault` |
//! | the forms of an error: JSON, a page, text | `problem`, `page` |
//! | the client behind a trusted proxy | `forwarded` |
//! | which connection a response goes to | `request_table` |
//! | the head of a response | `answer` |
//! | bodies that an application reads while they arrive | `streamed_bodies` |
//! | WebSockets: which requests may become one, on which terms; one that is open | `socket_offer`, `handshake`, `web_socket` |
//! | memory for requests, and all other limits | `budget`, `limits` |

mod acceptor;
pub mod answer;
mod body;
pub mod budget;
mod byte_set;
mod connection;
pub mod fault;
pub mod forwarded;
#[cfg(test)]
mod fuzz;
mod h2;
mod handshake;
mod head;
pub mod limits;
pub mod listen;
mod lot;
mod message_share;
pub mod page;
pub mod problem;
mod request_table;
mod rewind;
mod socket;
mod socket_message;
pub mod socket_offer;
mod streamed_bodies;
mod target;
mod tick;
mod web_socket;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};

use crate::body_rest::BodyRest;
use parkade_model::RequestId;

use self::answer::{BadAnswer, HeaderField, Prepared};
use self::budget::{ArrivingShare, Budget};
use self::fault::RequestFault;
use self::forwarded::{RequestOrigin, TrustedProxies};
use self::h2::StreamTable;
use self::limits::HttpLimits;
use self::lot::{Lot, Outbox};
use self::request_table::{Client, RequestTable};
use self::socket::Peer;
use self::socket_offer::SocketTerms;

use crate::descriptors::DescriptorBudget;
use crate::poll::Pollable;

pub use self::connection::{SocketMaker, StreamedContent};
pub use self::head::Head;
#[cfg(test)]
pub use self::head::parse as parse_head;
pub use self::limits::FIRST_REQUEST_TIME;
pub use self::lot::SWEEP_INTERVAL;
pub use self::socket_message::SocketMessage;
pub use self::streamed_bodies::{StreamRules, StreamTerms, StreamedBodies};
pub use self::web_socket::{OutgoingMessage, WebSocket};

/// The operator's settings for HTTP.
#[derive(Debug, Clone)]
pub struct Setup {
    pub limits: HttpLimits,
    pub trust: TrustedProxies,
    /// What applications ask for.
    pub streamed: StreamedBodies,
    pub sockets: SocketTerms,
}

/// What clients did.
#[derive(Debug)]
pub enum HttpEvent {
    /// A request. `share`: the budget of its head and body, for as long as they are kept. If the rest of the body
    /// follows, pieces come as [`Http::want_piece`] asks for them.
    Arrived { request: RequestId, head: Head, body: Bytes, rest: BodyRest, origin: RequestOrigin, share: ArrivingShare },
    /// More of the body of a request that has arrived: the piece that was wanted.
    Piece { request: RequestId, bytes: Bytes, rest: BodyRest },
    /// This many bytes of a streamed response have been sent: as many more may follow.
    Taken { request: RequestId, bytes: usize },
    /// A message of the client of a WebSocket.
    Message { request: RequestId, is_text: bool, bytes: Bytes },
    /// The client of a WebSocket has closed it, or has broken the rules and was told so. Nothing more comes of it.
    SocketClosed { request: RequestId, code: u16, text: String },
    /// The client of a request without a complete response has left.
    Left { request: RequestId },
    /// The same, and it has got everything that the head of its response announced.
    Served { request: RequestId },
    /// A malformed request was answered; it never became a request.
    Refused(RefusedRequest),
}

/// A request that was refused while it was read.
#[derive(Debug)]
pub struct RefusedRequest {
    pub peer: Peer,
    pub fault: RequestFault,
    /// Of the body of the answer.
    pub bytes: usize,
    /// Its method and its target, if its head was read.
    pub line: Option<Box<(String, String)>>,
}

/// Connections by kind, for the status page.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConnectionCounts {
    pub http1: usize,
    pub http2: usize,
    /// Connections that a bug of ours has ended.
    pub broken: usize,
}

pub struct Http {
    lot: Lot,
    /// Of each listener, by its number.
    addresses: Box<[listen::ListenerAddress]>,
    requests: RequestTable,
    shared: h2::H2Context,
    streams: StreamTable,
    /// WebSockets that the application has closed, and with which code.
    closed: Vec<(RequestId, u16)>,
    draining: watch::Sender<bool>,
}

impl Http {
    pub fn new(listeners: Vec<listen::HttpListener>, setup: Setup, descriptors: DescriptorBudget) -> io::Result<Self> {
        let (sender, inbox) = mpsc::unbounded_channel();
        let (draining, watched) = watch::channel(false);
        let budget = Budget::new(setup.limits.requests_bytes_max);
        let shared = h2::H2Context {
            setup: Arc::new(setup.clone()),
            inbox: sender,
            next_key: Arc::new(AtomicUsize::new(0)),
            connection_count: Arc::new(AtomicUsize::new(0)),
            stream_count: Arc::new(AtomicUsize::new(0)),
            panic_count: Arc::new(AtomicUsize::new(0)),
            budget: budget.clone(),
            draining: watched,
        };
        let addresses = listeners.iter().map(listen::HttpListener::address).collect();
        Ok(Self {
            addresses,
            lot: Lot::new(listeners, setup, budget, Arc::clone(&shared.connection_count), descriptors)?,
            requests: RequestTable::default(),
            shared,
            streams: StreamTable::new(inbox),
            closed: Vec::new(),
            draining,
        })
    }

    /// Of the listener with this number: empty if there is none.
    pub fn address_of(&self, listener: u16) -> (&str, u16) {
        self.addresses.get(usize::from(listener)).map_or(("", 0), |listener| (&listener.address, listener.port))
    }

    /// Where clients can connect.
    pub fn names(&self) -> Vec<String> {
        self.lot.names()
    }

    pub fn counts(&self) -> ConnectionCounts {
        ConnectionCounts {
            http1: self.lot.connection_count(),
            http2: self.shared.connection_count.load(Ordering::Relaxed),
            broken: self.lot.panic_count() + self.shared.panic_count.load(Ordering::Relaxed),
        }
    }

    /// How much of their budget all open requests use.
    pub fn request_bytes(&self) -> usize {
        self.shared.budget.held_bytes()
    }

    /// Whether responses wait here for their clients to read.
    pub fn has_unsent(&self) -> bool {
        // When all lives have ended, a stream is open only because its client has not read everything.
        self.lot.has_unsent() || self.shared.stream_count.load(Ordering::Relaxed) > 0
    }

    /// Whether connections are still closing.
    pub fn is_closing(&self) -> bool {
        self.lot.is_closing() || self.shared.connection_count.load(Ordering::Relaxed) > 0
    }

    /// Whether connections have just been accepted whose requests are likely to be on their way.
    pub fn has_fresh(&self) -> bool {
        self.lot.has_fresh()
    }

    /// Requests that have begun to arrive. The server does not know of them yet.
    pub fn arriving_count(&self) -> usize {
        self.shared.budget.arriving_count()
    }

    pub fn limits(&self) -> &HttpLimits {
        &self.shared.setup.limits
    }

    /// Which requests are passed on before their bodies have arrived, from now on.
    pub fn stream_bodies(&self, rules: Option<Arc<StreamRules>>) {
        self.shared.setup.streamed.replace(rules);
    }

    /// Whether the application that serves takes WebSockets, from now on.
    pub fn take_sockets(&self, takes: bool) {
        self.shared.setup.sockets.are_taken.store(takes, Ordering::Relaxed);
    }

    pub fn date(&self) -> &[u8] {
        self.lot.date()
    }

    /// Does what is possible without waiting. `leaving`: the time for the ends of connections whose clients have left.
    pub fn turn(&mut self, events: &mut Vec<HttpEvent>, leaving: Duration) -> io::Result<()> {
        let mut handovers = Vec::new();
        let mut outbox = Outbox { requests: &mut self.requests, events, handovers: &mut handovers };
        self.lot.turn(&mut outbox, leaving)?;
        for handover in handovers {
            tokio::spawn(h2::serve(handover, self.shared.clone()));
        }
        let closed = self.closed.drain(..);
        events.extend(closed.map(|(request, code)| HttpEvent::SocketClosed { request, code, text: String::new() }));
        self.streams.turn(&mut self.requests, &mut self.lot.sockets(), events);
        Ok(())
    }

    /// A piece of the body of this request is wanted: its application reads. A client that waits for `100 Continue` is
    /// told to send the body.
    pub fn want_piece(&mut self, request: RequestId) {
        match self.requests.client(request) {
            Some(Client::Http1(slot)) => {
                self.lot.act(slot, |connection, context| connection.want_piece(context.now));
            }
            Some(Client::Http2(exchange)) => exchange.want_piece(),
            None => {}
        }
    }

    /// Whether the client wants no body (`HEAD`).
    pub fn is_head(&mut self, request: RequestId) -> bool {
        self.requests.client(request).is_some_and(|client| match client {
            Client::Http1(slot) => self.lot.is_head(slot),
            Client::Http2(exchange) => exchange.is_head(),
        })
    }

    /// The status that the client of this request gets if that of its response is `status`.
    pub fn sent_status(&mut self, request: RequestId, status: u16) -> u16 {
        match self.requests.client(request) {
            Some(Client::Http2(exchange)) => exchange.sent_status(status),
            Some(Client::Http1(_)) | None => status,
        }
    }

    /// Answers a request with a complete response. Nothing is sent if it violates HTTP.
    pub fn answer<'a>(
        &mut self,
        request: RequestId,
        status: u16,
        fields: impl Iterator<Item = HeaderField<'a>> + Clone,
        request_id: &[u8],
        body: &Bytes,
    ) -> Result<(), BadAnswer> {
        let Some(client) = self.requests.client(request) else { return Ok(()) };
        match client {
            Client::Http1(slot) => self
                .lot
                .act(slot, |connection, context| connection.answer(status, fields, request_id, body, context))
                .unwrap_or(Ok(())),
            Client::Http2(exchange) => exchange.answer(status, fields, body, self.lot.own_fields(request_id)),
        }
    }

    /// Answers a request with a response that was serialised before, and with its id.
    pub fn answer_prepared(&mut self, request: RequestId, prepared: &Prepared, request_id: &[u8]) {
        let Some(client) = self.requests.client(request) else { return };
        match client {
            Client::Http1(slot) => {
                self.lot.act(slot, |connection, context| connection.answer_prepared(prepared, request_id, context));
            }
            Client::Http2(exchange) => exchange.answer_prepared(prepared, self.lot.own_fields(request_id)),
        }
    }

    /// Begins a response whose body follows in pieces.
    pub fn begin<'a>(
        &mut self,
        request: RequestId,
        status: u16,
        fields: impl Iterator<Item = HeaderField<'a>> + Clone,
        request_id: &[u8],
        purpose: StreamedContent,
    ) -> Result<(), BadAnswer> {
        let Some(client) = self.requests.client(request) else { return Ok(()) };
        match client {
            Client::Http1(slot) => self
                .lot
                .act(slot, |connection, context| connection.begin(status, fields, request_id, purpose, context))
                .unwrap_or(Ok(())),
            Client::Http2(exchange) => exchange.begin(status, fields, purpose, self.lot.own_fields(request_id)),
        }
    }

    /// Whether the request may become a WebSocket. It will have the first of these sub-protocols that its client offers.
    pub fn agree_on_socket(&mut self, request: RequestId, subprotocols: &[String]) -> bool {
        match self.requests.client(request) {
            Some(Client::Http1(slot)) => {
                self.lot.act(slot, |connection, _| connection.agree_on_socket(subprotocols)).unwrap_or(false)
            }
            Some(Client::Http2(exchange)) => exchange.agree_on_socket(subprotocols),
            None => false,
        }
    }

    /// Accepts a WebSocket. Only a request whose head says so can have become one. `make`: who holds it.
    pub fn open_socket<'a>(
        &mut self,
        request: RequestId,
        fields: impl Iterator<Item = HeaderField<'a>> + Clone,
        request_id: &[u8],
        make: SocketMaker,
    ) -> Result<(), BadAnswer> {
        let Some(client) = self.requests.client(request) else { return Ok(()) };
        match client {
            Client::Http1(slot) => self
                .lot
                .act(slot, |connection, context| connection.open_socket(fields, request_id, make, context))
                .unwrap_or(Ok(())),
            Client::Http2(exchange) => {
                if exchange.open_socket(fields, self.lot.own_fields(request_id), make, self.lot.now())? {
                    self.streams.open_socket(exchange.key(), request);
                }
                Ok(())
            }
        }
    }

    /// Sends a message to the client of a WebSocket. Returns how much its worker may send in its place, if
    /// the client is there; `Taken` reports the others.
    pub fn message(&mut self, request: RequestId, message: OutgoingMessage<'_>) -> Option<usize> {
        match self.requests.client(request)? {
            Client::Http1(slot) => self.lot.act(slot, |connection, context| connection.message(message, context)),
            Client::Http2(exchange) => {
                exchange.message(message, &mut self.lot.sockets());
                Some(0)
            }
        }
    }

    /// Tells the client of a WebSocket that it is closed: it gets nothing more.
    pub fn close_socket(&mut self, request: RequestId, code: u16, text: String) {
        let Some(client) = self.requests.client(request) else { return };
        match client {
            Client::Http1(slot) => {
                self.lot.act(slot, |connection, context| connection.close_socket(code, text, context.now));
            }
            Client::Http2(exchange) => exchange.close_socket(code, text, self.lot.now()),
        }
        self.requests.detach(request);
    }

    /// The same for one that no worker holds: it is reported, too, because the application wants it.
    pub fn close_held(&mut self, request: RequestId, code: u16, text: String) {
        self.close_socket(request, code, text);
        self.closed.push((request, code));
    }

    /// What the client of such a WebSocket has said is dealt with: the next message may come.
    pub fn read_socket(&mut self, request: RequestId) {
        let Some(client) = self.requests.client(request) else { return };
        match client {
            Client::Http1(slot) => {
                self.lot.act(slot, |connection, _| connection.read_socket());
            }
            Client::Http2(exchange) => {
                exchange.read_socket();
                self.streams.look_again(request);
            }
        }
    }

    /// The worker of a WebSocket has room for so many bytes more of its client.
    pub fn grant_socket(&mut self, request: RequestId, bytes: u32) {
        let Some(client) = self.requests.client(request) else { return };
        match client {
            Client::Http1(slot) => {
                self.lot.act(slot, |connection, _| connection.grant_socket(bytes));
            }
            Client::Http2(exchange) => {
                exchange.grant_socket(bytes);
                self.streams.look_again(request);
            }
        }
    }

    /// A piece of a body. Returns the number of bytes sent already; [`HttpEvent::Taken`] reports the others.
    pub fn piece(&mut self, request: RequestId, bytes: &Bytes) -> Result<usize, BadAnswer> {
        let Some(client) = self.requests.client(request) else { return Ok(0) };
        match client {
            Client::Http1(slot) => {
                self.lot.act(slot, |connection, context| connection.piece(bytes, context.now)).unwrap_or(Ok(0))
            }
            Client::Http2(exchange) => exchange.piece(bytes, self.lot.now()),
        }
    }

    /// An event for a stream, framed before: as a chunk, and plain; a WebSocket gets the message of it, if it is one. A client that lets too many pile
    /// up is disconnected.
    pub fn event(&mut self, request: RequestId, chunked: &Bytes, plain: &Bytes, message: Option<&SocketMessage>) {
        let Some(client) = self.requests.client(request) else { return };
        match client {
            Client::Http1(slot) => {
                self.lot.act(slot, |connection, context| connection.event(chunked, plain, message, context));
            }
            Client::Http2(exchange) => {
                if !exchange.event(plain, message, &mut self.lot.sockets()) {
                    self.streams.cut_off(request);
                }
            }
        }
    }

    /// Early hints, before a response.
    pub fn early_hints<'a>(&mut self, request: RequestId, fields: impl Iterator<Item = HeaderField<'a>>) {
        match self.requests.client(request) {
            Some(Client::Http1(slot)) => {
                self.lot.act(slot, |connection, context| connection.early_hints(fields, context));
            }
            Some(Client::Http2(exchange)) => exchange.early_hints(fields),
            None => {}
        }
    }

    /// The streamed response is complete, with trailers. False if it is shorter than announced; then it is reset.
    pub fn finish<'a>(&mut self, request: RequestId, trailers: impl Iterator<Item = HeaderField<'a>>) -> bool {
        let Some(client) = self.requests.client(request) else { return true };
        match client {
            Client::Http1(slot) => {
                let finished = self.lot.act(slot, |connection, context| connection.finish(trailers, context));
                let is_whole = finished.unwrap_or(true);
                if !is_whole {
                    self.lot.abort(slot);
                }
                is_whole
            }
            Client::Http2(exchange) => exchange.finish(trailers),
        }
    }

    /// Resets a connection (or an HTTP/2 stream): its response will never be complete.
    pub fn abort(&mut self, request: RequestId) {
        let Some(client) = self.requests.client(request) else { return };
        match client {
            Client::Http1(slot) => self.lot.abort(slot),
            Client::Http2(exchange) => exchange.abort(),
        }
        self.requests.detach(request);
    }

    /// An id for a request that no client sent; its response goes nowhere.
    pub fn insert_clientless(&mut self) -> RequestId {
        self.requests.insert()
    }

    /// The request is over: its id may be reused.
    pub fn forget(&mut self, request: RequestId) {
        if let Some(exchange) = self.requests.remove(request) {
            self.streams.forget(exchange.key());
        }
    }

    /// Ends connections and requests that have taken too long, in the turns that follow. To be called every [`SWEEP_INTERVAL`].
    pub fn sweep(&mut self) {
        self.lot.sweep();
        self.streams.sweep();
    }

    /// Accepts no new connection, closes idle ones, and lets every response announce that its connection closes.
    pub fn drain(&mut self) {
        self.lot.drain();
        let _ = self.draining.send(true);
    }
}

impl Pollable for Http {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.closed.is_empty() {
            return Poll::Ready(Ok(()));
        }
        if let Poll::Ready(ready) = self.lot.poll_ready(cx) {
            return Poll::Ready(ready);
        }
        self.streams.poll_ready(cx).map(Ok)
    }
}

/// The name of a status, as RFC 9110 has it.
pub fn status_name(status: u16) -> &'static str {
    match status {
        413 => return "Content Too Large",
        422 => return "Unprocessable Content",
        _ => {}
    }
    hyper::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Unknown")
}
