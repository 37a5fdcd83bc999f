//! With a running PostgreSQL: `PARKADE_POSTGRES=postgres://… cargo test -p parkade-postgres --test real -- --ignored`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

use std::time::{Duration, Instant};

use mio::{Events, Poll};
use parkade_postgres::{Database, Event, Options, Settings};
use parkade_sql::{
    DatabaseWork, FailureKind, Int8, LeaseId, Parameter, Query, QueryEnd, QueryId, RowFormat, Shape, TransactionMode,
};

struct Client {
    poll: Poll,
    polled: Events,
    database: Database,
    events: Vec<Event>,
    heard: Vec<Event>,
    queries: u64,
}

impl Client {
    fn new() -> Self {
        let url = std::env::var("PARKADE_POSTGRES").expect("PARKADE_POSTGRES is the address of a database");
        let settings = Settings::parse(&url, &|_| None).unwrap();
        let options = Options {
            slots: 2,
            queue_count_max: 100,
            row_bytes_max: 1 << 20,
            window_bytes: 1 << 20,
            application_name: "real".into(),
            listen: vec!["News \"1\"".into()],
            connect_timeout: Duration::from_secs(5),
            check_interval: Duration::from_millis(500),
        };
        let poll = Poll::new().unwrap();
        let mut database = Database::new(settings, options, poll.registry().try_clone().unwrap(), 7).unwrap();
        database.start(Instant::now());
        Self { poll, polled: Events::with_capacity(64), database, events: vec![], heard: vec![], queries: 0 }
    }

    fn turn(&mut self, most: Duration) {
        let timeout = match self.database.next_due() {
            _ if self.database.has_more() => Duration::ZERO,
            due => due.map_or(most, |due| due.saturating_duration_since(Instant::now()).min(most)),
        };
        self.poll.poll(&mut self.polled, Some(timeout)).unwrap();
        for event in &self.polled {
            self.database.ready(event);
        }
        self.database.turn(Instant::now(), &mut self.events);
        self.heard.append(&mut self.events);
    }

    fn submit(&mut self, work: DatabaseWork) -> QueryId {
        self.queries += 1;
        self.database.submit(Instant::now(), QueryId(self.queries), work);
        QueryId(self.queries)
    }

    /// How the query ended, and the text before.
    fn end_of(&mut self, query: QueryId) -> (QueryEnd, String) {
        let until = Instant::now() + Duration::from_secs(20);
        let mut text = String::new();
        loop {
            for event in std::mem::take(&mut self.heard) {
                match event {
                    Event::Query(parkade_sql::QueryEvent::Piece { query: whose, bytes }) if whose == query => {
                        self.database.taken(query, bytes.len());
                        text.push_str(std::str::from_utf8(&bytes).unwrap());
                    }
                    Event::Query(parkade_sql::QueryEvent::Ended { query: whose, end }) if whose == query => {
                        return (end, text);
                    }
                    Event::Query(_) => {}
                    other => self.events.push(other),
                }
            }
            assert!(Instant::now() < until, "{query:?} does not end");
            self.turn(Duration::from_millis(100));
        }
    }

    fn run(&mut self, text: &str, parameters: Vec<Parameter>) -> (QueryEnd, String) {
        let query = self.submit(DatabaseWork::Alone(statement(text, parameters)));
        self.end_of(query)
    }

    fn text(&mut self, text: &str, parameters: Vec<Parameter>) -> String {
        match self.run(text, parameters) {
            (QueryEnd::Completed(_), text) => text,
            (other, _) => panic!("{text}: {other:?}"),
        }
    }

    fn failure(&mut self, text: &str, parameters: Vec<Parameter>) -> (FailureKind, String) {
        match self.run(text, parameters) {
            (QueryEnd::Failed(failure), _) => (failure.kind, failure.sqlstate.unwrap_or_default().into_string()),
            (other, _) => panic!("{text}: {other:?}"),
        }
    }
}

fn statement(text: &str, parameters: Vec<Parameter>) -> Query {
    Query {
        text: text.into(),
        commented: None,
        parameters,
        form: RowFormat { shape: Shape::Rows, int8: Int8::Number, bytes_max: None },
    }
}

