//! Everything about HTTP: it turns sockets into requests, and answers into bytes. It decides nothing about a request's life.

pub mod answer;
mod body;
pub mod budget;
mod connection;
mod departure;
pub mod fault;
pub mod forwarded;
#[cfg(test)]
mod fuzz;
mod h2;
mod head;
pub mod limits;
pub mod listen;
mod lot;
mod rewind;
mod roll;
mod socket;
mod target;
mod tick;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use hyper::header::{DATE, HeaderMap, HeaderName, HeaderValue};
use tokio::sync::{mpsc, watch};

use parkade_core::RequestId;

use self::answer::{BadAnswer, Field, Prepared};
use self::budget::{Budget, Held};
use self::forwarded::{Origin, Trust};
use self::h2::{FromStream, StreamKey};
use self::limits::Limits;
use self::lot::Lot;
use self::roll::{Client, Roll};
use self::socket::Peer;

pub use self::connection::Purpose;
pub use self::head::Head;
pub use self::limits::FIRST_REQUEST_TIME;
pub use self::lot::SWEEP_INTERVAL;

/// What the operator decides about HTTP.
#[derive(Debug, Clone)]
pub struct Setup {
    pub limits: Limits,
    pub trust: Trust,
}

/// What the clients did.
#[derive(Debug)]
pub enum HttpEvent {
    /// A request, whole. `share`: what head and body count, for as long as somebody keeps them.
    Arrived { request: RequestId, head: Head, body: Bytes, origin: Origin, share: Held },
    /// So many bytes of a streamed answer are on their way: as many more may come.
    Taken { request: RequestId, bytes: usize },
    /// The client of a request that has no whole answer yet is gone.
    Left { request: RequestId },
    /// A faulty request was answered, with so many bytes of a body: it never became one.
    Refused { peer: Peer, status: u16, bytes: usize },
}

/// Connections by kind, for the status page.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConnectionCounts {
    pub http1: usize,
    pub http2: usize,
    /// All that a bug of ours has ended.
    pub broken: usize,
}

pub struct Http {
    lot: Lot,
    roll: Roll,
    shared: h2::Shared,
    inbox: mpsc::UnboundedReceiver<FromStream>,
    /// Taken out of the inbox by `ready`, for `turn`.
    first: Option<FromStream>,
    streams: HashMap<StreamKey, RequestId>,
    /// HTTP/2 clients that were cut off since the last turn.
    cut_off: Vec<RequestId>,
    draining: watch::Sender<bool>,
}

