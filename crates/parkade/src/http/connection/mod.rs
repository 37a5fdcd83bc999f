//! One HTTP/1 connection: two state machines, as in h11. `Inbound` reads a request, `Outbound` writes its response; when both are done with it,
//! both start again.
//!
//! A connection that is idle, or whose request is parked, is just these few fields: see the assertion at the end of this file.
//!
//! | question | where |
//! |---|---|
//! | reading a request; a head, then a body | `inbound`, `partial_request` |
//! | a body that the application reads while it arrives | `streamed_body` |
//! | writing a response, and whether the connection closes after it | `outbound` |
//! | timeouts, and clients that do not read | here: `Connection::expire` |
//! | closing without losing the response | `linger` |
//! | the socket, and what the poll set reports about it | `transport`, `readiness` |

mod context;
mod inbound;
mod linger;
mod outbound;
mod partial_request;
mod readiness;
mod streamed_body;
mod transport;

use bytes::Bytes;

pub use self::context::ConnectionContext;
use self::inbound::{Inbound, Received};
use self::outbound::Outbound;
pub use self::outbound::{SocketMaker, StreamedContent};
pub use self::readiness::{FarEnd, SocketReadiness};
use self::transport::ClientTransport;
use super::answer::{BadAnswer, HeaderField, Prepared};
use super::budget::ArrivingShare;
use super::fault::RequestFault;
use super::head::Head;
use super::socket::{ClientSocket, Endpoints, Filled};
use super::socket_message::SocketMessage;
use super::tick::Tick;
use super::web_socket::{OutgoingMessage, PulseCheck, close_frame};
use crate::body_rest::BodyRest;
use parkade_model::RequestId;

#[derive(Debug)]
pub struct Connection {
    transport: ClientTransport,
    inbound: Inbound,
    outbound: Outbound,
}

/// What the lot has to do for a connection after a step.
#[derive(Debug)]
pub enum ConnectionStep {
    Stay,
    Arrived(Head, Bytes, ArrivingShare, BodyRest),
    /// More of the body of the request that has arrived.
    Piece(RequestId, Bytes, BodyRest),
    /// The rest of the body will not come, and the client has been told so.
    Failed(RequestId),
    Left(RequestId),
    Close,
    /// It speaks HTTP/2: its socket and the bytes read from it go elsewhere.
    Http2,
}

impl Connection {
    pub fn new(socket: ClientSocket, endpoints: Endpoints, now: Tick) -> Self {
        Self {
            transport: ClientTransport::new(socket, endpoints),
            inbound: Inbound::new(now),
            outbound: Outbound::default(),
        }
    }

    /// The poll set reports a change of the socket.
    pub fn note(&mut self, readiness: SocketReadiness) {
        self.transport.note(readiness);
    }

    pub fn endpoints(&self) -> Endpoints {
        self.transport.endpoints()
    }

    /// Whether the response to the current request must not have a body (`HEAD`).
    pub fn is_head(&self) -> bool {
        self.outbound.is_head()
    }

    pub fn has_unsent(&self) -> bool {
        self.transport.has_unsent()
    }

    /// Whether the client has closed its side in order, and everything that the head of the response announced is sent. A client
    /// that leaves bytes unread resets the connection.
    pub fn has_sent_all(&self) -> bool {
        self.outbound.has_all() && !self.transport.has_unsent() && !self.transport.is_gone()
    }

    /// Whether its last response is being sent, or has just been sent.
    pub fn is_closing(&self) -> bool {
        self.outbound.is_closing()
    }

    pub fn is_quiet(&self) -> bool {
        self.inbound.is_idle() && !self.transport.has_unsent()
    }

    /// Whether it has just been accepted, so that its request is likely to be on its way.
    pub fn is_fresh(&self, now: Tick) -> bool {
        self.is_quiet() && self.inbound.is_fresh(now)
    }

