//! From the decision to cancel a statement to a connection that nothing can hit any more.
//!
//! Fence 1: a cancel belongs to one query, and does nothing when that is over. Fence 2: no byte of the next statement, nor of our own
//! ROLLBACK, before the server is ready and every cancel that was sent is acknowledged.

use std::time::Instant;

use parkade_sql::QueryEnd;

use super::Pool;
use crate::canceller::{Aim, Batch, Target};
use crate::lease::Part;
use crate::limits::CANCELLING_MAX;
use crate::line::{Destination, Line};
use crate::requests::{Delivery, Request};
use crate::slot::{Cancelling, Cancels, Settling, Slot, State, Then, Transport, Why};
use crate::wire::error::ServerError;
use crate::wire::message::Transaction;

impl Pool {
    /// Nobody wants what runs there.
    pub(super) fn cancel_slot(&mut self, index: usize, why: Why) {
        let (now, transport) = (self.now, self.transport());
        let slot = self.slot(index);
        let State::Busy(busy) = slot.leave() else { unreachable!("only what is busy is cancelled") };
        let cancelling = busy.cancel(why, now, transport);
        let line = slot.line;
        if slot.is_unsent(&cancelling.job) {
            return self.withdraw(index, cancelling);
        }
        let has_key = slot.identity.secret.is_some();
        slot.enter(State::Cancelling(cancelling), now);
        self.resumed.push(line);
        if !has_key {
            // Nothing can be cancelled there: the connection is closed instead.
            self.doom_cancelling(index, false);
        }
    }

    fn transport(&self) -> Transport {
        if self.is_pooled { Transport::Request } else { Transport::Canceller }
    }

    /// Not a byte of it has left: it is taken back.
    fn withdraw(&mut self, index: usize, cancelling: Cancelling) {
        let Cancelling { job, why, cancels: _ } = cancelling;
        let slot = self.slot(index);
        let kept = slot.wire.out.len() - job.flight_bytes;
        slot.wire.out.truncate(kept);
        let end = match why {
            Why::Unwanted => QueryEnd::Cancelled,
            Why::Failed(failure) => QueryEnd::Failed(failure),
        };
        let then = match Part::of(&job.work) {
            Part::Within(lease) => Then::Hold(lease),
            part @ (Part::Alone | Part::Begin(_) | Part::End(_)) => self.sequel(part, Transaction::None, false),
        };
        self.end_query(job.query, end);
        self.follow(index, then);
    }

    /// Sends the cancels that are due: all of them in one statement, or each by itself.
    pub(super) fn fire(&mut self) {
        let now = self.now;
        let mut targets = Vec::new();
        for index in 0..self.slots.len() {
            let Some(slot) = &mut self.slots[index] else { continue };
            let State::Cancelling(Cancelling { cancels, .. }) = &mut slot.state else { continue };
            if cancels.due.is_none_or(|due| due > now) {
                continue;
            }
            match cancels.transport {
                Transport::Canceller if self.canceller.is_free(now) && self.canceller.serves(&slot.identity) => {
                    cancels.fire();
                    let sent = cancels.sent;
                    targets.push(target(index, slot));
                    self.count_cancel(sent);
                }
                // It answers soon.
                Transport::Canceller if self.canceller.serves(&slot.identity) => {}
                Transport::Canceller | Transport::Request => self.request(index),
            }
        }
        if !targets.is_empty() {
            self.ask(Batch { aim: Aim::Cancel, targets });
        }
    }

    fn count_cancel(&mut self, sent: usize) {
        self.counts.cancels_sent += 1;
        self.counts.cancels_repeated += u64::from(sent > 1);
    }

    pub(super) fn ask(&mut self, batch: Batch) {
        self.canceller.ask(self.now, batch);
        self.speaking.extend(self.canceller.line());
    }

    /// By a connection of its own, to the very server.
    fn request(&mut self, index: usize) {
        let until = self.now + self.options.connect_timeout;
        let slot = self.slot(index);
        let (target, epoch, pid) = (slot.line, slot.epoch, slot.identity.pid);
        let Some(secret) = slot.identity.secret else { return };
        let State::Cancelling(Cancelling { cancels, .. }) = &mut slot.state else { return };
        cancels.fire();
        let sent = cancels.sent;
        self.count_cancel(sent);
        let line = self.open_line(super::Role::Request, Destination::As(target));
        self.requests.begin(line, index, (target, epoch), (pid, secret), until);
    }

