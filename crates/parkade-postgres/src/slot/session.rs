//! The session of a slot that is logged in, and the statements it runs: one struct for each phase, and a transition
//! consumes it.

use std::time::Instant;

use bytes::{Buf, BytesMut};
use parkade_sql::{QueryFailure, QueryId};

use super::backend::SlotBackend;
use super::busy::Busy;
use super::cancelling::{CancelCause, Cancelling, Settlement, Settling};
use super::cancels::Cancels;
use super::phase::{SessionEnd, SessionPhase};
use super::retiring::Retiring;
use crate::canceller::{Canceller, SignalTarget};
use crate::handshake::BackendIdentity;
use crate::job::{Heard, Job, JobStep, statement_of};
use crate::lease::{AfterStatement, TransactionStep};
use crate::line::{Line, Loss, TerminateMode};
use crate::pool::{PoolContext, PoolPhase};
use crate::queue::WaitingWork;
use crate::wire::message::{BackendMessage, Transaction};
use crate::wire::{ProtocolViolation, Wire, write};

#[derive(Debug)]
pub(crate) struct SlotSession {
    /// The place of its slot in the pool.
    slot: usize,
    backend: SlotBackend,
    /// Counts the statements: a cancel belongs to one of them (fence 1).
    epoch: u64,
    /// How often the current query has been on a connection that broke before it ran.
    tries: u8,
    /// When the current phase began.
    since: Instant,
    phase: SessionPhase,
}

/// The process is expected to end by itself.
const UNTERMINATED: SessionEnd = SessionEnd::Retired { is_terminated: false };

const OUT_OF_TURN: ProtocolViolation = ProtocolViolation("an unexpected message");

/// Status.
impl SlotSession {
    pub(crate) fn new(slot: usize, line: Line, wire: Wire, identity: BackendIdentity, now: Instant) -> Self {
        let backend = SlotBackend::new(line, wire, identity);
        Self { slot, backend, epoch: 0, tries: 0, since: now, phase: SessionPhase::Idle }
    }

    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    pub(crate) fn phase(&self) -> &SessionPhase {
        &self.phase
    }

    /// Whether it is to be read: not while too many of its rows wait to be taken. After a cancel it is read in any
    /// case, otherwise the server would block and never check for the cancel.
    pub(crate) fn wants_read(&self, window_bytes: usize) -> bool {
        match &self.phase {
            SessionPhase::Busy(busy) => busy.job.untaken_bytes() < window_bytes,
            _ => true,
        }
    }

    /// When its current phase times out.
    pub(crate) fn due(&self, canceller: &Canceller) -> Option<Instant> {
        self.phase.due(self.since, self.backend.identity(), canceller)
    }

    /// How it ended; `None`: it goes on.
    pub(crate) fn end(&self) -> Option<SessionEnd> {
        if let SessionPhase::Over(end) = self.phase { Some(end) } else { None }
    }

    pub(crate) fn identity(&self) -> &BackendIdentity {
        self.backend.identity()
    }

    pub(crate) fn wire(&mut self) -> &mut Wire {
        self.backend.wire()
    }
}

/// Messages of the server.
impl SlotSession {
    /// Bytes have arrived; the rest in `buffer` is the beginning of a message.
    pub(crate) fn received(&mut self, buffer: &mut BytesMut, cx: &mut PoolContext) {
        let mut at = 0;
        let broken = loop {
            let frame = self.backend.wire().frames.next(buffer, &mut at);
            let heard = match frame.and_then(|frame| frame.as_ref().map(BackendMessage::parse).transpose()) {
                Ok(Some(message)) => self.hear(message, cx),
                Ok(None) => {
                    buffer.advance(at);
                    return self.give_piece(cx);
                }
                Err(broken) => Err(broken),
            };
            match heard {
                Ok(()) if self.end().is_some() => return,
                Ok(()) => {}
                Err(broken) => break broken.to_string(),
            }
        };
        self.lost(&Loss::Broken(broken.clone()), &broken, cx);
    }

