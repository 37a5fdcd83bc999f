//! The outbound side of a connection: a response becomes bytes, complete or in pieces, and determines whether the connection closes after it.

use bytes::Bytes;

use super::context::ConnectionContext;
use super::linger::Linger;
use super::transport::ClientTransport;
use crate::http::RefusedRequest;
use crate::http::answer::{self, BadAnswer, BodyFraming, HeaderField, OwnFields, Persistence, Prepared};
use crate::http::fault::RequestFault;
use crate::http::handshake::{SocketOffer, is_of_the_handshake};
use crate::http::head::{Head, Version};
use crate::http::limits::{COPIED_BODY_BYTES_MAX, HEARTBEAT_INTERVAL};
use crate::http::problem::Representation;
use crate::http::tick::Tick;
use crate::http::web_socket::WebSocket;
use crate::tls_refusal;
use parkade_model::RequestId;
use parkade_websocket::Compression;
use parkade_wire::SWITCHING_PROTOCOLS;

/// The kind of a streamed response: a silent event stream gets a comment now and then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamedContent {
    Body,
    Events,
}

/// Makes a WebSocket on these terms.
pub type SocketMaker = fn(Option<Compression>, Tick) -> WebSocket;

#[derive(Debug, Default)]
pub struct Outbound {
    state: OutboundState,
}

#[derive(Debug, Default)]
enum OutboundState {
    /// No request waits for a response.
    #[default]
    None,
    /// The request has been passed on, and nothing of its response has been written.
    Head { request: RequestId, terms: AnswerTerms, offer: Option<Box<SocketOffer>> },
    /// A streamed response has begun. `ending` counts down an announced length; `since` is the time of the last write.
    Body {
        request: RequestId,
        is_head: bool,
        keep_alive: bool,
        takes_trailers: bool,
        ending: BodyFraming,
        purpose: StreamedContent,
        since: Tick,
    },
    /// The request has become a WebSocket.
    Socket { request: RequestId, socket: WebSocket },
    /// The response is complete, although the client may not have read it yet.
    Done { close: CloseMode },
}

/// What the connection does when its response is complete.
#[derive(Debug)]
pub enum CloseMode {
    /// It reads the next request.
    Keep,
    /// It closes as soon as the client has read the response.
    AfterAnswer,
    /// The client has read the response: what it still sends is dropped.
    Linger(Linger),
}

/// What a response needs to know about its request.
#[derive(Debug, Clone, Copy)]
struct AnswerTerms {
    version: Version,
    is_head: bool,
    keep_alive: bool,
    takes_trailers: bool,
}

impl AnswerTerms {
    fn persistence(self, context: &ConnectionContext) -> Persistence {
        match (self.keep_alive && !context.is_draining, self.version) {
            (false, _) => Persistence::Close,
            (true, Version::Http10) => Persistence::KeepAnnounced,
            (true, _) => Persistence::Keep,
        }
    }
}

impl Outbound {
    /// The request whose response is awaited, or being sent.
    pub fn request(&self) -> Option<RequestId> {
        match &self.state {
            OutboundState::Head { request, .. }
            | OutboundState::Body { request, .. }
            | OutboundState::Socket { request, .. } => Some(*request),
            OutboundState::None | OutboundState::Done { .. } => None,
        }
    }

    /// Whether the body of a streamed answer is as long as its head says: only its end has not been told.
    pub const fn has_all(&self) -> bool {
        match self.state {
            OutboundState::Body { is_head, ending, .. } => {
                is_head || !ending.has_body() || matches!(ending, BodyFraming::Length(0))
            }
            OutboundState::None
            | OutboundState::Head { .. }
            | OutboundState::Socket { .. }
            | OutboundState::Done { .. } => false,
        }
    }

    /// The same, once a streamed answer has begun.
    pub const fn streamed_request(&self) -> Option<RequestId> {
        match self.state {
            OutboundState::Body { request, .. } => Some(request),
            OutboundState::None
            | OutboundState::Head { .. }
            | OutboundState::Socket { .. }
            | OutboundState::Done { .. } => None,
        }
    }

