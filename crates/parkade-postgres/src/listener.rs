//! The connection that listens: NOTIFY becomes an event.

use std::time::{Duration, Instant};

use bytes::BytesMut;

use crate::Event;
use crate::dedicated::{Dedicated, DedicatedStep};
use crate::dial::{Dial, DialStep};
use crate::handshake::{BackendIdentity, DialRefusal, Terms};
use crate::limits::MESSAGE_BYTES_MAX;
use crate::line::{Line, Loss};
use crate::settings::Secret;
use crate::wire::message::BackendMessage;
use crate::wire::{ProtocolViolation, Wire, write};

#[derive(Debug)]
pub(crate) struct Listener {
    channels: Vec<String>,
    connection: Dedicated<Listening>,
    /// Whether LISTEN has been in force before.
    has_listened: bool,
}

/// A connection that has been let in.
#[derive(Debug)]
enum Listening {
    /// LISTEN has been sent.
    Asked {
        since: Instant,
        refused: Option<Box<str>>,
    },
    InForce,
}

/// The news are events for the owner of the pool.
pub(crate) type ListenerStep = DedicatedStep<Event>;

impl Listener {
    pub(crate) fn new(channels: Vec<String>) -> Self {
        let mut connection = Dedicated::new(MESSAGE_BYTES_MAX);
        if channels.is_empty() {
            connection.stop();
        }
        Self { channels, connection, has_listened: false }
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

    pub(crate) fn opened(&mut self, now: Instant, terms: &Terms, password: Option<Secret>) -> ListenerStep {
        self.connection.opened(now, terms, password)
    }

    /// The bytes of `buffer` up to `at` have been heard when it returns something.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        buffer: &[u8],
        at: &mut usize,
        terms: &Terms,
    ) -> Result<Option<ListenerStep>, ProtocolViolation> {
        let Some(frame) = self.connection.next_frame(buffer, at)? else { return Ok(None) };
        Ok(Some(self.hear(now, BackendMessage::parse(&frame)?, terms)))
    }

    fn hear(&mut self, now: Instant, message: BackendMessage<'_>, terms: &Terms) -> ListenerStep {
        if let Some((dial, wire)) = self.connection.dialling() {
            return match dial.hear(now, message, terms, wire) {
                DialStep::Ready(identity) => self.ask(now, &identity),
                step => step.into(),
            };
        }
        let Some((service, _)) = self.connection.serving() else { return ListenerStep::Nothing };
        match (service, message) {
            (_, BackendMessage::Notification { channel, payload }) => {
                ListenerStep::News(Event::Notification { channel: channel.to_owned(), payload: payload.to_owned() })
            }
            (Listening::Asked { refused, .. }, BackendMessage::Error(error)) => {
                *refused = Some(error.message);
                ListenerStep::Nothing
            }
            (Listening::Asked { refused, .. }, BackendMessage::Ready(_)) => match refused.take() {
                Some(why) => ListenerStep::Refused(DialRefusal::unreachable(format!("LISTEN was refused: {why}"))),
                None => self.listening(),
            },
            (Listening::Asked { .. } | Listening::InForce, _) => ListenerStep::Nothing,
        }
    }

    fn ask(&mut self, now: Instant, identity: &BackendIdentity) -> ListenerStep {
        if identity.is_pooled {
            tracing::error!(
                "LISTEN needs its own server process: give the address of PostgreSQL itself, not of the pooler"
            );
            return ListenerStep::Useless;
        }
        let listen = |name: &String| format!("LISTEN \"{}\"", name.replace('"', "\"\""));
        let text = self.channels.iter().map(listen).collect::<Vec<_>>().join("; ");
        let Some(out) = self.connection.out() else { return ListenerStep::Nothing };
        if let Err(failure) = write::simple(out, &text) {
            tracing::error!("cannot LISTEN to a channel: {}", failure.message);
            return ListenerStep::Useless;
        }
        self.connection.serve(Listening::Asked { since: now, refused: None });
        ListenerStep::Nothing
    }

    fn listening(&mut self) -> ListenerStep {
        if let Some((service, _)) = self.connection.serving() {
            *service = Listening::InForce;
        }
        self.connection.succeeded();
        let is_again = std::mem::replace(&mut self.has_listened, true);
        if is_again { ListenerStep::News(Event::ListeningAgain) } else { ListenerStep::Nothing }
    }

    pub(crate) fn lost(&mut self, now: Instant, loss: &Loss, random: &mut fastrand::Rng) {
        tracing::debug!("no connection to LISTEN on: {}", loss.why());
        self.connection.lost(now, random);
    }

    /// Nothing more is heard of it.
    pub(crate) fn stop(&mut self) {
        self.connection.stop();
    }

    /// When it has had time enough to answer.
    pub(crate) fn due(&self, timeout: Duration) -> Option<Instant> {
        match self.connection.service() {
            None => self.connection.dial_due(timeout),
            Some(Listening::Asked { since, .. }) => Some(*since + timeout),
            Some(Listening::InForce) => None,
        }
    }
}
