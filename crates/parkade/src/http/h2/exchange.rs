//! The server's end of one stream: its response, in one piece or in many.

use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue};
use tokio::sync::mpsc;

use super::StreamKey;
use super::orders::Orders;
use super::piece_queue::PieceQueue;
use super::stream_answer::{SocketEnds, StreamAnswer, StreamBody};
use super::stream_socket::{OpenSocket, StreamSocket};
use crate::http::answer::{self, BadAnswer, HeaderField, OwnFields, Prepared, REQUEST_ID};
use crate::http::fault::RequestFault;
use crate::http::handshake::is_of_the_handshake;
use crate::http::head::Head;
use crate::http::limits::{COPIED_BODY_BYTES_MAX, HttpLimits};
use crate::http::problem::Representation;
use crate::http::tick::Tick;
use crate::http::web_socket::{OutgoingMessage, SocketContext, close_frame};
use crate::http::{SocketMaker, SocketMessage, StreamedContent};

/// The status that accepts a WebSocket (RFC 8441, section 5).
const ACCEPTED: u16 = 200;
/// A response with success that is none.
const DENIED: u16 = 403;

/// The server's end of a stream.
#[derive(Debug)]
pub struct StreamExchange {
    key: StreamKey,
    is_head: bool,
    /// Whether a body is sent: not for HEAD, nor with a status that has none.
    has_body: bool,
    /// For the stream's task.
    orders: Orders,
    progress: AnswerProgress,
    queue: PieceQueue,
    /// Bytes of a streamed response that were announced and have not arrived.
    left: Option<u64>,
    /// Asks for the next piece of the request's body.
    wanted: Option<mpsc::UnboundedSender<()>>,
    socket: StreamSocket,
}

/// How far the response has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerProgress {
    /// The client waits for `100 Continue` before it sends the body of its request.
    Uninvited,
    None,
    Begun,
}

impl StreamExchange {
    pub fn new(key: StreamKey, head: &Head, orders: Orders, wanted: Option<mpsc::UnboundedSender<()>>) -> Self {
        let is_head = head.method() == "HEAD";
        let is_uninvited = wanted.is_some() && head.expects_continue;
        Self {
            key,
            is_head,
            has_body: !is_head,
            orders,
            progress: if is_uninvited { AnswerProgress::Uninvited } else { AnswerProgress::None },
            queue: PieceQueue::default(),
            left: None,
            wanted,
            socket: head.socket.clone().map_or(StreamSocket::None, StreamSocket::Offered),
        }
    }

    pub const fn key(&self) -> StreamKey {
        self.key
    }

    /// A piece of the request's body is wanted.
    pub fn want_piece(&mut self) {
        if self.progress == AnswerProgress::Uninvited {
            self.progress = AnswerProgress::None;
            self.orders.invite();
        }
        if let Some(wanted) = &self.wanted {
            let _ = wanted.send(());
        }
    }

    /// The rest of the request's body will not come: the client is told, unless its response has begun.
    pub fn fail(&mut self, fault: RequestFault, limits: &HttpLimits) {
        if self.progress == AnswerProgress::Begun || fault == RequestFault::BodyEndedEarly {
            return self.abort();
        }
        let problem = fault.problem(limits);
        let representation = Representation::default();
        let mut fields = HeaderMap::new();
        let content_type = HeaderValue::from_bytes(representation.content_type()).expect("a content type is text");
        fields.insert(CONTENT_TYPE, content_type);
        let body = StreamBody::Whole(problem.body(representation));
        self.send_answer(StreamAnswer { status: problem.status, fields, body });
    }

    /// Whether the client wants no body (`HEAD`).
    pub const fn is_head(&self) -> bool {
        self.is_head
    }