    /// What the request has become, if it has become that.
    pub fn socket(&mut self) -> Option<(RequestId, &mut WebSocket)> {
        match &mut self.state {
            OutboundState::Socket { request, socket } => Some((*request, socket)),
            OutboundState::None
            | OutboundState::Head { .. }
            | OutboundState::Body { .. }
            | OutboundState::Done { .. } => None,
        }
    }

    /// The same, to look at.
    pub fn peek_socket(&self) -> Option<&WebSocket> {
        match &self.state {
            OutboundState::Socket { socket, .. } => Some(socket),
            OutboundState::None
            | OutboundState::Head { .. }
            | OutboundState::Body { .. }
            | OutboundState::Done { .. } => None,
        }
    }

    /// Whether the response to the current request must not have a body (`HEAD`).
    pub const fn is_head(&self) -> bool {
        match self.state {
            OutboundState::Head { terms, .. } => terms.is_head,
            OutboundState::Body { is_head, .. } => is_head,
            OutboundState::None | OutboundState::Socket { .. } | OutboundState::Done { .. } => false,
        }
    }

    /// Whether what is written comes when it comes: server-sent events, or messages of a channel on a WebSocket.
    pub fn is_streaming_events(&self) -> bool {
        matches!(self.state, OutboundState::Body { purpose: StreamedContent::Events, .. })
            || self.peek_socket().is_some_and(WebSocket::is_held)
    }

    pub const fn is_done(&self) -> bool {
        matches!(self.state, OutboundState::Done { .. })
    }

    /// Whether the connection closes after the complete response.
    pub const fn is_closing(&self) -> bool {
        matches!(self.state, OutboundState::Done { close: CloseMode::AfterAnswer | CloseMode::Linger(_) })
    }

    /// Whether the last response has been sent, and our side of the connection is closed.
    pub const fn is_lingering(&self) -> bool {
        matches!(self.state, OutboundState::Done { close: CloseMode::Linger(_) })
    }

    pub fn has_lingered_too_long(&self, now: Tick) -> bool {
        matches!(&self.state, OutboundState::Done { close: CloseMode::Linger(linger) } if linger.is_over(now))
    }

    /// Waits for the answer of a request.
    pub fn expect(&mut self, request: RequestId, head: &Head) {
        let terms = AnswerTerms {
            version: head.version,
            is_head: head.method() == "HEAD",
            keep_alive: head.keep_alive,
            takes_trailers: head.takes_trailers,
        };
        self.state = OutboundState::Head { request, terms, offer: head.socket.clone() };
    }

    /// The response that is awaited is the last of its connection.
    pub const fn close_after(&mut self) {
        if let OutboundState::Head { terms, .. } = &mut self.state {
            terms.keep_alive = false;
        }
    }

