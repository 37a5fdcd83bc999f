//! The sockets of a database, in a poll that somebody else owns. Everything that is decided is decided in `pool`.

mod dialling;
mod reading;

use std::io;
use std::mem;
use std::time::Instant;

use bytes::BytesMut;
use parkade_sql::{DatabaseStatus, DatabaseWork, LeaseId, QueryId};

use crate::handshake::Terms;
use crate::line::{Action, CloseMode, Line, Loss};
use crate::pool::Pool;
use crate::settings::Settings;
use crate::transport::{Attempt, Attempts, Resolver, TlsPlan, Transport};
use crate::wires::{SPACE, Wires};
use crate::{Event, Options};

/// So many tokens belong to a database, from its first on. The first is the resolver's.
pub const TOKENS: usize = SPACE.tokens();

/// A PostgreSQL database for one owner on one thread, who polls.
///
/// The owner tells what its poll says (`ready`), asks (`submit`, `cancel`, …), and then calls [`turn`](Self::turn); again at once while
/// [`has_more`](Self::has_more), and at [`next_due`](Self::next_due) at the latest.
#[derive(Debug)]
pub struct Database {
    pool: Pool,
    settings: Settings,
    tls: TlsPlan,
    registry: mio::Registry,
    first_token: usize,
    resolver: Option<Resolver>,
    wires: Wires<Wired>,
    /// Names have been looked up.
    is_resolved: bool,
    /// Lines whose sockets are to be looked at in the next turn.
    ready: Vec<Line>,
    /// Lines with something to say in the next turn.
    speaking: Vec<Line>,
    resumed: Vec<Line>,
    actions: Vec<Action>,
    /// What is read into, for all: a connection keeps only the beginning of a message.
    buffer: BytesMut,
}

/// The socket of a line.
#[derive(Debug)]
struct Wired {
    attempts: Attempts,
    attempt: Option<Attempt>,
    /// `None`: the name is being resolved.
    transport: Option<Transport>,
    /// The beginning of a message.
    rest: BytesMut,
    stand: Stand,
}

/// What the poll has said and was not used up.
#[derive(Debug, Default)]
struct Stand {
    readable: Readable,
    /// It stands in `ready`.
    is_queued: bool,
    /// The socket took less than was to be written.
    is_blocked: bool,
}

/// What there is to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Readable {
    #[default]
    Nothing,
    Bytes,
    /// The other end says no more: it is to be read to its end, for no other news will come of it.
    End,
}

impl Database {
    /// Reads certificates; opens nothing. `first_token` and the [`TOKENS`] from it on are its own in that registry.
    pub fn new(
        settings: Settings,
        mut options: Options,
        registry: mio::Registry,
        first_token: usize,
    ) -> io::Result<Self> {
        options.connect_timeout =
            settings.connect_timeout.unwrap_or(options.connect_timeout).min(options.connect_timeout);
        let tls = TlsPlan::new(&settings.tls).map_err(io::Error::other)?;
        let terms = Terms::new(&settings, &options);
        let pool = Pool::new(settings.name(), terms, options, fastrand::Rng::new(), Instant::now());
        Ok(Self {
            pool,
            settings,
            tls,
            registry,
            first_token,
            resolver: None,
            wires: Wires::new(SPACE),
            is_resolved: false,
            ready: Vec::new(),
            speaking: Vec::new(),
            resumed: Vec::new(),
            actions: Vec::new(),
            buffer: BytesMut::new(),
        })
    }

    /// Begins to connect, so that it is known whether the database can be reached; and to listen.
    pub fn start(&mut self, now: Instant) {
        self.pool.start(now);
    }

    /// What the poll says: edge-triggered, so it is said once. Events of other tokens are passed over.
    pub fn ready(&mut self, event: &mio::event::Event) {
        let readable = match (event.is_readable(), event.is_read_closed() || event.is_error()) {
            (_, true) => Readable::End,
            (true, false) => Readable::Bytes,
            (false, false) => Readable::Nothing,
        };
        let writable = event.is_writable() || event.is_error();
        let Some(offset) = event.token().0.checked_sub(self.first_token).filter(|offset| *offset < TOKENS) else {
            return;
        };
        if offset == 0 {
            self.is_resolved = true;
            return;
        }
        let Some(line) = self.wires.line_of(offset) else { return };
        let Some(wired) = self.wires.get_mut(line) else { return };
        let is_open = wired.transport.as_ref().is_some_and(Transport::is_open);
        wired.stand.readable = wired.stand.readable.max(readable);
        if (readable > Readable::Nothing || !is_open) && !mem::replace(&mut wired.stand.is_queued, true) {
            self.ready.push(line);
        }
        if writable && is_open && mem::take(&mut wired.stand.is_blocked) {
            self.speaking.push(line);
        }
    }

