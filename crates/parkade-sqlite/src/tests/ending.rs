//! The end of a database.

use std::time::Instant;

use parkade_sql::{FailureKind, QueryEnd};

use crate::Options;

use super::owner::{ENDLESS, Owner, failed, options};

#[test]
fn the_end_cancels_everything_and_ends_the_threads() {
    let mut owner = Owner::new(options());
    owner.run("CREATE TABLE t (a)").unwrap();
    owner.run("INSERT INTO t VALUES (1)").unwrap();
    let (lease, begin) = owner.begin(false);
    owner.answer(begin).unwrap();
    owner.within(lease, "INSERT INTO t VALUES (2)").unwrap();
    let running: Vec<_> = (0..2).map(|_| owner.ask(ENDLESS)).collect();
    owner.until_started(running[0]);
    owner.until_started(running[1]);
    let waiting = [owner.ask("SELECT 1"), owner.ask("INSERT INTO t VALUES (3)"), owner.begin(false).1];
    assert!(!owner.database.is_ended());
    owner.database.end(Instant::now());
    for query in running.into_iter().chain(waiting) {
        assert_eq!(owner.end(query), QueryEnd::Cancelled);
    }
    owner.until(|owner| owner.database.is_ended());
    assert_eq!(owner.run("SELECT 1"), failed(FailureKind::Unreachable));
    let wal = owner.folder.0.join("test.db-wal");
    assert!(!wal.exists(), "the log has been written into the file");
    let file = rusqlite::Connection::open(owner.folder.file()).unwrap();
    let rows: i64 = file.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 1);
}

/// SQLite leaves the log where two connections close at the same moment.
#[test]
fn connections_that_close_together_leave_no_log() {
    for _ in 0..30 {
        let mut owner = Owner::new(Options { readers: 6, ..options() });
        owner.run("CREATE TABLE t (a)").unwrap();
        let running: Vec<_> = (0..6).map(|_| owner.ask(ENDLESS)).collect();
        for query in running {
            owner.until_started(query);
        }
        owner.database.end(Instant::now());
        owner.until(|owner| owner.database.is_ended());
        assert!(!owner.folder.0.join("test.db-wal").exists(), "the log has been written into the file");
    }
}

#[test]
fn what_was_never_opened_ends_at_once() {
    let mut owner = Owner::new(options());
    owner.database.end(Instant::now());
    assert!(owner.database.is_ended());
}

#[test]
fn rows_that_wait_to_be_taken_do_not_hold_the_end() {
    let mut owner = Owner::new(options());
    owner.is_taking = false;
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let query = owner.ask(many);
    owner.until(|owner| owner.heard.get(&query).is_some_and(|heard| heard.text.len() >= 256 * 1024));
    owner.database.end(Instant::now());
    owner.until(|owner| owner.database.is_ended());
    assert_eq!(owner.end(query), QueryEnd::Cancelled);
}