    /// Passes the message to the current phase.
    fn hear(&mut self, message: BackendMessage<'_>, cx: &mut PoolContext) -> Result<(), ProtocolViolation> {
        if matches!(message, BackendMessage::Setting { .. }) {
            self.backend.setting_changed();
        }
        match (&mut self.phase, message) {
            (SessionPhase::Busy(Busy { job, .. }) | SessionPhase::Cancelling(Cancelling { job, .. }), message) => {
                let heard = job.hear(message, &cx.server.types)?;
                self.heard(heard, cx);
            }
            (_, BackendMessage::Notice(notice)) => {
                tracing::debug!(sqlstate = %notice.code, "notice: {}", notice.message);
            }
            (_, BackendMessage::Setting { .. } | BackendMessage::Notification { .. })
            | (SessionPhase::Resetting, BackendMessage::Complete(_)) => {}
            (SessionPhase::Resetting, BackendMessage::Ready(Transaction::None)) => self.rest(cx),
            (SessionPhase::Resetting, BackendMessage::Ready(_)) => self.over(UNTERMINATED),
            (SessionPhase::Resetting, BackendMessage::Error(error)) if error.is_cancel() => cx.count_stray(&error),
            // Unsolicited: the server is closing the connection, and nothing more will come.
            (_, BackendMessage::Error(error)) => self.lost(&Loss::Closed, &error.message, cx),
            (
                SessionPhase::Idle
                | SessionPhase::Held(_)
                | SessionPhase::Settling(_)
                | SessionPhase::Resetting
                | SessionPhase::Over(_),
                _,
            ) => return Err(OUT_OF_TURN),
        }
        Ok(())
    }

    fn heard(&mut self, heard: Heard, cx: &mut PoolContext) {
        match heard {
            Heard::Nothing => {}
            Heard::Ready(transaction) => self.ready(transaction, cx),
            Heard::Unwanted(failure) => self.unwanted(failure, cx),
            Heard::Dismissed => self.lost(&Loss::Closed, "the server ended it", cx),
            Heard::CopyIn => {
                write::refuse_copy(&mut self.backend.wire().out);
                cx.lines.speak(self.backend.line());
            }
        }
    }

    /// The rows are refused.
    fn unwanted(&mut self, failure: QueryFailure, cx: &mut PoolContext) {
        if let SessionPhase::Busy(busy) = &mut self.phase {
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
            SessionPhase::Busy(mut busy) => {
                match busy.job.advance(transaction, &mut self.backend.means(&mut cx.server.types)) {
                    JobStep::More => {
                        cx.lines.speak(self.backend.line());
                        self.phase = SessionPhase::Busy(busy);
                    }
                    JobStep::Over => {
                        let then = busy.finish(transaction, cx);
                        self.follow(then, cx);
                    }
                }
            }
            SessionPhase::Cancelling(cancelling) => {
                let settling = cancelling.settle(transaction, cx);
                self.enter(SessionPhase::Settling(settling), cx);
                self.settled(cx);
            }
            phase => self.phase = phase,
        }
    }

    /// Passes on the rows that have been read so far.
    fn give_piece(&mut self, cx: &mut PoolContext) {
        if let SessionPhase::Busy(Busy { job, .. }) = &mut self.phase
            && let Some(piece) = job.piece()
        {
            cx.queries.give(job.query, piece);
        }
    }
}

/// Statements.
impl SlotSession {
    pub(crate) fn begin(&mut self, query: QueryId, waiting: WaitingWork, cx: &mut PoolContext) {
        let WaitingWork { work, tries } = waiting;
        let lease = TransactionStep::of(&work).lease();
        self.epoch += 1;
        self.tries = tries;
        self.backend.expect(statement_of(&work), cx.server.table_changes());
        match Job::begin(query, work, &mut self.backend.means(&mut cx.server.types)) {
            Ok(job) => {
                self.enter(SessionPhase::Busy(Busy::new(job)), cx);
                cx.lines.speak(self.backend.line());
                cx.queries.runs_on(query, self.slot);
            }
            Err((query, failure)) => {
                cx.queries.fail(query, failure);
                match lease {
                    Some(lease) => self.phase = SessionPhase::Held(lease),
                    None => self.rest(cx),
                }
            }
        }
    }

    /// Begins the next work of the transaction that it holds.
    pub(crate) fn continue_transaction(&mut self, cx: &mut PoolContext) {
        while let SessionPhase::Held(lease) = self.phase {
            let Some((query, waiting)) = cx.queries.next_within(lease) else { return };
            self.begin(query, waiting, cx);
        }
    }