#[test]
#[ignore = "needs a database"]
fn statements_give_rows_or_say_why_not() {
    use Parameter as P;
    let mut client = Client::new();
    assert_eq!(client.text("select 1 a, null b, 'x' c", vec![]), r#"[{"a":1,"b":null,"c":"x"}]"#);
    let array = P::Array(vec![P::Text("a\"b".into()), P::Null]);
    let parameters = vec![P::Int(7), array, P::Blob([1, 255].into()), P::Json("{\"k\": 1}".into()), P::Bool(true)];
    let text = "select $1::int8 + 1 a, $2::text[] b, $3::bytea c, $4::jsonb d, $5::bool e";
    for _ in 0..2 {
        let expected = r#"[{"a":8,"b":["a\"b",null],"c":"Af8=","d":{"k": 1},"e":true}]"#;
        assert_eq!(client.text(text, parameters.clone()), expected);
    }
    assert_eq!(client.failure("selec", vec![]), (FailureKind::Refused, "42601".into()));
    assert_eq!(client.failure("select $1::int", vec![]).0, FailureKind::ParameterCount);
    assert_eq!(client.failure("select 1 a, 2 a", vec![]).0, FailureKind::DuplicateColumns);
    assert_eq!(client.failure("copy (select 1) to stdout", vec![]).0, FailureKind::Unsupported);
    assert_eq!(client.failure("select repeat('x', 2000000) a", vec![]).0, FailureKind::TooLarge);
    assert_eq!(client.text("", vec![]), r#"{"command":"","rows":0}"#);
    client.text("drop table if exists real_copied", vec![]);
    client.text("create table real_copied (a int)", vec![]);
    assert_eq!(client.failure("copy real_copied from stdin", vec![]).0, FailureKind::Unsupported);
    assert_eq!(client.text("select * from real_copied", vec![]), "[]");
    client.text("alter table real_copied alter a type text", vec![]);
    assert_eq!(client.text("select * from real_copied", vec![]), "[]");
    assert_eq!(client.text("insert into real_copied values ('z') returning a", vec![]), r#"[{"a":"z"}]"#);
    client.text("drop table real_copied", vec![]);
    client.text("drop type if exists real_mood", vec![]);
    client.text("create type real_mood as enum ('good', 'bad')", vec![]);
    assert_eq!(client.text("select array['good'::real_mood] a", vec![]), r#"[{"a":["good"]}]"#);
    client.text("drop type real_mood", vec![]);
    assert_eq!(client.text("select count(*) a from generate_series(1, 1000)", vec![]), r#"[{"a":1000}]"#);
    assert_eq!(client.text("select i from generate_series(1, 100000) i", vec![]).len(), 1_088_895 + 200_000);
}

#[test]
#[ignore = "needs a database"]
fn transactions_hold_and_end() {
    let mut client = Client::new();
    let lease = LeaseId(1);
    let begin =
        client.submit(DatabaseWork::Begin { lease, mode: TransactionMode { isolation: None, is_read_only: true } });
    assert!(matches!(client.end_of(begin).0, QueryEnd::Completed(_)));
    let within = client.submit(DatabaseWork::Within { lease, query: statement("select 1 a", vec![]) });
    assert_eq!(client.end_of(within).1, r#"[{"a":1}]"#);
    let sleeping = client.submit(DatabaseWork::Within { lease, query: statement("select pg_sleep(30)", vec![]) });
    client.turn(Duration::from_millis(50));
    client.turn(Duration::from_millis(50));
    client.database.cancel(Instant::now(), sleeping);
    assert_eq!(client.end_of(sleeping).0, QueryEnd::Cancelled);
    let commit = client.submit(DatabaseWork::Commit { lease });
    assert!(
        matches!(client.end_of(commit).0, QueryEnd::Failed(failure) if failure.sqlstate.as_deref() == Some("25P02"))
    );
    assert_eq!(client.text("select 1 a", vec![]), r#"[{"a":1}]"#);
}

#[test]
#[ignore = "needs a database"]
fn a_connection_keeps_the_statements_that_it_used_last() {
    let mut client = Client::new();
    for _ in 0..2 {
        for number in 0..600 {
            assert_eq!(client.text(&format!("select {number} a"), vec![]), format!(r#"[{{"a":{number}}}]"#));
        }
    }
    let kept = client.text("select count(*) between 200 and 257 a from pg_prepared_statements", vec![]);
    assert_eq!(kept, r#"[{"a":true}]"#);
}

#[test]
#[ignore = "needs a database"]
fn notifications_are_heard_and_the_end_closes_everything() {
    let mut client = Client::new();
    let is_hello = |event: &Event| matches!(event, Event::Notification { payload, .. } if payload == "hello");
    let until = Instant::now() + Duration::from_secs(5);
    // Notifications before LISTEN is active are not received.
    while !client.heard.iter().chain(&client.events).any(is_hello) {
        assert!(Instant::now() < until, "nothing is heard");
        client.text("notify \"News \"\"1\"\"\", 'hello'", vec![]);
        client.turn(Duration::from_millis(100));
    }
    client.database.end(Instant::now());
    while !client.database.is_ended() {
        assert!(Instant::now() < until, "it does not end: {:?}", client.database.status(Instant::now()));
        client.turn(Duration::from_millis(100));
    }
}
