//! The effect of a cancel in every state of a query.

use std::time::{Duration, Instant};

use parkade_sql::{QueryEnd, SlotState};
use rusqlite::Connection;

use super::owner::{ENDLESS, Owner, options, refused};
use crate::Options;

fn count(owner: &mut Owner) -> String {
    owner.run("SELECT count(*) AS c FROM t").unwrap()
}

fn with_table() -> Owner {
    let mut owner = Owner::new(options());
    owner.run("CREATE TABLE t (a)").unwrap();
    owner
}

#[test]
fn a_query_that_runs_is_interrupted() {
    let mut owner = with_table();
    let query = owner.ask(ENDLESS);
    owner.until_started(query);
    owner.cancel(query);
    assert_eq!(owner.end(query), QueryEnd::Cancelled);
}

#[test]
fn a_cancel_is_never_lost_however_early_it_comes() {
    let mut owner = with_table();
    for _ in 0..500 {
        let query = owner.ask(ENDLESS);
        owner.cancel(query);
        assert_eq!(owner.end(query), QueryEnd::Cancelled);
    }
}

#[test]
fn a_write_that_is_interrupted_has_not_happened() {
    let mut owner = with_table();
    for end in ["", "RETURNING a"] {
        let query = owner.ask(&format!("INSERT INTO t {ENDLESS} {end}"));
        owner.until_started(query);
        owner.cancel(query);
        assert_eq!(owner.end(query), QueryEnd::Cancelled);
    }
    assert_eq!(count(&mut owner), "[{\"c\":0}]");
}

#[test]
fn what_waits_leaves_the_queue_without_touching_the_database() {
    let mut owner = Owner::new(Options { readers: 1, ..options() });
    let first = owner.ask(ENDLESS);
    owner.until_started(first);
    let waiting: Vec<_> = (0..100).map(|_| owner.ask("SELECT 1 AS a")).collect();
    for query in waiting.iter().skip(1) {
        owner.cancel(*query);
        assert_eq!(owner.end(*query), QueryEnd::Cancelled);
    }
    assert_eq!(owner.database.status(Instant::now()).queued, 1);
    owner.cancel(first);
    assert_eq!(owner.answer(waiting[0]), Ok("[{\"a\":1}]".into()));
    assert!(owner.database.status(Instant::now()).counts.cancels_sent <= 1);
}

#[test]
fn no_piece_comes_behind_a_cancel_and_the_thread_is_free() {
    let mut owner = with_table();
    owner.is_taking = false;
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let query = owner.ask(many);
    owner.until(|owner| owner.heard.get(&query).is_some_and(|heard| heard.text.len() >= 256 * 1024));
    let pieces = owner.heard[&query].pieces;
    owner.cancel(query);
    assert_eq!(owner.end(query), QueryEnd::Cancelled);
    assert_eq!(owner.heard[&query].pieces, pieces);
    // Including events that have not been received.
    let query = owner.ask("SELECT 1");
    owner.until_idle();
    owner.cancel(query);
    assert!(matches!(owner.end(query), QueryEnd::Completed(_)));
    assert_eq!(owner.heard[&query].pieces, 0);
}

#[test]
fn the_wait_for_another_process_can_be_cancelled() {
    let mut owner = with_table();
    let other = Connection::open(owner.folder.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let query = owner.ask("INSERT INTO t VALUES (1)");
    owner.until_started(query);
    let begin = owner.begin(false).1;
    owner.cancel(query);
    assert_eq!(owner.end(query), QueryEnd::Cancelled);
    owner.until_started(begin);
    owner.cancel(begin);
    assert_eq!(owner.end(begin), QueryEnd::Cancelled);
    let query = owner.ask("INSERT INTO t VALUES (2)");
    owner.until_started(query);
    other.execute_batch("COMMIT").unwrap();
    owner.answer(query).unwrap();
    assert_eq!(count(&mut owner), "[{\"c\":1}]");
}

#[test]
fn the_wait_for_another_process_ends_by_itself() {
    let mut owner = Owner::new(Options { busy_timeout: Duration::from_millis(50), ..options() });
    owner.run("CREATE TABLE t (a)").unwrap();
    let other = Connection::open(owner.folder.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = Instant::now();
    assert_eq!(owner.run("INSERT INTO t VALUES (1)"), refused("55P03"));
    assert!((50..1000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
}

#[test]
fn an_interrupted_write_takes_its_transaction_along() {
    let mut owner = with_table();
    let (lease, begin) = owner.begin(false);
    owner.answer(begin).unwrap();
    owner.within(lease, "INSERT INTO t VALUES (1)").unwrap();
    let work = parkade_sql::DatabaseWork::Within {
        lease,
        query: super::owner::query(&format!("INSERT INTO t {ENDLESS}"), &[]),
    };
    let query = owner.submit(work);
    owner.until_started(query);
    owner.cancel(query);
    assert_eq!(owner.end(query), QueryEnd::Cancelled);
    let lost = super::owner::failed(parkade_sql::FailureKind::NoTransaction);
    assert_eq!(owner.within(lease, "INSERT INTO t VALUES (2)"), lost);
    assert_eq!(owner.commit(lease), lost);
    assert_eq!(count(&mut owner), "[{\"c\":0}]");
}

impl Owner {
    fn until_idle(&self) {
        let begun = Instant::now();
        let is_busy = |owner: &Self| {
            let status = owner.database.status(Instant::now());
            status.queued > 0 || status.slots.iter().any(|slot| slot.state != SlotState::Idle)
        };
        while is_busy(self) {
            assert!(begun.elapsed() < Duration::from_secs(20));
            std::thread::yield_now();
        }
    }
}
