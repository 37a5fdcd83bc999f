//! What people and programs look at.

use bytes::Bytes;
use rusqlite::{OptionalExtension, Result, Row, params};

use super::ledger::Ledger;
use super::limits::{LISTED_COUNT_MAX, SCANNED_COUNT_MAX, SORTED_COUNT_MAX};
use super::schema;
use crate::{Counts, Filter, Job, JobId, Schedule, State, Wall};

const COLUMNS: &str = "job, id, name, queue, key, priority, state, attempt, enqueued, due, started, ended";

pub fn find(ledger: &Ledger, id: JobId) -> Result<Option<Box<Job>>> {
    let text = format!("SELECT {COLUMNS} FROM jobs WHERE id = ?");
    let found = ledger.connection.prepare_cached(&text)?.query_row([id.bytes()], read).optional()?;
    let Some((row, mut job)) = found else { return Ok(None) };
    let mut bodies = ledger.connection.prepare_cached("SELECT arguments FROM bodies WHERE job = ?")?;
    job.arguments = bodies.query_row([row], |row| Ok(Bytes::copy_from_slice(row.get_ref(0)?.as_blob()?)))?;
    let mut results = ledger.connection.prepare_cached("SELECT result FROM results WHERE job = ?")?;
    let result = results.query_row([row], |row| Ok(row.get_ref(0)?.as_blob_or_null()?.map(Bytes::copy_from_slice)));
    job.result = result.optional()?.flatten();
    job.error = error(ledger, row)?;
    Ok(Some(Box::new(job)))
}

/// Newest first, without arguments and results.
pub fn list(ledger: &Ledger, filter: &Filter) -> Result<Vec<Job>> {
    let text = format!(
        "{} AND (?1 IS NULL OR name = ?1) AND (?2 IS NULL OR queue = ?2) ORDER BY job DESC LIMIT ?3",
        candidates(ledger, filter)
    );
    let count = filter.count.min(LISTED_COUNT_MAX);
    let mut statement = ledger.connection.prepare_cached(&text)?;
    let rows: Vec<(i64, Job)> =
        statement.query_map(params![filter.name, filter.queue, count], read)?.collect::<Result<_>>()?;
    let with_error = |(row, job)| Ok(Job { error: error(ledger, row)?, ..job });
    rows.into_iter().map(with_error).collect()
}

/// Of a state with few jobs all, by its index; else the newest of all, so that no list takes long.
fn candidates(ledger: &Ledger, filter: &Filter) -> String {
    let of_state = |state| format!("state = {}", schema::number(state));
    match filter.state {
        Some(state) if ledger.tally.total(state) <= SORTED_COUNT_MAX => {
            format!("SELECT {COLUMNS} FROM jobs INDEXED BY {} WHERE {}", schema::index(state), of_state(state))
        }
        state => format!(
            "SELECT {COLUMNS} FROM (SELECT * FROM jobs NOT INDEXED ORDER BY job DESC LIMIT {SCANNED_COUNT_MAX}) WHERE {}",
            state.map_or_else(|| "TRUE".to_owned(), of_state)
        ),
    }
}

pub fn count(ledger: &Ledger) -> Result<Counts> {
    let total = |state| ledger.tally.total(state);
    let text = "SELECT rank + priority * 30000 FROM jobs INDEXED BY jobs_oldest WHERE state = 1 ORDER BY rank + priority * 30000 LIMIT 1";
    let oldest = ledger.connection.prepare_cached(text)?.query_row([], |row| row.get(0).map(Wall)).optional()?;
    Ok(Counts {
        scheduled: total(State::Scheduled),
        ready: total(State::Ready),
        running: total(State::Running),
        completed: total(State::Completed),
        dead: total(State::Dead),
        cancelled: total(State::Cancelled),
        unknown: total(State::Unknown),
        oldest_ready: oldest,
        queues: ledger.tally.depths(),
    })
}

pub fn schedules(ledger: &Ledger) -> Result<Vec<Schedule>> {
    let mut statement = ledger.connection.prepare_cached("SELECT name, last FROM schedules ORDER BY name")?;
    statement.query_map([], |row| Ok(Schedule { name: row.get(0)?, last: Wall(row.get(1)?) }))?.collect()
}

fn error(ledger: &Ledger, row: i64) -> Result<Option<Box<str>>> {
    let mut statement = ledger.connection.prepare_cached("SELECT error FROM results WHERE job = ?")?;
    Ok(statement.query_row([row], |row| row.get(0)).optional()?.flatten())
}

fn read(row: &Row<'_>) -> Result<(i64, Job)> {
    let moment = |index| row.get::<_, Option<i64>>(index).map(|ms| ms.map(Wall));
    let job = Job {
        id: JobId::from_bytes(row.get(1)?),
        name: row.get(2)?,
        queue: row.get(3)?,
        key: row.get(4)?,
        priority: row.get(5)?,
        state: schema::state(row.get(6)?).ok_or(rusqlite::Error::InvalidQuery)?,
        attempt: row.get(7)?,
        arguments: Bytes::new(),
        enqueued: Wall(row.get(8)?),
        due: moment(9)?,
        started: moment(10)?,
        ended: moment(11)?,
        result: None,
        error: None,
    };
    Ok((row.get(0)?, job))
}
