//! The connection that listens: a NOTIFY becomes an event.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};

use crate::Event;
use crate::dedicated::{Dedicated, DedicatedStep};
use crate::dial::{Dial, DialStep};
use crate::handshake::{BackendIdentity, Computed, DialRefusal, Terms};
use crate::limits::MESSAGE_BYTES_MAX;
use crate::line::{ConnectTo, Line, Loss, TerminateMode};
use crate::pool::{LineOwner, PoolContext};
use crate::settings::Secret;
use crate::wire::message::BackendMessage;
use crate::wire::{ProtocolViolation, Wire, write};

#[derive(Debug)]
pub(crate) struct Listener {
    /// The name of the database, for people.
    database: Arc<str>,
    channels: Vec<String>,
    connection: Dedicated<Listening>,
    /// Whether LISTEN has been active before.
    has_listened: bool,
}

/// A connection that is logged in.
#[derive(Debug)]
enum Listening {
    /// LISTEN has been sent.
    Asked {
        since: Instant,
        refused: Option<Box<str>>,
    },
    InForce,
}

/// Returns events for the owner of the pool.
type ListenerStep = DedicatedStep<Event>;

impl Listener {
    pub(crate) fn new(database: Arc<str>, channels: Vec<String>) -> Self {
        let mut connection = Dedicated::new(MESSAGE_BYTES_MAX);
        if channels.is_empty() {
            connection.stop();
        }
        Self { database, channels, connection, has_listened: false }
    }

    pub(crate) fn out(&mut self) -> Option<&mut BytesMut> {
        self.connection.out()
    }

    pub(crate) fn dialling(&mut self) -> Option<(&mut Dial, &mut Wire)> {
        self.connection.dialling()
    }

    pub(crate) fn dial_at(&self) -> Option<Instant> {
        self.connection.dial_at()
    }

    /// When its answer is overdue.
    pub(crate) fn due(&self, timeout: Duration) -> Option<Instant> {
        match self.connection.service() {
            None => self.connection.dial_due(timeout),
            Some(Listening::Asked { since, .. }) => Some(*since + timeout),
            Some(Listening::InForce) => None,
        }
    }

    /// Connects, if that is needed and allowed now.
    pub(crate) fn open(&mut self, cx: &mut PoolContext) {
        if self.connection.may_dial(cx.now) {
            let line = cx.lines.open(LineOwner::Listener, ConnectTo::Database);
            self.connection.dial(cx.now, line);
        }
    }

    pub(crate) fn opened(&mut self, line: Line, password: Option<Secret>, cx: &mut PoolContext) {
        let step = self.connection.opened(cx.now, &cx.config.terms, password);
        self.told(line, step, cx);
    }

    pub(crate) fn computed(&mut self, line: Line, computed: Computed, cx: &mut PoolContext) {
        let Some((dial, wire)) = self.connection.dialling() else { return };
        let step = dial.computed(cx.now, computed, wire).into();
        self.told(line, step, cx);
    }

    /// Bytes have arrived; the rest in `buffer` is the beginning of a message.
    pub(crate) fn received(&mut self, line: Line, buffer: &mut BytesMut, cx: &mut PoolContext) {
        let mut at = 0;
        while cx.lines.is_open(line) {
            match self.next(buffer, &mut at, cx) {
                Ok(Some(step)) => self.told(line, step, cx),
                Ok(None) => break,
                Err(broken) => self.give_up(line, &Loss::Broken(broken.to_string()), cx),
            }
        }
        buffer.advance(at);
    }

    fn next(
        &mut self,
        buffer: &[u8],
        at: &mut usize,
        cx: &PoolContext,
    ) -> Result<Option<ListenerStep>, ProtocolViolation> {
        let Some(frame) = self.connection.next_frame(buffer, at)? else { return Ok(None) };
        Ok(Some(self.hear(cx.now, BackendMessage::parse(&frame)?, &cx.config.terms)))
    }

    fn told(&mut self, line: Line, step: ListenerStep, cx: &mut PoolContext) {
        match step {
            ListenerStep::Nothing => {}
            ListenerStep::News(event) => cx.queries.tell(event),
            ListenerStep::Next(setback) => cx.lines.open_next(line, setback),
            ListenerStep::Refused(refusal) => {
                tracing::warn!(database = %self.database, "LISTEN is not active, so notifications of this database are not received; retrying: {}", refusal.why);
                self.give_up(line, &Loss::Unreachable(refusal.why), cx);
            }
            ListenerStep::Useless => self.stop(cx),
        }
        cx.lines.speak(line);
    }

    /// The answer is overdue.
    pub(crate) fn time_out(&mut self, cx: &mut PoolContext) {
        let due = self.due(cx.config.options.connect_timeout);
        if let Some(line) = self.connection.line()
            && due.is_some_and(|due| due <= cx.now)
        {
            self.give_up(line, &Loss::Broken("it does not answer".into()), cx);
        }
    }

    /// It is opened again after a pause.
    fn give_up(&mut self, line: Line, loss: &Loss, cx: &mut PoolContext) {
        cx.lines.close(line, TerminateMode::Abrupt);
        self.lost(loss, cx);
    }

    pub(crate) fn lost(&mut self, loss: &Loss, cx: &mut PoolContext) {
        let why = loss.why();
        tracing::debug!(database = %self.database, "the LISTEN connection is down; reconnecting: {why}");
        if matches!(self.connection.service(), Some(Listening::InForce)) {
            cx.queries.tell(Event::ListeningLost { why: why.into() });
        }
        self.connection.lost(cx.now, &mut cx.random);
    }

    /// Its messages are no longer handled.
    pub(crate) fn stop(&mut self, cx: &mut PoolContext) {
        if let Some(line) = self.connection.line() {
            cx.lines.close(line, TerminateMode::Polite);
        }
        self.connection.stop();
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
                database = %self.database,
                "LISTEN needs its own server process: give the address of PostgreSQL itself, not of the pooler"
            );
            return ListenerStep::Useless;
        }
        let listen = |name: &String| format!("LISTEN \"{}\"", name.replace('"', "\"\""));
        let text = self.channels.iter().map(listen).collect::<Vec<_>>().join("; ");
        let Some(out) = self.connection.out() else { return ListenerStep::Nothing };
        if let Err(failure) = write::simple(out, &text) {
            tracing::error!(
                database = %self.database,
                "cannot LISTEN; notifications are not published until the server is restarted: {}",
                failure.message
            );
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
}
