//! The reserved connection: one statement cancels whatever is due.
//!
//! `pg_cancel_backend` costs a thirtieth of a `CancelRequest`, and its reply says that the signals have been sent: so it is the
//! acknowledgement that fence 2 waits for. It finds processes by their start and its own postmaster's: a pid that was given to another,
//! or the same pid on another server, is left alone.

mod batch;

use std::time::Instant;

use bytes::BytesMut;

pub(crate) use batch::{Aim, Batch, Target};

use crate::back_off::BackOff;
use crate::dial::{Dial, Dialled};
use crate::handshake::{Identity, Refusal, Terms};
use crate::limits::{CANCEL_TICK, CANCELLER_ANSWER_MAX};
use crate::line::{Line, Loss};
use crate::settings::Secret;
use crate::wire::message::{Message, Transaction};
use crate::wire::{Broken, Wire};

#[derive(Debug, Default)]
pub(crate) struct Canceller {
    state: State,
    back_off: BackOff,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Off,
    Dialling {
        open: Open,
        dial: Dial,
    },
    /// Its statements are being prepared.
    Preparing {
        open: Open,
        postmaster: Box<str>,
        refused: bool,
        since: Instant,
    },
    Ready {
        open: Open,
        postmaster: Box<str>,
        next: Instant,
    },
    Asking {
        open: Open,
        postmaster: Box<str>,
        batch: Batch,
        since: Instant,
    },
}

#[derive(Debug)]
struct Open {
    line: Line,
    wire: Wire,
}

/// What its owner has to do.
#[derive(Debug)]
pub(crate) enum Told {
    Nothing,
    Next(crate::transport::Setback),
    Refused(Refusal),
    /// The server has carried out a batch: every signal has been sent.
    Answered(Batch),
    /// This server knows no such thing.
    Useless,
}

/// Rows of the canceller are a pid and a letter.
const ROW_BYTES_MAX: usize = 4096;

impl Canceller {
    pub(crate) fn line(&self) -> Option<Line> {
        self.open().map(|open| open.line)
    }

    fn open(&self) -> Option<&Open> {
        match &self.state {
            State::Off => None,
            State::Dialling { open, .. }
            | State::Preparing { open, .. }
            | State::Ready { open, .. }
            | State::Asking { open, .. } => Some(open),
        }
    }

    fn open_mut(&mut self) -> Option<&mut Open> {
        match &mut self.state {
            State::Off => None,
            State::Dialling { open, .. }
            | State::Preparing { open, .. }
            | State::Ready { open, .. }
            | State::Asking { open, .. } => Some(open),
        }
    }

    pub(crate) fn out(&mut self) -> Option<&mut BytesMut> {
        self.open_mut().map(|open| &mut open.wire.out)
    }

    /// Whether a batch can be asked now.
    pub(crate) fn is_free(&self, now: Instant) -> bool {
        matches!(self.state, State::Ready { next, .. } if next <= now)
    }

    /// Whether it will be able to tell that server something, soon.
    pub(crate) fn serves(&self, identity: &Identity) -> bool {
        match &self.state {
            State::Off | State::Dialling { .. } | State::Preparing { .. } => false,
            State::Ready { postmaster, .. } | State::Asking { postmaster, .. } => {
                **postmaster == *identity.postmaster_start
            }
        }
    }

    /// When it can be asked again; `None`: when it has answered, or never.
    pub(crate) fn free_at(&self) -> Option<Instant> {
        match &self.state {
            State::Ready { next, .. } => Some(*next),
            State::Off | State::Dialling { .. } | State::Preparing { .. } | State::Asking { .. } => None,
        }
    }

    pub(crate) fn dialling(&mut self) -> Option<(&mut Dial, &mut Wire)> {
        if let State::Dialling { open, dial } = &mut self.state { Some((dial, &mut open.wire)) } else { None }
    }

    /// When it began to wait for the server, if it does.
    pub(crate) fn asked_at(&self) -> Option<Instant> {
        match &self.state {
            State::Dialling { dial, .. } => Some(dial.begun()),
            State::Preparing { since, .. } | State::Asking { since, .. } => Some(*since),
            State::Off | State::Ready { .. } => None,
        }
    }

    /// Whether it is there, or soon will be.
    pub(crate) fn is_hopeful(&self) -> bool {
        !matches!(self.state, State::Off) || !self.back_off.is_failing()
    }

    pub(crate) fn may_dial(&self, now: Instant) -> bool {
        matches!(self.state, State::Off) && self.back_off.is_over(now)
    }

    pub(crate) fn dial(&mut self, now: Instant, line: Line) {
        let open = Open { line, wire: Wire::new(ROW_BYTES_MAX) };
        self.state = State::Dialling { open, dial: Dial::new(now) };
    }

