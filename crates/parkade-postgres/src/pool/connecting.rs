//! When a connection is opened, and what follows when it is not.

use std::time::Instant;

use parkade_sql::FailureKind;

use super::{Phase, Pool, Role};
use crate::dial::{Dial, Dialled};
use crate::handshake::{Computation, Computed, Identity, Refusal};
use crate::line::{Action, Destination, Line, Manner};
use crate::settings::Secret;
use crate::slot::{Slot, State, Then};
use crate::transport::Setback;
use crate::wire::Wire;

impl Pool {
    /// There is a socket for a line.
    pub(crate) fn opened(&mut self, now: Instant, line: Line, password: Option<Secret>) {
        self.now = self.attention.looks(now);
        match self.roles.get(&line) {
            Some(&Role::Slot(index)) => {
                let slot = self.slots[index].as_mut().expect("a slot that has a line is there");
                let State::Connecting(connecting) = &mut slot.state else { return };
                let dialled = connecting.dial.opened(self.now, &self.terms, password, &mut slot.wire);
                self.counts.connects += 1;
                self.dialled(index, dialled);
            }
            Some(Role::Canceller) => self.canceller_opened(line, password),
            Some(Role::Listener) => self.listener_opened(line, password),
            Some(Role::Request) => {
                self.requests.opened(line);
                self.speaking.push(line);
            }
            None => {}
        }
    }

    /// What a connection in the making needs computed, where that takes too long to be done here.
    pub(crate) fn take_due(&mut self, line: Line) -> Option<Computation> {
        self.dialling(line)?.0.take_due()
    }

    pub(crate) fn computed(&mut self, now: Instant, line: Line, computed: Computed) {
        let now = self.attention.looks(now);
        self.now = now;
        let Some((dial, wire)) = self.dialling(line) else { return };
        let dialled = dial.computed(now, computed, wire);
        match self.roles.get(&line) {
            Some(&Role::Slot(index)) => self.dialled(index, dialled),
            Some(Role::Canceller) => self.canceller_told(line, dialled.into()),
            Some(Role::Listener) => self.listener_told(line, dialled.into()),
            Some(Role::Request) | None => {}
        }
    }

    fn dialling(&mut self, line: Line) -> Option<(&mut Dial, &mut Wire)> {
        match *self.roles.get(&line)? {
            Role::Slot(index) => {
                let slot = self.slots[index].as_mut()?;
                match &mut slot.state {
                    State::Connecting(connecting) => Some((&mut connecting.dial, &mut slot.wire)),
                    _ => None,
                }
            }
            Role::Canceller => self.canceller.dialling(),
            Role::Listener => self.listener.dialling(),
            Role::Request => None,
        }
    }

    /// Opens what is wanted and may be had.
    pub(super) fn grow(&mut self) {
        if self.phase != Phase::Open || !self.reaching.back_off.is_over(self.now) {
            return;
        }
        let is_connecting = |slot: &&Slot| matches!(slot.state, State::Connecting(_));
        let mut connecting = self.slots.iter().flatten().filter(is_connecting).count();
        // One stays open: so it is known whether the database can be reached.
        let wanted =
            if self.slots.iter().all(Option::is_none) { self.queue.count().max(1) } else { self.queue.count() };
        let at_once = if self.reaching.is_failing() { 1 } else { self.slots.len() };
        while connecting < wanted.min(at_once) && self.pace.take(self.now) {
            let Some(index) = self.slots.iter().position(Option::is_none) else { return };
            let line = self.open_line(Role::Slot(index), Destination::Database);
            self.slots[index] = Some(Slot::connecting(line, self.now, self.options.row_bytes_max));
            connecting += 1;
        }
    }

    /// Whether there is a connection that has been let in.
    pub(super) fn has_connections(&self) -> bool {
        let is_in = |slot: &Slot| !matches!(slot.state, State::Connecting(_) | State::Doomed(_));
        self.slots.iter().flatten().any(is_in)
    }

    pub(super) fn dialled(&mut self, index: usize, dialled: Dialled) {
        match dialled {
            Dialled::Going => {}
            Dialled::Ready(identity) => return self.connected(index, identity),
            Dialled::Next(setback) => return self.dial_next(index, setback),
            Dialled::Refused(refusal) => return self.not_connected(index, refusal),
        }
        self.speak(index);
    }

    fn dial_next(&mut self, index: usize, setback: Setback) {
        let row_bytes_max = self.options.row_bytes_max;
        let slot = self.slot(index);
        slot.wire = Wire::new(row_bytes_max);
        let line = slot.line;
        self.actions.push(Action::OpenNext { line, setback });
    }

    fn connected(&mut self, index: usize, identity: Identity) {
        self.reaching.succeeded();
        self.version.clone_from(&identity.version);
        self.is_pooled = identity.is_pooled;
        self.slot(index).identity = identity;
        self.follow(index, Then::Idle);
    }

    pub(super) fn not_connected(&mut self, index: usize, refusal: Refusal) {
        self.counts.connects_failed += 1;
        let (line, since) = (self.slot(index).line, self.slot(index).since);
        self.close_line(line, Manner::Abrupt);
        self.free(index);
        let has_others = self.has_connections();
        let denied = refusal.kind == FailureKind::Denied && !has_others;
        tracing::debug!(database = %self.name, "no connection: {}", refusal.why);
        self.reaching.failed(self.now, since, refusal, has_others, &mut self.random);
        if denied {
            self.fail_refused();
        }
    }

    /// Tells those who wait, if it is known now that they wait in vain.
    pub(super) fn fail_refused(&mut self) {
        if let Some((kind, why)) = self.reaching.refuses().map(|(kind, why)| (kind, why.to_owned())) {
            tracing::warn!(database = %self.name, "{}", self.refusal_text(kind, &why));
            self.fail_queued(kind, &why);
        }
    }

    /// Addresses that do not answer.
    pub(super) fn time_out_dials(&mut self) {
        let (now, timeout) = (self.now, self.options.connect_timeout);
        for index in 0..self.slots.len() {
            let Some(slot) = &mut self.slots[index] else { continue };
            let State::Connecting(connecting) = &mut slot.state else { continue };
            if connecting.dial.due(timeout) <= now {
                let dialled = connecting.dial.timed_out(now, timeout);
                self.dialled(index, dialled);
            }
        }
    }

    /// The canceller and the listener are opened with the first slot, before they are needed.
    pub(super) fn open_helpers(&mut self) {
        if self.phase != Phase::Open {
            return;
        }
        if self.has_connections() && !self.is_pooled && self.canceller.may_dial(self.now) {
            let line = self.open_line(Role::Canceller, Destination::Database);
            self.canceller.dial(self.now, line);
        }
        if self.listener.may_dial(self.now) {
            let line = self.open_line(Role::Listener, Destination::Database);
            self.listener.dial(self.now, line);
        }
    }
}
