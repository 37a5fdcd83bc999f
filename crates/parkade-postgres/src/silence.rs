//! Whether a database that is connected still answers.
//!
//! A statement that takes long is no outage. So when nothing has come over any connection for a while although something was asked, the
//! canceller, which has nothing else to do, asks who is there; a database that runs answers that at once. Behind a pooler, which answers for its
//! database, nobody asks.

use std::time::Instant;

use crate::limits::{PROBE_AFTER, PROBE_MAX, SILENCE_MAX};

#[derive(Debug)]
pub(crate) struct Silence {
    /// When something came last, over whichever connection.
    heard: Instant,
    /// It does not answer. That is so until something comes.
    pub(crate) is_unbroken: bool,
}

impl Silence {
    pub(crate) fn new(now: Instant) -> Self {
        Self { heard: now, is_unbroken: false }
    }

    pub(crate) fn heard(&mut self, now: Instant) {
        *self = Self::new(now);
    }

    fn since(&self, asked: Instant) -> Instant {
        self.heard.max(asked)
    }

    /// When it is to be asked whether it is there. `asked`: the oldest question without an answer.
    pub(crate) fn probe_at(&self, asked: Instant) -> Instant {
        self.since(asked) + PROBE_AFTER
    }

    /// When it is taken for away, after `probed`, the moment at which it was asked.
    pub(crate) fn give_up_at(&self, asked: Instant, probed: Instant) -> Instant {
        (self.since(asked) + SILENCE_MAX).max(probed + PROBE_MAX)
    }
}