    /// Early hints, before the response.
    pub fn early_hints<'a>(&self, fields: impl Iterator<Item = HeaderField<'a>>) {
        if self.progress != AnswerProgress::Begun {
            self.orders.early_hints(fields_of(fields.filter(|(name, _)| !answer::is_the_servers(name))));
        }
    }

    /// Sends a complete response. Nothing is sent if it violates HTTP.
    pub fn answer<'a>(
        &mut self,
        status: u16,
        fields: impl Iterator<Item = HeaderField<'a>> + Clone,
        body: &Bytes,
        own: OwnFields<'_>,
    ) -> Result<(), BadAnswer> {
        let announced = answer::check(status, fields.clone())?;
        let length = answer::length(status, self.is_head, announced, body)?;
        self.send_whole(status, header_map(fields, own), length, owned(body));
        Ok(())
    }

    pub fn answer_prepared(&mut self, prepared: &Prepared, own: OwnFields<'_>) {
        let fields = prepared.fields.iter().map(|(name, value)| (&name[..], &value[..]));
        let (fields, body) = (header_map(fields, own), prepared.body.clone());
        self.send_whole(prepared.status, fields, body.len() as u64, body);
    }

    /// `length`: the announced length, also for `HEAD`.
    fn send_whole(&mut self, status: u16, fields: HeaderMap, length: u64, body: Bytes) {
        let body = if answer::is_bodiless(status) {
            StreamBody::Whole(Bytes::new())
        } else if self.is_head {
            StreamBody::Announced(length)
        } else {
            StreamBody::Whole(body)
        };
        self.send_answer(StreamAnswer { status, fields, body });
    }

    /// Begins a response whose body follows in pieces.
    pub fn begin<'a>(
        &mut self,
        status: u16,
        fields: impl Iterator<Item = HeaderField<'a>> + Clone,
        purpose: StreamedContent,
        own: OwnFields<'_>,
    ) -> Result<(), BadAnswer> {
        let announced = answer::check(status, fields.clone())?;
        let mut fields = header_map(fields, own);
        let receiver = self.queue.open();
        self.has_body &= !answer::is_bodiless(status);
        self.left = announced.filter(|_| self.has_body);
        if let Some(length) = announced.filter(|_| !answer::is_bodiless(status)) {
            fields.insert(CONTENT_LENGTH, length.into());
        }
        self.send_answer(StreamAnswer { status, fields, body: StreamBody::Pieces(receiver, purpose) });
        Ok(())
    }

    /// The status that the client gets: success would be the acceptance of the WebSocket that it asks for.
    pub const fn sent_status(&self, status: u16) -> u16 {
        match (&self.socket, status) {
            (StreamSocket::Offered(_), 200..300) => DENIED,
            _ => status,
        }
    }

    fn send_answer(&mut self, mut answer: StreamAnswer) {
        answer.status = self.sent_status(answer.status);
        self.socket = StreamSocket::None;
        self.send_head(answer);
    }

    fn send_head(&mut self, answer: StreamAnswer) {
        if self.progress != AnswerProgress::Begun {
            self.progress = AnswerProgress::Begun;
            self.orders.answer(answer);
        }
    }

    /// Whether the client asks for a WebSocket, which will have the first of these sub-protocols that it offers.
    pub fn agree_on_socket(&mut self, subprotocols: &[String]) -> bool {
        let StreamSocket::Offered(offer) = &mut self.socket else { return false };
        offer.agree(subprotocols);
        true
    }

    /// Accepts the WebSocket that its client asks for; `make`: what it is then. Whether it asks for one. Nothing is sent
    /// if the fields violate HTTP.
    pub fn open_socket<'a>(
        &mut self,
        fields: impl Iterator<Item = HeaderField<'a>> + Clone,
        own: OwnFields<'_>,
        make: SocketMaker,
        now: Tick,
    ) -> Result<bool, BadAnswer> {
        let StreamSocket::Offered(offer) = &mut self.socket else { return Ok(false) };
        let (compression, subprotocol) = (offer.compression, offer.subprotocol.take());
        answer::check(ACCEPTED, fields.clone())?;
        let mut fields = header_map(fields.filter(|(name, _)| !is_of_the_handshake(name)), own);
        if let Some(terms) = compression {
            let value = HeaderValue::try_from(terms.field()).expect("names and numbers are ASCII");
            fields.insert("sec-websocket-extensions", value);
        }
        if let Some(value) = subprotocol.and_then(|name| HeaderValue::try_from(name).ok()) {
            fields.insert("sec-websocket-protocol", value);
        }
        let (asking, wished) = mpsc::unbounded_channel();
        self.socket = StreamSocket::Open(OpenSocket::new(make(compression, now), asking));
        let body = StreamBody::Socket(SocketEnds { frames: self.queue.open(), wished });
        self.send_head(StreamAnswer { status: ACCEPTED, fields, body });
        Ok(true)
    }

    /// The WebSocket, and what waits for its client.
    pub fn socket(&mut self) -> Option<(&mut OpenSocket, &mut PieceQueue)> {
        match &mut self.socket {
            StreamSocket::Open(open) => Some((open, &mut self.queue)),
            StreamSocket::None | StreamSocket::Offered(_) => None,
        }
    }

    /// Sends a message to the client of the WebSocket.
    pub fn message(&mut self, message: OutgoingMessage<'_>, context: &mut SocketContext<'_>) {
        if let Some((open, queue)) = self.socket() {
            queue.send(open.socket().frame(message, context.compressors), context.now);
        }
    }

    /// Tells the client of the WebSocket that it is closed. Nothing follows.
    pub fn close_socket(&mut self, code: u16, text: String, now: Tick) {
        if let Some((_, queue)) = self.socket() {
            queue.send(close_frame(code, text), now);
            queue.close();
        }
    }

    /// The worker of the WebSocket has room for so many bytes more of its client.
    pub fn grant_socket(&mut self, bytes: u32) {
        if let Some((open, _)) = self.socket() {
            open.socket().grant(bytes);
        }
    }

    /// What the client of the WebSocket has said is dealt with: the next message may come.
    pub fn read_socket(&mut self) {
        if let Some((open, queue)) = self.socket() {
            open.socket().read_next(queue.waiting_bytes() > 0);
        }
    }

    /// A piece of a streamed response, which must not exceed the announced length. Returns the number of bytes that need no waiting.
    pub fn piece(&mut self, bytes: &Bytes, now: Tick) -> Result<usize, BadAnswer> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(bytes.len() as u64).ok_or(BadAnswer::Length)?;
        }
        self.send(bytes, now);
        Ok(if self.has_body { 0 } else { bytes.len() })
    }

    /// An event, or the message of it to the client of a WebSocket. False if the client has let too many pile up: then it
    /// is disconnected.
    pub fn event(&mut self, bytes: &Bytes, message: Option<&SocketMessage>, context: &mut SocketContext<'_>) -> bool {
        let now = context.now;
        match (self.socket(), message) {
            (None, _) => self.send(bytes, now),
            (Some((open, queue)), Some(message)) => {
                let frame = message.frame(open.socket().window(), context.compressors);
                queue.send(frame.clone(), now);
            }
            (Some(_), None) => {}
        }
        let is_cut_off = self.queue.is_too_long(now);
        if is_cut_off {
            self.abort();
        }
        !is_cut_off
    }

    fn send(&mut self, bytes: &Bytes, now: Tick) {
        if self.has_body {
            self.queue.send(bytes.clone(), now);
        }
    }

    /// The client has taken so many bytes. Returns how many the worker may send in their place.
    pub fn taken(&mut self, bytes: usize, now: Tick) -> usize {
        self.queue.taken(bytes, now);
        match self.socket() {
            Some((open, queue)) if queue.waiting_bytes() == 0 => {
                open.socket().note_taken();
                open.socket().settle()
            }
            Some(_) => 0,
            None => bytes,
        }
    }

    /// The response is complete, with trailers. False if it is shorter than announced: then it is reset.
    pub fn finish<'a>(&mut self, trailers: impl Iterator<Item = HeaderField<'a>>) -> bool {
        if self.left.is_some_and(|left| left > 0) {
            self.abort();
            return false;
        }
        let mut trailers = trailers.peekable();
        if self.has_body && trailers.peek().is_some() {
            self.queue.close_with(fields_of(trailers));
        } else {
            self.queue.close();
        }
        true
    }

    /// Breaks the response off: what waits for the client is dropped, and the stream is reset at once.
    pub fn abort(&mut self) {
        // First, so that the end of the pieces is not taken for the end of the response.
        self.orders.cut();
        self.queue.close();
        self.progress = AnswerProgress::Begun;
    }
}

