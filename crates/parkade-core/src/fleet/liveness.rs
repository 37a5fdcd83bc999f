//! Whether the event loop of a worker turns: it is pinged, and judged by how long it takes to answer.

use crate::limits::{PAUSE_MAX, STUCK_MAX};
use crate::moment::Moment;
use std::time::Duration;

#[derive(Debug, Clone, Copy, Default)]
pub struct Liveness {
    /// Since when a ping is not answered, as far as that is the worker's fault. Nothing new is given to it meanwhile.
    unanswered: Option<Moment>,
    token: u64,
    /// When the next ping is sent.
    next: Moment,
    /// Whether its stack has been asked for since it last answered.
    is_stack_shown: bool,
    /// Since when its link has not been read.
    paused: Option<Moment>,
}

impl Liveness {
    pub fn begin(&mut self, next: Moment) {
        self.next = next;
    }

    /// The token of the ping to be sent, unless one is on its way.
    pub fn ping(&mut self, now: Moment) -> Option<u64> {
        if self.unanswered.is_some() {
            return None;
        }
        self.unanswered = Some(now);
        self.token += 1;
        Some(self.token)
    }

    /// Whether this answers the ping that was sent.
    pub fn pong(&mut self, token: u64, next: Moment) -> bool {
        let answers = self.unanswered.is_some() && self.token == token;
        if answers {
            (self.unanswered, self.is_stack_shown, self.next) = (None, false, next);
        }
        answers
    }

    pub fn pause(&mut self, now: Moment) {
        self.paused.get_or_insert(now);
    }

    /// The link is read again. An unanswered ping is as old as it was before the pause.
    pub fn resume(&mut self, now: Moment) {
        if let Some(since) = self.paused.take() {
            self.unanswered = self.unanswered.map(|sent| sent + (now - since.max(sent)));
        }
    }

    /// The core itself did not run until now.
    pub fn forgive(&mut self, now: Moment) {
        self.unanswered = self.unanswered.map(|_| now);
    }

    pub fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Whether it has not answered a ping yet: then it has begun nothing new.
    pub fn is_silent(&self) -> bool {
        self.unanswered.is_some()
    }

    pub fn is_silent_for(&self, now: Moment, time: Duration) -> bool {
        self.unanswered.is_some_and(|sent| now - sent >= time)
    }

    pub fn is_ping_due(&self, now: Moment) -> bool {
        self.unanswered.is_none() && self.next <= now
    }

    /// Whether its stack is to be shown because it is silent: once, until it answers.
    pub fn is_stack_due(&mut self, now: Moment, stuck_after: Duration) -> bool {
        !self.is_paused() && self.is_silent_for(now, stuck_after) && !self.show_stack()
    }

    /// Whether it had been shown before.
    pub fn show_stack(&mut self) -> bool {
        std::mem::replace(&mut self.is_stack_shown, true)
    }

    /// Whether it has been silent for too long while its link was read.
    pub fn is_stuck(&self, now: Moment, stuck_after: Duration) -> bool {
        !self.is_paused() && self.is_silent_for(now, STUCK_MAX.max(stuck_after))
    }

    /// When the next of these will be.
    pub fn due(&self, stuck_after: Duration) -> Option<Moment> {
        match self.unanswered {
            None => Some(self.next),
            Some(_) if self.is_paused() => None,
            Some(sent) if !self.is_stack_shown => Some(sent + stuck_after),
            Some(sent) => Some(sent + STUCK_MAX.max(stuck_after)),
        }
    }
}

/// Whether the core itself was stopped (`SIGSTOP`, suspend), which should have run at `due`.
pub fn was_core_paused(now: Moment, due: Option<Moment>) -> bool {
    due.is_some_and(|due| now - due >= PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUCK_AFTER: Duration = Duration::from_secs(5);

    fn at(second: u64) -> Moment {
        Moment::from_nanos(second * 1_000_000_000)
    }

    #[test]
    fn the_stack_of_a_silent_loop_is_shown_once_until_it_answers() {
        let mut liveness = Liveness::default();
        assert_eq!(liveness.ping(at(1)), Some(1));
        assert_eq!(liveness.ping(at(2)), None, "one is on its way");
        assert!(!liveness.is_stack_due(at(5), STUCK_AFTER) && liveness.is_stack_due(at(6), STUCK_AFTER));
        assert!(!liveness.is_stack_due(at(7), STUCK_AFTER));
        assert!(!liveness.pong(2, at(8)) && liveness.pong(1, at(8)) && !liveness.pong(1, at(8)));
        assert_eq!(liveness.ping(at(8)), Some(2));
        assert!(liveness.is_stack_due(at(13), STUCK_AFTER));
        assert!(!liveness.is_stuck(at(37), STUCK_AFTER) && liveness.is_stuck(at(38), STUCK_AFTER));
    }

    #[test]
    fn a_loop_that_nobody_hears_is_not_blamed_for_its_silence() {
        let mut liveness = Liveness::default();
        liveness.ping(at(1));
        liveness.pause(at(3));
        assert!(liveness.due(STUCK_AFTER).is_none() && !liveness.is_stack_due(at(100), STUCK_AFTER));
        liveness.resume(at(103));
        assert_eq!(liveness.due(STUCK_AFTER), Some(at(106)));
    }
}
