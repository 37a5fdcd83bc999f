//! Whether a connected database still answers.
//!
//! A slow statement is not an outage. So if nothing arrives on any connection for a while although there are requests,
//! the canceller, which is otherwise idle, probes the server; a healthy database answers at once. There is no probe
//! behind a pooler, because the pooler answers instead of its database.

use std::time::Instant;

use crate::canceller::Canceller;
use crate::limits::{PROBE_AFTER, PROBE_MAX, SILENCE_MAX};

#[derive(Debug)]
pub(crate) struct Silence {
    /// When something last arrived, on any connection.
    heard: Instant,
    /// The database does not answer. Reset when something arrives.
    is_unbroken: bool,
}

impl Silence {
    pub(crate) fn new(now: Instant) -> Self {
        Self { heard: now, is_unbroken: false }
    }

    /// Whether that ends an outage.
    pub(crate) fn heard(&mut self, now: Instant) -> bool {
        std::mem::replace(self, Self::new(now)).is_unbroken
    }

    /// When to probe, or to give up. `asked`: when the oldest statement without an answer began.
    pub(crate) fn due(&self, asked: Instant, canceller: &Canceller) -> Option<Instant> {
        if self.is_unbroken {
            return None;
        }
        let since = self.heard.max(asked);
        match (canceller.free_at(), canceller.asked_at()) {
            (Some(free), _) => Some((since + PROBE_AFTER).max(free)),
            (None, Some(probed)) => Some((since + SILENCE_MAX).max(probed + PROBE_MAX)),
            // It is probed as soon as the canceller is connected again.
            (None, None) => None,
        }
    }

    /// The probe was not answered.
    pub(crate) fn give_up(&mut self) {
        self.is_unbroken = true;
    }

    pub(crate) fn is_unbroken(&self) -> bool {
        self.is_unbroken
    }
}
