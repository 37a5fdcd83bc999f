//! Queries of people and programs.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::claim;
use super::counters::Counters;
use super::limits::{LISTED_COUNT_MAX, SCANNED_COUNT_MAX, SORTED_COUNT_MAX};
use super::running::{RunningJob, RunningJobs};
use super::schema::{self, rank::ready_since};
use super::tables::JobTables;
use crate::{Filter, JobCounts, JobId, JobRecord, JobState, ScheduleProgress, Wall};

const COLUMNS: &str = "job, id, name, queue, key, priority, state, attempt, enqueued, due, started, ended, error, arguments, result, \
     request_id, traceparent";

pub fn find(tables: &JobTables, id: JobId) -> Result<Option<Box<JobRecord>>> {
    let text = format!("SELECT {COLUMNS} FROM jobs WHERE id = ?");
    let mut statement = tables.connection.prepare_cached(&text)?;
    let found = statement.query_row([id.bytes()], |row| {
        let bytes =
            |index| -> Result<Option<Bytes>> { Ok(row.get_ref(index)?.as_blob_or_null()?.map(Bytes::copy_from_slice)) };
        Ok((row.get(0)?, read(&tables.running, row)?, bytes(13)?, bytes(14)?))
    });
    let Some((row, job, arguments, result)) = found.optional()? else { return Ok(None) };
    let arguments = arguments.map_or_else(|| claim::body(&tables.connection, row), Ok)?;
    Ok(Some(Box::new(JobRecord { arguments, result, ..job })))
}

/// Newest first, without arguments and results.
pub fn list(tables: &JobTables, filter: &Filter) -> Result<Vec<JobRecord>> {
    let count = filter.count.min(LISTED_COUNT_MAX) as usize;
    if filter.state == Some(JobState::Running) {
        return list_running(tables, filter, count);
    }
    let text = format!(
        "{} AND (?1 IS NULL OR name = ?1) AND (?2 IS NULL OR queue = ?2) ORDER BY job DESC",
        candidates(&tables.counters, filter)
    );
    let mut statement = tables.connection.prepare_cached(&text)?;
    let mut rows = statement.query(params![filter.name, filter.queue])?;
    let mut jobs = Vec::new();
    while jobs.len() < count
        && let Some(row) = rows.next()?
    {
        let job = read(&tables.running, row)?;
        if filter.state.is_none_or(|state| state == job.state) {
            jobs.push(job);
        }
    }
    Ok(jobs)
}

fn list_running(tables: &JobTables, filter: &Filter, count: usize) -> Result<Vec<JobRecord>> {
    let text = format!("SELECT {COLUMNS} FROM jobs WHERE job = ?1 AND (?2 IS NULL OR name = ?2)");
    let mut statement = tables.connection.prepare_cached(&text)?;
    let of_queue = |run: &&RunningJob| filter.queue.as_ref().is_none_or(|queue| **queue == *run.queue);
    let runs = tables.running.each().rev().filter(of_queue).take(SCANNED_COUNT_MAX as usize);
    let jobs =
        runs.map(|run| statement.query_row(params![run.job, filter.name], |row| read(&tables.running, row)).optional());
    jobs.filter_map(Result::transpose).take(count).collect()
}

/// All jobs of a rare state, by its index; otherwise the newest of all states, so that no list takes long.
fn candidates(counters: &Counters, filter: &Filter) -> String {
    let total = |state| counters.total(state);
    let written = |state| total(state) + if state == JobState::Ready { total(JobState::Running) } else { 0 };
    let of_state = |state| format!("state = {}", schema::number(state));
    match filter.state {
        Some(state) if written(state) <= SORTED_COUNT_MAX => {
            format!("SELECT {COLUMNS} FROM jobs INDEXED BY {} WHERE {}", schema::index(state), of_state(state))
        }
        state => format!(
            "SELECT {COLUMNS} FROM (SELECT * FROM jobs NOT INDEXED ORDER BY job DESC LIMIT {SCANNED_COUNT_MAX}) WHERE {}",
            state.map_or_else(|| "TRUE".to_owned(), of_state)
        ),
    }
}

pub fn count(tables: &mut JobTables) -> Result<JobCounts> {
    let oldest = oldest(tables)?;
    let total = |state| tables.counters.total(state);
    Ok(JobCounts {
        scheduled: total(JobState::Scheduled),
        ready: total(JobState::Ready),
        running: total(JobState::Running),
        completed: total(JobState::Completed),
        dead: total(JobState::Dead),
        cancelled: total(JobState::Cancelled),
        unknown: total(JobState::Unknown),
        oldest_ready: oldest,
        queues: tables.counters.depths(),
    })
}

/// In a list the first is the oldest.
fn oldest(tables: &mut JobTables) -> Result<Option<Wall>> {
    tables.ready.read(&tables.connection)?;
    let mut oldest = None;
    for (queue, lists) in tables.ready.each() {
        for (priority, list) in lists {
            if let Some((rank, _)) = list.first(&tables.connection, &tables.running, (queue, *priority), 1)? {
                let ready = ready_since(rank, *priority);
                oldest = Some(oldest.map_or(ready, |oldest: Wall| oldest.min(ready)));
            }
        }
    }
    Ok(oldest)
}

pub fn schedules(connection: &Connection) -> Result<Vec<ScheduleProgress>> {
    let mut statement = connection.prepare_cached("SELECT name, last FROM schedules ORDER BY name")?;
    statement.query_map([], |row| Ok(ScheduleProgress { name: row.get(0)?, last: Wall(row.get(1)?) }))?.collect()
}

/// Without its arguments and its result.
fn read(running: &RunningJobs, row: &Row<'_>) -> Result<JobRecord> {
    let moment = |index| row.get::<_, Option<i64>>(index).map(|ms| ms.map(Wall));
    let job = JobRecord {
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
        error: row.get(12)?,
        correlation: claim::correlation(row, 15)?,
    };
    Ok(match running.of(row.get(0)?) {
        Some(run) => JobRecord { state: JobState::Running, attempt: run.attempt, started: Some(run.started), ..job },
        None => job,
    })
}
