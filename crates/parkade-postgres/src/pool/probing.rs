//! Asking a database that says nothing whether it is there.

use std::time::Instant;

use parkade_sql::Availability;

use super::{Phase, Pool};
use crate::canceller::{Aim, Batch};
use crate::slot::State;

impl Pool {
    /// Asks, or takes it for away.
    pub(super) fn probe(&mut self) {
        if self.probe_due().is_none_or(|due| due > self.now) {
            return;
        }
        if self.canceller.asked_at().is_none() {
            return self.ask(Batch { aim: Aim::Look, targets: Vec::new() });
        }
        self.silence.is_unbroken = true;
        tracing::warn!(database = %self.name, "the database {} {}", self.name, SILENT);
    }

    pub(super) fn probe_due(&self) -> Option<Instant> {
        if self.silence.is_unbroken || self.is_pooled || self.phase != Phase::Open {
            return None;
        }
        let asked = self.oldest_question()?;
        match (self.canceller.free_at(), self.canceller.asked_at()) {
            (Some(free), _) => Some(self.silence.probe_at(asked).max(free)),
            (None, Some(probed)) => Some(self.silence.give_up_at(asked, probed)),
            // Somebody asks as soon as the canceller is dialled again.
            (None, None) => None,
        }
    }

    /// When the statement began that has gone without an end for longest.
    fn oldest_question(&self) -> Option<Instant> {
        let is_asked = |state: &State| matches!(state, State::Busy(_) | State::Cancelling(_) | State::Resetting(_));
        self.slots.iter().flatten().filter(|slot| is_asked(&slot.state)).map(|slot| slot.since).min()
    }

    pub(super) fn shown_reach(&self) -> Availability {
        match self.reaching.shown() {
            Availability::Up if self.silence.is_unbroken => Availability::Down { why: format!("it {SILENT}") },
            reach => reach,
        }
    }
}

const SILENT: &str = "does not answer: nothing comes over any of its connections, though statements run and it was asked whether it is there";
