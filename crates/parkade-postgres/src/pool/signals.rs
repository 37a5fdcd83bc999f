//! Makes the server signal its own processes: sends cancels, by the canceller or each as a separate request, and
//! terminates processes that do not react.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf, BytesMut};

use super::context::{PoolContext, PoolPhase};
use super::lines::LineOwner;
use super::slots::PoolSlots;
use crate::canceller::{Aim, Batch, Canceller, CancellerStep, SignalTarget};
use crate::handshake::Computed;
use crate::line::{ConnectTo, Line, Loss, TerminateMode};
use crate::requests::{Delivery, Request, Requests};
use crate::settings::Secret;
use crate::slot::{CancelRoute, Cancels, SlotSession};

const CANNOT_CANCEL: &str = "it cannot send cancels: it leads to a pooler, or the database refused to prepare them";

#[derive(Debug)]
pub(crate) struct BackendSignals {
    canceller: Canceller,
    requests: Requests,
}

impl BackendSignals {
    /// `database`: its name, for people.
    pub(crate) fn new(database: Arc<str>) -> Self {
        Self { canceller: Canceller::new(database), requests: Requests::default() }
    }

    pub(crate) fn canceller(&self) -> &Canceller {
        &self.canceller
    }

    pub(crate) fn canceller_mut(&mut self) -> &mut Canceller {
        &mut self.canceller
    }

    pub(crate) fn request_out(&mut self, line: Line) -> Option<&mut BytesMut> {
        self.requests.out(line)
    }

    /// Whether no request is under way.
    pub(crate) fn has_requests(&self) -> bool {
        self.requests.lines().next().is_some()
    }

    // Due.

    /// Sends the cancels that are due: all in one statement, or each as a request.
    pub(crate) fn fire(&mut self, slots: &mut PoolSlots, cx: &mut PoolContext) {
        let now = cx.now;
        let mut targets = Vec::new();
        slots.update_sessions(cx, |session, cx| {
            let Some(route) = session.cancels().and_then(|cancels| cancels.due_route(now)) else { return };
            let may_ask = route == CancelRoute::Canceller && self.canceller.serves(session.identity());
            if !may_ask {
                self.request(session, cx);
            } else if self.canceller.is_free(now) {
                fire(session, cx);
                targets.push(session.target());
            }
            // Otherwise the canceller will answer soon.
        });
        if !targets.is_empty() {
            self.ask(Batch { aim: Aim::Cancel, targets }, cx);
        }
    }

    /// On a new connection to the same server.
    fn request(&mut self, session: &mut SlotSession, cx: &mut PoolContext) {
        let Some(secret) = session.identity().secret else { return };
        let until = cx.now + cx.config.options.connect_timeout;
        fire(session, cx);
        let SignalTarget { slot, line: target, epoch, pid, .. } = session.target();
        let line = cx.lines.open(LineOwner::CancelRequest, ConnectTo::SameAs(target));
        self.requests.begin(line, slot, (target, epoch), (pid, secret), until);
    }

    /// Checks the processes of closed connections.
    pub(crate) fn look(&mut self, slots: &mut PoolSlots, cx: &mut PoolContext) {
        let now = cx.now;
        let (mut ending, mut looked_for) = (Vec::new(), Vec::new());
        slots.update_all(|slot| {
            let Some(retiring) = slot.retiring_mut().filter(|retiring| retiring.look_at() <= now) else { return };
            if !self.canceller.is_hopeful() {
                return slot.free();
            }
            retiring.put_off(now);
            if self.canceller.is_free(now) && self.canceller.serves(retiring.identity()) {
                let list = if retiring.is_terminated() { &mut ending } else { &mut looked_for };
                list.push(retiring.target().clone());
            }
        });
        // One kind at a time: those that have to be terminated come first.
        if !ending.is_empty() {
            self.ask(Batch { aim: Aim::Terminate, targets: ending }, cx);
        } else if !looked_for.is_empty() {
            self.ask(Batch { aim: Aim::Look, targets: looked_for }, cx);
        }
    }

    /// Probes the server.
    pub(crate) fn probe(&mut self, cx: &mut PoolContext) {
        self.ask(Batch { aim: Aim::Look, targets: Vec::new() }, cx);
    }

