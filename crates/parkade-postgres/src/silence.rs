//! Whether a database that is connected still answers.
//!
//! A statement that takes long is no outage. So when nothing has come over any connection for a while although something was asked, the
//! canceller, which has nothing else to do, asks who is there; a database that runs answers that at once. Behind a pooler, which answers for its
//! database, nobody asks.

use std::time::Instant;

use crate::canceller::Canceller;
use crate::limits::{PROBE_AFTER, PROBE_MAX, SILENCE_MAX};

#[derive(Debug)]
pub(crate) struct Silence {
    /// When something came last, over whichever connection.
    heard: Instant,
    /// It does not answer. That is so until something comes.
    is_unbroken: bool,
}

impl Silence {
    pub(crate) fn new(now: Instant) -> Self {
        Self { heard: now, is_unbroken: false }
    }

    pub(crate) fn heard(&mut self, now: Instant) {
        *self = Self::new(now);
    }

    /// When it is to be asked whether it is there, or taken for away. `asked`: when the oldest statement without an answer began.
    pub(crate) fn due(&self, asked: Instant, canceller: &Canceller) -> Option<Instant> {
        if self.is_unbroken {
            return None;
        }
        let since = self.heard.max(asked);
        match (canceller.free_at(), canceller.asked_at()) {
            (Some(free), _) => Some((since + PROBE_AFTER).max(free)),
            (None, Some(probed)) => Some((since + SILENCE_MAX).max(probed + PROBE_MAX)),
            // It is asked as soon as the canceller is dialled again.
            (None, None) => None,
        }
    }

    /// It has been asked, and does not answer.
    pub(crate) fn give_up(&mut self) {
        self.is_unbroken = true;
    }

    pub(crate) fn is_unbroken(&self) -> bool {
        self.is_unbroken
    }
}
