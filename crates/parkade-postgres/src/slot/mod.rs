//! A place of the pool for a connection: it is opened ([`Connecting`]), runs statements ([`SlotSession`]), and stays
//! taken until its server process is gone ([`Retiring`]). One struct for each stage, and a transition consumes it.
//! `docs/queries.md` has the diagram.
//!
//! It never touches another slot: what they share is in the [`PoolContext`].
//!
//! | question | where |
//! |---|---|
//! | opening a connection | `connecting` |
//! | running statements; its phases | `session`, `phase`, `busy` |
//! | a cancelled statement, until nothing can hit the next one | `cancelling`, `cancels` |
//! | closing, until the server process is gone | `retiring` |
//! | the server process, and what it has prepared | `backend` |

mod backend;
mod busy;
mod cancelling;
mod cancels;
mod connecting;
mod phase;
mod retiring;
mod session;

use std::time::{Duration, Instant};

use bytes::BytesMut;
use parkade_sql::{SlotState, SlotStatus};

pub(crate) use cancels::{CancelRoute, Cancels};
use connecting::Connecting;
use phase::SessionEnd;
use retiring::Retiring;
pub(crate) use session::SlotSession;

use crate::canceller::Canceller;
use crate::dial::{Dial, DialStep};
use crate::handshake::{BackendIdentity, Computed, DialRefusal};
use crate::limits::RETIRING_MAX;
use crate::line::{Line, Loss, TerminateMode};
use crate::pool::PoolContext;
use crate::settings::Secret;
use crate::wire::Wire;

#[derive(Debug)]
pub(crate) struct Slot {
    /// Its place in the pool.
    index: usize,
    line: Line,
    stage: SlotStage,
}

#[derive(Debug)]
enum SlotStage {
    /// The socket is being opened, or the handshake is under way.
    Connecting(Box<Connecting>),
    /// It is logged in.
    Open(Box<SlotSession>),
    /// The connection is closed, but its server process may still exist.
    Retiring(Retiring),
    /// The connection is closed, and the place free. Also used while a stage is moved.
    Gone,
}

/// A connection was not made, and its slot is gone.
#[derive(Debug)]
pub(crate) struct FailedDial {
    /// When the attempt began.
    pub(crate) since: Instant,
    pub(crate) refusal: DialRefusal,
}

/// Status.
impl Slot {
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn line(&self) -> Line {
        self.line
    }

    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.stage, SlotStage::Gone)
    }

    pub(crate) fn is_connecting(&self) -> bool {
        matches!(self.stage, SlotStage::Connecting(_))
    }

    /// While it is logged in.
    pub(crate) fn session(&self) -> Option<&SlotSession> {
        if let SlotStage::Open(session) = &self.stage { Some(session) } else { None }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.session().is_some_and(|session| session.phase().is_idle())
    }

    /// Whether it is to be read.
    pub(crate) fn wants_read(&self, window_bytes: usize) -> bool {
        self.session().is_none_or(|session| session.wants_read(window_bytes))
    }

    pub(crate) fn status(&self, now: Instant) -> SlotStatus {
        let (state, query, since) = match &self.stage {
            SlotStage::Connecting(connecting) => (SlotState::Connecting, None, connecting.since()),
            SlotStage::Open(session) => {
                let phase = session.phase();
                (phase.shown(), phase.job().map(|job| job.query), session.since())
            }
            SlotStage::Retiring(retiring) => (SlotState::Retiring, None, retiring.since()),
            SlotStage::Gone => (SlotState::Retiring, None, now),
        };
        SlotStatus { state, query, age: now.saturating_duration_since(since) }
    }

    /// When its current stage, or a phase of its session, times out.
    pub(crate) fn due(&self, connect_timeout: Duration, canceller: &Canceller) -> Option<Instant> {
        match &self.stage {
            SlotStage::Connecting(connecting) => Some(connecting.due(connect_timeout)),
            SlotStage::Open(session) => session.due(canceller),
            SlotStage::Retiring(retiring) => Some(retiring.look_at().min(retiring.since() + RETIRING_MAX)),
            SlotStage::Gone => None,
        }
    }
}

/// Connecting.
impl Slot {
    pub(crate) fn connecting(index: usize, line: Line, now: Instant, row_bytes_max: usize) -> Self {
        Self { index, line, stage: SlotStage::Connecting(Box::new(Connecting::new(now, row_bytes_max))) }
    }

    /// The handshake, if it is under way.
    pub(crate) fn dial(&mut self) -> Option<&mut Dial> {
        self.connecting_mut().map(Connecting::dial)
    }

    fn connecting_mut(&mut self) -> Option<&mut Connecting> {
        if let SlotStage::Connecting(connecting) = &mut self.stage { Some(connecting) } else { None }
    }

    /// The socket is open.
    pub(crate) fn opened(&mut self, password: Option<Secret>, cx: &mut PoolContext) -> Option<FailedDial> {
        let step = self.connecting_mut()?.opened(password, cx);
        cx.counts.connects += 1;
        self.dialled(step, cx)
    }

    pub(crate) fn computed(&mut self, computed: Computed, cx: &mut PoolContext) -> Option<FailedDial> {
        let step = self.connecting_mut()?.computed(computed, cx.now);
        self.dialled(step, cx)
    }

    /// Whether the current address does not answer.
    pub(crate) fn time_out_dial(&mut self, cx: &mut PoolContext) -> Option<FailedDial> {
        let step = self.connecting_mut()?.time_out(cx.now, cx.config.options.connect_timeout)?;
        self.dialled(step, cx)
    }