    fn ask(&mut self, batch: Batch, cx: &mut PoolContext) {
        self.canceller.ask(cx.now, batch);
        if let Some(line) = self.canceller.line() {
            cx.lines.speak(line);
        }
    }

    /// Opens the canceller with the first slot, before it is needed.
    pub(crate) fn open(&mut self, slots: &PoolSlots, cx: &mut PoolContext) {
        if slots.has_connected() && !cx.server.is_pooled() && self.canceller.may_dial(cx.now) {
            let line = cx.lines.open(LineOwner::Canceller, ConnectTo::Database);
            self.canceller.dial(cx.now, line);
        }
    }

    /// Overdue answers.
    pub(crate) fn time_out(&mut self, slots: &mut PoolSlots, cx: &mut PoolContext) {
        let late = || Loss::Broken("it does not respond".into());
        let due = self.canceller.due(cx.config.options.connect_timeout);
        if due.is_some_and(|due| due <= cx.now) {
            self.lose_canceller(&late(), slots, cx);
        }
        while let Some(line) = self.requests.overdue(cx.now) {
            self.request_lost(line, &late(), slots, cx);
        }
    }

    /// The last slot is gone: there is nothing left to cancel.
    pub(crate) fn close(&mut self, slots: &mut PoolSlots, cx: &mut PoolContext) {
        if cx.phase != PoolPhase::Ending || !slots.is_empty() {
            return;
        }
        if let Some(line) = self.canceller.line() {
            cx.lines.close(line, TerminateMode::Polite);
        }
        let requests: Vec<Line> = self.requests.lines().collect();
        for line in requests {
            self.request_lost(line, &Loss::Closed, slots, cx);
        }
    }

    /// When something here is due.
    pub(crate) fn due(&self, slots: &PoolSlots, cx: &PoolContext) -> Option<Instant> {
        let may_dial = cx.phase == PoolPhase::Open && slots.has_connected() && !cx.server.is_pooled();
        let dial_at = self.canceller.dial_at().filter(|_| may_dial);
        let answer = self.canceller.due(cx.config.options.connect_timeout);
        [answer, self.requests.next_due(), dial_at].into_iter().flatten().min()
    }

    // The canceller.

    pub(crate) fn canceller_opened(
        &mut self,
        line: Line,
        password: Option<Secret>,
        slots: &mut PoolSlots,
        cx: &mut PoolContext,
    ) {
        let step = self.canceller.opened(cx.now, &cx.config.terms, password);
        self.canceller_told(line, step, slots, cx);
    }

    pub(crate) fn canceller_computed(
        &mut self,
        line: Line,
        computed: Computed,
        slots: &mut PoolSlots,
        cx: &mut PoolContext,
    ) {
        let Some((dial, wire)) = self.canceller.dialling() else { return };
        let step = dial.computed(cx.now, computed, wire).into();
        self.canceller_told(line, step, slots, cx);
    }

    pub(crate) fn canceller_received(
        &mut self,
        line: Line,
        buffer: &mut BytesMut,
        slots: &mut PoolSlots,
        cx: &mut PoolContext,
    ) {
        let mut at = 0;
        while cx.lines.is_open(line) {
            match self.canceller.next(cx.now, buffer, &mut at, &cx.config.terms) {
                Ok(Some(step)) => self.canceller_told(line, step, slots, cx),
                Ok(None) => break,
                Err(broken) => self.lose_canceller(&Loss::Broken(broken.to_string()), slots, cx),
            }
        }
        buffer.advance(at);
    }

    fn canceller_told(&mut self, line: Line, step: CancellerStep, slots: &mut PoolSlots, cx: &mut PoolContext) {
        match step {
            CancellerStep::Nothing => {}
            CancellerStep::Next(setback) => cx.lines.open_next(line, setback),
            CancellerStep::Refused(refusal) => self.lose_canceller(&Loss::Unreachable(refusal.why), slots, cx),
            CancellerStep::Useless => self.lose_canceller(&Loss::Broken(CANNOT_CANCEL.into()), slots, cx),
            CancellerStep::News(Batch { aim: Aim::Cancel, targets }) => cancelled(&targets, slots, cx),
            CancellerStep::News(Batch { aim, targets }) => looked(aim, &targets, slots, cx),
        }
        cx.lines.speak(line);
    }