    /// A statement is over, and nothing of it is under way any more.
    fn follow(&mut self, then: AfterStatement, cx: &mut PoolContext) {
        match then {
            AfterStatement::Idle => self.rest(cx),
            AfterStatement::Hold(lease) if cx.queries.keeps(lease) => {
                self.enter(SessionPhase::Held(lease), cx);
                self.continue_transaction(cx);
            }
            AfterStatement::Hold(_) | AfterStatement::Reset => self.reset(cx),
        }
    }

    /// Nothing is to be done: it waits for the next statement, unless it must not have one.
    pub(crate) fn rest(&mut self, cx: &mut PoolContext) {
        self.enter(SessionPhase::Idle, cx);
        if cx.phase == PoolPhase::Ending || self.backend.is_changed() {
            self.over(SessionEnd::Closed(TerminateMode::Polite));
        }
    }

    fn reset(&mut self, cx: &mut PoolContext) {
        self.backend.roll_back();
        self.enter(SessionPhase::Resetting, cx);
        cx.lines.speak(self.backend.line());
    }

    fn enter(&mut self, phase: SessionPhase, cx: &PoolContext) {
        self.phase = phase;
        self.since = cx.now;
    }

    /// Takes the phase, in order to replace it.
    fn leave(&mut self) -> SessionPhase {
        std::mem::replace(&mut self.phase, SessionPhase::Idle)
    }

    /// This many bytes of the rows have been taken.
    pub(crate) fn taken(&mut self, bytes: usize, cx: &mut PoolContext) {
        if let SessionPhase::Busy(busy) = &mut self.phase
            && busy.take(bytes, cx.config.options.window_bytes)
        {
            cx.lines.resume(self.backend.line());
        }
    }

    /// Cancels that query.
    pub(crate) fn cancel(&mut self, query: QueryId, cx: &mut PoolContext) {
        if let SessionPhase::Busy(busy) = &mut self.phase
            && busy.job.query == query
        {
            busy.is_unwanted = true;
            self.cancel_unwanted(cx);
        }
    }

    /// The holder of its transaction is gone. If the transaction is being ended, or a statement cancelled, nothing
    /// happens now: afterwards the slot checks whether the lease still exists.
    pub(crate) fn release(&mut self, cx: &mut PoolContext) {
        if let SessionPhase::Held(lease) = self.phase {
            self.follow(AfterStatement::Hold(lease), cx);
        } else {
            self.cancel_unwanted(cx);
        }
    }

    /// The server stops: if idle, it says goodbye, and if busy, it is cancelled. Otherwise it ends when it comes to rest.
    pub(crate) fn stop(&mut self, cx: &mut PoolContext) {
        match &self.phase {
            SessionPhase::Idle => self.over(SessionEnd::Closed(TerminateMode::Polite)),
            SessionPhase::Busy(_) => self.cancel_unwanted(cx),
            SessionPhase::Held(_)
            | SessionPhase::Cancelling(_)
            | SessionPhase::Settling(_)
            | SessionPhase::Resetting
            | SessionPhase::Over(_) => {}
        }
    }
}

/// Cancels.
impl SlotSession {
    /// Cancels the statement, if that is possible.
    fn cancel_unwanted(&mut self, cx: &mut PoolContext) {
        if let SessionPhase::Busy(busy) = &self.phase
            && busy.job.is_cancellable()
        {
            self.cancel_statement(CancelCause::Unwanted, cx);
        }
    }

