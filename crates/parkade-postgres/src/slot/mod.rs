//! A connection for queries: one struct for each state, and a transition consumes it. `docs/queries.md` has the
//! diagram.
//!
//! Everything that happens to a slot is one of its methods, so it has more than forty. It never touches another slot:
//! what they share is in the [`PoolContext`].

mod backend;
mod busy;
mod cancelling;
mod cancels;
mod phase;
mod retiring;

use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use parkade_sql::{QueryFailure, QueryId, SlotStatus};

use backend::SlotBackend;
use busy::Busy;
use cancelling::{CancelCause, Cancelling, Settlement, Settling};
pub(crate) use cancels::{CancelRoute, Cancels};
use phase::SlotPhase;
pub(crate) use retiring::Retiring;

use crate::canceller::{Canceller, SignalTarget};
use crate::dial::{Dial, DialStep};
use crate::handshake::{BackendIdentity, Computed, DialRefusal};
use crate::job::{Heard, Job, JobStep, statement_of};
use crate::lease::{AfterStatement, TransactionStep};
use crate::line::{Line, Loss, TerminateMode};
use crate::pool::{PoolContext, PoolPhase};
use crate::queue::WaitingWork;
use crate::settings::Secret;
use crate::wire::message::{BackendMessage, Transaction};
use crate::wire::{ProtocolViolation, Wire, write};

#[derive(Debug)]
pub(crate) struct Slot {
    /// Its place in the pool.
    index: usize,
    backend: SlotBackend,
    /// Counts the statements: a cancel belongs to one of them (fence 1).
    epoch: u64,
    /// How often the current query has been on a connection that broke before it ran.
    tries: u8,
    /// When the current phase began.
    since: Instant,
    phase: SlotPhase,
}

/// A connection was not made, and its slot is gone.
#[derive(Debug)]
pub(crate) struct FailedDial {
    /// When the attempt began.
    pub(crate) since: Instant,
    pub(crate) refusal: DialRefusal,
}

const OUT_OF_TURN: ProtocolViolation = ProtocolViolation("an unexpected message");

/// Status.
impl Slot {
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn line(&self) -> Line {
        self.backend.line
    }

    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.phase, SlotPhase::Idle)
    }

    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.phase, SlotPhase::Gone)
    }

    pub(crate) fn is_connecting(&self) -> bool {
        matches!(self.phase, SlotPhase::Connecting(_))
    }

    /// Whether it is logged in and open.
    pub(crate) fn is_connected(&self) -> bool {
        self.phase.is_connected()
    }

    /// Whether a statement is waiting for the server's answer.
    pub(crate) fn is_awaiting_server(&self) -> bool {
        self.phase.is_awaiting_server()
    }

    /// Whether nothing is expected from the server.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.phase.is_at_rest()
    }

    /// Whether it is to be read: not while too many of its rows wait to be taken. After a cancel it is read in any
    /// case, otherwise the server would block and never check for the cancel.
    pub(crate) fn wants_read(&self, window_bytes: usize) -> bool {
        match &self.phase {
            SlotPhase::Busy(busy) => busy.job.untaken_bytes() < window_bytes,
            _ => true,
        }
    }

    pub(crate) fn status(&self, now: Instant) -> SlotStatus {
        let query = self.phase.job().map(|job| job.query);
        SlotStatus { state: self.phase.shown(), query, age: now.saturating_duration_since(self.since) }
    }

    /// When its current phase times out.
    pub(crate) fn due(&self, connect_timeout: Duration, canceller: &Canceller) -> Option<Instant> {
        self.phase.due(self.since, connect_timeout, &self.backend.identity, canceller)
    }
}

/// Connecting.
impl Slot {
    pub(crate) fn connecting(index: usize, line: Line, now: Instant, row_bytes_max: usize) -> Self {
        Self {
            index,
            backend: SlotBackend::new(line, row_bytes_max),
            epoch: 0,
            tries: 0,
            since: now,
            phase: SlotPhase::Connecting(Dial::new(now)),
        }
    }

