//! What is due: the pool is told the time, and says when it wants to be told again.

use std::time::Instant;

use super::{Phase, Pool};
use crate::limits::{DOOMED_MAX, IDLE_MAX, RESETTING_MAX, SETTLING_MAX};
use crate::line::Manner;
use crate::slot::{Slot, State};

impl Pool {
    /// Before what has come is heard: what is due by the time.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.now = self.attention.looks(now);
        self.time_out_dials();
        self.time_out_helpers();
        self.expire();
        if self.reaching.give_up(self.now, self.options.connect_timeout) && !self.has_connections() {
            self.fail_refused();
        }
        self.shrink();
    }

    /// Behind what has come: what can be begun now.
    pub(crate) fn act(&mut self) {
        self.dispatch();
        self.fire();
        self.look();
        self.probe();
        self.grow();
        self.open_helpers();
        self.close_helpers();
        self.attention.awaits(self.due());
    }

    /// Closes what has not been used for long, but one.
    fn shrink(&mut self) {
        if self.idle_due().is_some_and(|due| due <= self.now) {
            self.drop_slot(self.idle[0], Manner::Polite);
        }
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.due().map(|due| self.attention.next_look(due))
    }

    fn due(&self) -> Option<Instant> {
        let slots = self.slots.iter().flatten().filter_map(|slot| self.slot_due(slot));
        let timeout = self.options.connect_timeout;
        let others = [
            self.canceller.due(timeout),
            self.listener.due(timeout),
            self.requests.next_due(),
            self.reaching.give_up_at(timeout).filter(|_| self.phase == Phase::Open),
            self.dial_due(),
            self.idle_due(),
            self.probe_due(),
        ];
        slots.chain(others.into_iter().flatten()).min()
    }

    fn slot_due(&self, slot: &Slot) -> Option<Instant> {
        match &slot.state {
            State::Connecting(connecting) => Some(connecting.dial.due(self.options.connect_timeout)),
            State::Cancelling(cancelling) => Some(self.cancel_due(slot, &cancelling.cancels)),
            State::Settling(_) => Some(slot.since + SETTLING_MAX),
            State::Resetting(_) => Some(slot.since + RESETTING_MAX),
            State::Doomed(doomed) => Some(doomed.look_at.min(slot.since + DOOMED_MAX)),
            State::Idle(_) | State::Busy(_) | State::Held(_) | State::Moving => None,
        }
    }

    /// When something may be dialled that may not be now.
    fn dial_due(&self) -> Option<Instant> {
        if self.phase != Phase::Open {
            return None;
        }
        let is_wanted = self.queue.count() > 0 || self.slots.iter().all(Option::is_none);
        let has_room = self.slots.iter().any(Option::is_none);
        let slot = [self.reaching.back_off.until, self.pace.next_due()].into_iter().flatten().max();
        let slot = slot.filter(|_| is_wanted && has_room && !self.is_connecting_enough());
        let canceller = self.canceller.dial_at().filter(|_| self.has_connections() && !self.is_pooled);
        [slot, canceller, self.listener.dial_at()].into_iter().flatten().min()
    }

    fn is_connecting_enough(&self) -> bool {
        let connecting = self.slots.iter().flatten().filter(|slot| matches!(slot.state, State::Connecting(_))).count();
        let wanted = if self.reaching.is_failing() { 1 } else { self.queue.count().max(1) };
        connecting >= wanted
    }

    fn idle_due(&self) -> Option<Instant> {
        let &index = self.idle.first().filter(|_| self.idle.len() > 1)?;
        self.slots[index].as_ref().map(|slot| slot.since + IDLE_MAX)
    }
}
