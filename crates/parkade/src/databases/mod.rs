//! The databases that queries run on. Nothing is decided here.
//!
//! As with the workers, one task owns [`Databases`] and loops: wait until they are [`ready`](Databases::ready), let
//! them take their [`turn`](Databases::turn), carry out what follows. Work that is submitted between turns is sent in
//! the next one.

mod database;
mod limits;
mod location;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use mio::{Token, Waker};
use parkade_model::{ChannelName, DatabaseId, LeaseId, QueryId};
use parkade_sql::{DatabaseStatus, DatabaseWork, QueryEnd};

use crate::poll::{NextTurn, PollSet, Pollable};
use database::Database;
use location::Location;

/// The threads of SQLite wake the owner with this token; those of PostgreSQL follow it.
const THREADS: Token = Token(0);
/// The number of sockets reported at a time.
const POLL_BATCH: usize = 256;

/// The operator's settings for all databases.
#[derive(Debug, Clone)]
pub struct DatabaseOptions {
    /// Connections to each database.
    pub slots: usize,
    /// Maximum number of queries that wait for a connection.
    pub queue_count_max: usize,
    pub row_bytes_max: usize,
    /// Channels of NOTIFY that the first PostgreSQL database listens to.
    pub listen: Vec<ChannelName>,
}

/// What happens in the databases.
#[derive(Debug)]
pub enum DatabaseEvent {
    Query(parkade_sql::QueryEvent),
    /// A NOTIFY.
    Notified {
        channel: String,
        payload: String,
    },
    /// Notifications are missed until [`ListeningAgain`](Self::ListeningAgain).
    ListeningLost {
        why: Box<str>,
    },
    /// Notifications may have been missed, on all channels of [`listened`](Databases::listened).
    ListeningAgain,
}

pub struct Databases {
    names: Vec<Box<str>>,
    all: Vec<Database>,
    listened: Vec<ChannelName>,
    /// Queries that ended without reaching a database; reported in the next turn.
    ended: Vec<DatabaseEvent>,
    poll: PollSet,
    /// A thread of SQLite has events.
    threads_spoke: Arc<AtomicBool>,
    /// Work was submitted since the last turn, or a database has events.
    asked: bool,
    /// Queries that have not ended: while there are any, each turn checks them.
    outstanding: usize,
    /// The last turn left work, so the owner must not wait.
    has_more: bool,
}

/// A database whose settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    #[error("{0}")]
    Location(String),
    #[error("two databases are called {0:?}: give each its own name, as in shop=postgres://…")]
    Twice(String),
    #[error("{name}: {why}")]
    Settings { name: String, why: String },
    #[error("--listen needs a PostgreSQL database; where clients connect is --bind")]
    NobodyToListenTo,
    #[error("cannot poll the connections of the databases: {0}")]
    Io(#[from] io::Error),
}

