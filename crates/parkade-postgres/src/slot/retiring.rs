//! A connection that was closed because something might hit its next statement. Its place is free when its server
//! process is gone.

use std::time::Instant;

use crate::canceller::SignalTarget;
use crate::handshake::BackendIdentity;
use crate::limits::RETIRING_LOOK;

#[derive(Debug)]
pub(crate) struct Retiring {
    /// When the connection was closed.
    since: Instant,
    /// When to check next whether the process is gone.
    look_at: Instant,
    /// It has to be terminated: it did not react.
    is_terminated: bool,
    target: SignalTarget,
    identity: BackendIdentity,
}

impl Retiring {
    pub(crate) fn new(now: Instant, is_terminated: bool, target: SignalTarget, identity: BackendIdentity) -> Self {
        Self { since: now, look_at: now, is_terminated, target, identity }
    }

    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    pub(crate) fn look_at(&self) -> Instant {
        self.look_at
    }

    pub(crate) fn is_terminated(&self) -> bool {
        self.is_terminated
    }

    /// Its server process.
    pub(crate) fn target(&self) -> &SignalTarget {
        &self.target
    }

    pub(crate) fn identity(&self) -> &BackendIdentity {
        &self.identity
    }

    /// It has been checked, or cannot be checked now.
    pub(crate) fn put_off(&mut self, now: Instant) {
        self.look_at = now + RETIRING_LOOK;
    }

    /// The process still exists; `was_told`: it has been told to end.
    pub(crate) fn is_still_there(&mut self, now: Instant, was_told: bool) {
        self.put_off(now);
        self.is_terminated &= !was_told;
    }
}