    fn dialled(&mut self, step: DialStep, cx: &mut PoolContext) -> Option<FailedDial> {
        match step {
            DialStep::Going => cx.lines.speak(self.line),
            DialStep::Ready(identity) => self.log_in(identity, cx),
            DialStep::Next(setback) => cx.lines.open_next(self.line, setback),
            DialStep::Refused(refusal) => return self.refused(refusal, cx),
        }
        None
    }

    fn log_in(&mut self, identity: BackendIdentity, cx: &mut PoolContext) {
        cx.connected(&identity);
        if let SlotStage::Connecting(connecting) = self.leave() {
            let session = SlotSession::new(self.index, self.line, connecting.into_wire(), identity, cx.now);
            self.stage = SlotStage::Open(Box::new(session));
            self.update_session(cx, SlotSession::rest);
        }
    }

    fn refused(&mut self, refusal: DialRefusal, cx: &mut PoolContext) -> Option<FailedDial> {
        cx.counts.connects_failed += 1;
        let since = self.connecting_mut()?.since();
        self.close(TerminateMode::Abrupt, cx);
        Some(FailedDial { since, refusal })
    }

    /// Takes the stage, in order to replace it.
    fn leave(&mut self) -> SlotStage {
        std::mem::replace(&mut self.stage, SlotStage::Gone)
    }
}

/// The connection.
impl Slot {
    /// Bytes have arrived; the rest in `buffer` is the beginning of a message.
    pub(crate) fn received(&mut self, buffer: &mut BytesMut, cx: &mut PoolContext) -> Option<FailedDial> {
        if let SlotStage::Connecting(connecting) = &mut self.stage {
            let failed = match connecting.received(buffer, cx) {
                Ok(step) => self.dialled(step, cx),
                Err(broken) => self.lost(Loss::Broken(broken.to_string()), cx),
            };
            if failed.is_some() {
                buffer.clear();
                return failed;
            }
        }
        self.update_session(cx, |session, cx| session.received(buffer, cx));
        if matches!(self.stage, SlotStage::Retiring(_) | SlotStage::Gone) {
            buffer.clear();
        }
        None
    }

    /// Changes the session, if there is one, and closes the connection if the session is over afterwards.
    pub(crate) fn update_session<T>(
        &mut self,
        cx: &mut PoolContext,
        change: impl FnOnce(&mut SlotSession, &mut PoolContext) -> T,
    ) -> Option<T> {
        let SlotStage::Open(session) = &mut self.stage else { return None };
        let result = change(session, cx);
        if let Some(end) = session.end() {
            self.leave_session(end, cx);
        }
        Some(result)
    }

    /// Closes the connection of a session that is over. Unless it is known that its server process ends, the place
    /// stays taken until the process is gone; otherwise the pool could have more processes than allowed.
    fn leave_session(&mut self, end: SessionEnd, cx: &mut PoolContext) {
        match end {
            SessionEnd::Closed(mode) => self.close(mode, cx),
            SessionEnd::Retired { is_terminated } => {
                cx.lines.close(self.line, TerminateMode::Abrupt);
                if let SlotStage::Open(session) = self.leave()
                    && let Some(retiring) = session.retire_process(is_terminated, cx.now)
                {
                    cx.counts.terminated += u64::from(is_terminated);
                    self.stage = SlotStage::Retiring(retiring);
                }
            }
        }
    }

    /// The server stops: an idle session says goodbye, a busy one is cancelled, the others end when they come to rest.
    pub(crate) fn end(&mut self, cx: &mut PoolContext) {
        if self.is_connecting() {
            self.close(TerminateMode::Abrupt, cx);
        } else {
            self.update_session(cx, SlotSession::stop);
        }
    }

    /// Handles a stage, or a phase of its session, that has timed out.
    pub(crate) fn expire(&mut self, cx: &mut PoolContext) {
        match &self.stage {
            SlotStage::Open(_) => _ = self.update_session(cx, SlotSession::expire),
            SlotStage::Retiring(retiring) if retiring.since() + RETIRING_MAX <= cx.now => self.free(),
            SlotStage::Retiring(_) | SlotStage::Connecting(_) | SlotStage::Gone => {}
        }
    }

    /// The connection broke, or was not made.
    pub(crate) fn lost(&mut self, loss: Loss, cx: &mut PoolContext) -> Option<FailedDial> {
        cx.lines.close(self.line, TerminateMode::Abrupt);
        if let Some(connecting) = self.connecting_mut() {
            let refusal = connecting.dial().lost(loss);
            return self.refused(refusal, cx);
        }
        self.update_session(cx, |session, cx| session.lost(&loss, loss.why(), cx));
        None
    }

    /// What it has to send, and what it reads; `None`: the connection is closed.
    pub(crate) fn wire(&mut self) -> Option<&mut Wire> {
        match &mut self.stage {
            SlotStage::Connecting(connecting) => Some(connecting.wire()),
            SlotStage::Open(session) => Some(session.wire()),
            SlotStage::Retiring(_) | SlotStage::Gone => None,
        }
    }

    /// Closes the connection and frees its place.
    pub(crate) fn close(&mut self, mode: TerminateMode, cx: &mut PoolContext) {
        cx.lines.close(self.line, mode);
        self.stage = SlotStage::Gone;
    }

    pub(crate) fn retiring_mut(&mut self) -> Option<&mut Retiring> {
        if let SlotStage::Retiring(retiring) = &mut self.stage { Some(retiring) } else { None }
    }

    /// Its process is gone, or cannot be checked.
    pub(crate) fn free(&mut self) {
        self.stage = SlotStage::Gone;
    }
}