/// Copied if it is small: it may wait for its client, and the buffer that it was read into holds many more frames.
fn owned(body: &Bytes) -> Bytes {
    if body.len() <= COPIED_BODY_BYTES_MAX { Bytes::copy_from_slice(body) } else { body.clone() }
}

fn fields_of<'a>(fields: impl Iterator<Item = HeaderField<'a>>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields.filter(|(name, _)| !is_of_http_1(name)) {
        let name = HeaderName::from_bytes(name).expect("the name of a checked field is a token");
        map.append(
            name,
            HeaderValue::from_bytes(value).expect("the value of a checked field has no control character"),
        );
    }
    map
}

/// Fields that a response of HTTP/2 must not have (RFC 9113, section 8.2.2), in addition to those that are the server's.
fn is_of_http_1(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"te") || name.eq_ignore_ascii_case(b"proxy-connection")
}

/// The fields for h2. They have passed [`answer::check`], which is at least as strict as h2.
fn header_map<'a>(fields: impl Iterator<Item = HeaderField<'a>>, own: OwnFields<'_>) -> HeaderMap {
    let mut map = fields_of(fields.filter(|(name, _)| !answer::is_the_servers(name)));
    if !map.contains_key(DATE) {
        map.insert(DATE, HeaderValue::from_bytes(own.date).expect("a date is text"));
    }
    if !own.request_id.is_empty() {
        let id = HeaderValue::from_bytes(own.request_id).expect("an id is text");
        map.entry(HeaderName::from_static(REQUEST_ID)).or_insert(id);
    }
    map
}
