//! Connections that are closed because nobody can say what would hit them; their places are free when their server processes are gone.

use parkade_sql::{Certainty, FailureKind, QueryEnd, QueryFailure};

use super::Pool;
use super::cancelling::target;
use crate::canceller::{Aim, Batch, Target};
use crate::lease::Part;
use crate::limits::{CANCELLING_MAX, DOOMED_LOOK, DOOMED_MAX, RESETTING_MAX, SETTLING_MAX};
use crate::line::Manner;
use crate::slot::{Doomed, Settling, State, Then};

impl Pool {
    /// States that last too long.
    pub(super) fn expire(&mut self) {
        for index in 0..self.slots.len() {
            let Some(slot) = &self.slots[index] else { continue };
            let age = self.now.saturating_duration_since(slot.since);
            match &slot.state {
                State::Cancelling(_) if age >= CANCELLING_MAX => self.doom_cancelling(index, true),
                State::Settling(_) if age >= SETTLING_MAX => self.doom_settling(index),
                State::Resetting(_) if age >= RESETTING_MAX => self.doom(index, false),
                State::Doomed(_) if age >= DOOMED_MAX => self.free(index),
                State::Cancelling(_)
                | State::Settling(_)
                | State::Resetting(_)
                | State::Doomed(_)
                | State::Connecting(_)
                | State::Idle(_)
                | State::Busy(_)
                | State::Held(_)
                | State::Moving => {}
            }
        }
    }

    /// The statement does not hear us: its process is ended.
    pub(super) fn doom_cancelling(&mut self, index: usize, is_terminated: bool) {
        let State::Cancelling(cancelling) = self.slot(index).leave() else { return };
        let job = cancelling.job;
        let certainty = if job.is_run() { Certainty::Unknown } else { Certainty::NotDone };
        let message = "the statement could not be cancelled: its connection was closed";
        let failure = QueryFailure { certainty, ..QueryFailure::new(FailureKind::Lost, message) };
        self.end_query(job.query, QueryEnd::Failed(failure));
        if let Some(lease) = Part::of(&job.work).lease() {
            self.close_lease(lease, &lost_transaction());
        }
        self.doom(index, is_terminated);
    }

    pub(super) fn doom_settling(&mut self, index: usize) {
        if let State::Settling(Settling { then: Then::Hold(lease), .. }) = &self.slot(index).state {
            let lease = *lease;
            self.lose_lease(lease);
        }
        self.doom(index, false);
    }

    /// Closes the connection; the place stays taken until the process is gone, or the pool would have more of them than it may.
    pub(super) fn doom(&mut self, index: usize, is_terminated: bool) {
        let now = self.now;
        let slot = self.slot(index);
        let line = slot.line;
        slot.wire.out.clear();
        slot.enter(State::Doomed(Doomed { look_at: now, is_terminated }), now);
        let is_known = !slot.identity.backend_start.is_empty() && !slot.identity.is_pooled;
        self.close_line(line, Manner::Abrupt);
        // Behind a pooler nobody is told: it ends the statement in its own way.
        self.counts.terminated += u64::from(is_terminated && is_known);
        if !is_known {
            self.free(index);
        }
    }

    pub(super) fn free(&mut self, index: usize) {
        self.slots[index] = None;
    }

    /// Asks after the processes of closed connections.
    pub(super) fn look(&mut self) {
        let now = self.now;
        let (mut ending, mut looked_for) = (Vec::new(), Vec::new());
        for index in 0..self.slots.len() {
            let Some(slot) = &mut self.slots[index] else { continue };
            let State::Doomed(doomed) = &mut slot.state else { continue };
            if doomed.look_at > now {
                continue;
            }
            if !self.canceller.is_hopeful() {
                self.free(index);
            } else if self.canceller.is_free(now) && self.canceller.serves(&slot.identity) {
                let list = if doomed.is_terminated { &mut ending } else { &mut looked_for };
                doomed.look_at = now + DOOMED_LOOK;
                list.push(target(index, slot));
            } else {
                doomed.look_at = now + DOOMED_LOOK;
            }
        }
        // One at a time: those that are to be ended come first.
        if !ending.is_empty() {
            self.ask(Batch { aim: Aim::Terminate, targets: ending });
        } else if !looked_for.is_empty() {
            self.ask(Batch { aim: Aim::Look, targets: looked_for });
        }
    }

    /// The canceller has looked: `is_reached` says who is still there.
    pub(super) fn looked(&mut self, aim: Aim, targets: Vec<Target>) {
        for target in targets {
            let now = self.now;
            let Some(slot) = self.slots[target.slot].as_mut().filter(|slot| slot.line == target.line) else { continue };
            let State::Doomed(doomed) = &mut slot.state else { continue };
            if target.is_reached {
                doomed.look_at = now + DOOMED_LOOK;
                doomed.is_terminated &= aim != Aim::Terminate;
            } else {
                self.free(target.slot);
            }
        }
    }
}

pub(super) fn lost_transaction() -> QueryFailure {
    QueryFailure::new(FailureKind::Lost, "the transaction was lost with its connection, and has been rolled back")
}