impl Http {
    pub fn new(listeners: Vec<listen::Listener>, setup: Setup) -> io::Result<Self> {
        let (sender, inbox) = mpsc::unbounded_channel();
        let (draining, watched) = watch::channel(false);
        let budget = Budget::new(setup.limits.requests_bytes_max);
        let shared = h2::Shared {
            setup: Arc::new(setup.clone()),
            inbox: sender,
            next_key: Arc::new(AtomicUsize::new(0)),
            connection_count: Arc::new(AtomicUsize::new(0)),
            stream_count: Arc::new(AtomicUsize::new(0)),
            panic_count: Arc::new(AtomicUsize::new(0)),
            budget: budget.clone(),
            draining: watched,
        };
        Ok(Self {
            lot: Lot::new(listeners, setup, budget, Arc::clone(&shared.connection_count))?,
            roll: Roll::default(),
            shared,
            inbox,
            first: None,
            streams: HashMap::new(),
            cut_off: Vec::new(),
            draining,
        })
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

    /// What all requests in hand hold of their budget.
    pub fn request_bytes(&self) -> usize {
        self.shared.budget.held_bytes()
    }

    /// Whether answers wait here for their clients to read.
    pub fn has_unsent(&self) -> bool {
        // When all lives have ended, a stream is open only for what its client has not taken.
        self.lot.has_unsent() || self.shared.stream_count.load(Ordering::Relaxed) > 0
    }

    /// Whether connections are still on their way to their end.
    pub fn is_closing(&self) -> bool {
        self.lot.is_closing() || self.shared.connection_count.load(Ordering::Relaxed) > 0
    }

    /// Whether connections have just been accepted whose requests are likely to be on their way.
    pub fn has_fresh(&self) -> bool {
        self.lot.has_fresh()
    }

    pub fn date(&self) -> &[u8] {
        self.lot.date()
    }

    /// Waits until there is something to do. Cancel safe.
    pub async fn ready(&mut self) -> io::Result<()> {
        if self.first.is_some() || !self.cut_off.is_empty() {
            return Ok(());
        }
        tokio::select! {
            biased;
            ready = self.lot.ready() => ready,
            first = self.inbox.recv() => {
                self.first = first;
                Ok(())
            }
        }
    }

    /// Does what can be done without waiting.
    pub fn turn(&mut self, events: &mut Vec<HttpEvent>) -> io::Result<()> {
        let mut departures = Vec::new();
        self.lot.turn(&mut self.roll, events, &mut departures)?;
        for departure in departures {
            tokio::spawn(h2::serve(departure, self.shared.clone()));
        }
        for request in std::mem::take(&mut self.cut_off) {
            self.roll.leave(request);
            events.push(HttpEvent::Left { request });
        }
        let mut left = limits::TURN_EVENTS_MAX;
        while let Some(said) = self.first.take().or_else(|| self.inbox.try_recv().ok()) {
            self.hear(said, events);
            left -= 1;
            if left == 0 {
                self.first = self.inbox.try_recv().ok();
                break;
            }
        }
        Ok(())
    }

    fn hear(&mut self, said: FromStream, events: &mut Vec<HttpEvent>) {
        match said {
            FromStream::Arrived { key, head, body, origin, answer, cut, share } => {
                let exchange = h2::Exchange::new(key, head.method() == "HEAD", answer, cut);
                let request = self.roll.enter(Client::H2(Box::new(exchange)));
                self.streams.insert(key, request);
                events.push(HttpEvent::Arrived { request, head, body, origin, share });
            }
            FromStream::Taken { key, bytes } => {
                if let Some(request) = self.streams.get(&key) {
                    if let Some(Client::H2(exchange)) = self.roll.client(*request) {
                        exchange.taken(bytes, self.lot.now());
                    }
                    events.push(HttpEvent::Taken { request: *request, bytes });
                }
            }
            FromStream::Refused { peer, status, bytes } => events.push(HttpEvent::Refused { peer, status, bytes }),
            FromStream::Left { key } => {
                // Of one that was broken off here everybody has heard.
                if let Some(request) = self.streams.remove(&key)
                    && matches!(self.roll.client(request), Some(Client::H2(_)))
                {
                    self.roll.leave(request);
                    events.push(HttpEvent::Left { request });
                }
            }
        }
    }

    /// Whether the client wants no body.
    pub fn is_head(&mut self, request: RequestId) -> bool {
        match self.roll.client(request) {
            Some(Client::H1(slot)) => self.lot.is_head(*slot),
            Some(Client::H2(exchange)) => exchange.is_head,
            Some(Client::Gone) | None => false,
        }
    }

    /// Answers a request, whole. Nothing is sent when the answer breaks HTTP.
    pub fn answer<'a>(
        &mut self,
        request: RequestId,
        status: u16,
        fields: impl Iterator<Item = Field<'a>> + Clone,
        body: &Bytes,
    ) -> Result<(), BadAnswer> {
        match self.roll.client(request) {
            Some(Client::H1(slot)) => {
                let slot = *slot;
                self.lot
                    .act(slot, |connection, context| connection.answer(status, fields, body, context))
                    .unwrap_or(Ok(()))
            }
            Some(Client::H2(exchange)) => {
                let announced = answer::check(status, fields.clone())?;
                let length = answer::length(status, exchange.is_head, announced, body)?;
                exchange.answer(status, h2_fields(fields, self.lot.date()), length, owned(body));
                Ok(())
            }
            Some(Client::Gone) | None => Ok(()),
        }
    }

    /// Answers a request with what was serialised before.
    pub fn answer_prepared(&mut self, request: RequestId, prepared: &Prepared) {
        match self.roll.client(request) {
            Some(Client::H1(slot)) => {
                let slot = *slot;
                self.lot.act(slot, |connection, context| connection.answer_prepared(prepared, context));
            }
            Some(Client::H2(exchange)) => {
                let fields = prepared.fields.iter().map(|(name, value)| (&name[..], &value[..]));
                let (fields, body) = (h2_fields(fields, self.lot.date()), prepared.body.clone());
                exchange.answer(prepared.status, fields, body.len() as u64, body);
            }
            Some(Client::Gone) | None => {}
        }
    }