    /// We give its connection up.
    fn lose_canceller(&mut self, loss: &Loss, slots: &mut PoolSlots, cx: &mut PoolContext) {
        if let Some(line) = self.canceller.line() {
            cx.lines.close(line, TerminateMode::Abrupt);
        }
        self.canceller_lost(loss, slots, cx);
    }

    /// Its connection is gone: signals that it was asked for may still be sent at any time.
    pub(crate) fn canceller_lost(&mut self, loss: &Loss, slots: &mut PoolSlots, cx: &mut PoolContext) {
        match self.canceller.lost(cx.now, loss, &mut cx.random) {
            Some(Batch { aim: Aim::Cancel, targets }) => cancels_lost(&targets, slots, cx),
            Some(Batch { aim: Aim::Terminate | Aim::Look, .. }) | None => {}
        }
    }

    // Requests.

    pub(crate) fn request_opened(&mut self, line: Line, cx: &mut PoolContext) {
        self.requests.opened(line);
        cx.lines.speak(line);
    }

    /// Its connection was closed, which is the server's acknowledgement, or lost.
    pub(crate) fn request_lost(&mut self, line: Line, loss: &Loss, slots: &mut PoolSlots, cx: &mut PoolContext) {
        cx.lines.close(line, TerminateMode::Abrupt);
        if let Some((request, delivery)) = self.requests.ended(line, loss) {
            requested(&request, delivery, slots, cx);
        }
    }
}

/// A cancel of its statement is sent.
fn fire(session: &mut SlotSession, cx: &mut PoolContext) {
    if let Some(cancels) = session.cancels() {
        cx.count_cancel(cancels.fire());
    }
}

fn requested(request: &Request, delivery: Delivery, slots: &mut PoolSlots, cx: &mut PoolContext) {
    let (now, route) = (cx.now, cx.server.cancel_route());
    note(slots, request.slot, (request.target, request.epoch), cx, |cancels| match delivery {
        Delivery::Acknowledged => cancels.acknowledge(now),
        Delivery::NotSent => {
            cancels.acknowledge(now);
            cancels.sent = cancels.sent.saturating_sub(1);
            cancels.route = route;
        }
        Delivery::Unknown => {
            cancels.is_tainted = true;
            cancels.acknowledge(now);
        }
    });
}

/// The canceller has answered: every signal of the batch has been sent, or never will be.
fn cancelled(targets: &[SignalTarget], slots: &mut PoolSlots, cx: &mut PoolContext) {
    let now = cx.now;
    for target in targets {
        note(slots, target.slot, (target.line, target.epoch), cx, |cancels| {
            cancels.acknowledge(now);
            if !target.is_reached {
                cancels.change_route(now, CancelRoute::Request);
            }
        });
    }
}

/// The canceller was lost before it answered: its signals may be sent at any time.
fn cancels_lost(targets: &[SignalTarget], slots: &mut PoolSlots, cx: &mut PoolContext) {
    let now = cx.now;
    for target in targets {
        note(slots, target.slot, (target.line, target.epoch), cx, |cancels| {
            cancels.is_tainted = true;
            cancels.acknowledge(now);
            cancels.change_route(now, CancelRoute::Request);
        });
    }
}

/// The outcome of a cancel, if the slot still has that statement on that connection.
fn note(
    slots: &mut PoolSlots,
    index: usize,
    statement: (Line, u64),
    cx: &mut PoolContext,
    change: impl FnOnce(&mut Cancels),
) {
    slots.update_session(index, cx, |session, cx| session.cancel_told(statement, cx, change));
}

/// The canceller has checked: `is_reached` tells which processes still exist.
fn looked(aim: Aim, targets: &[SignalTarget], slots: &mut PoolSlots, cx: &PoolContext) {
    for target in targets {
        slots.update(target.slot, |slot| {
            let is_same = slot.line() == target.line;
            let Some(retiring) = slot.retiring_mut().filter(|_| is_same) else { return };
            if target.is_reached {
                retiring.is_still_there(cx.now, aim == Aim::Terminate);
            } else {
                slot.free();
            }
        });
    }
}