    pub(crate) fn dialling(&mut self) -> Option<(&mut Dial, &mut Wire)> {
        if let SlotPhase::Connecting(dial) = &mut self.phase { Some((dial, &mut self.backend.wire)) } else { None }
    }

    /// The socket is open.
    pub(crate) fn opened(&mut self, password: Option<Secret>, cx: &mut PoolContext) -> Option<FailedDial> {
        let (dial, wire) = self.dialling()?;
        let step = dial.opened(cx.now, &cx.config.terms, password, wire);
        cx.counts.connects += 1;
        self.dialled(step, cx)
    }

    pub(crate) fn computed(&mut self, computed: Computed, cx: &mut PoolContext) -> Option<FailedDial> {
        let (dial, wire) = self.dialling()?;
        let step = dial.computed(cx.now, computed, wire);
        self.dialled(step, cx)
    }

    /// Whether the current address does not answer.
    pub(crate) fn time_out_dial(&mut self, cx: &mut PoolContext) -> Option<FailedDial> {
        let timeout = cx.config.options.connect_timeout;
        let (dial, _) = self.dialling().filter(|(dial, _)| dial.due(timeout) <= cx.now)?;
        let step = dial.timed_out(cx.now, timeout);
        self.dialled(step, cx)
    }

    fn dialled(&mut self, step: DialStep, cx: &mut PoolContext) -> Option<FailedDial> {
        match step {
            DialStep::Going => cx.lines.speak(self.backend.line),
            DialStep::Ready(identity) => {
                cx.connected(&identity);
                self.backend.identity = identity;
                self.rest(cx);
            }
            DialStep::Next(setback) => {
                self.backend.wire = Wire::new(cx.config.options.row_bytes_max);
                cx.lines.open_next(self.backend.line, setback);
            }
            DialStep::Refused(refusal) => return Some(self.refused(refusal, cx)),
        }
        None
    }

    fn refused(&mut self, refusal: DialRefusal, cx: &mut PoolContext) -> FailedDial {
        cx.counts.connects_failed += 1;
        self.close(TerminateMode::Abrupt, cx);
        FailedDial { since: self.since, refusal }
    }
}

/// Messages of the server.
impl Slot {
    /// Bytes have arrived; the rest in `buffer` is the beginning of a message.
    pub(crate) fn received(&mut self, buffer: &mut BytesMut, cx: &mut PoolContext) -> Option<FailedDial> {
        let mut at = 0;
        let broken = loop {
            let frame = self.backend.wire.frames.next(buffer, &mut at);
            let heard = match frame.and_then(|frame| frame.as_ref().map(BackendMessage::parse).transpose()) {
                Ok(Some(message)) => self.hear(message, cx),
                Ok(None) => {
                    buffer.advance(at);
                    self.give_piece(cx);
                    return None;
                }
                Err(broken) => Err(broken),
            };
            match heard {
                // One of the messages has closed it.
                Ok(failed) if self.phase.is_closed() => {
                    buffer.clear();
                    return failed;
                }
                Ok(_) => {}
                Err(broken) => break broken,
            }
        };
        buffer.advance(at);
        self.lost(Loss::Broken(broken.to_string()), cx)
    }

