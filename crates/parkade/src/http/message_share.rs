//! What a WebSocket holds of the budget of all requests, for long messages of its client.
//!
//! A message counts from the time when it begins to arrive until whoever gets it has room for the next one: so the
//! budget bounds the messages that are with workers, too. A short one, or a message that fits into the window, is not
//! counted: the window bounds these for each WebSocket.

use std::time::Duration;

use super::budget::{Budget, Reservation};
use super::limits::{BODY_BYTES_PER_SECOND_MIN, SOCKET_UNCOUNTED_BYTES};
use super::tick::Tick;

/// Nothing for most WebSockets, and for idle ones.
#[derive(Debug, Default)]
pub struct MessageShare(Option<Box<Held>>);

#[derive(Debug)]
struct Held {
    reservation: Reservation,
    began: Tick,
    /// When a byte of the message came last.
    progressed: Tick,
}

impl MessageShare {
    /// Changes it to this many bytes. False if there is no room for them.
    #[must_use]
    pub fn hold(&mut self, bytes: usize, budget: &Budget, now: Tick) -> bool {
        if bytes <= SOCKET_UNCOUNTED_BYTES {
            self.0 = None;
            return true;
        }
        let held =
            self.0.get_or_insert_with(|| Box::new(Held { reservation: budget.share(), began: now, progressed: now }));
        if held.reservation.bytes() != bytes {
            held.progressed = now;
        }
        held.reservation.hold_message(bytes)
    }

    pub fn release(&mut self) {
        self.0 = None;
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether a message that is arriving takes too long: the same is asked of the body of a request.
    pub fn is_too_slow(&self, stall: Duration, now: Tick) -> bool {
        self.0.as_ref().is_some_and(|held| {
            let earned = Duration::from_secs(held.reservation.bytes() as u64 / BODY_BYTES_PER_SECOND_MIN);
            now.since(held.progressed) > stall || now.since(held.began) > stall + earned
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::budget::RequestStage;

    const STALL: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Tick {
        Tick::at(Duration::from_secs(seconds))
    }

    #[test]
    fn only_what_is_long_is_counted() {
        let (budget, mut share) = (Budget::new(100_000), MessageShare::default());
        assert!(share.hold(SOCKET_UNCOUNTED_BYTES, &budget, at(0)));
        assert_eq!((share.is_empty(), budget.held_bytes()), (true, 0));
        assert!(share.hold(50_000, &budget, at(0)));
        assert_eq!(budget.held_bytes(), 50_000);
        assert!(!share.hold(50_001, &budget, at(0)), "half is left to requests");
        assert!(budget.share().hold(50_000, RequestStage::Whole));
        assert!(share.hold(0, &budget, at(0)));
        assert_eq!((share.is_empty(), budget.held_bytes()), (true, 0));
        assert!(share.hold(50_000, &budget, at(0)));
        drop(share);
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn a_message_has_to_go_on_and_to_arrive_at_a_rate() {
        let (budget, mut share) = (Budget::new(1_000_000), MessageShare::default());
        assert!(!share.is_too_slow(STALL, at(1_000)), "there is none");
        assert!(share.hold(20_000, &budget, at(0)));
        assert!(!share.is_too_slow(STALL, at(10)));
        assert!(share.is_too_slow(STALL, at(11)), "it has stalled");
        for seconds in 1..=50 {
            assert!(share.hold(20_000 + seconds, &budget, at(seconds as u64)));
            assert!(!share.is_too_slow(STALL, at(seconds as u64)));
        }
        assert!(share.hold(20_100, &budget, at(51)));
        assert!(share.is_too_slow(STALL, at(51)), "a byte in a second is too few");
    }
}
