//! Whether the database can be reached, and when the next attempt is made.

use std::time::{Duration, Instant};

use parkade_sql::{Availability, FailureKind};

use crate::back_off::BackOff;
use crate::handshake::Refusal;
use crate::limits::{DENIED_RETRY, DENIED_RETRY_WANTED};

#[derive(Debug)]
pub(crate) struct Reaching {
    verdict: Verdict,
    pub(crate) back_off: BackOff,
}

#[derive(Debug)]
enum Verdict {
    Untried,
    Up,
    /// Attempts fail; who is queued still waits.
    Failing {
        since: Instant,
        why: String,
    },
    /// They have failed for too long.
    Down {
        why: String,
    },
    Denied {
        why: String,
        at: Instant,
    },
}

impl Reaching {
    pub(crate) fn new() -> Self {
        Self { verdict: Verdict::Untried, back_off: BackOff::default() }
    }

    pub(crate) fn succeeded(&mut self) {
        self.verdict = Verdict::Up;
        self.back_off.succeeded();
    }

    /// An attempt that was begun at `since` came to nothing. `has_others`: there are connections, so the database is there all the same.
    pub(crate) fn failed(
        &mut self,
        now: Instant,
        since: Instant,
        refusal: Refusal,
        has_others: bool,
        random: &mut fastrand::Rng,
    ) {
        self.back_off.failed(now, random);
        if has_others {
            return;
        }
        let why = refusal.why;
        let verdict = std::mem::replace(&mut self.verdict, Verdict::Untried);
        self.verdict = match verdict {
            _ if refusal.kind == FailureKind::Denied => {
                self.back_off.wait(now, DENIED_RETRY);
                Verdict::Denied { why, at: now }
            }
            Verdict::Failing { since, .. } => Verdict::Failing { since, why },
            Verdict::Down { .. } => Verdict::Down { why },
            Verdict::Untried | Verdict::Up | Verdict::Denied { .. } => Verdict::Failing { since, why },
        };
    }

    /// Whether it has just been given up.
    pub(crate) fn give_up(&mut self, now: Instant, patience: Duration) -> bool {
        match &mut self.verdict {
            Verdict::Failing { since, why } if *since + patience <= now => {
                self.verdict = Verdict::Down { why: std::mem::take(why) };
                true
            }
            Verdict::Untried
            | Verdict::Up
            | Verdict::Failing { .. }
            | Verdict::Down { .. }
            | Verdict::Denied { .. } => false,
        }
    }

    pub(crate) fn give_up_at(&self, patience: Duration) -> Option<Instant> {
        match &self.verdict {
            Verdict::Failing { since, .. } => Some(*since + patience),
            Verdict::Untried | Verdict::Up | Verdict::Down { .. } | Verdict::Denied { .. } => None,
        }
    }

    /// Why nothing new is taken.
    pub(crate) fn refuses(&self) -> Option<(FailureKind, &str)> {
        match &self.verdict {
            Verdict::Untried | Verdict::Up | Verdict::Failing { .. } => None,
            Verdict::Down { why } => Some((FailureKind::Unreachable, why)),
            Verdict::Denied { why, .. } => Some((FailureKind::Denied, why)),
        }
    }

    /// Somebody wants a connection: one that was denied is tried again earlier.
    pub(crate) fn wanted(&mut self, now: Instant) {
        if let Verdict::Denied { at, .. } = &self.verdict
            && *at + DENIED_RETRY_WANTED <= now
        {
            self.back_off.succeeded();
            self.verdict = Verdict::Untried;
        }
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.back_off.is_failing()
    }

    pub(crate) fn shown(&self) -> Availability {
        match &self.verdict {
            Verdict::Untried => Availability::Untried,
            Verdict::Up => Availability::Up,
            Verdict::Failing { why, .. } | Verdict::Down { why } => Availability::Down { why: why.clone() },
            Verdict::Denied { why, .. } => Availability::Denied { why: why.clone() },
        }
    }
}
