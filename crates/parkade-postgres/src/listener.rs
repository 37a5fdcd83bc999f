//! The connection that listens: NOTIFY becomes an event.

use std::time::{Duration, Instant};

use bytes::BytesMut;

use crate::Event;
use crate::back_off::BackOff;
use crate::dial::{Dial, Dialled};
use crate::handshake::{Identity, Refusal, Terms};
use crate::limits::MESSAGE_BYTES_MAX;
use crate::line::{Line, Loss};
use crate::settings::Secret;
use crate::transport::Setback;
use crate::wire::message::Message;
use crate::wire::{Broken, Wire, write};

#[derive(Debug)]
pub(crate) struct Listener {
    channels: Vec<String>,
    state: State,
    back_off: BackOff,
    /// Whether LISTEN has been in force before.
    has_listened: bool,
}

#[derive(Debug)]
enum State {
    Off,
    Dialling {
        line: Line,
        wire: Wire,
        dial: Dial,
    },
    /// LISTEN has been sent.
    Asking {
        line: Line,
        wire: Wire,
        since: Instant,
        refused: Option<Box<str>>,
    },
    Listening {
        line: Line,
        wire: Wire,
    },
    /// It cannot be had here.
    Refused,
}

/// What its owner has to do.
#[derive(Debug)]
pub(crate) enum Told {
    Nothing,
    Event(Event),
    Next(Setback),
    Refused(Refusal),
    /// It closes, and does not try again.
    Hopeless,
}

impl Listener {
    pub(crate) fn new(channels: Vec<String>) -> Self {
        let state = if channels.is_empty() { State::Refused } else { State::Off };
        Self { channels, state, back_off: BackOff::default(), has_listened: false }
    }

    pub(crate) fn line(&self) -> Option<Line> {
        match &self.state {
            State::Off | State::Refused => None,
            State::Dialling { line, .. } | State::Asking { line, .. } | State::Listening { line, .. } => Some(*line),
        }
    }

    fn wire(&mut self) -> Option<&mut Wire> {
        match &mut self.state {
            State::Off | State::Refused => None,
            State::Dialling { wire, .. } | State::Asking { wire, .. } | State::Listening { wire, .. } => Some(wire),
        }
    }

    pub(crate) fn out(&mut self) -> Option<&mut BytesMut> {
        self.wire().map(|wire| &mut wire.out)
    }

    pub(crate) fn dialling(&mut self) -> Option<(&mut Dial, &mut Wire)> {
        if let State::Dialling { wire, dial, .. } = &mut self.state { Some((dial, wire)) } else { None }
    }

    pub(crate) fn may_dial(&self, now: Instant) -> bool {
        matches!(self.state, State::Off) && self.back_off.is_over(now)
    }

    pub(crate) fn dial(&mut self, now: Instant, line: Line) {
        self.state = State::Dialling { line, wire: Wire::new(MESSAGE_BYTES_MAX), dial: Dial::new(now) };
    }

    pub(crate) fn opened(&mut self, now: Instant, terms: &Terms, password: Option<Secret>) -> Told {
        let State::Dialling { wire, dial, .. } = &mut self.state else { return Told::Nothing };
        Told::from(dial.opened(now, terms, password, wire))
    }

    /// The bytes of `buffer` up to `at` have been heard when it returns something.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        buffer: &[u8],
        at: &mut usize,
        terms: &Terms,
    ) -> Result<Option<Told>, Broken> {
        let Some(wire) = self.wire() else { return Ok(None) };
        let Some(frame) = wire.frames.next(buffer, at)? else { return Ok(None) };
        Ok(Some(self.hear(now, Message::parse(&frame)?, terms)))
    }

    fn hear(&mut self, now: Instant, message: Message<'_>, terms: &Terms) -> Told {
        match (&mut self.state, message) {
            (State::Dialling { wire, dial, .. }, message) => match dial.hear(now, message, terms, wire) {
                Dialled::Ready(identity) => self.ask(now, &identity),
                other => Told::from(other),
            },
            (State::Asking { .. } | State::Listening { .. }, Message::Notification { channel, payload }) => {
                Told::Event(Event::Notification { channel: channel.to_owned(), payload: payload.to_owned() })
            }
            (State::Asking { refused, .. }, Message::Error(error)) => {
                *refused = Some(error.message);
                Told::Nothing
            }
            (State::Asking { refused, .. }, Message::Ready(_)) => match refused.take() {
                Some(why) => Told::Refused(Refusal::unreachable(format!("LISTEN was refused: {why}"))),
                None => self.listening(),
            },
            (State::Off | State::Asking { .. } | State::Listening { .. } | State::Refused, _) => Told::Nothing,
        }
    }

    fn ask(&mut self, now: Instant, identity: &Identity) -> Told {
        if identity.is_pooled {
            tracing::error!(
                "LISTEN needs a server process of its own: give the address of PostgreSQL itself, not of the pooler"
            );
            return Told::Hopeless;
        }
        let State::Dialling { line, mut wire, .. } = std::mem::replace(&mut self.state, State::Off) else {
            return Told::Nothing;
        };
        let listen = |name: &String| format!("LISTEN \"{}\"", name.replace('"', "\"\""));
        let text = self.channels.iter().map(listen).collect::<Vec<_>>().join("; ");
        if let Err(failure) = write::simple(&mut wire.out, &text) {
            tracing::error!("a channel cannot be listened to: {}", failure.message);
            return Told::Hopeless;
        }
        self.state = State::Asking { line, wire, since: now, refused: None };
        Told::Nothing
    }

    fn listening(&mut self) -> Told {
        if let State::Asking { line, wire, .. } = std::mem::replace(&mut self.state, State::Off) {
            self.state = State::Listening { line, wire };
        }
        self.back_off.succeeded();
        if std::mem::replace(&mut self.has_listened, true) { Told::Event(Event::ListeningAgain) } else { Told::Nothing }
    }

    pub(crate) fn lost(&mut self, now: Instant, loss: &Loss, random: &mut fastrand::Rng) {
        tracing::debug!("the listener has no connection: {}", loss.why());
        self.back_off.failed(now, random);
        self.state = State::Off;
    }

    /// Nothing more is heard of it.
    pub(crate) fn stop(&mut self) {
        self.state = State::Refused;
    }

    pub(crate) fn due(&self, timeout: Duration) -> Option<Instant> {
        match &self.state {
            State::Dialling { dial, .. } => Some(dial.due(timeout)),
            State::Asking { since, .. } => Some(*since + timeout),
            State::Off | State::Listening { .. } | State::Refused => None,
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
