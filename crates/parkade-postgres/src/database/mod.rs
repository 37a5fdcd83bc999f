//! The sockets of a database, in a poll that the owner provides. All decisions are made in `pool`.

mod read_queue;
mod sockets;
mod wired;

use std::io;
use std::mem;
use std::time::Instant;

use parkade_sql::{DatabaseStatus, DatabaseWork, LeaseId, QueryId};

use crate::handshake::Terms;
use crate::line::{Action, Line, Loss};
use crate::pool::Pool;
use crate::settings::Settings;
use crate::transport::TlsPlan;
use crate::wires::SPACE;
use crate::{Event, Options};
use read_queue::ReadQueue;
use sockets::Sockets;
use wired::Readable;

/// The number of tokens that belong to a database, counted from its first one. The first is the resolver's.
pub const TOKENS: usize = SPACE.tokens();

/// A PostgreSQL database for one owner, who polls on one thread.
///
/// The owner passes events of its poll to `ready`, submits work (`submit`, `cancel`, …), and then calls
/// [`turn`](Self::turn): again at once while [`has_more`](Self::has_more), and no later than
/// [`next_due`](Self::next_due).
#[derive(Debug)]
pub struct Database {
    pool: Pool,
    sockets: Sockets,
    first_token: usize,
    /// Names have been resolved.
    is_resolved: bool,
    ready: ReadQueue,
    /// Connections with bytes to send in the next turn.
    speaking: Vec<Line>,
    resumed: Vec<Line>,
    actions: Vec<Action>,
}

impl Database {
    /// Reads certificates; opens nothing. `first_token` and the following [`TOKENS`] are reserved for it in that
    /// registry.
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
            sockets: Sockets::new(settings, tls, registry, first_token),
            first_token,
            is_resolved: false,
            ready: ReadQueue::default(),
            speaking: Vec::new(),
            resumed: Vec::new(),
            actions: Vec::new(),
        })
    }

    /// Begins to connect, so that reachability is known soon; and to listen.
    pub fn start(&mut self, now: Instant) {
        self.pool.start(now);
    }

    /// Takes an event of the poll. Polls are edge-triggered, so each is reported once. Events of other tokens are
    /// ignored.
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
        let Some((line, wired)) = self.sockets.of_token(offset) else { return };
        let is_open = wired.is_open();
        wired.poll.readable = wired.poll.readable.max(readable);
        if (readable > Readable::Nothing || !is_open) && wired.queue() {
            self.ready.push(line);
        }
        if writable && is_open && mem::take(&mut wired.poll.is_blocked) {
            self.speaking.push(line);
        }
    }

    /// Does all reading, deciding and writing that needs no waiting, within bounds.
    pub fn turn(&mut self, now: Instant, events: &mut Vec<Event>) {
        self.pool.tick(now);
        self.carry_out(now);
        self.pool.take_resumed(&mut self.resumed);
        while let Some(line) = self.resumed.pop() {
            self.ready.resume(now, line, &mut self.sockets, &mut self.pool);
        }
        if mem::take(&mut self.is_resolved) {
            self.sockets.take_answers(now, &mut self.pool);
        }
        self.ready.read_all(now, &mut self.sockets, &mut self.pool);
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

    /// The latest time for the next turn.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.pool.next_due()
    }

    pub fn submit(&mut self, now: Instant, query: QueryId, work: DatabaseWork) {
        self.pool.submit(now, query, work);
    }

    /// Cancels a query. If it has already ended, nothing happens.
    pub fn cancel(&mut self, now: Instant, query: QueryId) {
        self.pool.cancel(now, query);
    }

    /// This many bytes of its pieces have been taken.
    pub fn taken(&mut self, query: QueryId, bytes: usize) {
        self.pool.taken(query, bytes);
    }

    /// The holder of the transaction is gone: it is rolled back, unless its COMMIT is under way.
    pub fn release(&mut self, now: Instant, lease: LeaseId) {
        self.pool.release(now, lease);
    }

    #[must_use]
    pub fn status(&self, now: Instant) -> DatabaseStatus {
        self.pool.status(now)
    }

    /// The server stops: nothing new is accepted, and running queries are cancelled.
    pub fn end(&mut self, now: Instant) {
        self.pool.end(now);
    }

    /// Whether all connections are closed.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.pool.is_ended() && self.sockets.is_empty()
    }

    fn carry_out(&mut self, now: Instant) {
        loop {
            self.pool.take_actions(&mut self.actions);
            if self.actions.is_empty() {
                return;
            }
            for action in mem::take(&mut self.actions) {
                match action {
                    Action::Open { line, to } => self.sockets.open(now, line, to, &mut self.pool),
                    Action::OpenNext { line, setback } => self.sockets.open_next(now, line, setback, &mut self.pool),
                    Action::Close { line, mode } => self.sockets.close(line, mode),
                }
            }
        }
    }

    /// One write for each connection with bytes to send.
    fn speak(&mut self, now: Instant) {
        self.pool.take_speaking(&mut self.speaking);
        let mut speaking = mem::take(&mut self.speaking);
        for line in speaking.drain(..) {
            let Some(wired) = self.sockets.get(now, line, &mut self.pool) else { continue };
            let Some(transport) = wired.transport.as_mut().filter(|transport| transport.is_open()) else { continue };
            let Some(out) = self.pool.outgoing(line) else { continue };
            match transport.write(out) {
                Ok(true) => self.pool.spoken(line),
                Ok(false) => wired.poll.is_blocked = true,
                Err(error) => self.pool.lost(now, line, Loss::Broken(error.to_string())),
            }
        }
        // The list keeps its capacity; consequences of a loss are handled in the next turn.
        if self.speaking.is_empty() {
            self.speaking = speaking;
        }
    }
}