    /// Passes the message to the current phase.
    fn hear(
        &mut self,
        message: BackendMessage<'_>,
        cx: &mut PoolContext,
    ) -> Result<Option<FailedDial>, ProtocolViolation> {
        if matches!(message, BackendMessage::Setting { .. }) && !self.is_connecting() {
            self.backend.setting_changed();
        }
        match (&mut self.phase, message) {
            (SlotPhase::Busy(Busy { job, .. }) | SlotPhase::Cancelling(Cancelling { job, .. }), message) => {
                let heard = job.hear(message, &cx.server.types)?;
                self.heard(heard, cx);
            }
            (SlotPhase::Connecting(dial), message) => {
                let step = dial.hear(cx.now, message, &cx.config.terms, &mut self.backend.wire);
                return Ok(self.dialled(step, cx));
            }
            (_, BackendMessage::Notice(notice)) => tracing::debug!(code = %notice.code, "notice: {}", notice.message),
            (_, BackendMessage::Setting { .. } | BackendMessage::Notification { .. })
            | (SlotPhase::Resetting, BackendMessage::Complete(_)) => {}
            (SlotPhase::Resetting, BackendMessage::Ready(Transaction::None)) => self.rest(cx),
            (SlotPhase::Resetting, BackendMessage::Ready(_)) => self.retire(false, cx),
            (SlotPhase::Resetting, BackendMessage::Error(error)) if error.is_cancel() => cx.count_stray(&error),
            // Unsolicited: the server is closing the connection.
            (_, BackendMessage::Error(error)) => self.dismissed(&error.message, cx),
            (
                SlotPhase::Idle
                | SlotPhase::Held(_)
                | SlotPhase::Settling(_)
                | SlotPhase::Resetting
                | SlotPhase::Retiring(_)
                | SlotPhase::Gone,
                _,
            ) => return Err(OUT_OF_TURN),
        }
        Ok(None)
    }

    fn heard(&mut self, heard: Heard, cx: &mut PoolContext) {
        match heard {
            Heard::Nothing => {}
            Heard::Ready(transaction) => self.ready(transaction, cx),
            Heard::Unwanted(failure) => self.unwanted(failure, cx),
            Heard::Dismissed => self.dismissed("the server ended it", cx),
            Heard::CopyIn => {
                write::refuse_copy(&mut self.backend.wire.out);
                cx.lines.speak(self.backend.line);
            }
        }
    }

    /// The rows are refused.
    fn unwanted(&mut self, failure: QueryFailure, cx: &mut PoolContext) {
        if let SlotPhase::Busy(busy) = &mut self.phase {
            if busy.job.is_cancellable() {
                self.cancel_statement(CancelCause::Failed(failure), cx);
            } else {
                busy.job.fail(failure);
            }
        }
    }

    /// The server is ready for the next statement.
    fn ready(&mut self, transaction: Transaction, cx: &mut PoolContext) {
        if let Some(stale) = self.phase.job().and_then(Job::stale) {
            cx.server.refused_as_stale(stale);
            self.backend.forget_statements(cx.server.table_changes());
        }
        match self.leave() {
            SlotPhase::Busy(mut busy) => {
                match busy.job.advance(transaction, &mut self.backend.means(&mut cx.server.types)) {
                    JobStep::More => {
                        cx.lines.speak(self.backend.line);
                        self.phase = SlotPhase::Busy(busy);
                    }
                    JobStep::Over => {
                        let then = busy.finish(transaction, cx);
                        self.follow(then, cx);
                    }
                }
            }
            SlotPhase::Cancelling(cancelling) => {
                let settling = cancelling.settle(transaction, cx);
                self.enter(SlotPhase::Settling(settling), cx);
                self.settled(cx);
            }
            phase => self.phase = phase,
        }
    }

    /// Passes on the rows that have been read so far.
    fn give_piece(&mut self, cx: &mut PoolContext) {
        if let SlotPhase::Busy(Busy { job, .. }) = &mut self.phase
            && let Some(piece) = job.piece()
        {
            cx.queries.give(job.query, piece);
        }
    }
}

/// Statements.
impl Slot {
    pub(crate) fn begin(&mut self, query: QueryId, waiting: WaitingWork, cx: &mut PoolContext) {
        let WaitingWork { work, tries } = waiting;
        let lease = TransactionStep::of(&work).lease();
        self.epoch += 1;
        self.tries = tries;
        self.backend.expect(statement_of(&work), cx.server.table_changes());
        match Job::begin(query, work, &mut self.backend.means(&mut cx.server.types)) {
            Ok(job) => {
                self.enter(SlotPhase::Busy(Busy::new(job)), cx);
                cx.lines.speak(self.backend.line);
                cx.queries.runs_on(query, self.index);
            }
            Err((query, failure)) => {
                cx.queries.fail(query, failure);
                match lease {
                    Some(lease) => self.phase = SlotPhase::Held(lease),
                    None => self.rest(cx),
                }
            }
        }
    }

