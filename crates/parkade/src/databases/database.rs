//! One database of either kind.

use std::sync::Arc;
use std::time::Instant;

use mio::Registry;
use mio::event::Event;
use parkade_model::{LeaseId, QueryId};
use parkade_sql::{DatabaseStatus, DatabaseWork, QueryEnd, QueryEvent};

use super::limits::{BUSY_TIME_MAX, CHECK_INTERVAL, CONNECT_TIME_MAX, READERS_COUNT, WINDOW_BYTES};
use super::location::DatabaseLocation;
use super::{DatabaseEvent, DatabaseOptions, Location};

pub enum Database {
    Postgres {
        database: Box<parkade_postgres::Database>,
        said: Vec<parkade_postgres::Event>,
    },
    /// `is_embedded`: nobody asked for it.
    Sqlite {
        database: Box<parkade_sqlite::Database>,
        said: Vec<QueryEvent>,
        is_embedded: bool,
    },
}

/// SQLSTATEs of a statement that was meant for another database: it names what is not there, or another SQL.
const MEANT_FOR_ANOTHER: [&str; 3] = ["42P01", "42601", "42883"];

impl Database {
    /// `channels`: what to LISTEN for. An error describes what is wrong with the settings.
    pub fn new(
        location: &Location,
        options: &DatabaseOptions,
        channels: Vec<String>,
        registry: Registry,
        first_token: usize,
        wake: &Arc<dyn Fn() + Send + Sync>,
    ) -> Result<Self, String> {
        match location.place() {
            DatabaseLocation::Postgres(url) => {
                let settings = parkade_postgres::settings::Settings::parse(url, &|name| std::env::var(name).ok())
                    .map_err(|fault| fault.to_string())?;
                let database =
                    parkade_postgres::Database::new(settings, postgres(options, channels), registry, first_token)
                        .map_err(|fault| fault.to_string())?;
                Ok(Self::Postgres { database: Box::new(database), said: Vec::new() })
            }
            DatabaseLocation::Sqlite(file) => {
                let database = parkade_sqlite::Database::new(file.clone(), sqlite(options), Arc::clone(wake));
                Ok(Self::Sqlite { database: Box::new(database), said: Vec::new(), is_embedded: location.is_embedded() })
            }
        }
    }

    pub fn start(&mut self, now: Instant) {
        match self {
            Self::Postgres { database, .. } => database.start(now),
            // The file is opened by the first query: an embedded database that is never used leaves no file.
            Self::Sqlite { .. } => {}
        }
    }

    pub fn ready(&mut self, event: &Event) {
        match self {
            Self::Postgres { database, .. } => database.ready(event),
            Self::Sqlite { .. } => {}
        }
    }

    pub fn turn(&mut self, now: Instant, events: &mut Vec<DatabaseEvent>) {
        match self {
            Self::Postgres { database, said } => {
                database.turn(now, said);
                events.extend(said.drain(..).map(|event| match event {
                    parkade_postgres::Event::Query(event) => DatabaseEvent::Query(event),
                    parkade_postgres::Event::Notification { channel, payload } => {
                        DatabaseEvent::Notified { channel, payload }
                    }
                    parkade_postgres::Event::ListeningLost { why } => DatabaseEvent::ListeningLost { why },
                    parkade_postgres::Event::ListeningAgain => DatabaseEvent::ListeningAgain,
                }));
            }
            Self::Sqlite { database, said, is_embedded } => {
                database.turn(now, said);
                if *is_embedded {
                    said.iter_mut().for_each(explain);
                }
                events.extend(said.drain(..).map(DatabaseEvent::Query));
            }
        }
    }

    pub fn has_more(&self) -> bool {
        match self {
            Self::Postgres { database, .. } => database.has_more(),
            // Its threads wake the owner again if a turn leaves work.
            Self::Sqlite { .. } => false,
        }
    }

    pub fn next_due(&self) -> Option<Instant> {
        match self {
            Self::Postgres { database, .. } => database.next_due(),
            Self::Sqlite { .. } => None,
        }
    }

    pub fn submit(&mut self, now: Instant, query: QueryId, work: DatabaseWork) {
        match self {
            Self::Postgres { database, .. } => database.submit(now, query, work),
            Self::Sqlite { database, .. } => database.submit(now, query, work),
        }
    }

    pub fn cancel(&mut self, now: Instant, query: QueryId) {
        match self {
            Self::Postgres { database, .. } => database.cancel(now, query),
            Self::Sqlite { database, .. } => database.cancel(now, query),
        }
    }

    pub fn taken(&mut self, query: QueryId, bytes: usize) {
        match self {
            Self::Postgres { database, .. } => database.taken(query, bytes),
            Self::Sqlite { database, .. } => database.taken(query, bytes),
        }
    }

    pub fn release(&mut self, now: Instant, lease: LeaseId) {
        match self {
            Self::Postgres { database, .. } => database.release(now, lease),
            Self::Sqlite { database, .. } => database.release(now, lease),
        }
    }

    pub fn end(&mut self, now: Instant) {
        match self {
            Self::Postgres { database, .. } => database.end(now),
            Self::Sqlite { database, .. } => database.end(now),
        }
    }

    pub fn is_ended(&self) -> bool {
        match self {
            Self::Postgres { database, .. } => database.is_ended(),
            Self::Sqlite { database, .. } => database.is_ended(),
        }
    }

    pub fn status(&self, now: Instant) -> DatabaseStatus {
        match self {
            Self::Postgres { database, .. } => database.status(now),
            Self::Sqlite { database, .. } => database.status(now),
        }
    }
}

/// Says which database it was to someone who expects another one.
fn explain(event: &mut QueryEvent) {
    let QueryEvent::Ended { end: QueryEnd::Failed(failure), .. } = event else { return };
    if failure.sqlstate.as_deref().is_some_and(|state| MEANT_FOR_ANOTHER.contains(&state)) {
        failure.message =
            format!("{} (in the SQLite database of the state folder; --database names another)", failure.message)
                .into();
    }
}

fn postgres(options: &DatabaseOptions, listen: Vec<String>) -> parkade_postgres::Options {
    parkade_postgres::Options {
        slots: options.slots,
        queue_count_max: options.queue_count_max,
        row_bytes_max: options.row_bytes_max,
        window_bytes: WINDOW_BYTES,
        application_name: "parkade".into(),
        listen,
        connect_timeout: CONNECT_TIME_MAX,
        check_interval: CHECK_INTERVAL,
    }
}

fn sqlite(options: &DatabaseOptions) -> parkade_sqlite::Options {
    parkade_sqlite::Options {
        readers: READERS_COUNT,
        queue_count_max: options.queue_count_max,
        row_bytes_max: options.row_bytes_max,
        window_bytes: WINDOW_BYTES,
        busy_timeout: BUSY_TIME_MAX,
    }
}