    /// All reading, deciding and writing that needs no waiting, within bounds.
    pub fn turn(&mut self, now: Instant, events: &mut Vec<Event>) {
        self.pool.tick(now);
        self.carry_out(now);
        self.pool.take_resumed(&mut self.resumed);
        while let Some(line) = self.resumed.pop() {
            self.look_at(now, line);
        }
        if mem::take(&mut self.is_resolved) {
            self.take_answers(now);
        }
        self.read_all(now);
        self.pool.act();
        self.carry_out(now);
        self.speak(now);
        self.pool.take_events(events);
    }

    /// Whether another turn is due at once.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.is_resolved || !self.ready.is_empty() || !self.speaking.is_empty() || self.pool.has_news()
    }

    /// When the next turn is due at the latest.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.pool.next_due()
    }

    pub fn submit(&mut self, now: Instant, query: QueryId, work: DatabaseWork) {
        self.pool.submit(now, query, work);
    }

    /// Nobody waits for it any more. It may have ended already: then nothing happens.
    pub fn cancel(&mut self, now: Instant, query: QueryId) {
        self.pool.cancel(now, query);
    }

    /// So many bytes of its pieces have been taken.
    pub fn taken(&mut self, query: QueryId, bytes: usize) {
        self.pool.taken(query, bytes);
    }

    /// Whoever held the transaction is gone: it is rolled back, unless its COMMIT is under way.
    pub fn release(&mut self, now: Instant, lease: LeaseId) {
        self.pool.release(now, lease);
    }

    #[must_use]
    pub fn status(&self, now: Instant) -> DatabaseStatus {
        self.pool.status(now)
    }

    /// The server stops: nothing new is taken, what runs is cancelled.
    pub fn end(&mut self, now: Instant) {
        self.pool.end(now);
    }

    /// Whether all connections are closed.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.pool.is_ended() && self.wires.is_empty()
    }

    fn carry_out(&mut self, now: Instant) {
        loop {
            self.pool.take_actions(&mut self.actions);
            if self.actions.is_empty() {
                return;
            }
            for action in mem::take(&mut self.actions) {
                match action {
                    Action::Open { line, to } => self.open(now, line, to),
                    Action::OpenNext { line, setback } => self.open_next(now, line, setback),
                    Action::Close { line, mode } => self.close(line, mode),
                }
            }
        }
    }

    fn close(&mut self, line: Line, mode: CloseMode) {
        const TERMINATE: &[u8] = b"X\0\0\0\x04";
        let Some(wired) = self.wires.remove(line) else { return };
        let Some(mut transport) = wired.transport else { return };
        if mode == CloseMode::Polite && !wired.stand.is_blocked {
            // Should that fail, it is closed all the same.
            let _ = transport.write(&mut BytesMut::from(TERMINATE));
        }
        let _ = self.registry.deregister(&mut transport);
    }

    /// One write for each line that has something to say.
    fn speak(&mut self, now: Instant) {
        self.pool.take_speaking(&mut self.speaking);
        let mut speaking = mem::take(&mut self.speaking);
        for line in speaking.drain(..) {
            let Some(wired) = wired(&mut self.wires, &mut self.pool, now, line) else { continue };
            let Some(transport) = wired.transport.as_mut().filter(|transport| transport.is_open()) else { continue };
            let Some(out) = self.pool.outgoing(line) else { continue };
            match transport.write(out) {
                Ok(true) => self.pool.spoken(line),
                Ok(false) => wired.stand.is_blocked = true,
                Err(error) => self.pool.lost(now, line, Loss::Broken(error.to_string())),
            }
        }
        // The list keeps its room; what a loss leads to is for the next turn.
        if self.speaking.is_empty() {
            self.speaking = speaking;
        }
    }
}

/// The socket of a line. A line that has none is lost; one that the pool has closed since is nothing to it any more.
fn wired<'a>(wires: &'a mut Wires<Wired>, pool: &mut Pool, now: Instant, line: Line) -> Option<&'a mut Wired> {
    let found = wires.get_mut(line);
    if found.is_none() {
        pool.lost(now, line, Loss::Broken("its socket is gone".into()));
    }
    found
}
