//! Maintenance, a little in each transaction: deletes jobs whose retention time is over, and makes jobs ready whose
//! function is known again.

use std::collections::BTreeMap;

use rusqlite::{Connection, Result, params};

use super::limits::{PURGED_COUNT_MAX, RECOGNISED_COUNT_MAX};
use super::options::SqliteStoreOptions;
use super::schema::{self, rank::rank};
use super::tables::JobTables;
use crate::JobState;

#[derive(Debug, Default, Clone)]
pub struct Maintenance {
    /// Names, and up to which job each has been searched: a job that becomes unknown again in the meantime is not found
    /// twice.
    recognising: BTreeMap<Box<str>, i64>,
    /// There are more jobs to delete than one transaction does.
    is_purging: bool,
    /// It has failed: not before the next command.
    is_resting: bool,
}

impl Maintenance {
    pub fn is_pending(&self) -> bool {
        (self.is_purging || !self.recognising.is_empty()) && !self.is_resting
    }

    pub const fn rest(&mut self) {
        self.is_resting = true;
    }

    /// Does the part that belongs to a transaction with this many commands.
    pub fn tidy(&mut self, tables: &mut JobTables, options: &SqliteStoreOptions, commands: usize) -> Result<()> {
        self.is_resting = false;
        // Twice as many are deleted as may have arrived.
        let count = PURGED_COUNT_MAX.max(2 * commands);
        self.is_purging = purge(tables, options, count)? == count;
        self.recognise_more(tables, RECOGNISED_COUNT_MAX).map(|_| ())
    }

    /// Returns whether any job has become ready. If there are many, the rest follows in later transactions.
    pub fn recognise(&mut self, tables: &mut JobTables, names: &[Box<str>]) -> Result<bool> {
        if tables.counters.total(JobState::Unknown) == 0 {
            return Ok(false);
        }
        self.recognising.extend(names.iter().map(|name| (name.clone(), 0)));
        self.recognise_more(tables, RECOGNISED_COUNT_MAX)
    }

    fn recognise_more(&mut self, tables: &mut JobTables, count: usize) -> Result<bool> {
        let mut left = count;
        while left > 0 {
            let Some((name, from)) = self.recognising.pop_first() else { break };
            let found = unknown(&tables.connection, &name, from, left)?;
            for (job, queue, priority) in &found {
                let text = "UPDATE jobs SET state = 1, rank = ?2, ended = NULL WHERE job = ?1";
                let rank = rank(tables.now, *priority);
                tables.connection.prepare_cached(text)?.execute(params![job, rank])?;
                tables.ready.offer(queue, *priority, (rank, *job));
                tables.counters.moved(queue, Some(JobState::Unknown), Some(JobState::Ready));
            }
            if let (true, Some((last, ..))) = (found.len() == left, found.last()) {
                self.recognising.insert(name, *last);
            }
            left -= found.len();
        }
        Ok(left < count)
    }
}

fn unknown(connection: &Connection, name: &str, from: i64, count: usize) -> Result<Vec<(i64, Box<str>, i16)>> {
    let text = "SELECT job, queue, priority FROM jobs INDEXED BY jobs_unknown WHERE state = 3 AND name = ? AND job > ? ORDER BY job LIMIT ?";
    let mut statement = connection.prepare_cached(text)?;
    statement.query_map(params![name, from, count], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
}

struct Over {
    job: i64,
    queue: Box<str>,
    state: Option<JobState>,
    ended: i64,
}

/// Returns how many were deleted, at most `count`.
fn purge(tables: &mut JobTables, options: &SqliteStoreOptions, count: usize) -> Result<usize> {
    let kept = tables.counters.total(JobState::Completed) + tables.counters.total(JobState::Cancelled);
    let too_many = kept.saturating_sub(options.keep_completed_count_max);
    let keep = i64::try_from(options.keep_completed.as_millis()).unwrap_or(i64::MAX);
    let until = tables.now.0.saturating_sub(keep);
    // If there are not too many, only those that are old enough: usually none.
    let until_at_most = if too_many > 0 { i64::MAX } else { until };
    let mut purged = 0;
    for (place, over) in oldest(&tables.connection, until_at_most, count)?.into_iter().enumerate() {
        if over.ended > until && place as u64 >= too_many {
            break;
        }
        tables.forget(over.job)?;
        tables.counters.moved(&over.queue, over.state, None);
        purged += 1;
    }
    Ok(purged)
}

fn oldest(connection: &Connection, until: i64, count: usize) -> Result<Vec<Over>> {
    let text = "SELECT job, queue, state, ended FROM jobs INDEXED BY jobs_over \
                WHERE (state = 4 OR state = 5) AND ended <= ? ORDER BY ended LIMIT ?";
    let mut statement = connection.prepare_cached(text)?;
    let rows = statement.query_map(params![until, count], |row| {
        Ok(Over { job: row.get(0)?, queue: row.get(1)?, state: schema::state(row.get(2)?), ended: row.get(3)? })
    })?;
    rows.collect()
}