    /// Begins the next work of the transaction that it holds.
    pub(crate) fn continue_transaction(&mut self, cx: &mut PoolContext) {
        while let SlotPhase::Held(lease) = self.phase {
            let Some((query, waiting)) = cx.queries.next_within(lease) else { return };
            self.begin(query, waiting, cx);
        }
    }

    /// A statement is over, and nothing of it is under way any more.
    fn follow(&mut self, then: AfterStatement, cx: &mut PoolContext) {
        match then {
            AfterStatement::Idle => self.rest(cx),
            AfterStatement::Hold(lease) if cx.queries.keeps(lease) => {
                self.enter(SlotPhase::Held(lease), cx);
                self.continue_transaction(cx);
            }
            AfterStatement::Hold(_) | AfterStatement::Reset => self.reset(cx),
        }
    }

    fn rest(&mut self, cx: &mut PoolContext) {
        self.enter(SlotPhase::Idle, cx);
        if cx.phase == PoolPhase::Ending || self.backend.is_changed() {
            self.close(TerminateMode::Polite, cx);
        }
    }

    fn reset(&mut self, cx: &mut PoolContext) {
        self.backend.roll_back();
        self.enter(SlotPhase::Resetting, cx);
        cx.lines.speak(self.backend.line);
    }

    fn enter(&mut self, phase: SlotPhase, cx: &PoolContext) {
        self.phase = phase;
        self.since = cx.now;
    }

    /// Takes the phase, in order to replace it.
    fn leave(&mut self) -> SlotPhase {
        std::mem::replace(&mut self.phase, SlotPhase::Gone)
    }

    // The calls of the owner.

    /// This many bytes of the rows have been taken.
    pub(crate) fn taken(&mut self, bytes: usize, cx: &mut PoolContext) {
        if let SlotPhase::Busy(busy) = &mut self.phase
            && busy.take(bytes, cx.config.options.window_bytes)
        {
            cx.lines.resume(self.backend.line);
        }
    }

    /// Cancels that query.
    pub(crate) fn cancel(&mut self, query: QueryId, cx: &mut PoolContext) {
        if let SlotPhase::Busy(busy) = &mut self.phase
            && busy.job.query == query
        {
            busy.is_unwanted = true;
            self.cancel_unwanted(cx);
        }
    }

    /// The holder of its transaction is gone. If the transaction is being ended, or a statement cancelled, nothing
    /// happens now: afterwards the slot checks whether the lease still exists.
    pub(crate) fn release(&mut self, cx: &mut PoolContext) {
        if let SlotPhase::Held(lease) = self.phase {
            self.follow(AfterStatement::Hold(lease), cx);
        } else {
            self.cancel_unwanted(cx);
        }
    }

    /// The server stops: an idle slot says goodbye, a busy one is cancelled, the others end when they come to rest.
    pub(crate) fn end(&mut self, cx: &mut PoolContext) {
        match &self.phase {
            SlotPhase::Idle => self.close(TerminateMode::Polite, cx),
            SlotPhase::Connecting(_) => self.close(TerminateMode::Abrupt, cx),
            SlotPhase::Busy(_) => self.cancel_unwanted(cx),
            SlotPhase::Held(_)
            | SlotPhase::Cancelling(_)
            | SlotPhase::Settling(_)
            | SlotPhase::Resetting
            | SlotPhase::Retiring(_)
            | SlotPhase::Gone => {}
        }
    }

    pub(crate) fn out(&mut self) -> &mut BytesMut {
        &mut self.backend.wire.out
    }

    /// All its bytes have been written.
    pub(crate) fn written(&mut self) {
        self.backend.wire.tidy();
    }
}

/// Cancels.
impl Slot {
    /// Cancels the statement, if that is possible.
    fn cancel_unwanted(&mut self, cx: &mut PoolContext) {
        if let SlotPhase::Busy(busy) = &self.phase
            && busy.job.is_cancellable()
        {
            self.cancel_statement(CancelCause::Unwanted, cx);
        }
    }

