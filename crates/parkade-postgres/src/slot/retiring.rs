//! A connection that is closed because nobody can say what would hit it; its place is free when its server process is gone.

use std::time::Instant;

use crate::limits::RETIRING_LOOK;

#[derive(Debug)]
pub(crate) struct Retiring {
    /// When the server is asked next whether the process is gone.
    look_at: Instant,
    /// It has to be told to end: it did not hear us.
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

    /// It has been asked for, or cannot be now.
    pub(crate) fn put_off(&mut self, now: Instant) {
        self.look_at = now + RETIRING_LOOK;
    }

    /// The process is still there; `was_told`: it has been told to end by now.
    pub(crate) fn is_still_there(&mut self, now: Instant, was_told: bool) {
        self.put_off(now);
        self.is_terminated &= !was_told;
    }
}
