//! Actions of people on a job that is not running.

use rusqlite::{OptionalExtension, Result, params};

use super::ready_index::ReadyIndex;
use super::schema::{self, rank::rank};
use super::tables::JobTables;
use crate::{JobId, JobState};

struct FoundJob {
    job: i64,
    queue: Box<str>,
    priority: i16,
    rank: i64,
    state: JobState,
}

impl FoundJob {
    /// Removes it from the ready jobs, if it was one.
    fn leave(&self, ready: &mut ReadyIndex) {
        if self.state == JobState::Ready {
            ready.withdraw(&self.queue, self.priority, (self.rank, self.job));
        }
    }
}

/// Returns whether it was cancelled: not if it is running, has ended or does not exist.
pub fn cancel(tables: &mut JobTables, id: JobId) -> Result<bool> {
    let waits = |state| matches!(state, JobState::Scheduled | JobState::Ready | JobState::Unknown);
    let Some(found) = look(tables, id)?.filter(|found| waits(found.state)) else { return Ok(false) };
    let text = "UPDATE jobs SET state = 5, ended = ?2 WHERE job = ?1";
    tables.connection.prepare_cached(text)?.execute(params![found.job, tables.now.0])?;
    found.leave(&mut tables.ready);
    tables.counters.moved(&found.queue, Some(found.state), Some(JobState::Cancelled));
    Ok(true)
}

/// Returns whether it was made ready: not if it waits or is running, nor if another job has its key.
pub fn retry(tables: &mut JobTables, id: JobId) -> Result<bool> {
    let is_over =
        |state| matches!(state, JobState::Dead | JobState::Cancelled | JobState::Completed | JobState::Unknown);
    let Some(found) = look(tables, id)?.filter(|found| is_over(found.state)) else { return Ok(false) };
    let text = "UPDATE OR IGNORE jobs SET state = 1, attempt = 0, due = NULL, started = NULL, ended = NULL, \
                error = NULL, result = NULL, rank = ?2 WHERE job = ?1";
    let rank = rank(tables.now, found.priority);
    if tables.connection.prepare_cached(text)?.execute(params![found.job, rank])? == 0 {
        return Ok(false);
    }
    tables.ready.offer(&found.queue, found.priority, (rank, found.job));
    tables.counters.moved(&found.queue, Some(found.state), Some(JobState::Ready));
    Ok(true)
}

/// Returns whether it was deleted: not if it is running or does not exist.
pub fn drop(tables: &mut JobTables, id: JobId) -> Result<bool> {
    let Some(found) = look(tables, id)?.filter(|found| found.state != JobState::Running) else { return Ok(false) };
    tables.forget(found.job)?;
    found.leave(&mut tables.ready);
    tables.counters.moved(&found.queue, Some(found.state), None);
    Ok(true)
}

fn look(tables: &JobTables, id: JobId) -> Result<Option<FoundJob>> {
    let text = "SELECT job, queue, priority, rank, state FROM jobs WHERE id = ?";
    let found = tables.connection.prepare_cached(text)?.query_row([id.bytes()], |row| {
        let job = row.get(0)?;
        let written = schema::state(row.get(4)?).ok_or(rusqlite::Error::InvalidQuery)?;
        let state = if tables.running.has(job) { JobState::Running } else { written };
        Ok(FoundJob { job, queue: row.get(1)?, priority: row.get(2)?, rank: row.get(3)?, state })
    });
    found.optional()
}
