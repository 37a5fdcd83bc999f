//! Bounds: of a queue, of a row, of pieces that were not taken.

use std::time::Instant;

use parkade_sql::{DatabaseWork, FailureKind, Int8, Parameter, Query, QueryEnd, RowFormat, Shape, SlotState};

use super::owner::{ENDLESS, Owner, failed, options};
use crate::Options;

const MANY: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200000) SELECT i, 'some text' AS s FROM n";

#[test]
fn rows_that_nobody_takes_stop_their_thread() {
    let window_bytes = 100_000;
    let mut owner = Owner::new(Options { window_bytes, readers: 1, ..options() });
    owner.is_taking = false;
    let query = owner.ask(MANY);
    owner.until(|owner| owner.heard.get(&query).is_some_and(|heard| heard.text.len() >= window_bytes));
    // Nothing more arrives, although there are more rows.
    for _ in 0..20 {
        owner.run("CREATE TABLE IF NOT EXISTS t (a)").unwrap();
    }
    assert!(owner.heard[&query].text.len() < window_bytes + 64 * 1024);
    assert_eq!(owner.states()[1], SlotState::Busy);
    owner.is_taking = true;
    owner.database.taken(query, owner.heard[&query].text.len());
    let QueryEnd::Completed(summary) = owner.end(query) else { panic!() };
    assert_eq!(summary.rows, 200_000);
    let text = &owner.heard[&query].text;
    assert!(text.ends_with(b"{\"i\":200000,\"s\":\"some text\"}]"));
    assert!(owner.heard[&query].pieces > 50);
    assert_eq!(owner.heard[&query].starts, 1);
}

#[test]
fn a_row_has_a_limit() {
    let mut owner = Owner::new(Options { row_bytes_max: 1000, ..options() });
    owner.run("CREATE TABLE t (a, b)").unwrap();
    for (length, other, is_large) in [(900, 50, false), (1100, 0, true), (600, 600, true), (200_000, 0, true)] {
        owner.run("DELETE FROM t").unwrap();
        let text = |length: usize| Parameter::Text("x".repeat(length).into());
        let inserted = owner.run_with("INSERT INTO t VALUES ($1, $2)", &[text(length), text(other)]);
        let selected = owner.run("SELECT * FROM t");
        let kinds = (inserted.map_err(|(_, state)| state), selected.map_err(|(kind, _)| kind));
        match kinds {
            (Ok(_), Ok(_)) => assert!(!is_large),
            (Ok(_), Err(kind)) => assert_eq!((kind, is_large), (FailureKind::TooLarge, true)),
            (Err(state), _) => assert_eq!((&*state, length), ("54000", 200_000)),
        }
    }
    // Escaping makes it six times as long.
    assert_eq!(owner.run("SELECT replace(hex(zeroblob(100)), '00', char(1, 1)) AS a"), failed(FailureKind::TooLarge));
}

#[test]
fn all_rows_together_have_a_limit() {
    let mut owner = Owner::new(options());
    let form = RowFormat { shape: Shape::Rows, int8: Int8::Number, bytes_max: Some(100_000) };
    let query =
        owner.submit(DatabaseWork::Alone(Query { text: MANY.into(), commented: None, parameters: vec![], form }));
    assert_eq!(owner.answer(query), failed(FailureKind::TooLarge));
}

#[test]
fn a_queue_has_a_limit() {
    let mut owner = Owner::new(Options { readers: 1, queue_count_max: 3, ..options() });
    let first = owner.ask(ENDLESS);
    owner.until_started(first);
    let waiting: Vec<_> = (0..3).map(|_| owner.ask("SELECT 1 AS a")).collect();
    assert_eq!(owner.run("SELECT 1 AS a"), failed(FailureKind::QueueFull));
    assert_eq!(owner.database.status(Instant::now()).queued, 3);
    // The other queue.
    owner.run("CREATE TABLE t (a)").unwrap();
    owner.cancel(first);
    for query in waiting {
        owner.answer(query).unwrap();
    }
}

#[test]
fn a_long_list_of_events_is_told_in_parts() {
    let mut owner = Owner::new(options());
    let queries: Vec<_> = (0..1000).map(|_| owner.ask("SELECT 1")).collect();
    for query in queries {
        owner.answer(query).unwrap();
    }
}