    fn cancel_statement(&mut self, why: CancelCause, cx: &mut PoolContext) {
        let SessionPhase::Busy(Busy { mut job, .. }) = self.leave() else {
            unreachable!("only what is busy is cancelled")
        };
        job.detach();
        if self.backend.is_unsent(&job) {
            return self.withdraw(&job, why, cx);
        }
        let cancels = Cancels::new(cx.now, cx.server.cancel_route());
        self.enter(SessionPhase::Cancelling(Cancelling { job, why, cancels }), cx);
        cx.lines.resume(self.backend.line());
        if self.backend.identity().secret.is_none() {
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

    /// The cancels of its statement, while that is being cancelled.
    pub(crate) fn cancels(&mut self) -> Option<&mut Cancels> {
        if let SessionPhase::Cancelling(cancelling) = &mut self.phase { Some(&mut cancelling.cancels) } else { None }
    }

    /// Its server process, and which of its statements.
    pub(crate) fn target(&self) -> SignalTarget {
        SignalTarget::new(self.slot, self.backend.line(), self.epoch, self.backend.identity())
    }

    /// The outcome of a cancel; ignored if it was for another statement.
    pub(crate) fn cancel_told(
        &mut self,
        (line, epoch): (Line, u64),
        cx: &mut PoolContext,
        note: impl FnOnce(&mut Cancels),
    ) {
        if self.backend.line() != line || self.epoch != epoch {
            return;
        }
        match &mut self.phase {
            SessionPhase::Cancelling(Cancelling { cancels, .. }) => note(cancels),
            SessionPhase::Settling(settling) => note(settling.cancels_mut()),
            SessionPhase::Idle
            | SessionPhase::Busy(_)
            | SessionPhase::Held(_)
            | SessionPhase::Resetting
            | SessionPhase::Over(_) => return,
        }
        self.settled(cx);
    }

    /// Fence 2: continues when nothing can hit the next statement.
    fn settled(&mut self, cx: &mut PoolContext) {
        let SessionPhase::Settling(settling) = &self.phase else { return };
        match settling.settlement(self.backend.identity().is_pooled) {
            Settlement::Waits => {}
            Settlement::Clean(then) => self.follow(then, cx),
            Settlement::Unsafe => self.retire_settling(cx),
        }
    }
}

/// The end.
impl SlotSession {
    /// Handles a phase that has timed out.
    pub(crate) fn expire(&mut self, cx: &mut PoolContext) {
        if !self.phase.is_expired(cx.now.saturating_duration_since(self.since)) {
            return;
        }
        match &self.phase {
            SessionPhase::Cancelling(_) => self.retire_cancelling(true, cx),
            SessionPhase::Settling(_) => self.retire_settling(cx),
            SessionPhase::Resetting => self.over(UNTERMINATED),
            SessionPhase::Idle | SessionPhase::Busy(_) | SessionPhase::Held(_) | SessionPhase::Over(_) => {}
        }
    }

    /// The statement does not react: its process is terminated.
    fn retire_cancelling(&mut self, is_terminated: bool, cx: &mut PoolContext) {
        let SessionPhase::Cancelling(cancelling) = self.leave() else {
            unreachable!("only what is cancelled is given up")
        };
        cancelling.give_up(cx);
        self.over(SessionEnd::Retired { is_terminated });
    }

    fn retire_settling(&mut self, cx: &mut PoolContext) {
        if let SessionPhase::Settling(Settling { then: AfterStatement::Hold(lease), .. }) = &self.phase {
            cx.queries.lose_lease(*lease);
        }
        self.over(UNTERMINATED);
    }

    fn over(&mut self, end: SessionEnd) {
        self.phase = SessionPhase::Over(end);
    }

    /// The connection broke: its query ends, or returns to the queue if it never began.
    pub(crate) fn lost(&mut self, loss: &Loss, why: &str, cx: &mut PoolContext) {
        match self.leave() {
            SessionPhase::Busy(busy) => {
                let is_unsent = self.backend.is_unsent(&busy.job);
                busy.lost(why, is_unsent, self.tries, cx);
            }
            SessionPhase::Cancelling(cancelling) => cancelling.lost(why, cx),
            SessionPhase::Held(lease) | SessionPhase::Settling(Settling { then: AfterStatement::Hold(lease), .. }) => {
                cx.queries.lose_lease(lease);
            }
            SessionPhase::Settling(_) | SessionPhase::Idle | SessionPhase::Resetting | SessionPhase::Over(_) => {}
        }
        // If the server closed the connection, its process is gone; otherwise the server may not have noticed yet.
        self.over(if *loss == Loss::Closed || cx.phase == PoolPhase::Ending {
            SessionEnd::Closed(TerminateMode::Abrupt)
        } else {
            UNTERMINATED
        });
    }

    /// What remains of it until its process is gone; `None` if the process cannot be checked. Behind a pooler there is
    /// nothing to check: the pooler ends the statement in its own way.
    pub(crate) fn retire_process(self, is_terminated: bool, now: Instant) -> Option<Retiring> {
        let is_known = self.backend.is_known();
        is_known.then(|| Retiring::new(now, is_terminated, self.target(), self.backend.into_identity()))
    }
}