impl Databases {
    /// Connects to nothing yet. `locations`: as the operator wrote them. `state`: the folder of the embedded database,
    /// which exists unless another one is called `default`.
    pub fn new(locations: &[String], options: &DatabaseOptions, state: &Path) -> Result<Self, DatabaseError> {
        let parsed = locations.iter().map(|text| text.parse::<Location>().map_err(DatabaseError::Location));
        let locations = parsed.collect::<Result<Vec<_>, _>>()?;
        if let Some(twice) = locations
            .iter()
            .enumerate()
            .find(|(place, location)| locations[..*place].iter().any(|before| before.name() == location.name()))
        {
            return Err(DatabaseError::Twice(twice.1.name().to_owned()));
        }
        let poll = PollSet::new(POLL_BATCH)?;
        let waker = Waker::new(poll.registry(), THREADS)?;
        let threads_spoke = Arc::new(AtomicBool::new(false));
        let spoke = Arc::clone(&threads_spoke);
        let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
            spoke.store(true, Ordering::Release);
            // It fails only if the owner is gone.
            let _ = waker.wake();
        });
        let embedded = (!locations.iter().any(Location::is_default)).then(|| Location::embedded(state));
        let mut databases = Self {
            names: Vec::new(),
            all: Vec::new(),
            listened: options.listen.clone(),
            ended: Vec::new(),
            poll,
            threads_spoke,
            asked: false,
            outstanding: 0,
            has_more: false,
        };
        let mut listen: Vec<_> = options.listen.iter().map(|channel| channel.as_str().to_owned()).collect();
        for location in locations.iter().chain(&embedded) {
            let channels = if location.is_postgres() { std::mem::take(&mut listen) } else { Vec::new() };
            let first_token = THREADS.0 + 1 + databases.all.len() * parkade_postgres::TOKENS;
            let registry = databases.poll.registry().try_clone()?;
            let database = Database::new(location, options, channels, registry, first_token, &wake)
                .map_err(|why| DatabaseError::Settings { name: location.name().to_owned(), why })?;
            databases.names.push(location.name().into());
            databases.all.push(database);
        }
        if listen.is_empty() { Ok(databases) } else { Err(DatabaseError::NobodyToListenTo) }
    }

    /// Connects for the first time, so that readiness is known.
    pub fn start(&mut self, now: Instant) {
        self.asked = true;
        self.all.iter_mut().for_each(|database| database.start(now));
    }

    /// The number of the database of that name.
    pub fn find(&self, name: &str) -> Option<DatabaseId> {
        let place = self.names.iter().position(|known| &**known == name)?;
        u16::try_from(place).ok().map(DatabaseId)
    }

    pub fn name(&self, database: DatabaseId) -> &str {
        self.names.get(usize::from(database.0)).map_or("", |name| name)
    }

    pub fn is_postgres(&self, database: DatabaseId) -> bool {
        matches!(self.all.get(usize::from(database.0)), Some(Database::Postgres { .. }))
    }

    /// Those that are PostgreSQL.
    pub fn of_postgres(&self) -> Vec<DatabaseId> {
        let numbered = (0..).map(DatabaseId).take(self.all.len());
        numbered.filter(|number| self.is_postgres(*number)).collect()
    }

    /// The name of the database whose notifications are published.
    pub fn listener(&self) -> &str {
        self.of_postgres().first().map_or("", |database| self.name(*database))
    }

    /// Channels on which PostgreSQL's notifications are published.
    pub fn listened(&self) -> &[ChannelName] {
        &self.listened
    }

    fn has_work(&self) -> bool {
        self.asked || self.has_more || self.threads_spoke.load(Ordering::Acquire)
    }

    /// Whether a turn would find work. This is cheap for a server without queries.
    pub fn are_due(&self) -> bool {
        self.has_work() || self.outstanding > 0
    }

    /// Does what is possible without waiting.
    pub fn turn(&mut self, now: Instant, events: &mut Vec<DatabaseEvent>) -> io::Result<()> {
        self.asked = false;
        events.append(&mut self.ended);
        for event in self.poll.take()? {
            let Some(place) = event.token().0.checked_sub(THREADS.0 + 1).map(|token| token / parkade_postgres::TOKENS)
            else {
                continue;
            };
            if let Some(database) = self.all.get_mut(place) {
                database.ready(event);
            }
        }
        self.threads_spoke.store(false, Ordering::Release);
        self.has_more = false;
        for database in &mut self.all {
            database.turn(now, events);
            self.has_more |= database.has_more();
        }
        let ended =
            |event: &&DatabaseEvent| matches!(event, DatabaseEvent::Query(parkade_sql::QueryEvent::Ended { .. }));
        self.outstanding = self.outstanding.saturating_sub(events.iter().filter(ended).count());
        Ok(())
    }

    pub fn submit(&mut self, database: DatabaseId, now: Instant, query: QueryId, work: DatabaseWork) {
        self.outstanding += 1;
        self.ask(database, |database| database.submit(now, query, work));
    }

    /// Ends a query that cannot be submitted.
    pub fn end_without(&mut self, query: QueryId, end: QueryEnd) {
        self.outstanding += 1;
        self.asked = true;
        self.ended.push(DatabaseEvent::Query(parkade_sql::QueryEvent::Ended { query, end }));
    }

    /// The query's result is no longer needed. Its end is still reported.
    pub fn cancel(&mut self, database: DatabaseId, now: Instant, query: QueryId) {
        self.ask(database, |database| database.cancel(now, query));
    }

    /// This many bytes of its rows have been taken.
    pub fn taken(&mut self, database: DatabaseId, query: QueryId, bytes: usize) {
        self.ask(database, |database| database.taken(query, bytes));
    }

    /// The owner of the transaction is gone.
    pub fn release(&mut self, database: DatabaseId, now: Instant, lease: LeaseId) {
        self.ask(database, |database| database.release(now, lease));
    }

    /// Accepts no new work, and cancels what is running.
    pub fn end(&mut self, now: Instant) {
        self.asked = true;
        self.all.iter_mut().for_each(|database| database.end(now));
    }

    pub fn are_ended(&self) -> bool {
        self.all.iter().all(Database::is_ended)
    }

    pub fn status(&self, now: Instant) -> impl Iterator<Item = (&str, DatabaseStatus)> {
        self.names.iter().zip(&self.all).map(move |(name, database)| (&**name, database.status(now)))
    }

    fn ask(&mut self, database: DatabaseId, ask: impl FnOnce(&mut Database)) {
        if let Some(database) = self.all.get_mut(usize::from(database.0)) {
            self.asked = true;
            ask(database);
        }
    }
}

impl Pollable for Databases {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ready = self.poll.poll_ready(cx);
        self.asked |= ready.is_ready();
        ready
    }

    fn next_turn(&self) -> NextTurn {
        if self.has_work() {
            return NextTurn::AtOnce;
        }
        NextTurn::by(self.all.iter().filter_map(Database::next_due).min())
    }

    fn look(&mut self) {
        self.asked = true;
    }
}
