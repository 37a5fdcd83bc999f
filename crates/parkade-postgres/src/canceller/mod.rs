//! The reserved connection: one statement on it sends all cancels that are due.
//!
//! `pg_cancel_backend` costs a thirtieth of a `CancelRequest`, and its reply confirms that the signals have been sent:
//! this is the acknowledgement that fence 2 waits for. It identifies processes by their start time and their
//! postmaster's. If a pid belongs to another process by now, or to a process on another server, nothing is sent to it.

mod batch;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;

pub(crate) use batch::{Aim, Batch, SignalTarget};

use crate::dedicated::{Dedicated, DedicatedStep};
use crate::dial::{Dial, DialStep};
use crate::handshake::{BackendIdentity, Terms};
use crate::limits::{CANCEL_TICK, CANCELLER_ANSWER_MAX};
use crate::line::{Line, Loss};
use crate::settings::Secret;
use crate::wire::message::BackendMessage;
use crate::wire::{ProtocolViolation, Wire};

#[derive(Debug)]
pub(crate) struct Canceller {
    /// The name of the database, for people.
    database: Arc<str>,
    connection: Dedicated<CancelService>,
}

/// A connection that is logged in.
#[derive(Debug)]
struct CancelService {
    /// The server that it is connected to.
    postmaster: Box<str>,
    stage: CancelStage,
}

#[derive(Debug)]
enum CancelStage {
    /// Its statements are being prepared.
    Preparing {
        refused: bool,
        since: Instant,
    },
    /// The next batch can be sent at this time.
    Ready {
        next: Instant,
    },
    Asking {
        batch: Batch,
        since: Instant,
    },
}

/// Returns batches that the server has carried out: every signal has been sent.
pub(crate) type CancellerStep = DedicatedStep<Batch>;

/// Rows of the canceller contain a pid and a letter.
const ROW_BYTES_MAX: usize = 4096;

impl Canceller {
    pub(crate) fn new(database: Arc<str>) -> Self {
        Self { database, connection: Dedicated::new(ROW_BYTES_MAX) }
    }

    pub(crate) fn line(&self) -> Option<Line> {
        self.connection.line()
    }

    pub(crate) fn out(&mut self) -> Option<&mut BytesMut> {
        self.connection.out()
    }

    pub(crate) fn dialling(&mut self) -> Option<(&mut Dial, &mut Wire)> {
        self.connection.dialling()
    }

    pub(crate) fn may_dial(&self, now: Instant) -> bool {
        self.connection.may_dial(now)
    }

    pub(crate) fn dial_at(&self) -> Option<Instant> {
        self.connection.dial_at()
    }

    pub(crate) fn dial(&mut self, now: Instant, line: Line) {
        self.connection.dial(now, line);
    }

    pub(crate) fn opened(&mut self, now: Instant, terms: &Terms, password: Option<Secret>) -> CancellerStep {
        self.connection.opened(now, terms, password)
    }

    fn stage(&self) -> Option<&CancelStage> {
        self.connection.service().map(|service| &service.stage)
    }

    /// Whether a batch can be sent now.
    pub(crate) fn is_free(&self, now: Instant) -> bool {
        self.free_at().is_some_and(|next| next <= now)
    }

    /// When the next batch can be sent; `None`: after the reply, or never.
    pub(crate) fn free_at(&self) -> Option<Instant> {
        match self.stage()? {
            CancelStage::Ready { next } => Some(*next),
            CancelStage::Preparing { .. } | CancelStage::Asking { .. } => None,
        }
    }

    /// Whether it can send a batch to that server, now or soon.
    pub(crate) fn serves(&self, identity: &BackendIdentity) -> bool {
        self.connection.service().is_some_and(|service| match &service.stage {
            CancelStage::Preparing { .. } => false,
            CancelStage::Ready { .. } | CancelStage::Asking { .. } => *service.postmaster == *identity.postmaster_start,
        })
    }

    /// Since when it has been waiting for the server, if it is.
    pub(crate) fn asked_at(&self) -> Option<Instant> {
        match self.stage() {
            None => self.connection.dialling_since(),
            Some(CancelStage::Preparing { since, .. } | CancelStage::Asking { since, .. }) => Some(*since),
            Some(CancelStage::Ready { .. }) => None,
        }
    }

    /// Whether it is connected, or soon will be.
    pub(crate) fn is_hopeful(&self) -> bool {
        !self.connection.is_off() || !self.connection.is_failing()
    }