    /// Begins an answer whose body follows in pieces.
    pub fn begin<'a>(
        &mut self,
        request: RequestId,
        status: u16,
        fields: impl Iterator<Item = Field<'a>> + Clone,
        purpose: Purpose,
    ) -> Result<(), BadAnswer> {
        match self.roll.client(request) {
            Some(Client::H1(slot)) => {
                let slot = *slot;
                self.lot
                    .act(slot, |connection, context| connection.begin(status, fields, purpose, context))
                    .unwrap_or(Ok(()))
            }
            Some(Client::H2(exchange)) => {
                let announced = answer::check(status, fields.clone())?;
                exchange.begin(status, h2_fields(fields, self.lot.date()), announced, purpose);
                Ok(())
            }
            Some(Client::Gone) | None => Ok(()),
        }
    }

    /// A piece of a body. Answers the bytes that are on their way already; [`HttpEvent::Taken`] tells of the others.
    pub fn piece(&mut self, request: RequestId, bytes: &Bytes) -> Result<usize, BadAnswer> {
        match self.roll.client(request) {
            Some(Client::H1(slot)) => {
                let slot = *slot;
                self.lot.act(slot, |connection, context| connection.piece(bytes, context.now)).unwrap_or(Ok(0))
            }
            Some(Client::H2(exchange)) => {
                exchange.piece(bytes.clone(), self.lot.now())?;
                Ok(if exchange.has_body { 0 } else { bytes.len() })
            }
            Some(Client::Gone) | None => Ok(0),
        }
    }

    /// An event for a stream, framed before: in a chunk, and plain. One who lets too many pile up is cut off.
    pub fn event(&mut self, request: RequestId, chunked: &Bytes, plain: &Bytes) {
        match self.roll.client(request) {
            Some(Client::H1(slot)) => {
                let slot = *slot;
                self.lot.act(slot, |connection, context| connection.framed_piece(chunked, plain, context.now));
            }
            Some(Client::H2(exchange)) => {
                if !exchange.event(plain.clone(), self.lot.now()) {
                    exchange.abort();
                    self.cut_off.push(request);
                }
            }
            Some(Client::Gone) | None => {}
        }
    }

    /// The streamed answer is complete. False when it is shorter than it was announced; it is then broken off.
    pub fn finish(&mut self, request: RequestId) -> bool {
        match self.roll.client(request) {
            Some(Client::H1(slot)) => {
                let slot = *slot;
                let is_whole = self.lot.act(slot, |connection, context| connection.finish(context)).unwrap_or(true);
                if !is_whole {
                    self.lot.abort(slot);
                }
                is_whole
            }
            Some(Client::H2(exchange)) => exchange.finish(),
            Some(Client::Gone) | None => true,
        }
    }

    /// Breaks a connection (or a stream of HTTP/2) off: its answer will never be whole.
    pub fn abort(&mut self, request: RequestId) {
        match self.roll.client(request) {
            Some(Client::H1(slot)) => {
                let slot = *slot;
                self.lot.abort(slot);
            }
            Some(Client::H2(exchange)) => exchange.abort(),
            Some(Client::Gone) | None => {}
        }
        self.roll.leave(request);
    }

    /// A name for a request that no client sent; whatever is answered to it nobody gets.
    pub fn enter_nobody(&mut self) -> RequestId {
        self.roll.enter(Client::Gone)
    }

    /// The request is over: its name may be given to another.
    pub fn forget(&mut self, request: RequestId) {
        if let Some(Client::H2(exchange)) = self.roll.client(request) {
            let key = exchange.key;
            self.streams.remove(&key);
        }
        self.roll.forget(request);
    }

    /// Ends what has taken too long, in the turns that follow. To be called every [`SWEEP_INTERVAL`].
    pub fn sweep(&mut self) {
        self.lot.sweep();
    }

    /// Takes no new connection, closes idle ones, and has every answer say that its connection closes.
    pub fn drain(&mut self) {
        self.lot.drain();
        let _ = self.draining.send(true);
    }
}

/// In memory of its own where it is small: it may wait for its client, and the buffer that it was read into holds many frames more.
fn owned(body: &Bytes) -> Bytes {
    if body.len() <= limits::COPIED_BODY_BYTES_MAX { Bytes::copy_from_slice(body) } else { body.clone() }
}

/// The fields as hyper takes them. They have passed [`answer::check`], which asks for no less than hyper does.
fn h2_fields<'a>(fields: impl Iterator<Item = Field<'a>>, date: &[u8]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields.filter(|(name, _)| !answer::is_the_servers(name)) {
        let name = HeaderName::from_bytes(name).expect("the name of a checked field is a token");
        map.append(
            name,
            HeaderValue::from_bytes(value).expect("the value of a checked field has no control character"),
        );
    }
    if !map.contains_key(DATE) {
        map.insert(DATE, HeaderValue::from_bytes(date).expect("a date is text"));
    }
    map
}

/// The body of every answer that the core gives by itself: status, what it is called, whose fault it is, what to do.
pub fn error_body(status: u16, fault: &str, detail: &str) -> Vec<u8> {
    let name = status_name(status);
    serde_json::json!({ "status": status, "error": name, "fault": fault, "detail": detail }).to_string().into_bytes()
}

/// What a status is called.
pub fn status_name(status: u16) -> &'static str {
    hyper::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Error")
}
