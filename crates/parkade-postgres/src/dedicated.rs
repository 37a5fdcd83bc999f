//! A connection for one purpose of the pool, in addition to the slots. It is opened when it is needed, and after a
//! pause if it is lost.

use std::time::{Duration, Instant};

use bytes::BytesMut;

use crate::back_off::BackOff;
use crate::dial::{Dial, DialStep};
use crate::handshake::{DialRefusal, Terms};
use crate::line::Line;
use crate::settings::Secret;
use crate::transport::Setback;
use crate::wire::frames::Frame;
use crate::wire::{ProtocolViolation, Wire};

/// `S` is the state of its service once it is ready.
#[derive(Debug)]
pub(crate) struct Dedicated<S> {
    state: DedicatedState<S>,
    back_off: BackOff,
    message_bytes_max: usize,
}

#[derive(Debug)]
enum DedicatedState<S> {
    Off,
    Dialling {
        line: Line,
        wire: Wire,
        dial: Box<Dial>,
    },
    Ready {
        line: Line,
        wire: Wire,
        service: S,
    },
    /// It is not needed, or not available on this server.
    Stopped,
}

/// What its owner has to do after a message.
#[derive(Debug)]
pub(crate) enum DedicatedStep<N> {
    Nothing,
    /// Try the next address.
    Next(Setback),
    Refused(DialRefusal),
    /// The server, or a pooler before it, does not support the purpose of the connection.
    Useless,
    News(N),
}

impl<S> Dedicated<S> {
    pub(crate) fn new(message_bytes_max: usize) -> Self {
        Self { state: DedicatedState::Off, back_off: BackOff::default(), message_bytes_max }
    }

    pub(crate) fn line(&self) -> Option<Line> {
        match &self.state {
            DedicatedState::Off | DedicatedState::Stopped => None,
            DedicatedState::Dialling { line, .. } | DedicatedState::Ready { line, .. } => Some(*line),
        }
    }

    fn wire(&mut self) -> Option<&mut Wire> {
        match &mut self.state {
            DedicatedState::Off | DedicatedState::Stopped => None,
            DedicatedState::Dialling { wire, .. } | DedicatedState::Ready { wire, .. } => Some(wire),
        }
    }

    pub(crate) fn out(&mut self) -> Option<&mut BytesMut> {
        self.wire().map(|wire| &mut wire.out)
    }

    pub(crate) fn is_off(&self) -> bool {
        matches!(self.state, DedicatedState::Off)
    }

    /// The next message in `buffer`, from `at` on.
    pub(crate) fn next_frame<'a>(
        &mut self,
        buffer: &'a [u8],
        at: &mut usize,
    ) -> Result<Option<Frame<'a>>, ProtocolViolation> {
        match self.wire() {
            Some(wire) => wire.frames.next(buffer, at),
            None => Ok(None),
        }
    }

    // Connecting.

    /// Whether the last attempt failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.back_off.is_failing()
    }

    pub(crate) fn may_dial(&self, now: Instant) -> bool {
        self.is_off() && self.back_off.is_over(now)
    }

    /// When it may be opened, if not now.
    pub(crate) fn dial_at(&self) -> Option<Instant> {
        self.back_off.until.filter(|_| self.is_off())
    }

    pub(crate) fn dial(&mut self, now: Instant, line: Line) {
        self.state =
            DedicatedState::Dialling { line, wire: Wire::new(self.message_bytes_max), dial: Box::new(Dial::new(now)) };
    }

    pub(crate) fn dialling(&mut self) -> Option<(&mut Dial, &mut Wire)> {
        if let DedicatedState::Dialling { wire, dial, .. } = &mut self.state { Some((dial, wire)) } else { None }
    }

    /// When the attempt at the current address began.
    pub(crate) fn dialling_since(&self) -> Option<Instant> {
        if let DedicatedState::Dialling { dial, .. } = &self.state { Some(dial.begun()) } else { None }
    }

    /// When the attempt at the current address times out.
    pub(crate) fn dial_due(&self, timeout: Duration) -> Option<Instant> {
        if let DedicatedState::Dialling { dial, .. } = &self.state { Some(dial.due(timeout)) } else { None }
    }

    pub(crate) fn opened<N>(&mut self, now: Instant, terms: &Terms, password: Option<Secret>) -> DedicatedStep<N> {
        match self.dialling() {
            Some((dial, wire)) => dial.opened(now, terms, password, wire).into(),
            None => DedicatedStep::Nothing,
        }
    }

    // Serving.

    pub(crate) fn service(&self) -> Option<&S> {
        if let DedicatedState::Ready { service, .. } = &self.state { Some(service) } else { None }
    }

    pub(crate) fn serving(&mut self) -> Option<(&mut S, &mut Wire)> {
        if let DedicatedState::Ready { service, wire, .. } = &mut self.state { Some((service, wire)) } else { None }
    }

    /// It is logged in, and begins its service.
    pub(crate) fn serve(&mut self, service: S) {
        self.state = match std::mem::replace(&mut self.state, DedicatedState::Off) {
            DedicatedState::Dialling { line, wire, .. } => DedicatedState::Ready { line, wire, service },
            state @ (DedicatedState::Off | DedicatedState::Ready { .. } | DedicatedState::Stopped) => state,
        };
    }

    /// Its service works: if it is lost, it is opened again at once.
    pub(crate) fn succeeded(&mut self) {
        self.back_off.succeeded();
    }

    /// There is no other address, or the connection broke.
    pub(crate) fn lost(&mut self, now: Instant, random: &mut fastrand::Rng) -> Option<S> {
        self.back_off.failed(now, random);
        match std::mem::replace(&mut self.state, DedicatedState::Off) {
            DedicatedState::Ready { service, .. } => Some(service),
            DedicatedState::Off | DedicatedState::Dialling { .. } | DedicatedState::Stopped => None,
        }
    }

    /// It is never opened again.
    pub(crate) fn stop(&mut self) {
        self.state = DedicatedState::Stopped;
    }
}

impl<N> From<DialStep> for DedicatedStep<N> {
    fn from(step: DialStep) -> Self {
        match step {
            DialStep::Going | DialStep::Ready(_) => Self::Nothing,
            DialStep::Next(setback) => Self::Next(setback),
            DialStep::Refused(refusal) => Self::Refused(refusal),
        }
    }
}