    pub(super) fn requested(&mut self, request: &Request, delivery: Delivery) {
        let now = self.now;
        let other = if self.is_pooled { Transport::Request } else { Transport::Canceller };
        let Some(cancels) = self.cancels_of(request.slot, request.target, request.epoch) else { return };
        match delivery {
            Delivery::Acknowledged => cancels.acknowledge(now),
            Delivery::NotSent => {
                cancels.acknowledge(now);
                cancels.sent = cancels.sent.saturating_sub(1);
                cancels.transport = other;
            }
            Delivery::Unknown => {
                cancels.is_tainted = true;
                cancels.acknowledge(now);
            }
        }
        self.settled(request.slot);
    }

    /// The canceller has answered: every signal of the batch has been sent, or never will be.
    pub(super) fn cancelled(&mut self, targets: Vec<Target>) {
        let now = self.now;
        for target in targets {
            let Some(cancels) = self.cancels_of(target.slot, target.line, target.epoch) else { continue };
            cancels.acknowledge(now);
            if !target.is_reached {
                cancels.change_transport(now, Transport::Request);
            }
            self.settled(target.slot);
        }
    }

    /// The canceller was lost before it answered: its signals may come at any time.
    pub(super) fn cancels_lost(&mut self, targets: Vec<Target>) {
        let now = self.now;
        for target in targets {
            let Some(cancels) = self.cancels_of(target.slot, target.line, target.epoch) else { continue };
            cancels.is_tainted = true;
            cancels.acknowledge(now);
            cancels.change_transport(now, Transport::Request);
            self.settled(target.slot);
        }
    }

    /// A statement was ended that nobody had cancelled. Its code alone does not say so: time-outs of the server's own have the same.
    pub(super) fn count_stray(&mut self, error: &ServerError) {
        let is_stray = error.is_cancel_by_request() || (error.is_cancel() && error.message == self.cancel_words);
        self.counts.strays += u64::from(is_stray);
    }

    /// A statement was ended for which cancels had been sent.
    pub(super) fn hit(&mut self, error: &ServerError, cancels: &mut Cancels) {
        cancels.hits += 1;
        if cancels.sent > 0 && !error.is_time_out() {
            self.cancel_words.clone_from(&error.message);
        }
    }

    /// The cancels that are under way to a connection, if it still runs that statement.
    fn cancels_of(&mut self, index: usize, line: Line, epoch: u64) -> Option<&mut Cancels> {
        let slot = self.slots[index].as_mut().filter(|slot| slot.line == line && slot.epoch == epoch)?;
        match &mut slot.state {
            State::Cancelling(Cancelling { cancels, .. }) | State::Settling(Settling { cancels, .. }) => Some(cancels),
            State::Connecting(_)
            | State::Idle(_)
            | State::Busy(_)
            | State::Held(_)
            | State::Resetting(_)
            | State::Doomed(_)
            | State::Moving => None,
        }
    }

    /// Fence 2: goes on once nothing can hit what comes next.
    pub(super) fn settled(&mut self, index: usize) {
        let Some(slot) = &mut self.slots[index] else { return };
        let State::Settling(Settling { cancels, then }) = &slot.state else { return };
        let then = *then;
        if slot.identity.is_pooled {
            if cancels.are_over_behind_a_pooler() {
                self.follow(index, then);
            } else if cancels.unacked == 0 {
                self.doom_settling(index);
            }
        } else if cancels.are_over() {
            self.follow(index, then);
        } else if cancels.is_tainted {
            // Waiting proves nothing: what was lost may come at any time.
            self.doom_settling(index);
        }
    }

    /// When a slot that is being cancelled has to be looked at.
    pub(super) fn cancel_due(&self, slot: &Slot, cancels: &Cancels) -> Instant {
        let end = slot.since + CANCELLING_MAX;
        let Some(due) = cancels.due else { return end };
        let waits_for_canceller = cancels.transport == Transport::Canceller && self.canceller.serves(&slot.identity);
        match (waits_for_canceller, self.canceller.free_at()) {
            (false, _) => due.min(end),
            (true, Some(free_at)) => due.max(free_at).min(end),
            (true, None) => end,
        }
    }
}

pub(super) fn target(index: usize, slot: &Slot) -> Target {
    Target {
        slot: index,
        line: slot.line,
        epoch: slot.epoch,
        pid: slot.identity.pid,
        backend_start: slot.identity.backend_start.clone(),
        is_reached: false,
    }
}
