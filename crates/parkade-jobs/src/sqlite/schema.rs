//! The schema of the file, and its upgrades.

pub mod rank;

use rusqlite::{Connection, Result};

use crate::JobState;

/// In the file's header: marks it as ours. The bytes spell `PKJB`.
pub const APPLICATION_ID: i32 = 0x504b_4a42;

/// The numbers of states in the file. Those below that of completed jobs have not ended; indexes and statements rely on
/// these numbers. Running jobs are stored as ready ones.
pub const fn number(state: JobState) -> u8 {
    match state {
        JobState::Scheduled => 0,
        JobState::Ready => 1,
        JobState::Running => 2,
        JobState::Unknown => 3,
        JobState::Completed => 4,
        JobState::Cancelled => 5,
        JobState::Dead => 6,
    }
}

pub fn state(number: u8) -> Option<JobState> {
    JobState::ALL.into_iter().find(|state| self::number(*state) == number)
}

/// The index of the jobs in a state: with two exceptions it contains no others. Running jobs are in that of the ready
/// ones.
pub const fn index(state: JobState) -> &'static str {
    match state {
        JobState::Scheduled => "jobs_scheduled",
        JobState::Ready | JobState::Running => "jobs_ready",
        JobState::Unknown => "jobs_unknown",
        JobState::Completed | JobState::Cancelled => "jobs_over",
        JobState::Dead => "jobs_dead",
    }
}

/// Each step upgrades the version before it. Steps are never changed, only added.
pub const LADDER: &[&str] = &[V1, V2];

/// `job` is the order of insertion. `rank` orders the ready jobs of a queue: when a job became ready, in ms, less half
/// a minute for each step of priority. Arguments of more than a few bytes are in a separate row, which is never written
/// again.
///
/// A claim changes no row of a job: a row of `claims` lists the running ones, eight bytes each. `attempt` and `started`
/// are those of the last attempt that has ended. So a job costs two writes of its row, one when it is stored and one
/// when it ends.
const V1: &str = "
CREATE TABLE jobs (
    job INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    state INTEGER NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    due INTEGER,
    enqueued INTEGER NOT NULL,
    started INTEGER,
    ended INTEGER,
    name TEXT NOT NULL,
    key TEXT,
    arguments BLOB,
    error TEXT,
    result BLOB
) STRICT;
CREATE TABLE bodies (job INTEGER PRIMARY KEY, arguments BLOB NOT NULL) STRICT;
CREATE TABLE claims (claim INTEGER PRIMARY KEY, started INTEGER NOT NULL, jobs BLOB NOT NULL) STRICT;
CREATE TABLE counts (
    queue TEXT NOT NULL,
    state INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (queue, state)
) STRICT, WITHOUT ROWID;
CREATE TABLE schedules (name TEXT PRIMARY KEY, last INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX jobs_id ON jobs (id);
CREATE UNIQUE INDEX jobs_key ON jobs (name, key) WHERE key IS NOT NULL AND state < 4;
CREATE INDEX jobs_scheduled ON jobs (due) WHERE state = 0;
CREATE INDEX jobs_ready ON jobs (queue, priority, rank) WHERE state = 1;
CREATE INDEX jobs_unknown ON jobs (name) WHERE state = 3;
CREATE INDEX jobs_over ON jobs (ended) WHERE state = 4 OR state = 5;
CREATE INDEX jobs_dead ON jobs (ended) WHERE state = 6;
";

/// The request that enqueued a job; NULL in jobs that version 1 stored.
const V2: &str = "
ALTER TABLE jobs ADD COLUMN request_id TEXT;
ALTER TABLE jobs ADD COLUMN traceparent TEXT;
";

pub fn version(connection: &Connection) -> Result<usize> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

/// Runs all missing steps, or none.
pub fn climb(connection: &mut Connection, ladder: &[&str]) -> Result<()> {
    let from = version(connection)?;
    if from >= ladder.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    for step in &ladder[from..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", i64::try_from(ladder.len()).unwrap_or(i64::MAX))?;
    transaction.commit()
}

/// The names of a file's tables and indexes, without SQLite's own.
pub fn names(connection: &Connection) -> Result<Vec<String>> {
    let text = "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
    connection.prepare(text)?.query_map([], |row| row.get(0))?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_file_climbs_the_steps_that_it_lacks_and_keeps_what_it_holds() {
        let mut connection = Connection::open_in_memory().unwrap();
        climb(&mut connection, &["CREATE TABLE a (x)"]).unwrap();
        connection.execute_batch("INSERT INTO a VALUES (7)").unwrap();
        let ladder = ["CREATE TABLE a (x)", "ALTER TABLE a ADD COLUMN y", "UPDATE a SET y = x + 1"];
        climb(&mut connection, &ladder).unwrap();
        climb(&mut connection, &ladder).unwrap();
        assert_eq!(version(&connection), Ok(3));
        assert_eq!(connection.query_row("SELECT y FROM a", [], |row| row.get(0)), Ok(8));
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_as_it_was() {
        let mut connection = Connection::open_in_memory().unwrap();
        climb(&mut connection, &["CREATE TABLE a (x)", "DROP TABLE nothing"]).unwrap_err();
        assert_eq!(version(&connection), Ok(0));
        assert_eq!(names(&connection), Ok(vec![]));
    }

    #[test]
    fn every_state_has_a_number_of_its_own() {
        for state in JobState::ALL {
            assert_eq!(super::state(number(state)), Some(state));
        }
    }
}
