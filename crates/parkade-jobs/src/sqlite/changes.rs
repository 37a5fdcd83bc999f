//! What people do with a job that does not run.

use rusqlite::{OptionalExtension, Result, params};

use super::ledger::Ledger;
use super::{chores, end, schema};
use crate::{JobId, State};

struct Found {
    job: i64,
    queue: Box<str>,
    state: State,
}

/// Whether this has done it: not to one that runs, has ended or is none.
pub fn cancel(ledger: &mut Ledger, id: JobId) -> Result<bool> {
    let waits = |state| matches!(state, State::Scheduled | State::Ready | State::Unknown);
    let Some(found) = look(ledger, id)?.filter(|found| waits(found.state)) else { return Ok(false) };
    end::over(ledger, found.job, State::Cancelled)?;
    ledger.tally.moved(&found.queue, Some(found.state), Some(State::Cancelled));
    Ok(true)
}

/// Whether this has done it: not to one that waits or runs, and not where another with its key does.
pub fn retry(ledger: &mut Ledger, id: JobId) -> Result<bool> {
    let is_over = |state| matches!(state, State::Dead | State::Cancelled | State::Completed | State::Unknown);
    let Some(found) = look(ledger, id)?.filter(|found| is_over(found.state)) else { return Ok(false) };
    let text = "UPDATE OR IGNORE jobs SET state = 1, attempt = 0, due = NULL, started = NULL, ended = NULL, \
                rank = ?2 - priority * 30000 WHERE job = ?1";
    if ledger.connection.prepare_cached(text)?.execute(params![found.job, ledger.now.0])? == 0 {
        return Ok(false);
    }
    ledger.connection.prepare_cached("DELETE FROM results WHERE job = ?")?.execute([found.job])?;
    ledger.tally.moved(&found.queue, Some(found.state), Some(State::Ready));
    Ok(true)
}

/// Whether this has done it: not to one that runs or is none.
pub fn drop(ledger: &mut Ledger, id: JobId) -> Result<bool> {
    let Some(found) = look(ledger, id)?.filter(|found| found.state != State::Running) else { return Ok(false) };
    chores::forget(ledger, found.job)?;
    ledger.tally.moved(&found.queue, Some(found.state), None);
    Ok(true)
}

fn look(ledger: &Ledger, id: JobId) -> Result<Option<Found>> {
    let mut statement = ledger.connection.prepare_cached("SELECT job, queue, state FROM jobs WHERE id = ?")?;
    let found = statement.query_row([id.bytes()], |row| {
        let state = schema::state(row.get(2)?).ok_or(rusqlite::Error::InvalidQuery)?;
        Ok(Found { job: row.get(0)?, queue: row.get(1)?, state })
    });
    found.optional()
}
