//! A connection of the test's own to the database of the tests.

use std::time::{Duration, Instant};

use mio::{Events, Poll};
use parkade_jobs::postgres::Settings as Address;
use parkade_postgres::{Database, Event};
use parkade_sql::{DatabaseWork, Int8, LeaseId, Query, QueryEnd, QueryId, RowFormat, Shape, TransactionMode};

/// Nothing is waited for longer.
const PATIENCE: Duration = Duration::from_secs(60);
const LEASE: LeaseId = LeaseId(1);

pub struct Session {
    poll: Poll,
    database: Database,
    queries: u64,
}

impl Session {
    pub fn new() -> Self {
        let options = parkade_postgres::Options {
            slots: 1,
            queue_count_max: 1,
            row_bytes_max: 1 << 20,
            window_bytes: 1 << 20,
            application_name: "conformance".into(),
            listen: Vec::new(),
            connect_timeout: PATIENCE,
            check_interval: PATIENCE,
        };
        let poll = Poll::new().unwrap();
        let mut database = Database::new(address(), options, poll.registry().try_clone().unwrap(), 0).unwrap();
        database.start(Instant::now());
        Self { poll, database, queries: 0 }
    }

    /// One statement; its rows as JSON.
    pub fn run(&mut self, text: &str) -> String {
        self.work(DatabaseWork::Alone(query(text)))
    }

    /// The same in a transaction that stays open.
    pub fn begin(&mut self, text: &str) -> String {
        self.work(DatabaseWork::Begin { lease: LEASE, mode: TransactionMode::default() });
        self.work(DatabaseWork::Within { lease: LEASE, query: query(text) })
    }

    pub fn commit(&mut self) {
        self.work(DatabaseWork::Commit { lease: LEASE });
    }

    fn work(&mut self, work: DatabaseWork) -> String {
        self.queries += 1;
        self.database.submit(Instant::now(), QueryId(self.queries), work);
        let (mut polled, mut events, mut rows) = (Events::with_capacity(8), Vec::new(), Vec::new());
        let last = Instant::now() + PATIENCE;
        loop {
            self.database.turn(Instant::now(), &mut events);
            for event in events.drain(..) {
                match event {
                    Event::Query(parkade_sql::QueryEvent::Piece { query, bytes }) => {
                        self.database.taken(query, bytes.len());
                        rows.extend_from_slice(&bytes);
                    }
                    Event::Query(parkade_sql::QueryEvent::Ended { end, .. }) => {
                        assert!(matches!(end, QueryEnd::Completed(_)), "{end:?}");
                        return String::from_utf8(rows).unwrap();
                    }
                    _ => {}
                }
            }
            assert!(Instant::now() < last, "the database answers");
            let due = self.database.next_due().map_or(last, |due| due.min(last));
            let has_more = self.database.has_more();
            let most = if has_more { Duration::ZERO } else { due.saturating_duration_since(Instant::now()) };
            self.poll.poll(&mut polled, Some(most)).unwrap();
            polled.iter().for_each(|event| self.database.ready(event));
        }
    }
}

/// `PARKADE_POSTGRES` names a database for the tests alone.
pub fn address() -> Address {
    let url = std::env::var("PARKADE_POSTGRES").expect("PARKADE_POSTGRES is the address of a database");
    Address::parse(&url, &|_| None).unwrap()
}

pub fn drop_schema() {
    let text = "DO $$ BEGIN SET LOCAL client_min_messages = error; DROP SCHEMA IF EXISTS parkade CASCADE; END $$";
    Session::new().run(text);
}

fn query(text: &str) -> Query {
    let form = RowFormat { shape: Shape::Rows, int8: Int8::Number, bytes_max: None };
    Query { text: text.into(), commented: None, parameters: Vec::new(), form }
}
