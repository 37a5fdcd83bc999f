//! The phase of a session: one struct for each phase with its own data.

use std::time::{Duration, Instant};

use parkade_sql::{LeaseId, SlotState};

use super::busy::Busy;
use super::cancelling::{Cancelling, Settling};
use crate::canceller::Canceller;
use crate::handshake::BackendIdentity;
use crate::job::Job;
use crate::limits::{CANCELLING_MAX, RESETTING_MAX, SETTLING_MAX};
use crate::line::TerminateMode;

#[derive(Debug)]
pub(crate) enum SessionPhase {
    Idle,
    Busy(Busy),
    /// Idle in a transaction.
    Held(LeaseId),
    Cancelling(Cancelling),
    Settling(Settling),
    /// ROLLBACK has been sent.
    Resetting,
    /// Its slot closes the connection next.
    Over(SessionEnd),
}

/// What becomes of its connection when the session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionEnd {
    /// It is closed, and the place is free.
    Closed(TerminateMode),
    /// It is closed, but the server may not have noticed yet. `is_terminated`: its process has to be terminated.
    Retired { is_terminated: bool },
}

impl SessionPhase {
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    /// Whether a statement is waiting for the server's answer.
    pub(crate) fn is_awaiting_server(&self) -> bool {
        matches!(self, Self::Busy(_) | Self::Cancelling(_) | Self::Resetting)
    }

    /// Whether nothing is expected from the server.
    pub(crate) fn is_at_rest(&self) -> bool {
        matches!(self, Self::Idle | Self::Held(_))
    }

    pub(crate) fn shown(&self) -> SlotState {
        match self {
            Self::Idle => SlotState::Idle,
            Self::Busy(_) => SlotState::Busy,
            Self::Held(_) => SlotState::Held,
            Self::Cancelling(_) => SlotState::Cancelling,
            Self::Settling(_) => SlotState::Settling,
            Self::Resetting => SlotState::Resetting,
            Self::Over(_) => SlotState::Retiring,
        }
    }

    pub(crate) fn job(&self) -> Option<&Job> {
        match self {
            Self::Busy(Busy { job, .. }) | Self::Cancelling(Cancelling { job, .. }) => Some(job),
            Self::Idle | Self::Held(_) | Self::Settling(_) | Self::Resetting | Self::Over(_) => None,
        }
    }

    /// When the phase times out, if it began at `since`.
    pub(crate) fn due(&self, since: Instant, identity: &BackendIdentity, canceller: &Canceller) -> Option<Instant> {
        match self {
            Self::Cancelling(cancelling) => {
                let end = since + CANCELLING_MAX;
                Some(cancelling.fire_at(identity, canceller).map_or(end, |due| due.min(end)))
            }
            Self::Settling(_) => Some(since + SETTLING_MAX),
            Self::Resetting => Some(since + RESETTING_MAX),
            Self::Idle | Self::Busy(_) | Self::Held(_) | Self::Over(_) => None,
        }
    }

    /// Whether it has lasted too long.
    pub(crate) fn is_expired(&self, age: Duration) -> bool {
        match self {
            Self::Cancelling(_) => age >= CANCELLING_MAX,
            Self::Settling(_) => age >= SETTLING_MAX,
            Self::Resetting => age >= RESETTING_MAX,
            Self::Idle | Self::Busy(_) | Self::Held(_) | Self::Over(_) => false,
        }
    }
}
