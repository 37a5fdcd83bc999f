//! The bytes of all open requests: heads and bodies, HTTP/1.1 and HTTP/2, arriving, queued, or with a worker that has not answered; and long messages
//! of WebSockets, arriving or not yet taken by the application.
//!
//! One budget limits them all, in addition to other limits: a queue may be as long as its requests fit in here. A request counts as the memory
//! that it takes, not as bytes on the wire, because HPACK turns few bytes into many. Beyond it: `RequestFault::RequestsFull`, from `connection/inbound`,
//! `connection/partial_request` and `h2/request`;
//! for a message, its WebSocket is closed (`message_share`).

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Shared by all code that receives requests.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Account>);

#[derive(Debug)]
struct Account {
    held: AtomicUsize,
    arriving: AtomicUsize,
    bytes_max: usize,
}

/// How much of a request has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestStage {
    /// Incomplete: its client decides how long it takes. Incomplete requests leave a quarter of the budget free, so
    /// that slow ones do not block complete ones.
    Coming,
    /// It is complete.
    Whole,
}

/// A part of the budget. It is given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Budget,
    bytes: usize,
}

/// That of a request that has begun to arrive, until [`arrived`](Self::arrived).
#[derive(Debug)]
pub struct ArrivingShare {
    reservation: Reservation,
    _counted: CountedAsArriving,
}

#[derive(Debug)]
struct CountedAsArriving(Budget);

impl Budget {
    pub fn new(bytes_max: usize) -> Self {
        Self(Arc::new(Account { held: AtomicUsize::new(0), arriving: AtomicUsize::new(0), bytes_max }))
    }

    /// Nothing yet.
    pub fn share(&self) -> Reservation {
        Reservation { budget: self.clone(), bytes: 0 }
    }

    /// The same for a request that is arriving, and counts as such.
    pub fn arriving_share(&self) -> ArrivingShare {
        self.0.arriving.fetch_add(1, Ordering::Relaxed);
        ArrivingShare { reservation: self.share(), _counted: CountedAsArriving(self.clone()) }
    }

    /// How many requests have begun to arrive, and have not arrived.
    pub fn arriving_count(&self) -> usize {
        self.0.arriving.load(Ordering::Relaxed)
    }

    pub fn held_bytes(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }

    fn bytes_max(&self, stage: RequestStage) -> usize {
        match stage {
            RequestStage::Coming => self.0.bytes_max / 4 * 3,
            RequestStage::Whole => self.0.bytes_max,
        }
    }
}

impl Reservation {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds this many bytes. As [`hold`](Self::hold).
    #[must_use]
    pub fn hold_more(&mut self, bytes: usize, stage: RequestStage) -> bool {
        self.hold(self.bytes.saturating_add(bytes), stage)
    }

    /// Changes it to this many bytes. False if there is no room for the difference: then it counts as before.
    #[must_use]
    pub fn hold(&mut self, bytes: usize, stage: RequestStage) -> bool {
        self.hold_within(bytes, self.budget.bytes_max(stage))
    }

    /// As [`hold`](Self::hold), for a message of a WebSocket. Messages leave half of the budget free for requests: a
    /// compressed one costs its client a thousandth of what it takes here.
    #[must_use]
    pub fn hold_message(&mut self, bytes: usize) -> bool {
        self.hold_within(bytes, self.budget.0.bytes_max / 2)
    }

    fn hold_within(&mut self, bytes: usize, bytes_max: usize) -> bool {
        let held = &self.budget.0.held;
        let more = bytes.saturating_sub(self.bytes);
        let grown = |before: usize| before.checked_add(more).filter(|after| more == 0 || *after <= bytes_max);
        if held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_err() {
            return false;
        }
        held.fetch_sub(self.bytes.saturating_sub(bytes), Ordering::Relaxed);
        self.bytes = bytes;
        true
    }
}

impl ArrivingShare {
    /// The server knows of the request.
    pub fn arrived(self) -> Reservation {
        self.reservation
    }
}

impl Deref for ArrivingShare {
    type Target = Reservation;

    fn deref(&self) -> &Reservation {
        &self.reservation
    }
}

impl DerefMut for ArrivingShare {
    fn deref_mut(&mut self) -> &mut Reservation {
        &mut self.reservation
    }
}

impl Drop for CountedAsArriving {
    fn drop(&mut self) {
        self.0.0.arriving.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.0.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_given_back() {
        let budget = Budget::new(100);
        let (mut one, mut other) = (budget.share(), budget.share());
        assert!(one.hold(60, RequestStage::Whole));
        assert!(other.hold(40, RequestStage::Whole));
        assert!(!other.hold(41, RequestStage::Whole), "there is no room");
        assert_eq!(budget.held_bytes(), 100);
        assert!(one.hold(10, RequestStage::Coming), "what shrinks always may");
        assert_eq!(budget.held_bytes(), 50);
        drop((one, other));
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn a_request_counts_as_arriving_until_it_has_arrived_or_ends() {
        let budget = Budget::new(100);
        let (mut one, other) = (budget.arriving_share(), budget.arriving_share());
        assert!(one.hold(60, RequestStage::Coming));
        assert_eq!(budget.arriving_count(), 2);
        drop(other);
        assert_eq!(budget.arriving_count(), 1);
        let arrived = one.arrived();
        assert_eq!((budget.arriving_count(), budget.held_bytes()), (0, 60));
        drop(arrived);
        assert_eq!((budget.arriving_count(), budget.held_bytes()), (0, 0));
    }

    #[test]
    fn what_is_still_coming_leaves_room_for_what_is_whole() {
        let budget = Budget::new(100);
        let (mut slow, mut whole) = (budget.share(), budget.share());
        assert!(slow.hold(75, RequestStage::Coming));
        assert!(!slow.hold(76, RequestStage::Coming));
        assert!(whole.hold(25, RequestStage::Whole));
        assert!(!budget.share().hold(1, RequestStage::Whole));
    }
}
