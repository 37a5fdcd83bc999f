//! A connection for a slot that is being opened: its handshake, at one address after the other.

use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};

use crate::dial::{Dial, DialStep};
use crate::handshake::Computed;
use crate::pool::PoolContext;
use crate::settings::Secret;
use crate::wire::message::BackendMessage;
use crate::wire::{ProtocolViolation, Wire};

#[derive(Debug)]
pub(crate) struct Connecting {
    dial: Dial,
    wire: Wire,
    /// When the attempt at the first address began.
    since: Instant,
    row_bytes_max: usize,
}

impl Connecting {
    pub(crate) fn new(now: Instant, row_bytes_max: usize) -> Self {
        Self { dial: Dial::new(now), wire: Wire::new(row_bytes_max), since: now, row_bytes_max }
    }

    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// When the current address times out.
    pub(crate) fn due(&self, timeout: Duration) -> Instant {
        self.dial.due(timeout)
    }

    pub(crate) fn dial(&mut self) -> &mut Dial {
        &mut self.dial
    }

    pub(crate) fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }

    /// It is logged in: the session goes on with the same bytes.
    pub(crate) fn into_wire(self) -> Wire {
        self.wire
    }

    /// The socket is open.
    pub(crate) fn opened(&mut self, password: Option<Secret>, cx: &PoolContext) -> DialStep {
        let step = self.dial.opened(cx.now, &cx.config.terms, password, &mut self.wire);
        self.with_new_wire(step)
    }

    pub(crate) fn computed(&mut self, computed: Computed, now: Instant) -> DialStep {
        let step = self.dial.computed(now, computed, &mut self.wire);
        self.with_new_wire(step)
    }

    /// Gives up the current address, if it has not answered in time.
    pub(crate) fn time_out(&mut self, now: Instant, timeout: Duration) -> Option<DialStep> {
        if now < self.dial.due(timeout) {
            return None;
        }
        let step = self.dial.timed_out(now, timeout);
        Some(self.with_new_wire(step))
    }

    /// Reads messages until one of them ends the attempt, or the next is incomplete.
    pub(crate) fn received(&mut self, buffer: &mut BytesMut, cx: &PoolContext) -> Result<DialStep, ProtocolViolation> {
        let mut at = 0;
        let mut step = DialStep::Going;
        while matches!(step, DialStep::Going)
            && let Some(frame) = self.wire.frames.next(buffer, &mut at)?
        {
            let message = BackendMessage::parse(&frame)?;
            step = self.dial.hear(cx.now, message, &cx.config.terms, &mut self.wire);
        }
        buffer.advance(at);
        if matches!(step, DialStep::Next(_)) {
            // The rest is from the last address.
            buffer.clear();
        }
        Ok(self.with_new_wire(step))
    }

    /// The next address must not get, or have read, bytes of the last one.
    fn with_new_wire(&mut self, step: DialStep) -> DialStep {
        if matches!(step, DialStep::Next(_)) {
            self.wire = Wire::new(self.row_bytes_max);
        }
        step
    }
}
