//! One HTTP/1 connection: reads a request, holds it while it waits, writes its answer, begins again.

mod answering;
mod receiving;

use std::time::Duration;

use bytes::Bytes;

use self::receiving::Receiving;
use super::answer::{self, DateLine, Ending, Field, Persistence};
use super::budget::{Budget, Held};
use super::fault::Fault;
use super::forwarded::Trust;
use super::head::{Head, Version};
use super::limits::{FIRST_REQUEST_TIME, HEARTBEAT_INTERVAL, LINGER_BYTES_MAX, LINGER_TIME, Limits};
use super::socket::{Filled, Output, Peer, Socket};
use super::tick::Tick;
use crate::complaints::Complaints;
use crate::tls_refusal;
use parkade_core::RequestId;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Where a connection is. What a phase lacks cannot be used in it.
#[derive(Debug)]
enum Phase {
    /// Between requests.
    Quiet,
    /// A part of a head has come.
    Head {
        scanned: usize,
    },
    Body(Box<Receiving>),
    /// The request is handed on and nothing of its answer written.
    Waiting {
        request: RequestId,
        terms: Terms,
    },
    /// A streamed answer has begun.
    Answering {
        request: RequestId,
        terms: Terms,
        ending: Ending,
        left: u64,
        purpose: Purpose,
    },
    /// The last answer is on its way.
    Closing,
    /// It is gone; what the client still sends is read over.
    Lingering {
        left: usize,
    },
}

/// What an answer has to know of its request.
#[derive(Debug, Clone, Copy)]
struct Terms {
    version: Version,
    is_head: bool,
    keep_alive: bool,
}

/// What a streamed answer carries: a silent event stream gets a comment now and then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Body,
    Events,
}

/// What the poll set has said of the socket and has not been used up.
#[derive(Debug, Clone, Copy, Default)]
struct Readiness {
    readable: bool,
    far: FarEnd,
}

/// The client, as far as its socket tells. It never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum FarEnd {
    #[default]
    There,
    /// It will send nothing more. Nearly always it has left; what has been answered already may still reach it.
    SaidAll,
    Gone,
}

#[derive(Debug)]
pub struct Connection {
    pub socket: Socket,
    pub peer: Peer,
    phase: Phase,
    /// Bytes that are no whole head, or that nobody has looked at; most connections have none.
    input: Option<Box<Input>>,
    /// Whether `input` holds bytes behind the last request that nobody has looked at.
    has_leftover: bool,
    output: Output,
    since: Tick,
    /// Whether a request has come on it, or an empty line.
    has_spoken: bool,
    readiness: Readiness,
}

/// What has been read and not used.
#[derive(Debug)]
struct Input {
    bytes: Vec<u8>,
    held: Held,
}

/// What a connection shares with all others for the time of one turn.
pub struct Turn<'a> {
    pub limits: &'a Limits,
    pub trust: &'a Trust,
    pub scratch: &'a mut [u8],
    pub out: &'a mut Vec<u8>,
    pub date: &'a DateLine,
    pub now: Tick,
    pub budget: &'a Budget,
    pub is_draining: bool,
    /// Faulty requests that were answered, with the bytes of the body: for the access log.
    pub refused: &'a mut Vec<(Peer, u16, usize)>,
    pub tls_complaints: &'a mut Complaints,
}

/// What the lot has to do for a connection that has gone as far as it can.
#[derive(Debug)]
pub enum Step {
    Stay,
    Arrived(Head, Bytes, Held),
    Left(RequestId),
    Close,
    /// It speaks HTTP/2: its socket and what was read of it go elsewhere.
    Http2,
}

impl Connection {
    pub fn new(socket: Socket, peer: Peer, now: Tick) -> Self {
        Self {
            socket,
            peer,
            phase: Phase::Quiet,
            input: None,
            has_leftover: false,
            output: Output::default(),
            since: now,
            has_spoken: false,
            readiness: Readiness::default(),
        }
    }

    pub fn note(&mut self, readable: bool, far: FarEnd) {
        self.readiness.readable |= readable || far == FarEnd::SaidAll;
        self.readiness.far = self.readiness.far.max(far);
    }

    fn is_gone(&self) -> bool {
        self.readiness.far == FarEnd::Gone
    }

    /// Whether the request that is on its way wants no body.
    pub fn is_head(&self) -> bool {
        matches!(self.phase, Phase::Waiting { terms, .. } | Phase::Answering { terms, .. } if terms.is_head)
    }

