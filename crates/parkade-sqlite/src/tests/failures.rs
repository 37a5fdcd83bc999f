//! What is refused, and with which messages.

use parkade_sql::FailureKind;

use super::owner::{Owner, failed, options, refused};

#[test]
fn each_error_has_its_sqlstate() {
    let mut owner = Owner::new(options());
    for text in [
        "CREATE TABLE p (id INTEGER PRIMARY KEY, u UNIQUE, n NOT NULL DEFAULT 0, c CHECK (c < 10))",
        "CREATE TABLE k (p REFERENCES p)",
        "INSERT INTO p VALUES (1, 1, 1, 1)",
        "CREATE TABLE s (a INT) STRICT",
    ] {
        owner.run(text).unwrap();
    }
    for (text, sqlstate) in [
        ("INSERT INTO p (id) VALUES (1)", "23505"),
        ("INSERT INTO p (u) VALUES (1)", "23505"),
        ("INSERT INTO p (n) VALUES (NULL)", "23502"),
        ("INSERT INTO p (c) VALUES (11)", "23514"),
        ("INSERT INTO k VALUES (9)", "23503"),
        ("INSERT INTO s VALUES ('x')", "22000"),
        ("INSERT INTO p (id) VALUES ('x')", "22000"),
        ("SELEC", "42601"),
        ("SELECT * FROM nowhere", "42P01"),
        ("SELECT missing FROM p", "42703"),
        ("SELECT missing()", "42883"),
        ("CREATE TABLE p (a)", "42P07"),
        ("SELECT zeroblob(100000000)", "54000"),
        ("SELECT abs(-9223372036854775808)", "22003"),
        ("SELECT json('{')", "22032"),
        (" -- nothing", "42601"),
    ] {
        match owner.run(text) {
            Err((FailureKind::Refused | FailureKind::TooLarge, state)) => assert_eq!(state, sqlstate, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    assert_eq!(owner.run("SELECT count(*) AS c FROM p"), Ok("[{\"c\":1}]".into()));
}

#[test]
fn what_would_change_a_connection_is_refused() {
    let mut owner = Owner::new(options());
    owner.run("CREATE TABLE t (a)").unwrap();
    for text in [
        "BEGIN",
        "BEGIN IMMEDIATE",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT x",
        "RELEASE x",
        "ATTACH ':memory:' AS other",
        "DETACH main",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA synchronous(OFF)",
        "PRAGMA foreign_keys = OFF",
        "PRAGMA query_only = OFF",
        "PRAGMA wal_checkpoint",
        "SELECT 1; SELECT 2",
        "INSERT INTO t VALUES (1); DELETE FROM t",
    ] {
        assert_eq!(owner.run(text), failed(FailureKind::Unsupported), "{text}");
        assert_eq!(owner.run(text), failed(FailureKind::Unsupported), "{text}, a second time");
    }
    assert_eq!(owner.run("SELECT a FROM t; -- the end"), Ok("[]".into()));
}

#[test]
fn what_cannot_be_written_is_refused_and_not_done() {
    let mut owner = Owner::new(options());
    owner.run("CREATE TABLE t (a)").unwrap();
    assert_eq!(owner.run("SELECT 1 AS a, 2 AS a"), failed(FailureKind::DuplicateColumns));
    let two = "INSERT INTO t VALUES (1), (2) RETURNING a";
    let one = |owner: &mut Owner| owner.run_as(two, parkade_sql::Shape::One, parkade_sql::Int8::Number);
    assert_eq!(one(&mut owner), failed(FailureKind::NotOne));
    let (lease, _) = owner.begin(false);
    owner.within(lease, "INSERT INTO t VALUES (7)").unwrap();
    let within = owner.within(lease, "INSERT INTO t VALUES (1), (2) RETURNING a, a");
    assert_eq!(within, failed(FailureKind::DuplicateColumns));
    owner.commit(lease).unwrap();
    assert_eq!(owner.run("SELECT a FROM t"), Ok("[{\"a\":7}]".into()));
}

#[test]
fn a_deferred_constraint_that_fails_at_the_end_leaves_nothing() {
    let mut owner = Owner::new(options());
    owner.run("CREATE TABLE p (id PRIMARY KEY)").unwrap();
    owner.run("CREATE TABLE k (p REFERENCES p DEFERRABLE INITIALLY DEFERRED)").unwrap();
    assert_eq!(owner.run("INSERT INTO k VALUES (1) RETURNING p"), refused("23503"));
    let (lease, _) = owner.begin(false);
    owner.within(lease, "INSERT INTO k VALUES (1)").unwrap();
    assert_eq!(owner.commit(lease), refused("23503"));
    assert_eq!(owner.commit(lease), failed(FailureKind::NoTransaction));
    assert_eq!(owner.run("SELECT count(*) AS c FROM k"), Ok("[{\"c\":0}]".into()));
    owner.run("INSERT INTO p VALUES (1)").unwrap();
}
