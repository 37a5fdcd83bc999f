//! Where a request is: one type for each state.
//!
//! A move consumes the state that a request leaves, so nothing of that can be used again.

use super::journey::Journey;
use super::queue::Turn;
use super::reply::Reply;
use super::work::Work;
use crate::fleet::Fleet;
use crate::refused::Refused;
use crate::structures::chain::Place;
use crate::waits::Watch;
use parkade_model::{RequestId, Then, WorkerId};

#[derive(Debug)]
pub enum Life {
    Accepted(Accepted),
    Routed(Routed),
    Running(Running),
    Parked(Parked),
    /// It was answered: by a worker, a message, or the core.
    Done,
    /// It ended without its answer. Why has been told with [`ServerEffect::Forget`](crate::ServerEffect::Forget).
    Cancelled,
}

/// It waits to be told where it goes.
#[derive(Debug)]
pub struct Accepted {
    pub journey: Journey,
    pub place: Place,
    /// Where it will stand in the queue.
    pub turn: Turn,
}

/// It is queued for a worker.
#[derive(Debug)]
pub struct Routed {
    pub journey: Journey,
    pub place: Place,
    pub work: Work,
    /// How it came into the queue.
    pub turn: Turn,
}

/// A worker holds it.
#[derive(Debug)]
pub struct Running {
    pub journey: Journey,
    pub worker: WorkerId,
    /// Where it stands in the worker.
    pub place: Place,
    pub work: Work,
    pub reply: Reply,
}

/// It waits, and no worker is busy with it.
#[derive(Debug)]
pub struct Parked {
    pub journey: Journey,
    pub watch: Watch,
    pub sequel: Sequel,
}

/// What follows the wait: [`Then`](crate::Then), and whose coroutine it is.
#[derive(Debug, Clone, Copy)]
pub enum Sequel {
    Answer,
    Call {
        concurrent: bool,
    },
    /// `place`: where the coroutine stands in its worker. `has_plain`: see [`Work::Coroutine`].
    Await {
        worker: WorkerId,
        place: Place,
        has_plain: bool,
    },
    /// The same, of a branch of the coroutine.
    Branch {
        worker: WorkerId,
        place: Place,
    },
    /// What comes of it counts for the group that it is a member of.
    Member,
    /// A script is told, and may ask for the next thing.
    Tell,
}

/// The name of a state, without what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    Accepted,
    Routed,
    Running,
    Parked,
    Done,
    Cancelled,
}

/// A happening that a state does not answer to: the life is handed back as it was.
pub struct Unmoved {
    pub life: Life,
    pub refused: Refused,
}

impl Running {
    pub fn new(journey: Journey, worker: WorkerId, place: Place, work: Work) -> Self {
        Self { journey, worker, place, work, reply: Reply::Awaited }
    }
}

impl Sequel {
    /// Of a wait that a worker asked for.
    pub fn of(then: Then, fleet: &mut Fleet, worker: WorkerId, request: RequestId, has_plain: bool) -> Self {
        match then {
            Then::Answer => Self::Answer,
            Then::Call { concurrent } => Self::Call { concurrent },
            Then::Await => Self::Await { worker, place: fleet.workers.park(worker, request), has_plain },
        }
    }

    /// Of a wait that a route declares: no coroutine waits.
    pub fn without_worker(then: Then) -> Option<Self> {
        match then {
            Then::Answer => Some(Self::Answer),
            Then::Call { concurrent } => Some(Self::Call { concurrent }),
            Then::Await => None,
        }
    }

    pub fn then(self) -> Then {
        match self {
            Self::Answer => Then::Answer,
            Self::Call { concurrent } => Then::Call { concurrent },
            // The outcome is needed whole.
            Self::Member => Then::Call { concurrent: false },
            Self::Await { .. } | Self::Branch { .. } | Self::Tell => Then::Await,
        }
    }

    /// The worker whose coroutine waits.
    pub fn awaiting_worker(self) -> Option<WorkerId> {
        match self {
            Self::Await { worker, .. } | Self::Branch { worker, .. } => Some(worker),
            Self::Answer | Self::Call { .. } | Self::Member | Self::Tell => None,
        }
    }

    /// Whether it is one of several waits of a request, which ends with it.
    pub fn is_branch(self) -> bool {
        matches!(self, Self::Branch { .. } | Self::Member)
    }

    /// The wait is over: its coroutine does not wait any more.
    pub fn leave(self, fleet: &mut Fleet) {
        if let Self::Await { worker, place, .. } | Self::Branch { worker, place } = self {
            fleet.workers.leave(worker, place);
        }
    }
}

impl Life {
    pub const fn state(&self) -> State {
        match self {
            Self::Accepted(_) => State::Accepted,
            Self::Routed(_) => State::Routed,
            Self::Running(_) => State::Running,
            Self::Parked(_) => State::Parked,
            Self::Done => State::Done,
            Self::Cancelled => State::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There may be a million of them.
    #[test]
    fn a_life_has_at_most_56_bytes() {
        assert!(size_of::<Life>() <= 56, "{}", size_of::<Life>());
        assert_eq!(size_of::<Option<Life>>(), size_of::<Life>());
    }
}
