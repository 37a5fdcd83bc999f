//! A connection for queries: one struct for each state, and a move consumes it.
//!
//! Which event moves which state is decided in `pool`: `hearing` for what the server says, `cancelling` for the rest of a cancelled
//! statement's life. `docs/queries.md` has the machine.

mod cancels;

use std::time::Instant;

use parkade_sql::{LeaseId, QueryFailure, QueryId, SlotState};

pub(crate) use cancels::{Cancels, Transport};

use crate::dial::Dial;
use crate::handshake::Identity;
use crate::job::Job;
use crate::line::Line;
use crate::statements::Statements;
use crate::wire::Wire;

#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) line: Line,
    pub(crate) wire: Wire,
    pub(crate) identity: Identity,
    pub(crate) statements: Statements,
    /// As many changes of tables were known when it began with these statements.
    pub(crate) changes: u64,
    /// Counts the statements: a cancel belongs to one of them (fence 1).
    pub(crate) epoch: u64,
    /// Its session is not what it was made to be: nobody else is to have it.
    pub(crate) is_changed: bool,
    /// How often the present query has been on a connection that broke before it ran.
    pub(crate) tries: u8,
    /// When it came into this state.
    pub(crate) since: Instant,
    pub(crate) state: State,
}

#[derive(Debug)]
pub(crate) enum State {
    Connecting(Connecting),
    Idle(Idle),
    Busy(Busy),
    Held(Held),
    Cancelling(Cancelling),
    Settling(Settling),
    Resetting(Resetting),
    Doomed(Doomed),
    /// Only while a state is moved.
    Moving,
}

/// The socket is being opened, or the server greeted.
#[derive(Debug)]
pub(crate) struct Connecting {
    pub(crate) dial: Dial,
}

#[derive(Debug)]
pub(crate) struct Idle;

#[derive(Debug)]
pub(crate) struct Busy {
    pub(crate) job: Job,
    /// Somebody wanted to cancel what is never cancelled.
    pub(crate) is_unwanted: bool,
}

/// Idle in somebody's transaction.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) lease: LeaseId,
}

#[derive(Debug)]
pub(crate) struct Cancelling {
    pub(crate) job: Job,
    pub(crate) why: Why,
    pub(crate) cancels: Cancels,
}

/// Why a statement is cancelled.
#[derive(Debug)]
pub(crate) enum Why {
    /// Nobody waits for it any more.
    Unwanted,
    /// Its rows are not what was asked for.
    Failed(QueryFailure),
}

/// The statement is over; its cancels may still be under way.
#[derive(Debug)]
pub(crate) struct Settling {
    pub(crate) cancels: Cancels,
    pub(crate) then: Then,
}

/// What follows when nothing is under way any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Idle,
    /// The transaction goes on, if its holder is still there.
    Hold(LeaseId),
    Reset,
}

/// ROLLBACK has been sent.
#[derive(Debug)]
pub(crate) struct Resetting;

/// The connection is closed; its server process may still be there.
#[derive(Debug)]
pub(crate) struct Doomed {
    /// When the server is asked next whether the process is gone.
    pub(crate) look_at: Instant,
    /// It has to be told to end: it did not hear us.
    pub(crate) is_terminated: bool,
}

impl Busy {
    pub(crate) fn new(job: Job) -> Self {
        Self { job, is_unwanted: false }
    }

    pub(crate) fn cancel(self, why: Why, now: Instant, transport: Transport) -> Cancelling {
        let mut job = self.job;
        job.detach();
        Cancelling { job, why, cancels: Cancels::new(now, transport) }
    }
}

impl State {
    pub(crate) fn name(&self) -> SlotState {
        match self {
            Self::Connecting(_) => SlotState::Connecting,
            Self::Idle(_) => SlotState::Idle,
            Self::Busy(_) => SlotState::Busy,
            Self::Held(_) => SlotState::Held,
            Self::Cancelling(_) => SlotState::Cancelling,
            Self::Settling(_) => SlotState::Settling,
            Self::Resetting(_) => SlotState::Resetting,
            Self::Doomed(_) | Self::Moving => SlotState::Doomed,
        }
    }

    pub(crate) fn query(&self) -> Option<QueryId> {
        self.job().map(|job| job.query)
    }

    pub(crate) fn job(&self) -> Option<&Job> {
        match self {
            Self::Busy(Busy { job, .. }) | Self::Cancelling(Cancelling { job, .. }) => Some(job),
            Self::Connecting(_)
            | Self::Idle(_)
            | Self::Held(_)
            | Self::Settling(_)
            | Self::Resetting(_)
            | Self::Doomed(_)
            | Self::Moving => None,
        }
    }
}

impl Slot {
    pub(crate) fn connecting(line: Line, now: Instant, row_bytes_max: usize) -> Self {
        Self {
            line,
            wire: Wire::new(row_bytes_max),
            identity: Identity::default(),
            statements: Statements::default(),
            epoch: 0,
            is_changed: false,
            changes: 0,
            tries: 0,
            since: now,
            state: State::Connecting(Connecting { dial: Dial::new(now) }),
        }
    }

    pub(crate) fn enter(&mut self, state: State, now: Instant) {
        self.state = state;
        self.since = now;
    }

    /// The state, to be moved; `enter` has to follow.
    pub(crate) fn leave(&mut self) -> State {
        std::mem::replace(&mut self.state, State::Moving)
    }

    /// Nothing of the last flight has left this process.
    pub(crate) fn is_unsent(&self, job: &Job) -> bool {
        job.flight_bytes > 0 && self.wire.out.len() >= job.flight_bytes
    }
}
