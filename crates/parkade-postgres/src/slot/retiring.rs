//! A connection that was closed because something might hit its next statement. Its place is free when its server
//! process is gone.

use std::time::Instant;

use crate::limits::RETIRING_LOOK;

#[derive(Debug)]
pub(crate) struct Retiring {
    /// When to check next whether the process is gone.
    look_at: Instant,
    /// It has to be terminated: it did not react.
    is_terminated: bool,
}

impl Retiring {
    pub(crate) fn new(now: Instant, is_terminated: bool) -> Self {
        Self { look_at: now, is_terminated }
    }

    pub(crate) fn look_at(&self) -> Instant {
        self.look_at
    }

    pub(crate) fn is_terminated(&self) -> bool {
        self.is_terminated
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
