//! The cancels of one statement: how many were sent, how many may still be under way, when the next is due.

use std::time::{Duration, Instant};

use crate::limits::{GRACE, REPEATS};

/// How a cancel travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelRoute {
    /// `pg_cancel_backend` on the reserved connection; its reply is the acknowledgement.
    Canceller,
    /// A `CancelRequest` on a new connection, which the server closes as the acknowledgement.
    Request,
}

#[derive(Debug)]
pub(crate) struct Cancels {
    pub(crate) route: CancelRoute,
    pub(crate) sent: usize,
    /// Sent and not acknowledged: they may hit whatever runs when they arrive.
    pub(crate) unacked: usize,
    /// Statements that were ended by one of them.
    pub(crate) hits: usize,
    /// One was lost on its way: it may arrive at any time.
    pub(crate) is_tainted: bool,
    /// `None`: one is under way.
    pub(crate) due: Option<Instant>,
}

impl Cancels {
    pub(crate) fn new(now: Instant, route: CancelRoute) -> Self {
        let grace = if cfg!(feature = "without-fence") { Duration::ZERO } else { GRACE };
        Self { route, sent: 0, unacked: 0, hits: 0, is_tainted: false, due: Some(now + grace) }
    }

    /// How the next one travels, if it is due.
    pub(crate) fn due_route(&self, now: Instant) -> Option<CancelRoute> {
        self.due.filter(|due| *due <= now).map(|_| self.route)
    }

    /// One is sent. Returns how many that makes.
    pub(crate) fn fire(&mut self) -> usize {
        self.sent += 1;
        self.unacked += 1;
        self.due = None;
        self.sent
    }

    /// A cancel has been delivered, with or without effect: it cannot hit anything that is sent from now on.
    pub(crate) fn acknowledge(&mut self, now: Instant) {
        self.unacked -= 1;
        self.due = Some(now + REPEATS[self.sent.clamp(1, REPEATS.len()) - 1]);
    }

    /// It had no effect: another way is tried.
    pub(crate) fn change_route(&mut self, now: Instant, route: CancelRoute) {
        self.route = route;
        self.due = Some(now);
    }

    /// None of them can hit the next statement (fence 2).
    pub(crate) fn are_over(&self) -> bool {
        cfg!(feature = "without-fence") || (self.unacked == 0 && !self.is_tainted)
    }

    /// A pooler forwards cancels whenever it likes: only a cancel that was seen to hit is known to be over.
    pub(crate) fn are_over_behind_a_pooler(&self) -> bool {
        cfg!(feature = "without-fence")
            || self.sent == 0
            || (self.sent == 1 && self.unacked == 0 && !self.is_tainted && self.hits == 1)
    }
}