    /// Whether there is something to do that no event of the socket will report.
    pub fn has_more(&self) -> bool {
        if self.transport.is_gone() {
            return true;
        }
        if let Some(socket) = self.outbound.peek_socket() {
            if socket.is_called() {
                return self.transport.has_hung_up();
            }
            return socket.reads() && (socket.has_unread() || self.transport.is_readable());
        }
        if self.outbound.request().is_some() {
            return self.transport.has_hung_up() || self.inbound.wants_piece() && self.transport.is_readable();
        }
        if self.inbound.is_dropping() {
            return self.transport.is_readable();
        }
        // Nothing continues until the client has read its responses; the socket reports when it is writable.
        if self.transport.has_unsent() {
            return false;
        }
        if self.outbound.is_closing() {
            return !self.outbound.is_lingering() || self.transport.is_readable();
        }
        self.transport.is_readable() || self.inbound.has_unread()
    }

    pub fn into_parts(self) -> (ClientSocket, Vec<u8>, Endpoints) {
        let endpoints = self.endpoints();
        (self.transport.into_socket(), self.inbound.into_bytes(), endpoints)
    }

    /// The request that has arrived has this id until its response is complete.
    pub fn wait(&mut self, request: RequestId, head: &Head) {
        self.outbound.expect(request, head);
    }

    /// Proceeds as far as the available bytes allow.
    pub fn advance(&mut self, context: &mut ConnectionContext) -> ConnectionStep {
        if self.outbound.peek_socket().is_some() {
            return self.advance_socket(context);
        }
        if let Some(request) = self.outbound.request() {
            if self.transport.has_hung_up() {
                return ConnectionStep::Left(request);
            }
            return match self.inbound.receive_piece(&mut self.transport, context) {
                Ok(None) => ConnectionStep::Stay,
                Ok(Some((bytes, rest))) => ConnectionStep::Piece(request, bytes, rest),
                Err(fault) => self.fail(request, fault, context),
            };
        }
        if self.outbound.is_closing() {
            return self.linger(context);
        }
        if self.inbound.is_dropping() {
            // Also while its response is unsent: many clients read only when they have sent everything.
            return self.drop_rest(context);
        }
        if self.transport.has_unsent() {
            // No further request is read from a client that does not read its responses.
            return self.close_if_gone();
        }
        match self.inbound.receive(&mut self.transport, context) {
            Ok(Received::NotEnough) => self.close_if_gone(),
            Ok(Received::Request(mut head, body, share, rest)) => match context.setup.sockets.offer(&head) {
                Ok(offer) => {
                    head.socket = offer;
                    ConnectionStep::Arrived(head, body, share, rest)
                }
                Err(fault) => self.refuse(fault, context),
            },
            Ok(Received::Preface) => ConnectionStep::Http2,
            Ok(Received::End) => ConnectionStep::Close,
            Err(fault) => self.refuse(fault, context),
        }
    }

    fn close_if_gone(&self) -> ConnectionStep {
        if self.transport.is_gone() { ConnectionStep::Close } else { ConnectionStep::Stay }
    }

    /// Answers a malformed request and closes: nothing more of this connection is read as a request.
    fn refuse(&mut self, fault: RequestFault, context: &mut ConnectionContext) -> ConnectionStep {
        self.outbound.refuse(fault, self.inbound.head(), &mut self.transport, context);
        self.inbound.stop();
        self.linger(context)
    }

    /// The body of a request that was passed on is malformed, too large or too slow. If its response has begun, the
    /// connection is reset.
    fn fail(&mut self, request: RequestId, fault: RequestFault, context: &mut ConnectionContext) -> ConnectionStep {
        let has_begun = self.outbound.streamed_request().is_some();
        if has_begun || fault == RequestFault::BodyEndedEarly {
            return ConnectionStep::Left(request);
        }
        self.outbound.refuse(fault, None, &mut self.transport, context);
        self.inbound.stop();
        ConnectionStep::Failed(request)
    }

