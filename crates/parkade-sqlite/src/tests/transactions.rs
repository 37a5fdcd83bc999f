//! Transactions, and what other queries do in the meantime.

use std::time::Instant;

use parkade_sql::{DatabaseWork, FailureKind, LeaseId, QueryEnd, SlotState};

use super::owner::{ENDLESS, Owner, failed, options, query, refused};
use crate::Options;

fn with_table() -> Owner {
    let mut owner = Owner::new(options());
    owner.run("CREATE TABLE t (a)").unwrap();
    owner
}

fn rows(owner: &mut Owner) -> String {
    owner.run("SELECT count(*) AS c FROM t").unwrap()
}

#[test]
fn a_commit_makes_it_seen_by_others() {
    let mut owner = with_table();
    let (lease, begin) = owner.begin(false);
    owner.answer(begin).unwrap();
    owner.within(lease, "INSERT INTO t VALUES (1)").unwrap();
    assert_eq!(owner.states()[0], SlotState::Held);
    assert_eq!(owner.within(lease, "SELECT a FROM t"), Ok("[{\"a\":1}]".into()));
    assert_eq!(rows(&mut owner), "[{\"c\":0}]");
    assert_eq!(owner.commit(lease), Ok(String::new()));
    assert_eq!(rows(&mut owner), "[{\"c\":1}]");
    assert_eq!(owner.within(lease, "SELECT 1"), failed(FailureKind::NoTransaction));
}

#[test]
fn a_rollback_undoes_it() {
    let mut owner = with_table();
    let (lease, _) = owner.begin(false);
    owner.within(lease, "INSERT INTO t VALUES (1)").unwrap();
    let rollback = owner.submit(DatabaseWork::Rollback { lease });
    owner.answer(rollback).unwrap();
    assert_eq!(rows(&mut owner), "[{\"c\":0}]");
}

#[test]
fn a_release_cancels_and_rolls_back() {
    let mut owner = with_table();
    let (lease, _) = owner.begin(false);
    owner.within(lease, "INSERT INTO t VALUES (1)").unwrap();
    let running = owner.submit(DatabaseWork::Within { lease, query: query(ENDLESS, &[]) });
    let waiting = owner.submit(DatabaseWork::Commit { lease });
    owner.until_started(running);
    owner.database.release(Instant::now(), lease);
    assert_eq!(owner.end(running), QueryEnd::Cancelled);
    assert_eq!(owner.end(waiting), QueryEnd::Cancelled);
    assert_eq!(owner.within(lease, "SELECT 1"), failed(FailureKind::NoTransaction));
    owner.run("INSERT INTO t VALUES (2)").unwrap();
    assert_eq!(rows(&mut owner), "[{\"c\":1}]");
    owner.until(|owner| owner.states()[0] == SlotState::Idle);
}

#[test]
fn a_release_before_the_begin_leaves_the_queue() {
    let mut owner = with_table();
    let (first, _) = owner.begin(false);
    let (second, begin) = owner.begin(false);
    let within = owner.submit(DatabaseWork::Within { lease: second, query: query("INSERT INTO t VALUES (1)", &[]) });
    owner.within(first, "SELECT 1").unwrap();
    owner.database.release(Instant::now(), second);
    assert_eq!((owner.end(begin), owner.end(within)), (QueryEnd::Cancelled, QueryEnd::Cancelled));
    owner.commit(first).unwrap();
    assert_eq!(rows(&mut owner), "[{\"c\":0}]");
    owner.database.release(Instant::now(), LeaseId(999));
}

#[test]
fn a_begin_that_is_cancelled_takes_its_statements_along() {
    let mut owner = with_table();
    let (first, _) = owner.begin(false);
    let (second, begin) = owner.begin(false);
    let within = owner.submit(DatabaseWork::Within { lease: second, query: query("SELECT 1", &[]) });
    owner.within(first, "SELECT 1").unwrap();
    owner.cancel(begin);
    assert_eq!(owner.end(begin), QueryEnd::Cancelled);
    assert_eq!(owner.answer(within), failed(FailureKind::NoTransaction));
}

#[test]
fn writes_wait_for_a_transaction_and_reads_do_not() {
    let mut owner = with_table();
    let (lease, _) = owner.begin(false);
    owner.within(lease, "INSERT INTO t VALUES (1)").unwrap();
    let write = owner.ask("WITH x AS (SELECT 2 AS a) INSERT INTO t SELECT a FROM x");
    assert_eq!(rows(&mut owner), "[{\"c\":0}]");
    assert!(owner.heard.get(&write).is_none_or(|heard| heard.end.is_none()));
    owner.commit(lease).unwrap();
    owner.answer(write).unwrap();
    assert_eq!(owner.heard[&write].starts, 1);
    assert_eq!(rows(&mut owner), "[{\"c\":2}]");
}

#[test]
fn a_read_only_transaction_sees_one_moment_and_writes_nothing() {
    for readers in [0, 2] {
        let mut owner = Owner::new(Options { readers, ..options() });
        owner.run("CREATE TABLE t (a)").unwrap();
        let (lease, _) = owner.begin(true);
        assert_eq!(owner.within(lease, "SELECT count(*) AS c FROM t"), Ok("[{\"c\":0}]".into()));
        if readers > 0 {
            owner.run("INSERT INTO t VALUES (1)").unwrap();
        }
        assert_eq!(owner.within(lease, "SELECT count(*) AS c FROM t"), Ok("[{\"c\":0}]".into()));
        assert_eq!(owner.within(lease, "INSERT INTO t VALUES (1)"), refused("25006"));
        owner.commit(lease).unwrap();
    }
}

#[test]
fn readers_read_at_the_same_time_while_the_writer_writes() {
    let mut owner = with_table();
    let long: Vec<_> = [ENDLESS, ENDLESS].into_iter().map(|text| owner.ask(text)).collect();
    let write = owner.ask(&format!("INSERT INTO t {ENDLESS}"));
    owner.until_started(long[0]);
    owner.until_started(long[1]);
    owner.until_started(write);
    assert_eq!(owner.states(), [SlotState::Busy; 3]);
    for query in [write, long[0], long[1]] {
        owner.cancel(query);
        assert_eq!(owner.end(query), QueryEnd::Cancelled);
    }
}

#[test]
fn a_statement_that_fails_leaves_the_transaction_as_it_was() {
    let mut owner = with_table();
    let (lease, _) = owner.begin(false);
    owner.within(lease, "INSERT INTO t VALUES (1)").unwrap();
    assert_eq!(owner.within(lease, "INSERT INTO nowhere VALUES (1)"), refused("42P01"));
    assert_eq!(owner.within(lease, "COMMIT"), failed(FailureKind::Unsupported));
    owner.commit(lease).unwrap();
    assert_eq!(rows(&mut owner), "[{\"c\":1}]");
}

#[test]
fn the_end_of_a_transaction_is_carried_out_even_when_it_is_cancelled() {
    for end in [|lease| DatabaseWork::Commit { lease }, |lease| DatabaseWork::Rollback { lease }] {
        let mut owner = with_table();
        let (lease, _) = owner.begin(false);
        let running = owner.submit(DatabaseWork::Within { lease, query: query(ENDLESS, &[]) });
        let waiting = owner.submit(end(lease));
        owner.until_started(running);
        owner.database.cancel(Instant::now(), waiting);
        owner.database.cancel(Instant::now(), running);
        assert_eq!(owner.end(running), QueryEnd::Cancelled);
        owner.answer(waiting).unwrap();
        owner.until(|owner| owner.states()[0] == SlotState::Idle);
        owner.run("INSERT INTO t VALUES (2)").unwrap();
    }
}
