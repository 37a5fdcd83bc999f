//! Whether the database can be reached, and when to try next.

use std::time::{Duration, Instant};

use parkade_sql::{Availability, FailureKind};

use crate::back_off::BackOff;
use crate::handshake::DialRefusal;
use crate::limits::{DENIED_RETRY, DENIED_RETRY_WANTED};
use crate::pace::DialPace;

#[derive(Debug)]
pub(crate) struct Reaching {
    reachability: Reachability,
    back_off: BackOff,
    pace: DialPace,
}

#[derive(Debug)]
enum Reachability {
    Untried,
    Up,
    /// Attempts fail; queued queries still wait.
    Failing {
        since: Instant,
        why: String,
    },
    /// Attempts have failed for too long.
    Down {
        why: String,
    },
    Denied {
        why: String,
        at: Instant,
    },
}

impl Reaching {
    pub(crate) fn new(slots_count_max: usize, now: Instant) -> Self {
        Self {
            reachability: Reachability::Untried,
            back_off: BackOff::default(),
            pace: DialPace::new(slots_count_max, now),
        }
    }

    /// Whether the pause after a failure is over.
    pub(crate) fn may_dial(&self, now: Instant) -> bool {
        self.back_off.is_over(now)
    }

    /// Whether another connection may be opened in this second; if so, it is counted.
    pub(crate) fn take_dial(&mut self, now: Instant) -> bool {
        self.pace.take(now)
    }

    /// `None`: at once.
    pub(crate) fn dial_at(&self) -> Option<Instant> {
        self.back_off.until.max(self.pace.next_due())
    }

    /// Whether that ends an outage.
    pub(crate) fn succeeded(&mut self) -> bool {
        self.back_off.succeeded();
        match std::mem::replace(&mut self.reachability, Reachability::Up) {
            Reachability::Untried | Reachability::Up => false,
            Reachability::Failing { .. } | Reachability::Down { .. } | Reachability::Denied { .. } => true,
        }
    }

    /// An attempt that began at `since` has failed. `has_others`: there are other connections, so the database can be
    /// reached nevertheless. Whether queries begin to wait for a database that could be reached before, or is new.
    pub(crate) fn failed(
        &mut self,
        now: Instant,
        since: Instant,
        refusal: DialRefusal,
        has_others: bool,
        random: &mut fastrand::Rng,
    ) -> bool {
        self.back_off.failed(now, random);
        if has_others {
            return false;
        }
        let why = refusal.why;
        let before = std::mem::replace(&mut self.reachability, Reachability::Untried);
        let was_failing = matches!(before, Reachability::Failing { .. } | Reachability::Down { .. });
        self.reachability = match before {
            _ if refusal.kind == FailureKind::Denied => {
                self.back_off.wait(now, DENIED_RETRY);
                Reachability::Denied { why, at: now }
            }
            Reachability::Failing { since, .. } => Reachability::Failing { since, why },
            Reachability::Down { .. } => Reachability::Down { why },
            Reachability::Untried | Reachability::Up | Reachability::Denied { .. } => {
                Reachability::Failing { since, why }
            }
        };
        !was_failing && matches!(self.reachability, Reachability::Failing { .. })
    }

    /// Whether it has just been given up.
    pub(crate) fn give_up(&mut self, now: Instant, patience: Duration) -> bool {
        match &mut self.reachability {
            Reachability::Failing { since, why } if *since + patience <= now => {
                self.reachability = Reachability::Down { why: std::mem::take(why) };
                true
            }
            Reachability::Untried
            | Reachability::Up
            | Reachability::Failing { .. }
            | Reachability::Down { .. }
            | Reachability::Denied { .. } => false,
        }
    }

    pub(crate) fn give_up_at(&self, patience: Duration) -> Option<Instant> {
        match &self.reachability {
            Reachability::Failing { since, .. } => Some(*since + patience),
            Reachability::Untried | Reachability::Up | Reachability::Down { .. } | Reachability::Denied { .. } => None,
        }
    }

    /// Why nothing new is accepted.
    pub(crate) fn refuses(&self) -> Option<(FailureKind, &str)> {
        match &self.reachability {
            Reachability::Untried | Reachability::Up | Reachability::Failing { .. } => None,
            Reachability::Down { why } => Some((FailureKind::Unreachable, why)),
            Reachability::Denied { why, .. } => Some((FailureKind::Denied, why)),
        }
    }

    /// A connection is needed: if access was denied, the next attempt comes earlier.
    pub(crate) fn wanted(&mut self, now: Instant) {
        if let Reachability::Denied { at, .. } = &self.reachability
            && *at + DENIED_RETRY_WANTED <= now
        {
            self.back_off.succeeded();
            self.reachability = Reachability::Untried;
        }
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.back_off.is_failing()
    }

    pub(crate) fn shown(&self) -> Availability {
        match &self.reachability {
            Reachability::Untried => Availability::Untried,
            Reachability::Up => Availability::Up,
            Reachability::Failing { why, .. } | Reachability::Down { why } => Availability::Down { why: why.clone() },
            Reachability::Denied { why, .. } => Availability::Denied { why: why.clone() },
        }
    }
}
