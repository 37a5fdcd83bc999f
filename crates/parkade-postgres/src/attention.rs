//! The pool's clock, which stands still while the pool's owner does.
//!
//! The owner may be stopped: no CPU for its thread, SIGSTOP, a suspended machine. Meanwhile data waits in the sockets,
//! and the other end may have been stopped as well. If that time counted, timeouts would expire before anything is
//! read. So a turn that comes much later than the pool has asked for is treated as if it came just before it was due.

use std::time::{Duration, Instant};

use crate::limits::{LOOK_EVERY, LOOK_WITHIN, RESPITE, STOOD_STILL_MIN};

#[derive(Debug)]
pub(crate) struct Attention {
    /// On the pool's clock.
    now: Instant,
    /// How far the pool's clock is behind the owner's.
    missed: Duration,
    /// When the next turn is due, on the pool's clock.
    due: Option<Instant>,
    /// What the last late turn put off. Nothing is put off twice, otherwise it might never happen.
    put_off: Option<Instant>,
}

impl Attention {
    pub(crate) fn new(now: Instant) -> Self {
        Self { now, missed: Duration::ZERO, due: None, put_off: None }
    }

    /// The owner takes a turn. Returns the time on the pool's clock, which never goes back.
    pub(crate) fn looks(&mut self, told: Instant) -> Instant {
        let now = self.of(told);
        self.now = match self.due.filter(|due| *due + STOOD_STILL_MIN < now) {
            Some(due) => self.stood_still(now, due),
            None => now,
        };
        self.now
    }

    fn stood_still(&mut self, now: Instant, due: Instant) -> Instant {
        self.due = None;
        let before = due.checked_sub(RESPITE).filter(|_| self.put_off.replace(due) != Some(due)).unwrap_or(due);
        let counted = before.max(self.now);
        self.missed += now - counted;
        counted
    }

    /// Converts a time of the owner to the pool's clock.
    pub(crate) fn of(&self, told: Instant) -> Instant {
        told.checked_sub(self.missed).map_or(self.now, |now| now.max(self.now))
    }

    /// When the owner has to take its next turn, if something in the pool is due at that time. If it is due soon, there
    /// are turns in between; otherwise it would be unknown how long the owner was stopped.
    pub(crate) fn next_look(&self, due: Instant) -> Instant {
        self.turn_of(due) + self.missed
    }

    fn turn_of(&self, due: Instant) -> Instant {
        let is_soon = due.saturating_duration_since(self.now) < LOOK_WITHIN;
        if is_soon { due.min(self.now + LOOK_EVERY) } else { due }
    }

    /// A turn is over. `due`: when the next one is needed.
    pub(crate) fn awaits(&mut self, due: Option<Instant>) {
        self.due = due.map(|due| self.turn_of(due));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn begun() -> (Attention, Instant) {
        let now = Instant::now();
        (Attention::new(now), now)
    }

    #[test]
    fn a_turn_that_comes_in_time_passes_time() {
        let (mut attention, began) = begun();
        for seconds in 1..100 {
            attention.awaits(Some(began + (seconds + 4) * SECOND));
            assert_eq!(attention.looks(began + seconds * SECOND), began + seconds * SECOND);
        }
    }

    #[test]
    fn what_is_due_long_after_needs_no_look_before() {
        let (attention, began) = begun();
        assert_eq!(attention.next_look(began + 600 * SECOND), began + 600 * SECOND);
        assert_eq!(attention.next_look(began + 5 * SECOND), began + LOOK_EVERY);
    }

    #[test]
    fn a_turn_that_comes_late_passes_no_more_than_until_just_before_it_was_due() {
        let (mut attention, began) = begun();
        attention.awaits(Some(began + 5 * SECOND));
        let now = attention.looks(began + 60 * SECOND);
        assert_eq!(now + RESPITE, began + LOOK_EVERY);
        assert_eq!(attention.looks(began + 61 * SECOND), now + SECOND, "it goes on from there");
        assert_eq!(attention.next_look(now + 600 * SECOND), began + 660 * SECOND);
    }

    #[test]
    fn nothing_is_put_off_twice() {
        let (mut attention, began) = begun();
        let due = began + LOOK_EVERY;
        for (told, left) in [(60, RESPITE), (120, Duration::ZERO)] {
            attention.awaits(Some(due));
            assert_eq!(attention.looks(began + told * SECOND) + left, due);
        }
    }

    #[test]
    fn time_never_goes_back() {
        let (mut attention, began) = begun();
        attention.looks(began + SECOND);
        attention.awaits(Some(began + SECOND + Duration::from_millis(3)));
        assert_eq!(attention.looks(began + 60 * SECOND), began + SECOND);
        assert_eq!(attention.looks(began), began + SECOND);
    }
}