    fn cancel_statement(&mut self, why: CancelCause, cx: &mut PoolContext) {
        let SlotPhase::Busy(Busy { mut job, .. }) = self.leave() else {
            unreachable!("only what is busy is cancelled")
        };
        job.detach();
        if self.backend.is_unsent(&job) {
            return self.withdraw(&job, why, cx);
        }
        let cancels = Cancels::new(cx.now, cx.server.cancel_route());
        self.enter(SlotPhase::Cancelling(Cancelling { job, why, cancels }), cx);
        cx.lines.resume(self.backend.line);
        if self.backend.identity.secret.is_none() {
            // Nothing can be cancelled on that server: the connection is closed instead.
            self.retire_cancelling(false, cx);
        }
    }

    /// No byte of it has been sent: it is withdrawn.
    fn withdraw(&mut self, job: &Job, why: CancelCause, cx: &mut PoolContext) {
        self.backend.take_back(job);
        let then = match TransactionStep::of(&job.work) {
            TransactionStep::Within(lease) => AfterStatement::Hold(lease),
            step @ (TransactionStep::Alone | TransactionStep::Begin(_) | TransactionStep::End(_)) => {
                cx.queries.conclude(step, Transaction::None, false)
            }
        };
        cx.queries.end(job.query, why.end());
        self.follow(then, cx);
    }

    /// How the next cancel travels, if one is due.
    pub(crate) fn due_cancel(&self, now: Instant) -> Option<CancelRoute> {
        let SlotPhase::Cancelling(Cancelling { cancels, .. }) = &self.phase else { return None };
        cancels.due.filter(|due| *due <= now).map(|_| cancels.route)
    }

    /// Records that a cancel of its statement is sent. Returns how many that makes.
    pub(crate) fn fire(&mut self) -> usize {
        let SlotPhase::Cancelling(Cancelling { cancels, .. }) = &mut self.phase else { return 0 };
        cancels.fire();
        cancels.sent
    }

    /// Its server process, and which of its statements.
    pub(crate) fn target(&self) -> SignalTarget {
        let BackendIdentity { pid, backend_start, .. } = &self.backend.identity;
        SignalTarget {
            slot: self.index,
            line: self.backend.line,
            epoch: self.epoch,
            pid: *pid,
            backend_start: backend_start.clone(),
            is_reached: false,
        }
    }

    pub(crate) fn identity(&self) -> &BackendIdentity {
        &self.backend.identity
    }

    /// The outcome of a cancel; ignored if it was for another statement.
    pub(crate) fn cancel_told(
        &mut self,
        (line, epoch): (Line, u64),
        cx: &mut PoolContext,
        note: impl FnOnce(&mut Cancels),
    ) {
        if self.backend.line != line || self.epoch != epoch {
            return;
        }
        match &mut self.phase {
            SlotPhase::Cancelling(Cancelling { cancels, .. }) => note(cancels),
            SlotPhase::Settling(settling) => note(settling.cancels_mut()),
            SlotPhase::Connecting(_)
            | SlotPhase::Idle
            | SlotPhase::Busy(_)
            | SlotPhase::Held(_)
            | SlotPhase::Resetting
            | SlotPhase::Retiring(_)
            | SlotPhase::Gone => return,
        }
        self.settled(cx);
    }

    /// Fence 2: continues when nothing can hit the next statement.
    fn settled(&mut self, cx: &mut PoolContext) {
        let SlotPhase::Settling(settling) = &self.phase else { return };
        match settling.settlement(self.backend.identity.is_pooled) {
            Settlement::Waits => {}
            Settlement::Clean(then) => self.follow(then, cx),
            Settlement::Unsafe => self.retire_settling(cx),
        }
    }
}

/// The end of a connection.
impl Slot {
    /// Handles a phase that has timed out.
    pub(crate) fn expire(&mut self, cx: &mut PoolContext) {
        if !self.phase.is_expired(cx.now.saturating_duration_since(self.since)) {
            return;
        }
        match &self.phase {
            SlotPhase::Cancelling(_) => self.retire_cancelling(true, cx),
            SlotPhase::Settling(_) => self.retire_settling(cx),
            SlotPhase::Resetting => self.retire(false, cx),
            SlotPhase::Retiring(_) => self.phase = SlotPhase::Gone,
            SlotPhase::Connecting(_) | SlotPhase::Idle | SlotPhase::Busy(_) | SlotPhase::Held(_) | SlotPhase::Gone => {}
        }
    }