    pub(crate) fn opened(&mut self, now: Instant, terms: &Terms, password: Option<Secret>) -> Told {
        let State::Dialling { open, dial } = &mut self.state else { return Told::Nothing };
        Told::from(dial.opened(now, terms, password, &mut open.wire))
    }

    /// The bytes of `buffer` up to `at` have been heard when it returns something.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        buffer: &[u8],
        at: &mut usize,
        terms: &Terms,
    ) -> Result<Option<Told>, Broken> {
        let Some(open) = self.open_mut() else { return Ok(None) };
        let Some(frame) = open.wire.frames.next(buffer, at)? else { return Ok(None) };
        self.hear(now, Message::parse(&frame)?, terms).map(Some)
    }

    fn hear(&mut self, now: Instant, message: Message<'_>, terms: &Terms) -> Result<Told, Broken> {
        match (&mut self.state, message) {
            (State::Dialling { open, dial }, message) => match dial.hear(now, message, terms, &mut open.wire) {
                Dialled::Ready(identity) => Ok(self.prepare(now, identity)),
                other => Ok(Told::from(other)),
            },
            (State::Preparing { refused, .. }, Message::Error(_)) => {
                *refused = true;
                Ok(Told::Nothing)
            }
            (State::Preparing { .. } | State::Asking { .. }, Message::Ready(transaction)) => {
                Ok(self.ready(now, transaction))
            }
            (State::Asking { batch, .. }, Message::Row(row)) => batch.row(row).map(|()| Told::Nothing),
            (State::Asking { .. }, Message::Error(error)) => {
                tracing::warn!(code = %error.code, "the canceller's statement failed: {}", error.message);
                Ok(Told::Nothing)
            }
            (State::Off | State::Preparing { .. } | State::Ready { .. } | State::Asking { .. }, _) => Ok(Told::Nothing),
        }
    }

    fn prepare(&mut self, now: Instant, identity: Identity) -> Told {
        let State::Dialling { mut open, .. } = std::mem::take(&mut self.state) else { return Told::Nothing };
        if identity.is_pooled {
            return Told::Useless;
        }
        batch::prepare(&mut open.wire.out);
        self.state = State::Preparing { open, postmaster: identity.postmaster_start, refused: false, since: now };
        Told::Nothing
    }

    fn ready(&mut self, now: Instant, _: Transaction) -> Told {
        match std::mem::take(&mut self.state) {
            State::Preparing { refused: true, .. } => Told::Useless,
            State::Preparing { open, postmaster, .. } => {
                self.back_off.succeeded();
                self.state = State::Ready { open, postmaster, next: now };
                Told::Nothing
            }
            State::Asking { open, postmaster, batch, .. } => {
                self.state = State::Ready { open, postmaster, next: now + CANCEL_TICK };
                Told::Answered(batch)
            }
            state @ (State::Off | State::Dialling { .. } | State::Ready { .. }) => {
                self.state = state;
                Told::Nothing
            }
        }
    }

    /// Only when it is free.
    pub(crate) fn ask(&mut self, now: Instant, batch: Batch) {
        let State::Ready { mut open, postmaster, .. } = std::mem::take(&mut self.state) else { return };
        batch.write(&mut open.wire.out, &postmaster);
        self.state = State::Asking { open, postmaster, batch, since: now };
    }

    /// There is no other address, or the connection broke. What it was asked may still be carried out, at any time.
    pub(crate) fn lost(&mut self, now: Instant, loss: &Loss, random: &mut fastrand::Rng) -> Option<Batch> {
        tracing::debug!("the canceller has no connection: {}", loss.why());
        self.back_off.failed(now, random);
        match std::mem::take(&mut self.state) {
            State::Asking { batch, .. } => Some(batch),
            State::Off | State::Dialling { .. } | State::Preparing { .. } | State::Ready { .. } => None,
        }
    }

    pub(crate) fn due(&self, terms_timeout: std::time::Duration) -> Option<Instant> {
        match &self.state {
            State::Off | State::Ready { .. } => None,
            State::Dialling { dial, .. } => Some(dial.due(terms_timeout)),
            State::Preparing { since, .. } => Some(*since + terms_timeout),
            State::Asking { since, .. } => Some(*since + CANCELLER_ANSWER_MAX),
        }
    }

    pub(crate) fn dial_at(&self) -> Option<Instant> {
        if matches!(self.state, State::Off) { self.back_off.until } else { None }
    }
}

impl From<Dialled> for Told {
    fn from(dialled: Dialled) -> Self {
        match dialled {
            Dialled::Going | Dialled::Ready(_) => Self::Nothing,
            Dialled::Next(setback) => Self::Next(setback),
            Dialled::Refused(refusal) => Self::Refused(refusal),
        }
    }
}
