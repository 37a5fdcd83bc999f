//! The inbound side of a connection: bytes become a request. The next request is not read before the response to this one is complete.

use bytes::Bytes;

use super::context::ConnectionContext;
use super::partial_request::PartialRequest;
use super::streamed_body::{StreamedBody, of_a_stream};
use super::transport::ClientTransport;
use crate::body_rest::BodyRest;
use crate::http::StreamedBodies;
use crate::http::budget::{ArrivingShare, Budget, RequestStage};
use crate::http::fault::RequestFault;
use crate::http::head::{self, Framing, Head};
use crate::http::limits::{
    FIRST_REQUEST_TIME, HEAD_READ_BYTES_MAX, HttpLimits, METHOD_BYTES_MAX, PLAIN_READ_BYTES_MIN, STREAMED_READ_BYTES,
    TURN_READ_BYTES_MAX,
};
use crate::http::socket::Filled;
use crate::http::tick::Tick;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[derive(Debug)]
pub struct Inbound {
    state: InboundState,
    /// Bytes of an incomplete head, or bytes that have not been parsed; most connections have none.
    buffer: Option<Box<Buffer>>,
}

/// `has_spoken`: whether a request, or an empty line, has arrived on the connection.
/// `has_unread`: whether the buffer holds bytes after the last request that have not been parsed.
#[derive(Debug)]
enum InboundState {
    /// Between requests.
    Idle {
        since: Tick,
        has_spoken: bool,
        has_unread: bool,
    },
    /// A part of a head has arrived; the first `scanned` bytes contain no end.
    Head {
        since: Tick,
        has_spoken: bool,
        scanned: usize,
    },
    Body(Box<PartialRequest>),
    /// The request has been passed on, and its body is still arriving.
    Streaming(Box<StreamedBody>),
    /// The request has been passed on, or nothing more is read as a request.
    Done {
        has_unread: bool,
    },
}

/// Bytes that have been read and not used.
#[derive(Debug)]
struct Buffer {
    bytes: Vec<u8>,
    held: ArrivingShare,
}

/// What the available bytes amount to.
pub enum Received {
    NotEnough,
    Request(Head, Bytes, ArrivingShare, BodyRest),
    /// The client speaks HTTP/2.
    Preface,
    /// The client has closed between requests, or its connection is broken.
    End,
}

/// What is needed to read a request.
#[derive(Clone, Copy)]
struct ReadContext<'a> {
    limits: &'a HttpLimits,
    budget: &'a Budget,
    streamed: &'a StreamedBodies,
    now: Tick,
}

impl Inbound {
    pub const fn new(now: Tick) -> Self {
        Self { state: InboundState::Idle { since: now, has_spoken: false, has_unread: false }, buffer: None }
    }

    pub const fn is_idle(&self) -> bool {
        matches!(self.state, InboundState::Idle { .. })
    }

    pub const fn is_done(&self) -> bool {
        matches!(self.state, InboundState::Done { .. })
    }

    /// Whether the connection has just been accepted, so that its request is likely to be on its way.
    pub fn is_fresh(&self, now: Tick) -> bool {
        matches!(self.state, InboundState::Idle { since, has_spoken: false, .. } if now.since(since) < FIRST_REQUEST_TIME)
    }

    pub fn is_idle_too_long(&self, limits: &HttpLimits, now: Tick) -> bool {
        matches!(self.state, InboundState::Idle { since, .. } if now.since(since) > limits.idle_time)
    }

    /// Whether there are bytes to process that no event of the socket will report.
    pub const fn has_unread(&self) -> bool {
        matches!(self.state, InboundState::Idle { has_unread: true, .. })
    }

    /// The fault of a request that took too long to arrive.
    pub fn overdue(&self, limits: &HttpLimits, now: Tick) -> Option<RequestFault> {
        match &self.state {
            InboundState::Head { since, .. } => {
                (now.since(*since) > limits.head_time).then_some(RequestFault::HeadTooSlow)
            }
            InboundState::Body(request) => request.is_too_slow(limits, now).then_some(RequestFault::BodyTooSlow),
            InboundState::Streaming(body) => body.is_too_slow(limits, now).then_some(RequestFault::BodyTooSlow),
            InboundState::Idle { .. } | InboundState::Done { .. } => None,
        }
    }

    /// The head of a request whose body is still arriving.
    pub fn head(&self) -> Option<&Head> {
        match &self.state {
            InboundState::Body(request) => Some(request.head()),
            InboundState::Idle { .. }
            | InboundState::Head { .. }
            | InboundState::Streaming(_)
            | InboundState::Done { .. } => None,
        }
    }

