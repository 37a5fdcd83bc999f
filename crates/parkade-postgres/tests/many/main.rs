//! Opens more connections through one pool than there are numbers for sockets, while a transaction keeps its own.
//!
//! Each cancel takes a connection here. By default it uses this test's own server; `soak/connections.py` runs it with a
//! real one.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod server;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use mio::{Events, Poll};
use parkade_postgres::{Database, Event, Options, Settings};
use parkade_sql::{DatabaseWork, Int8, LeaseId, Query, QueryEnd, QueryId, RowFormat, Shape, TransactionMode};

const SLOTS: usize = 60;
/// Long enough for a statement to be prepared and begun.
const RUNNING: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_secs(30);

struct Client {
    poll: Poll,
    polled: Events,
    database: Database,
    events: Vec<Event>,
    /// Work was submitted since the last turn.
    is_asked: bool,
    queries: u64,
    /// Statements that sleep until they are cancelled.
    sleeping: HashSet<QueryId>,
}

impl Client {
    fn new(url: &str) -> Self {
        let options = Options {
            slots: SLOTS,
            queue_count_max: 1000,
            row_bytes_max: 1 << 20,
            window_bytes: 1 << 20,
            application_name: "many".into(),
            listen: vec![],
            connect_timeout: PATIENCE,
            check_interval: Duration::from_millis(500),
        };
        let poll = Poll::new().unwrap();
        let settings = Settings::parse(url, &|_| None).unwrap();
        let mut database = Database::new(settings, options, poll.registry().try_clone().unwrap(), 0).unwrap();
        database.start(Instant::now());
        let polled = Events::with_capacity(256);
        Self { poll, polled, database, events: vec![], is_asked: true, queries: 0, sleeping: HashSet::new() }
    }

    fn submit(&mut self, work: DatabaseWork) -> QueryId {
        self.queries += 1;
        self.is_asked = true;
        self.database.submit(Instant::now(), QueryId(self.queries), work);
        QueryId(self.queries)
    }

    fn turn(&mut self) -> Vec<Event> {
        let due =
            self.database.next_due().map_or(RUNNING, |due| due.saturating_duration_since(Instant::now()).min(RUNNING));
        let timeout = if std::mem::take(&mut self.is_asked) || self.database.has_more() { Duration::ZERO } else { due };
        self.poll.poll(&mut self.polled, Some(timeout)).unwrap();
        for event in &self.polled {
            self.database.ready(event);
        }
        self.database.turn(Instant::now(), &mut self.events);
        let events = std::mem::take(&mut self.events);
        for event in &events {
            if let Event::Query(parkade_sql::QueryEvent::Ended { query, end }) = event
                && self.sleeping.remove(query)
            {
                assert_eq!(*end, QueryEnd::Cancelled, "a sleeper ends as it was told");
            }
        }
        events
    }

    /// How the query ended, and its rows.
    fn end_of(&mut self, query: QueryId) -> (QueryEnd, String) {
        let (until, mut rows) = (Instant::now() + PATIENCE, String::new());
        loop {
            for event in self.turn() {
                match event {
                    Event::Query(parkade_sql::QueryEvent::Piece { query: whose, bytes }) if whose == query => {
                        rows.push_str(std::str::from_utf8(&bytes).unwrap());
                    }
                    Event::Query(parkade_sql::QueryEvent::Ended { query: whose, end }) if whose == query => {
                        return (end, rows);
                    }
                    _ => {}
                }
            }
            assert!(Instant::now() < until, "{query:?} does not end: {:?}", self.database.status(Instant::now()));
        }
    }

    /// A lower bound of the number of connections so far. Without a pooler the canceller has tried each cancel first,
    /// in vain.
    fn opened(&self) -> u64 {
        let status = self.database.status(Instant::now());
        let counts = status.counts;
        counts.connects + if status.is_pooled { counts.cancels_sent } else { counts.cancels_repeated }
    }

    /// As many as there is room for, each cancelled when it runs.
    fn sleep_and_cancel(&mut self) {
        let free = SLOTS - 1 - self.sleeping.len();
        let begun: Vec<_> =
            (0..free).map(|_| self.submit(DatabaseWork::Alone(statement("select pg_sleep(600)")))).collect();
        self.sleeping.extend(&begun);
        let sent = Instant::now();
        while sent.elapsed() < RUNNING {
            self.turn();
        }
        for query in begun {
            self.database.cancel(Instant::now(), query);
        }
        self.is_asked = true;
    }
}

fn statement(text: &str) -> Query {
    Query {
        text: text.into(),
        commented: None,
        parameters: vec![],
        form: RowFormat { shape: Shape::Rows, int8: Int8::Number, bytes_max: None },
    }
}

/// Opens this many connections. The transaction is answered by the same server process all the time, and is committed
/// there.
fn open(url: &str, count: u64) {
    let mut client = Client::new(url);
    let lease = LeaseId(1);
    let who = || DatabaseWork::Within { lease, query: statement("select pg_backend_pid() as pid") };
    let begin = client.submit(DatabaseWork::Begin { lease, mode: TransactionMode::default() });
    assert!(matches!(client.end_of(begin).0, QueryEnd::Completed(_)));
    let query = client.submit(who());
    let process = client.end_of(query).1;
    let (since, mut told) = (Instant::now(), 0);
    while client.opened() < count {
        client.sleep_and_cancel();
        let opened = client.opened();
        if opened - told >= 5_000 {
            told = opened;
            let query = client.submit(who());
            assert_eq!(client.end_of(query).1, process, "the transaction is where it was, {opened} connections later");
        }
    }
    let commit = client.submit(DatabaseWork::Commit { lease });
    assert!(matches!(client.end_of(commit).0, QueryEnd::Completed(_)));
    let until = Instant::now() + PATIENCE;
    while !client.sleeping.is_empty() {
        client.turn();
        assert!(Instant::now() < until, "some never end: {:?}", client.database.status(Instant::now()));
    }
    let counts = client.database.status(Instant::now()).counts;
    println!(
        "{count} connections in {:.1?}; cancels: {} sent, {} of them repeated, {} late, {} strays",
        since.elapsed(),
        counts.cancels_sent,
        counts.cancels_repeated,
        counts.cancels_late,
        counts.strays
    );
    assert_eq!(counts.strays, 0);
}

#[test]
fn a_transaction_keeps_its_connection_while_more_are_opened_than_there_are_numbers() {
    let folder = std::env::temp_dir().join(format!("parkade-many-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    server::start(&folder);
    open(&format!("host={} port=5432 user=me dbname=shop", folder.display()), 70_000);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
#[ignore = "needs a database"]
fn the_same_with_a_real_server() {
    let url = std::env::var("PARKADE_POSTGRES").expect("PARKADE_POSTGRES is the address of a database");
    open(&url, std::env::var("PARKADE_CONNECTIONS").map_or(200_000, |count| count.parse().unwrap()));
}
