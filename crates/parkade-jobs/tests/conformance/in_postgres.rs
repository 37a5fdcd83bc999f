//! PostgreSQL as a subject. `PARKADE_POSTGRES` names a database for the tests alone: its schema `parkade` is dropped for each case.

use std::time::{Duration, Instant};

use mio::{Events, Poll};
use parkade_jobs::postgres::{Clock, Options, Pace, Settings as Address};
use parkade_jobs::{Command, PostgresStore, Reply, Wall};
use parkade_sql::{End, Form, Int8, Query, QueryId, Shape, Work};

use super::{Settings, Subject};

/// Nothing is waited for longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// What is done by the clock is never due.
const NEVER: Duration = Duration::from_secs(100_000);

pub struct InPostgres {
    poll: Poll,
    polled: Events,
    options: Options,
    store: PostgresStore,
    now: Wall,
}

impl Subject for InPostgres {
    const IN_ORDER: bool = false;

    fn new(settings: Settings) -> Self {
        drop_schema();
        let pace = Pace { beat: NEVER, lost: NEVER, poll: NEVER, tidy: Duration::ZERO, count: Duration::ZERO };
        let options = Options {
            keep_completed: settings.keep_completed,
            keep_completed_count_max: settings.keep_completed_count_max,
            pace,
            clock: Clock::Owner,
            fail_every: settings.fail_every,
            ..Options::default()
        };
        let poll = Poll::new().unwrap();
        let store = opened(&poll, &options);
        Self { poll, polled: Events::with_capacity(64), options, store, now: Wall(0) }
    }

    fn submit(&mut self, now: Wall, command: Command) {
        self.now = now;
        self.store.submit(now, command);
    }

    fn turn(&mut self, replies: &mut Vec<Reply>) {
        let before = replies.len();
        self.turn_until(replies, |store, replies| replies.len() > before && store.is_idle());
    }

    fn reopen(&mut self) {
        self.store.end(Instant::now());
        self.turn_until(&mut Vec::new(), |store, _| store.is_ended());
        self.store = opened(&self.poll, &self.options);
    }
}

impl InPostgres {
    fn turn_until(&mut self, replies: &mut Vec<Reply>, is_enough: impl Fn(&PostgresStore, &[Reply]) -> bool) {
        let last = Instant::now() + PATIENCE;
        while !is_enough(&self.store, replies) {
            assert!(Instant::now() < last, "the store answers");
            let due = self.store.next_due().map_or(last, |due| due.min(last));
            let most =
                if self.store.has_more() { Duration::ZERO } else { due.saturating_duration_since(Instant::now()) };
            self.poll.poll(&mut self.polled, Some(most)).unwrap();
            self.polled.iter().for_each(|event| self.store.ready(event));
            self.store.turn(Instant::now(), self.now, replies);
        }
    }
}

impl Drop for InPostgres {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.store.end(Instant::now());
            self.turn_until(&mut Vec::new(), |store, _| store.is_ended());
        }
    }
}

fn address() -> Address {
    let url = std::env::var("PARKADE_POSTGRES").expect("PARKADE_POSTGRES is the address of a database");
    Address::parse(&url, &|_| None).unwrap()
}

fn opened(poll: &Poll, options: &Options) -> PostgresStore {
    let registry = poll.registry().try_clone().unwrap();
    let mut store = PostgresStore::new(address(), options.clone(), registry, 0).unwrap();
    store.open(Instant::now());
    store
}

fn drop_schema() {
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
    let mut poll = Poll::new().unwrap();
    let mut database =
        parkade_postgres::Database::new(address(), options, poll.registry().try_clone().unwrap(), 0).unwrap();
    database.start(Instant::now());
    let text = "DO $$ BEGIN SET LOCAL client_min_messages = error; DROP SCHEMA IF EXISTS parkade CASCADE; END $$";
    let form = Form { shape: Shape::Rows, int8: Int8::Number, bytes_max: None };
    let query = Query { text: text.into(), parameters: Vec::new(), form };
    database.submit(Instant::now(), QueryId(1), Work::Alone(query));
    let (mut polled, mut events) = (Events::with_capacity(8), Vec::new());
    let last = Instant::now() + PATIENCE;
    loop {
        database.turn(Instant::now(), &mut events);
        let ended = events.drain(..).find_map(|event| match event {
            parkade_postgres::Event::Query(parkade_sql::Event::Ended { end, .. }) => Some(end),
            _ => None,
        });
        if let Some(end) = ended {
            assert!(matches!(end, End::Completed(_)), "{end:?}");
            return;
        }
        assert!(Instant::now() < last, "the schema cannot be dropped");
        let due = database.next_due().map_or(last, |due| due.min(last));
        let most = if database.has_more() { Duration::ZERO } else { due.saturating_duration_since(Instant::now()) };
        poll.poll(&mut polled, Some(most)).unwrap();
        polled.iter().for_each(|event| database.ready(event));
    }
}