    /// Handles messages up to one with a result; `at` is moved past it.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        buffer: &[u8],
        at: &mut usize,
        terms: &Terms,
    ) -> Result<Option<CancellerStep>, ProtocolViolation> {
        let Some(frame) = self.connection.next_frame(buffer, at)? else { return Ok(None) };
        self.hear(now, BackendMessage::parse(&frame)?, terms).map(Some)
    }

    fn hear(
        &mut self,
        now: Instant,
        message: BackendMessage<'_>,
        terms: &Terms,
    ) -> Result<CancellerStep, ProtocolViolation> {
        if let Some((dial, wire)) = self.connection.dialling() {
            return match dial.hear(now, message, terms, wire) {
                DialStep::Ready(identity) => Ok(self.prepare(now, identity)),
                step => Ok(step.into()),
            };
        }
        let Some((service, _)) = self.connection.serving() else { return Ok(CancellerStep::Nothing) };
        match (&mut service.stage, message) {
            (CancelStage::Preparing { refused, .. }, BackendMessage::Error(_)) => *refused = true,
            (CancelStage::Preparing { .. } | CancelStage::Asking { .. }, BackendMessage::Ready(_)) => {
                return Ok(self.ready(now));
            }
            (CancelStage::Asking { batch, .. }, BackendMessage::Row(row)) => batch.row(row)?,
            (CancelStage::Asking { .. }, BackendMessage::Error(error)) => {
                let (name, sqlstate, why) = (&self.database, &error.code, &error.message);
                tracing::warn!(database = %name, %sqlstate, "the database {name} failed to carry out a batch of cancels; those still needed are sent again: {why}");
            }
            (CancelStage::Preparing { .. } | CancelStage::Ready { .. } | CancelStage::Asking { .. }, _) => {}
        }
        Ok(CancellerStep::Nothing)
    }

    fn prepare(&mut self, now: Instant, identity: BackendIdentity) -> CancellerStep {
        if identity.is_pooled {
            return CancellerStep::Useless;
        }
        if let Some(out) = self.out() {
            batch::prepare(out);
        }
        let stage = CancelStage::Preparing { refused: false, since: now };
        self.connection.serve(CancelService { postmaster: identity.postmaster_start, stage });
        CancellerStep::Nothing
    }

    fn ready(&mut self, now: Instant) -> CancellerStep {
        let Some((service, _)) = self.connection.serving() else { return CancellerStep::Nothing };
        match std::mem::replace(&mut service.stage, CancelStage::Ready { next: now }) {
            CancelStage::Preparing { refused: true, .. } => CancellerStep::Useless,
            CancelStage::Preparing { .. } => {
                self.connection.succeeded();
                CancellerStep::Nothing
            }
            CancelStage::Asking { batch, .. } => {
                service.stage = CancelStage::Ready { next: now + CANCEL_TICK };
                CancellerStep::News(batch)
            }
            stage @ CancelStage::Ready { .. } => {
                service.stage = stage;
                CancellerStep::Nothing
            }
        }
    }

    /// Only to be called if it is free.
    pub(crate) fn ask(&mut self, now: Instant, batch: Batch) {
        if let Some((service, wire)) = self.connection.serving()
            && matches!(service.stage, CancelStage::Ready { .. })
        {
            batch.write(&mut wire.out, &service.postmaster);
            service.stage = CancelStage::Asking { batch, since: now };
        }
    }

    /// There is no other address, or the connection broke. Signals that it was asked for may still be sent at any time.
    pub(crate) fn lost(&mut self, now: Instant, loss: &Loss, random: &mut fastrand::Rng) -> Option<Batch> {
        tracing::debug!(database = %self.database, "the connection for cancels is down; reconnecting: {}", loss.why());
        match self.connection.lost(now, random)?.stage {
            CancelStage::Asking { batch, .. } => Some(batch),
            CancelStage::Preparing { .. } | CancelStage::Ready { .. } => None,
        }
    }

    /// When its reply is overdue.
    pub(crate) fn due(&self, timeout: Duration) -> Option<Instant> {
        match self.stage() {
            None => self.connection.dial_due(timeout),
            Some(CancelStage::Preparing { since, .. }) => Some(*since + timeout),
            Some(CancelStage::Asking { since, .. }) => Some(*since + CANCELLER_ANSWER_MAX),
            Some(CancelStage::Ready { .. }) => None,
        }
    }
}
