//! The phase of a slot: one struct for each phase with its own data.

use std::time::{Duration, Instant};

use parkade_sql::{LeaseId, SlotState};

use super::busy::Busy;
use super::cancelling::{Cancelling, Settling};
use super::retiring::Retiring;
use crate::canceller::Canceller;
use crate::dial::Dial;
use crate::handshake::BackendIdentity;
use crate::job::Job;
use crate::limits::{CANCELLING_MAX, RESETTING_MAX, RETIRING_MAX, SETTLING_MAX};

#[derive(Debug)]
pub(crate) enum SlotPhase {
    /// The socket is being opened, or the handshake is under way.
    Connecting(Dial),
    Idle,
    Busy(Busy),
    /// Idle in a transaction.
    Held(LeaseId),
    Cancelling(Cancelling),
    Settling(Settling),
    /// ROLLBACK has been sent.
    Resetting,
    /// The connection is closed, but its server process may still exist.
    Retiring(Retiring),
    /// The connection is closed, and its place free. Also used while a phase is moved.
    Gone,
}

impl SlotPhase {
    /// Whether the connection is closed.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self, Self::Retiring(_) | Self::Gone)
    }

    /// Whether it is logged in and open.
    pub(crate) fn is_connected(&self) -> bool {
        !matches!(self, Self::Connecting(_)) && !self.is_closed()
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
            Self::Connecting(_) => SlotState::Connecting,
            Self::Idle => SlotState::Idle,
            Self::Busy(_) => SlotState::Busy,
            Self::Held(_) => SlotState::Held,
            Self::Cancelling(_) => SlotState::Cancelling,
            Self::Settling(_) => SlotState::Settling,
            Self::Resetting => SlotState::Resetting,
            Self::Retiring(_) | Self::Gone => SlotState::Retiring,
        }
    }

    pub(crate) fn job(&self) -> Option<&Job> {
        match self {
            Self::Busy(Busy { job, .. }) | Self::Cancelling(Cancelling { job, .. }) => Some(job),
            Self::Connecting(_)
            | Self::Idle
            | Self::Held(_)
            | Self::Settling(_)
            | Self::Resetting
            | Self::Retiring(_)
            | Self::Gone => None,
        }
    }

    /// When the phase times out, if it began at `since`.
    pub(crate) fn due(
        &self,
        since: Instant,
        connect_timeout: Duration,
        identity: &BackendIdentity,
        canceller: &Canceller,
    ) -> Option<Instant> {
        match self {
            Self::Connecting(dial) => Some(dial.due(connect_timeout)),
            Self::Cancelling(cancelling) => {
                let end = since + CANCELLING_MAX;
                Some(cancelling.fire_at(identity, canceller).map_or(end, |due| due.min(end)))
            }
            Self::Settling(_) => Some(since + SETTLING_MAX),
            Self::Resetting => Some(since + RESETTING_MAX),
            Self::Retiring(retiring) => Some(retiring.look_at().min(since + RETIRING_MAX)),
            Self::Idle | Self::Busy(_) | Self::Held(_) | Self::Gone => None,
        }
    }

    /// Whether it has lasted too long.
    pub(crate) fn is_expired(&self, age: Duration) -> bool {
        match self {
            Self::Cancelling(_) => age >= CANCELLING_MAX,
            Self::Settling(_) => age >= SETTLING_MAX,
            Self::Resetting => age >= RESETTING_MAX,
            Self::Retiring(_) => age >= RETIRING_MAX,
            Self::Connecting(_) | Self::Idle | Self::Busy(_) | Self::Held(_) | Self::Gone => false,
        }
    }
}