    /// Writes a complete response. Nothing is written if it violates HTTP.
    pub fn answer<'a>(
        &mut self,
        status: u16,
        fields: impl Iterator<Item = HeaderField<'a>> + Clone,
        request_id: &[u8],
        body: &Bytes,
        transport: &mut ClientTransport,
        context: &mut ConnectionContext,
    ) -> Result<(), BadAnswer> {
        let OutboundState::Head { terms, .. } = self.state else { return Ok(()) };
        let announced = answer::check(status, fields.clone())?;
        let length = answer::length(status, terms.is_head, announced, body)?;
        let ending = BodyFraming::of(status).unwrap_or(BodyFraming::Length(length));
        let persistence = terms.persistence(context);
        let out = &mut context.out;
        out.clear();
        let own = OwnFields { date: context.date.as_bytes(), request_id };
        answer::write_head(out, status, fields, ending, persistence, own);
        let has_body = !terms.is_head && ending.has_body();
        let is_copied = has_body && body.len() <= COPIED_BODY_BYTES_MAX;
        if is_copied {
            out.extend_from_slice(body);
        }
        transport.write(out, context.now);
        if has_body && !is_copied {
            transport.write_shared(body, context.now);
        }
        self.complete(persistence != Persistence::Close, transport, context.now);
        Ok(())
    }

    /// Writes a response that was serialised before, with the id of this request.
    pub fn answer_prepared(
        &mut self,
        prepared: &Prepared,
        request_id: &[u8],
        transport: &mut ClientTransport,
        context: &mut ConnectionContext,
    ) {
        let OutboundState::Head { terms, .. } = self.state else { return };
        let persistence = match terms.persistence(context) {
            Persistence::Keep => Persistence::Keep,
            Persistence::KeepAnnounced | Persistence::Close => Persistence::Close,
        };
        let out = &mut context.out;
        out.clear();
        let body = prepared.write_head(out, persistence, terms.is_head, request_id);
        let is_copied = body.len() <= COPIED_BODY_BYTES_MAX;
        if is_copied {
            out.extend_from_slice(&body);
        }
        transport.write(out, context.now);
        if !is_copied {
            transport.write_shared(&body, context.now);
        }
        self.complete(persistence == Persistence::Keep, transport, context.now);
    }

    fn complete(&mut self, keep_alive: bool, transport: &mut ClientTransport, now: Tick) {
        transport.restart_stall(now);
        self.state = OutboundState::Done { close: if keep_alive { CloseMode::Keep } else { CloseMode::AfterAnswer } };
    }

    /// Writes early hints, before the response. HTTP/1.0 has none; nor does a client that has not read what came before, since hints promise nothing.
    pub fn early_hints<'a>(
        &self,
        fields: impl Iterator<Item = HeaderField<'a>>,
        transport: &mut ClientTransport,
        context: &mut ConnectionContext,
    ) {
        let OutboundState::Head { terms: AnswerTerms { version: Version::Http11, .. }, .. } = self.state else {
            return;
        };
        if transport.has_unsent() {
            return;
        }
        context.out.clear();
        answer::write_hints(&mut context.out, fields);
        transport.write(&context.out, context.now);
    }

    /// Begins a response whose body follows in pieces.
    pub fn begin<'a>(
        &mut self,
        status: u16,
        fields: impl Iterator<Item = HeaderField<'a>> + Clone,
        request_id: &[u8],
        purpose: StreamedContent,
        transport: &mut ClientTransport,
        context: &mut ConnectionContext,
    ) -> Result<(), BadAnswer> {
        let OutboundState::Head { request, terms, .. } = self.state else { return Ok(()) };
        let announced = answer::check(status, fields.clone())?;
        let ending = BodyFraming::of(status).unwrap_or(match announced {
            Some(length) => BodyFraming::Length(length),
            None if terms.version == Version::Http10 => BodyFraming::Close,
            None => BodyFraming::Chunked,
        });
        let persistence = if ending == BodyFraming::Close { Persistence::Close } else { terms.persistence(context) };
        let (out, now) = (&mut context.out, context.now);
        let own = OwnFields { date: context.date.as_bytes(), request_id };
        out.clear();
        answer::write_head(out, status, fields, ending, persistence, own);
        transport.write(out, now);
        let AnswerTerms { is_head, takes_trailers, .. } = terms;
        let keep_alive = persistence != Persistence::Close;
        self.state = OutboundState::Body { request, is_head, keep_alive, takes_trailers, ending, purpose, since: now };
        Ok(())
    }

    /// Whether the request may become a WebSocket, with the first of these sub-protocols that its client offers.
    pub fn agree_on_socket(&mut self, subprotocols: &[String]) -> bool {
        let OutboundState::Head { offer: Some(offer), .. } = &mut self.state else { return false };
        offer.agree(subprotocols);
        true
    }

    /// Accepts a WebSocket; `make`: what it is then. Nothing is written if the fields violate HTTP.
    pub fn open_socket<'a>(
        &mut self,
        fields: impl Iterator<Item = HeaderField<'a>> + Clone,
        request_id: &[u8],
        make: SocketMaker,
        transport: &mut ClientTransport,
        context: &mut ConnectionContext,
    ) -> Result<(), BadAnswer> {
        let OutboundState::Head { request, offer, .. } = &mut self.state else { return Ok(()) };
        let (request, Some(offer)) = (*request, offer.take()) else { return Ok(()) };
        answer::check(200, fields.clone())?;
        let (out, now) = (&mut context.out, context.now);
        out.clear();
        let others = fields.filter(|(name, _)| !is_of_the_handshake(name));
        let added = OwnFields { date: context.date.as_bytes(), request_id };
        answer::write_head(out, SWITCHING_PROTOCOLS, others, BodyFraming::Bodiless, Persistence::Keep, added);
        out.truncate(out.len() - b"\r\n".len());
        out.extend_from_slice(b"upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ");
        out.extend_from_slice(offer.accept.unwrap_or_default().as_bytes());
        if let Some(extensions) = offer.compression.map(Compression::field) {
            out.extend_from_slice(b"\r\nsec-websocket-extensions: ");
            out.extend_from_slice(extensions.as_bytes());
        }
        if let Some(subprotocol) = offer.subprotocol {
            out.extend_from_slice(b"\r\nsec-websocket-protocol: ");
            out.extend_from_slice(subprotocol.as_bytes());
        }
        out.extend_from_slice(b"\r\n\r\n");
        transport.write(out, now);
        let socket = make(offer.compression, now);
        self.state = OutboundState::Socket { request, socket };
        Ok(())
    }

    /// The WebSocket has had its last frame: the connection is closed when its client has read everything.
    pub fn end_socket(&mut self, transport: &mut ClientTransport, now: Tick) {
        self.complete(false, transport, now);
    }

    /// Writes a piece of the body. Returns how many of its bytes the client's socket took, or an error if there are more than announced.
    pub fn piece(&mut self, bytes: &Bytes, transport: &mut ClientTransport, now: Tick) -> Result<usize, BadAnswer> {
        let OutboundState::Body { is_head, ending, purpose, since, .. } = &mut self.state else {
            return Ok(bytes.len());
        };
        let has_body = !*is_head && ending.has_body();
        if let (BodyFraming::Length(left), true) = (&mut *ending, has_body) {
            *left = left.checked_sub(bytes.len() as u64).ok_or(BadAnswer::Length)?;
        }
        if bytes.is_empty() || !has_body {
            return Ok(bytes.len());
        }
        if *purpose == StreamedContent::Events && transport.is_too_far_behind(now) {
            transport.give_up();
            return Ok(0);
        }
        *since = now;
        if *ending != BodyFraming::Chunked {
            return Ok(transport.write_shared(bytes, now));
        }
        let size = format!("{:x}\r\n", bytes.len());
        Ok(transport.write_framed((size.as_bytes(), bytes, b"\r\n"), now))
    }

    /// Writes bytes that already include their chunk framing. A client that lets too many wait is disconnected.
    pub fn framed_piece(&mut self, chunked: &Bytes, plain: &Bytes, transport: &mut ClientTransport, now: Tick) {
        let OutboundState::Body { is_head, ending, since, .. } = &mut self.state else { return };
        if *is_head {
            return;
        }
        if transport.is_too_far_behind(now) {
            transport.give_up();
            return;
        }
        *since = now;
        transport.write_shared(if *ending == BodyFraming::Chunked { chunked } else { plain }, now);
    }

    /// The client has taken a part of the answer.
    pub fn touch(&mut self, now: Tick) {
        if let OutboundState::Body { since, .. } = &mut self.state {
            *since = now;
        }
    }

    /// A stream of events that has been silent for long gets a comment. Returns whether it was due.
    pub fn heartbeat(&mut self, transport: &mut ClientTransport, now: Tick) -> bool {
        let OutboundState::Body { purpose: StreamedContent::Events, since, .. } = self.state else { return false };
        if now.since(since) < HEARTBEAT_INTERVAL || transport.has_unsent() {
            return false;
        }
        let (chunked, plain) = (Bytes::from_static(b"3\r\n:\n\n\r\n"), Bytes::from_static(b":\n\n"));
        self.framed_piece(&chunked, &plain, transport, now);
        true
    }

    /// The body is complete, with trailers, which a client that does not take any does not get. False if fewer bytes came than were announced: then the
    /// connection must be reset.
    pub fn finish<'a>(
        &mut self,
        trailers: impl Iterator<Item = HeaderField<'a>>,
        transport: &mut ClientTransport,
        context: &mut ConnectionContext,
    ) -> bool {
        let OutboundState::Body { is_head, keep_alive, takes_trailers, ending, purpose, .. } = self.state else {
            return true;
        };
        let has_body = !is_head && ending.has_body();
        if has_body && matches!(ending, BodyFraming::Length(1..)) {
            return false;
        }
        if purpose == StreamedContent::Events {
            transport.restart_rate(context.now);
        }
        if has_body && ending == BodyFraming::Chunked {
            context.out.clear();
            answer::write_end(&mut context.out, trailers.filter(|_| takes_trailers));
            transport.write(&context.out, context.now);
        }
        self.complete(keep_alive && !context.is_draining, transport, context.now);
        true
    }

    /// Called before the connection is closed in the middle of a response: one that ends with the connection must not look complete.
    pub fn before_abort(&self, transport: &ClientTransport) {
        if matches!(self.state, OutboundState::Body { ending: BodyFraming::Close, .. }) {
            transport.reset_on_close();
        }
    }

    /// Answers a malformed request; it is the last response of the connection. `head`: its head, if that is known.
    pub fn refuse(
        &mut self,
        fault: RequestFault,
        head: Option<&Head>,
        transport: &mut ClientTransport,
        context: &mut ConnectionContext,
    ) {
        self.state = OutboundState::Done { close: CloseMode::AfterAnswer };
        if fault == RequestFault::Tls {
            tls_refusal::complain(&mut context.tls_complaints, transport.peer());
            transport.write(&tls_refusal::ALERT, context.now);
            return;
        }
        let (peer, problem) = (transport.peer(), fault.problem(&context.setup.limits));
        let status = problem.status;
        tracing::debug!(status, detail = %problem.detail, ?peer, "request refused");
        let representation = head.map_or_else(Representation::default, Head::representation);
        let body = problem.body(representation);
        let line = head.map(|head| Box::new((head.method().to_owned(), head.target())));
        context.refused.push(RefusedRequest { peer, fault, bytes: body.len(), line });
        let fields: [HeaderField<'_>; 3] =
            [(b"content-type", representation.content_type()), (b"vary", b"Accept"), (b"retry-after", b"1")];
        let version: [HeaderField<'_>; 3] = [fields[0], fields[1], (b"sec-websocket-version", b"13")];
        let used = match fault {
            RequestFault::SocketVersion => &version[..],
            _ if status == 503 => &fields[..],
            _ => &fields[..2],
        };
        let (out, length) = (&mut context.out, BodyFraming::Length(body.len() as u64));
        out.clear();
        let own = OwnFields { date: context.date.as_bytes(), request_id: b"" };
        answer::write_head(out, status, used.iter().copied(), length, Persistence::Close, own);
        out.extend_from_slice(&body);
        transport.write(out, context.now);
    }

    /// The client has read the last response: drops what it still sends. False if the connection can be closed.
    pub fn linger(&mut self, transport: &mut ClientTransport, context: &mut ConnectionContext) -> bool {
        let OutboundState::Done { close } = &mut self.state else { return true };
        if let CloseMode::AfterAnswer = close {
            *close = CloseMode::Linger(Linger::begin(transport, context.now));
        }
        match close {
            CloseMode::Linger(linger) => linger.discard(transport, &mut context.scratch),
            CloseMode::Keep | CloseMode::AfterAnswer => true,
        }
    }
}