    /// The client has read a part of an earlier response: its idle time begins now.
    pub fn touch(&mut self, now: Tick) {
        if let InboundState::Idle { since, .. } = &mut self.state {
            *since = now;
        }
    }

    /// The response is complete: the next request may be read.
    pub fn begin_anew(&mut self, now: Tick) {
        if let InboundState::Done { has_unread } = self.state {
            self.state = InboundState::Idle { since: now, has_spoken: true, has_unread };
        }
    }

    /// Nothing more is read as a request.
    pub fn stop(&mut self) {
        *self = Self { state: InboundState::Done { has_unread: false }, buffer: None };
    }

    /// Takes what came after the request: the connection is a WebSocket from now on.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        self.buffer.take().map_or_else(Vec::new, |buffer| buffer.bytes)
    }

    /// The bytes that were read and not used, for HTTP/2.
    pub fn into_bytes(self) -> Vec<u8> {
        self.buffer.map_or_else(Vec::new, |buffer| buffer.bytes)
    }

    /// Processes what was left over from before, then what the socket has, up to a turn's share.
    pub fn receive(
        &mut self,
        transport: &mut ClientTransport,
        context: &mut ConnectionContext,
    ) -> Result<Received, RequestFault> {
        let rules = ReadContext {
            limits: &context.setup.limits,
            budget: &context.budget,
            streamed: &context.setup.streamed,
            now: context.now,
        };
        let mut held = None;
        let mut bytes = self.buffer.take().map_or_else(Vec::new, |buffer| {
            held = Some(buffer.held);
            buffer.bytes
        });
        let mut received = Received::NotEnough;
        if self.take_unread() {
            let (used, came) = self.take_in(&bytes, transport, rules)?;
            bytes.drain(..used);
            received = came;
        }
        let mut left = TURN_READ_BYTES_MAX;
        while matches!(received, Received::NotEnough) && transport.is_readable() && left > 0 {
            let is_in_body = matches!(self.state, InboundState::Body(_));
            let room = if is_in_body { context.scratch.len() } else { HEAD_READ_BYTES_MAX };
            let count = match transport.read(&mut context.scratch[..room]) {
                Filled::Bytes(count) => count,
                Filled::Nothing => break,
                Filled::End if is_in_body => return Err(RequestFault::BodyEndedEarly),
                Filled::End | Filled::Broken => return Ok(Received::End),
            };
            left = left.saturating_sub(count);
            let read = &context.scratch[..count];
            if bytes.is_empty() {
                let (used, came) = self.take_in(read, transport, rules)?;
                bytes.extend_from_slice(&read[used..]);
                received = came;
            } else {
                bytes.extend_from_slice(read);
                let (used, came) = self.take_in(&bytes, transport, rules)?;
                bytes.drain(..used);
                received = came;
            }
        }
        if let Err(fault) = self.keep(bytes, held, rules.budget) {
            let Received::Request(request, ..) = &mut received else { return Err(fault) };
            // The request is complete and counted. What follows it is dropped, and the connection closes after the
            // response.
            request.keep_alive = false;
        }
        Ok(received)
    }

    /// Whether the body of the request that was passed on is still arriving.
    pub const fn is_streaming(&self) -> bool {
        matches!(self.state, InboundState::Streaming(_))
    }

    /// Whether what is still to come of it can be read and dropped.
    pub fn can_drop_rest(&self) -> bool {
        matches!(&self.state, InboundState::Streaming(body) if body.can_be_dropped())
    }

    /// The request has its response: the rest of its body is read and dropped.
    pub fn drop_rest(&mut self, now: Tick) {
        if let InboundState::Streaming(body) = &mut self.state {
            body.drop_rest(now);
        }
    }

    /// Whether the rest of a body is being dropped.
    pub fn is_dropping(&self) -> bool {
        matches!(&self.state, InboundState::Streaming(body) if body.is_dropped())
    }

    /// Whether a piece of it is wanted.
    pub fn wants_piece(&self) -> bool {
        matches!(&self.state, InboundState::Streaming(body) if body.wants())
    }

    /// A piece is wanted. Returns whether the client has to be told to send the body.
    pub fn want_piece(&mut self, now: Tick) -> bool {
        match &mut self.state {
            InboundState::Streaming(body) => body.want(now),
            InboundState::Idle { .. }
            | InboundState::Head { .. }
            | InboundState::Body(_)
            | InboundState::Done { .. } => false,
        }
    }

    /// Reads a piece of the body, if one is wanted and has arrived.
    pub fn receive_piece(
        &mut self,
        transport: &mut ClientTransport,
        context: &mut ConnectionContext,
    ) -> Result<Option<(Bytes, BodyRest)>, RequestFault> {
        let InboundState::Streaming(body) = &mut self.state else { return Ok(None) };
        if !body.wants() {
            return Ok(None);
        }
        let (mut held, mut unused) = (None, Vec::new());
        if let Some(buffer) = self.buffer.take() {
            (held, unused) = (Some(buffer.held), buffer.bytes);
        }
        let mut piece = Bytes::new();
        while piece.is_empty() && !body.is_complete() && transport.is_readable() {
            let plain = body.plain_bytes().min(STREAMED_READ_BYTES);
            let is_plain = unused.is_empty() && plain >= PLAIN_READ_BYTES_MIN;
            let mut plain = if is_plain { context.buffers.take(plain) } else { Vec::new() };
            let room = if is_plain { &mut plain[..] } else { &mut context.scratch[..] };
            let count = match transport.read(room) {
                Filled::Bytes(count) => count,
                Filled::Nothing => 0,
                Filled::End | Filled::Broken => return Err(RequestFault::BodyEndedEarly),
            };
            if is_plain {
                body.advance(count);
                piece = context.buffers.piece(plain, count);
                continue;
            }
            let read = &context.scratch[..count];
            let mut decoded = Vec::with_capacity(count);
            if unused.is_empty() {
                let used = body.take(read, &mut decoded)?;
                unused.extend_from_slice(&read[used..]);
            } else {
                unused.extend_from_slice(read);
                let used = body.take(&unused, &mut decoded)?;
                unused.drain(..used);
            }
            piece = decoded.into();
        }
        let is_complete = body.is_complete();
        let came = (is_complete || !piece.is_empty()).then(|| body.taken(piece, context.now));
        if is_complete {
            self.state = InboundState::Done { has_unread: false };
        }
        self.keep(unused, held, &context.budget)?;
        Ok(came.map(|piece| (piece, if is_complete { BodyRest::Nothing } else { BodyRest::Follows })))
    }

    fn take_unread(&mut self) -> bool {
        match &mut self.state {
            InboundState::Idle { has_unread, .. } => std::mem::take(has_unread),
            InboundState::Head { .. }
            | InboundState::Body(_)
            | InboundState::Streaming(_)
            | InboundState::Done { .. } => false,
        }
    }

    /// Keeps unused bytes. A connection without such bytes keeps no buffer.
    fn keep(&mut self, bytes: Vec<u8>, held: Option<ArrivingShare>, budget: &Budget) -> Result<(), RequestFault> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut held = held.unwrap_or_else(|| budget.arriving_share());
        if !held.hold(bytes.capacity(), RequestStage::Coming) {
            return Err(RequestFault::RequestsFull);
        }
        // Bytes after a request wait until it is answered.
        if let InboundState::Done { has_unread } = &mut self.state {
            *has_unread = true;
        }
        self.buffer = Some(Box::new(Buffer { bytes, held }));
        Ok(())
    }

    /// Uses as many of the bytes as it can, and returns their number.
    fn take_in(
        &mut self,
        bytes: &[u8],
        transport: &mut ClientTransport,
        rules: ReadContext<'_>,
    ) -> Result<(usize, Received), RequestFault> {
        match &mut self.state {
            InboundState::Idle { has_spoken, .. } => {
                // A client may send empty lines after a body (RFC 9112, section 2.2).
                let empty_lines = bytes.chunks_exact(2).take_while(|pair| pair == b"\r\n").count() * 2;
                let rest = &bytes[empty_lines..];
                *has_spoken |= empty_lines > 0;
                if rest.is_empty() || rest == b"\r" {
                    return Ok((empty_lines, Received::NotEnough));
                }
                let has_spoken = *has_spoken;
                self.state = InboundState::Head { since: rules.now, has_spoken, scanned: 0 };
                let (used, received) = self.take_head(rest, transport, rules)?;
                Ok((empty_lines + used, received))
            }
            InboundState::Head { .. } => self.take_head(bytes, transport, rules),
            InboundState::Body(_) => self.take_body(bytes, rules),
            InboundState::Streaming(_) | InboundState::Done { .. } => Ok((0, Received::NotEnough)),
        }
    }

    fn take_head(
        &mut self,
        bytes: &[u8],
        transport: &mut ClientTransport,
        rules: ReadContext<'_>,
    ) -> Result<(usize, Received), RequestFault> {
        let InboundState::Head { has_spoken, scanned, .. } = &mut self.state else {
            return Ok((0, Received::NotEnough));
        };
        // The preface changes the protocol only at the beginning: a connection that has used HTTP/1.1 stays with it.
        if !*has_spoken && bytes.starts_with(PREFACE) {
            return Ok((0, Received::Preface));
        }
        if !*has_spoken && PREFACE.starts_with(bytes) {
            return Ok((0, Received::NotEnough));
        }
        if *scanned <= METHOD_BYTES_MAX {
            head::begins(bytes)?;
        }
        let end = head::end_of_head(bytes, scanned)?;
        if end.unwrap_or(bytes.len()) > rules.limits.head_bytes_max {
            // Nothing but a request line: its target is what is too long.
            let is_line = memchr::memchr(b'\n', &bytes[..rules.limits.head_bytes_max.min(bytes.len())]).is_none();
            return Err(if is_line { RequestFault::TargetTooLong } else { RequestFault::HeadTooLarge });
        }
        let Some(end) = end else { return Ok((0, Received::NotEnough)) };
        let head = head::parse(&bytes[..end], rules.limits.header_count_max)?;
        #[cfg(test)]
        assert!(head.field("x-bug") != Some("head"), "a bug in reading a head");
        let mut share = rules.budget.arriving_share();
        // A request with a body is counted later, when it is known whether the body has arrived, too.
        if !head.has_body() && !share.hold(head.held_bytes(), RequestStage::Whole) {
            return Err(RequestFault::RequestsFull);
        }
        let announced = match head.framing {
            Framing::None | Framing::Length(0) => {
                self.state = InboundState::Done { has_unread: false };
                return Ok((end, Received::Request(head, Bytes::new(), share, BodyRest::Nothing)));
            }
            Framing::Length(length) => Some(length),
            Framing::Chunked => None,
        };
        let (rest, collected_max) = (&bytes[end..], rules.limits.body_bytes_max as u64);
        let is_here = announced.is_some_and(|length| length <= collected_max.min(rest.len() as u64));
        let terms = if is_here { None } else { rules.streamed.terms(&head, announced) };
        if announced.is_some_and(|length| length > terms.map_or(collected_max, |terms| terms.bytes_max)) {
            let request = PartialRequest::new(head, share, 0, None, rules.now);
            self.state = InboundState::Body(Box::new(request));
            let fault = RequestFault::BodyTooLarge;
            return Err(if terms.is_some() { of_a_stream(fault) } else { fault });
        }
        let waits = head.expects_continue && rest.is_empty();
        let expected = announced.map_or(0, |length| usize::try_from(length).unwrap_or(usize::MAX).min(rest.len()));
        let request = PartialRequest::new(head, share, expected, terms, rules.now);
        self.state = InboundState::Body(Box::new(request));
        if waits && terms.is_some_and(|terms| terms.invites(announced)) {
            return Ok((end, self.pass_on(false)?));
        }
        let (used, received) = self.take_body(rest, rules)?;
        if waits {
            // The only response that is sent before its request is complete.
            transport.write(b"HTTP/1.1 100 Continue\r\n\r\n", rules.now);
        }
        Ok((end + used, received))
    }

    fn take_body(&mut self, bytes: &[u8], rules: ReadContext<'_>) -> Result<(usize, Received), RequestFault> {
        let InboundState::Body(request) = &mut self.state else { return Ok((0, Received::NotEnough)) };
        let used = request.take(bytes, rules.limits, rules.now)?;
        if request.is_ripe() {
            return Ok((used, self.pass_on(true)?));
        }
        let received = match std::mem::replace(&mut self.state, InboundState::Done { has_unread: false }) {
            InboundState::Body(request) if request.is_complete() => {
                let (head, body, share) = request.into_whole();
                Received::Request(head, body, share, BodyRest::Nothing)
            }
            unfinished => {
                self.state = unfinished;
                Received::NotEnough
            }
        };
        Ok((used, received))
    }

    /// Passes the request on before its body has arrived.
    fn pass_on(&mut self, is_invited: bool) -> Result<Received, RequestFault> {
        match std::mem::replace(&mut self.state, InboundState::Done { has_unread: false }) {
            InboundState::Body(request) => {
                let (head, body, share, rest) = request.into_streamed(is_invited)?;
                self.state = InboundState::Streaming(Box::new(rest));
                Ok(Received::Request(head, body, share, BodyRest::Follows))
            }
            other => {
                self.state = other;
                Ok(Received::NotEnough)
            }
        }
    }
}