    /// A piece of the body is wanted.
    pub fn want_piece(&mut self, now: Tick) {
        if self.inbound.want_piece(now) && self.outbound.streamed_request().is_none() {
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n", now);
        }
    }

    /// Reads and drops what is left of a body whose request has its response; after it the next request may come.
    fn drop_rest(&mut self, context: &mut ConnectionContext) -> ConnectionStep {
        match self.inbound.receive_piece(&mut self.transport, context) {
            Ok(_) => {
                self.begin_anew(context.now);
                self.close_if_gone()
            }
            Err(_) => ConnectionStep::Close,
        }
    }

    fn linger(&mut self, context: &mut ConnectionContext) -> ConnectionStep {
        if self.transport.is_gone() && !self.transport.is_readable() {
            return ConnectionStep::Close;
        }
        if self.transport.has_unsent() {
            return self.close_if_gone();
        }
        if self.outbound.linger(&mut self.transport, context) { ConnectionStep::Stay } else { ConnectionStep::Close }
    }

    /// Writes a complete response. Nothing is written if it violates HTTP.
    pub fn answer<'a>(
        &mut self,
        status: u16,
        fields: impl Iterator<Item = HeaderField<'a>> + Clone,
        request_id: &[u8],
        body: &Bytes,
        context: &mut ConnectionContext,
    ) -> Result<(), BadAnswer> {
        self.end_unread();
        self.outbound.answer(status, fields, request_id, body, &mut self.transport, context)?;
        self.begin_anew(context.now);
        Ok(())
    }

    /// Writes a response that was serialised before.
    pub fn answer_prepared(&mut self, prepared: &Prepared, request_id: &[u8], context: &mut ConnectionContext) {
        self.end_unread();
        self.outbound.answer_prepared(prepared, request_id, &mut self.transport, context);
        self.begin_anew(context.now);
    }

    /// Begins a response whose body follows in pieces.
    pub fn begin<'a>(
        &mut self,
        status: u16,
        fields: impl Iterator<Item = HeaderField<'a>> + Clone,
        request_id: &[u8],
        purpose: StreamedContent,
        context: &mut ConnectionContext,
    ) -> Result<(), BadAnswer> {
        self.end_unread();
        self.outbound.begin(status, fields, request_id, purpose, &mut self.transport, context)
    }

    /// Whether the current request may become a WebSocket, with the first of these sub-protocols that its client offers.
    pub fn agree_on_socket(&mut self, subprotocols: &[String]) -> bool {
        self.outbound.agree_on_socket(subprotocols)
    }

    /// Accepts a WebSocket, and reads what its client has sent with the request.
    pub fn open_socket<'a>(
        &mut self,
        fields: impl Iterator<Item = HeaderField<'a>> + Clone,
        request_id: &[u8],
        make: SocketMaker,
        context: &mut ConnectionContext,
    ) -> Result<(), BadAnswer> {
        self.outbound.open_socket(fields, request_id, make, &mut self.transport, context)?;
        let mut early = self.inbound.take_bytes();
        if !early.is_empty() {
            self.hear_socket(&mut early, context);
        }
        Ok(())
    }

    /// Reads what the client of a WebSocket has sent, up to one buffer, if there is room for it.
    fn advance_socket(&mut self, context: &mut ConnectionContext) -> ConnectionStep {
        let Some((request, socket)) = self.outbound.socket() else { return ConnectionStep::Stay };
        if socket.is_called() && self.transport.has_hung_up() {
            // Nobody waits for what the function returns.
            return ConnectionStep::Left(request);
        }
        if let Some(mut unread) = socket.take_unread() {
            self.hear_socket(&mut unread, context);
        } else if socket.reads() && self.transport.is_readable() {
            let mut scratch = std::mem::take(&mut context.scratch);
            let filled = self.transport.read(&mut scratch);
            if let Filled::Bytes(count) = filled {
                self.hear_socket(&mut scratch[..count], context);
            }
            context.scratch = scratch;
            if matches!(filled, Filled::End | Filled::Broken) {
                return ConnectionStep::Left(request);
            }
        }
        if self.transport.is_gone() && self.outbound.request().is_some() {
            return ConnectionStep::Left(request);
        }
        ConnectionStep::Stay
    }

    /// Takes bytes of the client of a WebSocket. If it has closed, the connection is only to be closed.
    fn hear_socket(&mut self, bytes: &mut [u8], context: &mut ConnectionContext) {
        let Some((request, socket)) = self.outbound.socket() else { return };
        let (mut shared, events) = context.sockets();
        let heard = socket.hear(request, bytes, self.transport.unsent_bytes(), &mut shared, events);
        if !heard.replies.is_empty() {
            self.transport.write(&heard.replies, context.now);
        }
        if heard.has_closed {
            self.outbound.end_socket(&mut self.transport, context.now);
        }
    }

    /// Sends a message to the client of a WebSocket. Returns how many bytes its worker may send in its place; `flush`
    /// returns the others.
    pub fn message(&mut self, message: OutgoingMessage<'_>, context: &mut ConnectionContext) -> usize {
        let Some((_, socket)) = self.outbound.socket() else { return 0 };
        self.transport.write_shared(&socket.frame(message, &mut context.compressors), context.now);
        if self.transport.has_unsent() { 0 } else { socket.settle() }
    }

    /// What the client of a WebSocket has said is dealt with: the next message may come.
    pub fn read_socket(&mut self) {
        let has_unsent = self.transport.has_unsent();
        if let Some((_, socket)) = self.outbound.socket() {
            socket.read_next(has_unsent);
        }
    }

    /// Tells the client of a WebSocket that it is closed, and closes the connection.
    pub fn close_socket(&mut self, code: u16, text: String, now: Tick) {
        if self.outbound.peek_socket().is_some() {
            self.transport.write_shared(&close_frame(code, text), now);
            self.outbound.end_socket(&mut self.transport, now);
        }
    }

    /// The worker of a WebSocket has room for so many bytes more.
    pub fn grant_socket(&mut self, bytes: u32) {
        if let Some((_, socket)) = self.outbound.socket() {
            socket.grant(bytes);
        }
    }

    /// Writes a piece of the body. Returns how many of its bytes the client's socket took, or an error if there are more than announced.
    pub fn piece(&mut self, bytes: &Bytes, now: Tick) -> Result<usize, BadAnswer> {
        self.outbound.piece(bytes, &mut self.transport, now)
    }

    /// Writes an event: bytes that already include their chunk framing, or the message of it to the client of a WebSocket. One that lets too many wait is
    /// disconnected.
    pub fn event(
        &mut self,
        chunked: &Bytes,
        plain: &Bytes,
        message: Option<&SocketMessage>,
        context: &mut ConnectionContext,
    ) {
        let Some((_, socket)) = self.outbound.socket() else {
            return self.outbound.framed_piece(chunked, plain, &mut self.transport, context.now);
        };
        let Some(message) = message else { return };
        if self.transport.is_too_far_behind(context.now) {
            self.transport.give_up();
            return;
        }
        let frame = message.frame(socket.window(), &mut context.compressors);
        self.transport.write_shared(frame, context.now);
    }

    /// Writes early hints, before the response.
    pub fn early_hints<'a>(&mut self, fields: impl Iterator<Item = HeaderField<'a>>, context: &mut ConnectionContext) {
        self.outbound.early_hints(fields, &mut self.transport, context);
    }

    /// The body is complete. False if fewer bytes came than were announced: then the connection must be reset.
    pub fn finish<'a>(
        &mut self,
        trailers: impl Iterator<Item = HeaderField<'a>>,
        context: &mut ConnectionContext,
    ) -> bool {
        let is_whole = self.outbound.finish(trailers, &mut self.transport, context);
        self.begin_anew(context.now);
        is_whole
    }

    /// If the response begins before the body has arrived, the connection closes after it, unless the rest is short: it
    /// may never come.
    fn end_unread(&mut self) {
        if self.inbound.is_streaming() && !self.inbound.can_drop_rest() {
            self.outbound.close_after();
        }
    }

    /// When both machines are done with a request, the next one may come, unless the connection closes.
    fn begin_anew(&mut self, now: Tick) {
        if self.inbound.is_streaming() && self.outbound.is_done() {
            if self.outbound.is_closing() {
                // What still comes is dropped, up to a bound, before the connection closes.
                self.inbound.stop();
            } else if !self.inbound.is_dropping() {
                self.inbound.drop_rest(now);
            }
        }
        if self.inbound.is_done() && self.outbound.is_done() && !self.outbound.is_closing() {
            self.inbound.begin_anew(now);
            self.outbound = Outbound::default();
        }
    }

    /// The socket is writable again. Returns the request whose streamed response has progressed, with the number of
    /// bytes written.
    pub fn flush(&mut self, now: Tick) -> Option<(RequestId, usize)> {
        let written = self.transport.flush(now);
        if written == 0 {
            return None;
        }
        self.inbound.touch(now);
        self.outbound.touch(now);
        if let Some((request, socket)) = self.outbound.socket() {
            if !self.transport.has_unsent() {
                socket.note_taken();
            }
            let settled = if self.transport.has_unsent() { 0 } else { socket.settle() };
            return (settled > 0).then_some((request, settled));
        }
        self.outbound.streamed_request().map(|request| (request, written))
    }

    /// Called before it is closed in the middle of a response: one that ends with the connection must not look complete.
    pub fn before_abort(&self) {
        self.outbound.before_abort(&self.transport);
    }

    /// The connection is closed because of a bug; its client must not take this for the end of a response. Returns the
    /// request that it held.
    pub fn end_broken(self) -> Option<RequestId> {
        self.transport.reset_on_close();
        self.outbound.request()
    }

    /// Acts on timeouts.
    pub fn expire(&mut self, context: &mut ConnectionContext) -> ConnectionStep {
        let (now, limits) = (context.now, &context.setup.limits);
        let has_stalled = self.transport.has_stalled(now, limits.write_stall);
        let needs_a_rate = !self.outbound.is_streaming_events();
        if has_stalled || needs_a_rate && self.transport.is_read_too_slowly(now, limits.write_stall) {
            self.transport.give_up();
            return self.outbound.request().map_or(ConnectionStep::Close, ConnectionStep::Left);
        }
        if let Some((request, socket)) = self.outbound.socket() {
            match socket.expire(limits, now) {
                PulseCheck::Fine => {}
                PulseCheck::Ping(ping) => {
                    self.transport.write_shared(&ping, now);
                }
                PulseCheck::Dead => {
                    self.transport.give_up();
                    return ConnectionStep::Left(request);
                }
            }
        }
        if let Some(fault) = self.inbound.overdue(limits, now) {
            if let Some(request) = self.outbound.request() {
                return self.fail(request, fault, context);
            }
            if self.inbound.is_dropping() {
                return ConnectionStep::Close;
            }
            return self.refuse(fault, context);
        }
        let has_to_drain = context.is_draining && self.is_quiet() && !self.is_fresh(now);
        if has_to_drain || self.inbound.is_idle_too_long(limits, now) || self.outbound.has_lingered_too_long(now) {
            return ConnectionStep::Close;
        }
        if self.outbound.heartbeat(&mut self.transport, now) && self.transport.is_gone() {
            return self.advance(context);
        }
        ConnectionStep::Stay
    }
}

/// The size of an idle connection, and of one whose request is parked. (mio adds a word with debug assertions.)
#[cfg(not(debug_assertions))]
const _: () = assert!(size_of::<Connection>() <= 96);

#[cfg(test)]
pub mod tests;
