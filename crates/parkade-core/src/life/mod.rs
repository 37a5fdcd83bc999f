//! Where a request is: one struct for each state, and a move consumes it.
//!
//! Which event moves which state is decided in one place, `machine.rs`. The diagram in `ARCHITECTURE.md` is printed from it by a test.

mod bell;
pub mod happening;
pub mod journey;
pub mod lives;
mod machine;
mod refused;
pub mod reply;
mod times;

pub use times::Times;

use crate::effect::Outcome;
use crate::life::journey::{Journey, Patience};
use crate::life::reply::Reply;
use crate::moment::Moment;
use crate::routes::RouteId;
use crate::structures::chain::Place;
use crate::waits::Watch;
use parkade_model::{TableId, Then, WorkerId};

pub use bell::Bell;
pub use refused::Refused;

#[derive(Debug)]
pub enum Life {
    Accepted(Accepted),
    Routed(Routed),
    Running(Running),
    Parked(Parked),
    Done(Done),
    Cancelled(Cancelled),
}

/// It waits to be told where it goes.
#[derive(Debug)]
pub struct Accepted {
    pub journey: Journey,
    pub place: Place,
    pub turn: Turn,
}

/// It is queued for a worker.
#[derive(Debug)]
pub struct Routed {
    pub journey: Journey,
    pub place: Place,
    pub work: Work,
}

/// A worker holds it.
#[derive(Debug)]
pub struct Running {
    pub journey: Journey,
    pub place: Place,
    pub worker: WorkerId,
    pub work: Work,
    pub reply: Reply,
}

/// No worker is busy with it.
#[derive(Debug)]
pub struct Parked {
    pub journey: Journey,
    pub watch: Watch,
    pub sequel: Sequel,
}

/// It was answered: by a worker, a message, or the core.
#[derive(Debug)]
pub struct Done;

/// It ended without its answer. Why has been told with [`ServerEffect::Forget`](crate::ServerEffect::Forget).
#[derive(Debug)]
pub struct Cancelled;

/// Which end of the queue it is put to when it is routed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Last,
    /// Its turn had come, but with a worker that knows other routes.
    Next,
}

/// What a worker is asked to do.
#[derive(Debug)]
pub enum Work {
    Handler {
        route: RouteId,
        concurrent: bool,
    },
    Fallback {
        table: TableId,
    },
    /// Boxed: it is rare beside the others, and large.
    Call {
        outcome: Box<Outcome>,
        concurrent: bool,
    },
    /// A run of a job.
    Job {
        concurrent: bool,
    },
    /// A coroutine that went on after its wait: only its own worker can do that.
    Coroutine,
}

/// What follows the wait: [`Then`](crate::Then), and whose coroutine it is.
#[derive(Debug, Clone, Copy)]
pub enum Sequel {
    Answer,
    Call { concurrent: bool },
    Await { worker: WorkerId, place: Place },
}

impl Sequel {
    pub fn then(self) -> Then {
        match self {
            Self::Answer => Then::Answer,
            Self::Call { concurrent } => Then::Call { concurrent },
            Self::Await { .. } => Then::Await,
        }
    }
}

impl Work {
    /// The routes that it was found in; a call needs none.
    pub fn table(&self) -> Option<TableId> {
        match self {
            Self::Handler { route, .. } => Some(route.table),
            Self::Fallback { table } => Some(*table),
            Self::Call { .. } | Self::Job { .. } | Self::Coroutine => None,
        }
    }

    /// The route that the worker is told.
    pub fn route(&self) -> Option<RouteId> {
        match self {
            Self::Handler { route, .. } => Some(*route),
            Self::Fallback { .. } | Self::Call { .. } | Self::Job { .. } | Self::Coroutine => None,
        }
    }

    /// Whether it is for the loop of a worker that has one.
    pub fn is_coroutine(&self) -> bool {
        match self {
            Self::Handler { concurrent, .. } | Self::Call { concurrent, .. } | Self::Job { concurrent } => *concurrent,
            Self::Fallback { .. } | Self::Coroutine => true,
        }
    }
}

impl Accepted {
    pub fn leave(self) -> (Journey, Place) {
        (self.journey, self.place)
    }

    pub fn route(mut self, work: Work, place: Place, patience: Patience) -> Routed {
        self.journey.set_patience(patience);
        Routed { journey: self.journey, place, work }
    }
}

impl Routed {
    pub fn give(self, worker: WorkerId, place: Place, now: Moment) -> Running {
        Running { journey: self.journey.queued(now), place, worker, work: self.work, reply: Reply::Awaited }
    }

    pub fn unroute(self, place: Place, turn: Turn) -> Accepted {
        Accepted { journey: self.journey, place, turn }
    }
}

impl Running {
    /// Its worker ended before it touched the request.
    pub fn return_to(self, place: Place, now: Moment) -> Routed {
        Routed { journey: self.journey.ran(now), place, work: self.work }
    }

    /// Its stream has been closed: by its answer, or by a wait.
    pub fn close(self, now: Moment) -> (Journey, Work) {
        (self.journey.ran(now), self.work)
    }
}

impl Parked {
    pub fn wake(self, now: Moment) -> (Journey, Sequel) {
        (self.journey.waited(now), self.sequel)
    }
}

impl Life {
    pub const fn state(&self) -> State {
        match self {
            Self::Accepted(_) => State::Accepted,
            Self::Routed(_) => State::Routed,
            Self::Running(_) => State::Running,
            Self::Parked(_) => State::Parked,
            Self::Done(_) => State::Done,
            Self::Cancelled(_) => State::Cancelled,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// There may be a million of them: before there were queries it had 64.
    #[test]
    fn a_life_has_at_most_72_bytes() {
        assert!(size_of::<Life>() <= 72, "{}", size_of::<Life>());
        assert_eq!(size_of::<Option<Life>>(), size_of::<Life>());
    }
}