    /// Closes the connection and frees its place.
    pub(crate) fn close(&mut self, mode: TerminateMode, cx: &mut PoolContext) {
        cx.lines.close(self.backend.line, mode);
        self.phase = SlotPhase::Gone;
    }

    /// The statement does not react: its process is terminated.
    fn retire_cancelling(&mut self, is_terminated: bool, cx: &mut PoolContext) {
        let SlotPhase::Cancelling(cancelling) = self.leave() else {
            unreachable!("only what is cancelled is given up")
        };
        cancelling.give_up(cx);
        self.retire(is_terminated, cx);
    }

    fn retire_settling(&mut self, cx: &mut PoolContext) {
        if let SlotPhase::Settling(Settling { then: AfterStatement::Hold(lease), .. }) = &self.phase {
            cx.queries.lose_lease(*lease);
        }
        self.retire(false, cx);
    }

    /// Closes the connection. Its place stays taken until the process is gone; otherwise the pool could have more
    /// processes than allowed.
    fn retire(&mut self, is_terminated: bool, cx: &mut PoolContext) {
        self.backend.wire.out.clear();
        cx.lines.close(self.backend.line, TerminateMode::Abrupt);
        // Behind a pooler there is nothing to check: the pooler ends the statement in its own way.
        if self.backend.is_known() {
            cx.counts.terminated += u64::from(is_terminated);
            self.enter(SlotPhase::Retiring(Retiring::new(cx.now, is_terminated)), cx);
        } else {
            self.phase = SlotPhase::Gone;
        }
    }

    pub(crate) fn retiring_mut(&mut self) -> Option<&mut Retiring> {
        if let SlotPhase::Retiring(retiring) = &mut self.phase { Some(retiring) } else { None }
    }

    /// Its process is gone, or cannot be checked.
    pub(crate) fn free(&mut self) {
        self.phase = SlotPhase::Gone;
    }

    /// The server has announced that it closes the connection: nothing more will come.
    fn dismissed(&mut self, why: &str, cx: &mut PoolContext) {
        cx.lines.close(self.backend.line, TerminateMode::Abrupt);
        self.broke(&Loss::Closed, why, cx);
    }

    /// The connection broke, or was not made.
    pub(crate) fn lost(&mut self, loss: Loss, cx: &mut PoolContext) -> Option<FailedDial> {
        cx.lines.close(self.backend.line, TerminateMode::Abrupt);
        if let SlotPhase::Connecting(dial) = &mut self.phase {
            let refusal = dial.lost(loss);
            return Some(self.refused(refusal, cx));
        }
        self.broke(&loss, loss.why(), cx);
        None
    }

    /// Its query ends, or returns to the queue if it never began.
    fn broke(&mut self, loss: &Loss, why: &str, cx: &mut PoolContext) {
        match self.leave() {
            SlotPhase::Busy(busy) => {
                let is_unsent = self.backend.is_unsent(&busy.job);
                busy.lost(why, is_unsent, self.tries, cx);
            }
            SlotPhase::Cancelling(cancelling) => cancelling.lost(why, cx),
            SlotPhase::Held(lease) | SlotPhase::Settling(Settling { then: AfterStatement::Hold(lease), .. }) => {
                cx.queries.lose_lease(lease);
            }
            SlotPhase::Settling(_)
            | SlotPhase::Idle
            | SlotPhase::Resetting
            | SlotPhase::Connecting(_)
            | SlotPhase::Retiring(_)
            | SlotPhase::Gone => {}
        }
        // If the server closed the connection, its process is gone; otherwise the server may not have noticed yet.
        if *loss != Loss::Closed && self.backend.is_known() && cx.phase != PoolPhase::Ending {
            self.enter(SlotPhase::Retiring(Retiring::new(cx.now, false)), cx);
        }
    }
}