    pub fn has_unsent(&self) -> bool {
        !self.output.is_empty()
    }

    /// Whether its last answer is on its way, or has just gone.
    pub fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing | Phase::Lingering { .. })
    }

    pub fn is_quiet(&self) -> bool {
        matches!(self.phase, Phase::Quiet) && self.output.is_empty()
    }

    /// Whether it has just been accepted, so that its request is likely to be on its way.
    pub fn is_fresh(&self, now: Tick) -> bool {
        self.is_quiet() && !self.has_spoken && now.since(self.since) < FIRST_REQUEST_TIME
    }

    /// Whether there is something to go on with that no event of the socket will tell of.
    pub fn has_more(&self) -> bool {
        match self.phase {
            _ if self.is_gone() => true,
            Phase::Waiting { .. } | Phase::Answering { .. } => self.readiness.far != FarEnd::There,
            // Until the client has read its answers nothing goes on; the socket tells when it takes bytes.
            _ if !self.output.is_empty() => false,
            Phase::Quiet | Phase::Head { .. } | Phase::Body(_) => self.readiness.readable || self.has_leftover,
            Phase::Closing => true,
            Phase::Lingering { .. } => self.readiness.readable,
        }
    }

    pub fn into_parts(self) -> (Socket, Vec<u8>, Peer) {
        (self.socket, self.input.map_or_else(Vec::new, |input| input.bytes), self.peer)
    }

    pub fn wait(&mut self, request: RequestId, head: &Head) {
        let terms = Terms { version: head.version, is_head: head.method() == "HEAD", keep_alive: head.keep_alive };
        self.phase = Phase::Waiting { request, terms };
        self.has_spoken = true;
    }

    /// Goes on as far as the bytes that are there allow.
    pub fn advance(&mut self, turn: &mut Turn<'_>) -> Step {
        match &self.phase {
            Phase::Waiting { request, .. } | Phase::Answering { request, .. }
                if self.readiness.far != FarEnd::There =>
            {
                Step::Left(*request)
            }
            Phase::Waiting { .. } | Phase::Answering { .. } => Step::Stay,
            Phase::Closing | Phase::Lingering { .. } => self.linger(turn),
            Phase::Quiet | Phase::Head { .. } | Phase::Body(_) if !self.output.is_empty() => {
                // A client that does not read its answers gets no further request in.
                if self.is_gone() { Step::Close } else { Step::Stay }
            }
            Phase::Quiet | Phase::Head { .. } | Phase::Body(_) => {
                self.receive(turn).unwrap_or_else(|fault| self.refuse(fault, turn))
            }
        }
    }

    /// Answers a faulty request and closes: nothing more of this connection is read as a request.
    fn refuse(&mut self, fault: Fault, turn: &mut Turn<'_>) -> Step {
        if fault == Fault::Tls {
            return self.refuse_tls(turn);
        }
        let (status, detail) = fault.explain();
        tracing::debug!(status, detail, peer = ?self.peer, "a request is refused");
        let body = super::error_body(status, fault.whose(), detail);
        turn.refused.push((self.peer, status, body.len()));
        let fields: [Field<'_>; 2] = [(b"content-type", b"application/json"), (b"retry-after", b"1")];
        let used = if status == 503 { &fields[..] } else { &fields[..1] };
        turn.out.clear();
        answer::write_head(
            turn.out,
            status,
            used.iter().copied(),
            Ending::Length(body.len() as u64),
            Persistence::Close,
            turn.date.as_bytes(),
        );
        turn.out.extend_from_slice(&body);
        let out = std::mem::take(turn.out);
        let step = self.say_last(&out, turn);
        *turn.out = out;
        step
    }

    fn refuse_tls(&mut self, turn: &mut Turn<'_>) -> Step {
        tls_refusal::complain(turn.tls_complaints, self.peer);
        self.say_last(&tls_refusal::ALERT, turn)
    }

    fn say_last(&mut self, bytes: &[u8], turn: &mut Turn<'_>) -> Step {
        self.input = None;
        self.has_leftover = false;
        self.phase = Phase::Closing;
        self.write(bytes, turn.now);
        self.linger(turn)
    }

    fn linger(&mut self, turn: &mut Turn<'_>) -> Step {
        if self.is_gone() && !self.readiness.readable {
            return Step::Close;
        }
        if matches!(self.phase, Phase::Closing) {
            if !self.output.is_empty() {
                return if self.is_gone() { Step::Close } else { Step::Stay };
            }
            self.socket.end_writing();
            self.since = turn.now;
            self.phase = Phase::Lingering { left: LINGER_BYTES_MAX };
        }
        let Phase::Lingering { left } = &mut self.phase else { return Step::Stay };
        loop {
            match self.socket.read(turn.scratch) {
                Filled::Bytes(count) if count < *left => *left -= count,
                Filled::Nothing => {
                    self.readiness.readable = false;
                    return Step::Stay;
                }
                Filled::Bytes(_) | Filled::End | Filled::Broken => return Step::Close,
            }
        }
    }

    /// Writes what can be written; a connection that is broken is found by the next `advance`.
    fn write(&mut self, bytes: &[u8], now: Tick) -> usize {
        if self.output.is_empty() {
            self.since = now;
        }
        self.output.send(&mut self.socket, bytes, now).unwrap_or_else(|_| self.broken())
    }

    fn write_shared(&mut self, bytes: &Bytes, now: Tick) -> usize {
        if self.output.is_empty() {
            self.since = now;
        }
        self.output.send_shared(&mut self.socket, bytes, now).unwrap_or_else(|_| self.broken())
    }

    fn broken(&mut self) -> usize {
        self.readiness.far = FarEnd::Gone;
        0
    }

    /// The socket takes bytes again. Answers the request whose streamed answer has moved on, with the bytes that went.
    pub fn flush(&mut self, now: Tick) -> Option<(RequestId, usize)> {
        let written = self.output.flush(&mut self.socket).unwrap_or_else(|_| self.broken());
        if written > 0 {
            self.since = now;
        }
        match self.phase {
            Phase::Answering { request, .. } if written > 0 => Some((request, written)),
            _ => None,
        }
    }

    /// Before it is closed in the middle of an answer: one that ends with the connection must not look whole.
    pub fn before_abort(&mut self) {
        if matches!(self.phase, Phase::Answering { ending: Ending::Close, .. }) {
            self.socket.reset_on_close();
        }
    }

    fn is_read_too_slowly(&self, now: Tick, stall: Duration) -> bool {
        !matches!(self.phase, Phase::Answering { purpose: Purpose::Events, .. }) && self.output.is_too_slow(now, stall)
    }

    /// It is closed because of a bug, which its client must not take for the end of an answer. Answers the request that it held.
    pub fn end_broken(self) -> Option<RequestId> {
        self.socket.reset_on_close();
        match self.phase {
            Phase::Waiting { request, .. } | Phase::Answering { request, .. } => Some(request),
            _ => None,
        }
    }

    /// What is due because time has passed.
    pub fn expire(&mut self, turn: &mut Turn<'_>) -> Step {
        let quiet_for = turn.now.since(self.since);
        let stall = turn.limits.write_stall;
        if !self.output.is_empty() && quiet_for > stall || self.is_read_too_slowly(turn.now, stall) {
            self.readiness.far = FarEnd::Gone;
            return match &self.phase {
                Phase::Waiting { request, .. } | Phase::Answering { request, .. } => Step::Left(*request),
                _ => Step::Close,
            };
        }
        match &self.phase {
            Phase::Quiet if quiet_for > turn.limits.idle_time => Step::Close,
            Phase::Quiet if turn.is_draining && !self.is_fresh(turn.now) && self.output.is_empty() => Step::Close,
            Phase::Head { .. } if quiet_for > turn.limits.head_time => self.refuse(Fault::HeadTooSlow, turn),
            Phase::Body(receiving) if quiet_for > turn.limits.body_stall || receiving.is_too_slow(turn) => {
                self.refuse(Fault::BodyTooSlow, turn)
            }
            Phase::Lingering { .. } if quiet_for > LINGER_TIME => Step::Close,
            Phase::Answering { purpose: Purpose::Events, .. }
                if quiet_for >= HEARTBEAT_INTERVAL && self.output.is_empty() =>
            {
                self.framed_piece(&Bytes::from_static(b"3\r\n:\n\n\r\n"), &Bytes::from_static(b":\n\n"), turn.now);
                if self.is_gone() { self.advance(turn) } else { Step::Stay }
            }
            _ => Step::Stay,
        }
    }
}

impl Terms {
    fn persistence(self, turn: &Turn<'_>) -> Persistence {
        match (self.keep_alive && !turn.is_draining, self.version) {
            (false, _) => Persistence::Close,
            (true, Version::Http10) => Persistence::KeepAnnounced,
            (true, _) => Persistence::Keep,
        }
    }
}

#[cfg(test)]
pub mod tests;
