//! A connection that is being opened: for a slot, the canceller or the listener.

use std::time::{Duration, Instant};

use parkade_sql::FailureKind;

use crate::handshake::{BackendIdentity, Computation, Computed, DialRefusal, Handshake, HandshakeStep, Terms};
use crate::line::Loss;
use crate::settings::Secret;
use crate::transport::Setback;
use crate::wire::Wire;
use crate::wire::message::BackendMessage;

#[derive(Debug)]
pub(crate) struct Dial {
    /// `None`: there is no socket yet.
    handshake: Option<Handshake>,
    /// The error of the last address.
    refusal: Option<DialRefusal>,
    /// When the attempt at this address began.
    since: Instant,
}

/// What to do next with the connection.
#[derive(Debug)]
pub(crate) enum DialStep {
    Going,
    Ready(BackendIdentity),
    /// Try the next address.
    Next(Setback),
    /// Other addresses would not help.
    Refused(DialRefusal),
}

impl Dial {
    pub(crate) fn new(now: Instant) -> Self {
        Self { handshake: None, refusal: None, since: now }
    }

    pub(crate) fn due(&self, timeout: Duration) -> Instant {
        self.since + timeout
    }

    pub(crate) fn begun(&self) -> Instant {
        self.since
    }

    /// The socket is open, with TLS if that is required.
    pub(crate) fn opened(
        &mut self,
        now: Instant,
        terms: &Terms,
        password: Option<Secret>,
        wire: &mut Wire,
    ) -> DialStep {
        match Handshake::begin(terms, password, wire) {
            Ok(handshake) => {
                self.handshake = Some(handshake);
                DialStep::Going
            }
            Err(refusal) => self.refused(now, refusal),
        }
    }

    pub(crate) fn hear(
        &mut self,
        now: Instant,
        message: BackendMessage<'_>,
        terms: &Terms,
        wire: &mut Wire,
    ) -> DialStep {
        let Some(handshake) = &mut self.handshake else { return DialStep::Going };
        match handshake.hear(message, terms, wire) {
            Ok(HandshakeStep::Going) => DialStep::Going,
            Ok(HandshakeStep::Ready(identity)) => DialStep::Ready(identity),
            Err(refusal) => self.refused(now, refusal),
        }
    }

    /// A computation that takes long and is needed to continue.
    pub(crate) fn take_due(&mut self) -> Option<Computation> {
        self.handshake.as_mut()?.take_due()
    }

    pub(crate) fn computed(&mut self, now: Instant, computed: Computed, wire: &mut Wire) -> DialStep {
        match self.handshake.as_mut().map(|handshake| handshake.computed(computed, wire)) {
            None | Some(Ok(())) => DialStep::Going,
            Some(Err(refusal)) => self.refused(now, refusal),
        }
    }

    /// This address has timed out.
    pub(crate) fn timed_out(&mut self, now: Instant, timeout: Duration) -> DialStep {
        let why = format!("no answer within {timeout:?}");
        self.refused(now, DialRefusal { kind: FailureKind::Unreachable, why, next: Some(Setback::NoConnection) })
    }

    /// There is no other address, or the connection broke. Returns the reason, with those of earlier addresses.
    pub(crate) fn lost(&mut self, loss: Loss) -> DialRefusal {
        self.refusal.take().unwrap_or_else(|| match loss {
            Loss::Denied(why) => DialRefusal::denied(why),
            Loss::Closed => DialRefusal::unreachable("the server closed the connection before it was ready"),
            Loss::Broken(why) | Loss::Unreachable(why) => DialRefusal::unreachable(why),
        })
    }

    fn refused(&mut self, now: Instant, refusal: DialRefusal) -> DialStep {
        match refusal.next {
            Some(setback) => {
                *self = Self { handshake: None, refusal: Some(refusal), since: now };
                DialStep::Next(setback)
            }
            None => DialStep::Refused(refusal),
        }
    }
}
