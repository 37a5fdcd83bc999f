//! What every store does, as data: a closed list of cases, run against each store that there is.
//!
//! A store takes part with a [`Subject`] and a test below.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod cases;
mod in_postgres;
mod in_sqlite;
mod script;
mod session;
mod sharing;
mod upgrading;
mod words;

use std::time::Duration;

use parkade_jobs::{Command, Reply, Wall};

/// How the store of a case is set up.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub keep_completed: Duration,
    pub keep_completed_count_max: u64,
    /// Each so many-th commit fails.
    pub fail_every: Option<u32>,
}

pub const PLAIN: Settings =
    Settings { keep_completed: Duration::from_secs(3_600), keep_completed_count_max: 1_000, fail_every: None };

/// A store of its own for each case, empty at first.
pub trait Subject {
    /// Whether commands about different jobs are answered in their order too.
    const IN_ORDER: bool;

    fn new(settings: Settings) -> Self;
    fn submit(&mut self, now: Wall, command: Command);
    /// Waits for the next answers.
    fn turn(&mut self, replies: &mut Vec<Reply>);
    /// Ends, and opens what was stored again, as the next server would.
    fn reopen(&mut self);
}

/// Every case, and the names of those that fail.
fn check<S: Subject>() {
    let failures: Vec<String> = cases::CASES
        .into_iter()
        .flatten()
        .filter_map(|(name, settings, script)| {
            let told = script::run(&mut S::new(*settings), script);
            told.err().map(|why| format!("{name}\n{why}"))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn sqlite_does_what_every_store_does() {
    check::<in_sqlite::InSqlite>();
}

#[test]
#[ignore = "needs a database: PARKADE_POSTGRES=postgres://… cargo test -p parkade-jobs --test conformance -- --ignored"]
fn postgres_does_what_every_store_does() {
    let _alone = in_postgres::alone();
    check::<in_postgres::InPostgres>();
}
