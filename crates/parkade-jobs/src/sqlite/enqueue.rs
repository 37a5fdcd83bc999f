//! Stores new jobs.

use rusqlite::{Connection, OptionalExtension, Result, params};

use super::limits::ARGUMENTS_BESIDE_BYTES_MAX;
use super::schema::number;
use super::schema::rank::rank;
use super::tables::JobTables;
use crate::{JobId, JobState, NewJob, Reply, Tag, Wall};

pub fn enqueue(tables: &mut JobTables, tag: Tag, new: &NewJob) -> Result<Reply> {
    let (job, due) = put(tables, new)?;
    Ok(Reply::Enqueued { tag, job, due })
}

/// Whether this command has stored it.
pub fn recur(tables: &mut JobTables, name: &str, due: Wall, new: Option<&NewJob>) -> Result<bool> {
    let text = "INSERT INTO schedules (name, last) VALUES (?, ?) \
                ON CONFLICT (name) DO UPDATE SET last = excluded.last WHERE excluded.last > last";
    let is_new = tables.connection.prepare_cached(text)?.execute(params![name, due.0])? > 0;
    if let (true, Some(new)) = (is_new, new) {
        put(tables, new)?;
    }
    Ok(is_new)
}

/// Its id, and when it will be ready if it is not.
fn put(tables: &mut JobTables, new: &NewJob) -> Result<(JobId, Option<Wall>)> {
    let due = new.due.filter(|due| *due > tables.now);
    let state = if due.is_some() { JobState::Scheduled } else { JobState::Ready };
    let rank = rank(due.unwrap_or(tables.now), new.priority);
    let is_beside = new.arguments.len() <= ARGUMENTS_BESIDE_BYTES_MAX;
    let text = "INSERT INTO jobs (id, name, queue, state, priority, attempt, rank, due, enqueued, key, arguments, request_id, traceparent) \
                VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO NOTHING";
    let traceparent = new.correlation.trace.map(|parent| parent.text());
    let inserted = tables.connection.prepare_cached(text)?.execute(params![
        new.id.bytes(),
        new.name,
        new.queue,
        number(state),
        new.priority,
        rank,
        new.due.map(|due| due.0),
        tables.now.0,
        new.key,
        is_beside.then_some(&*new.arguments),
        new.correlation.request_id(),
        traceparent.as_ref().and_then(|text| std::str::from_utf8(text).ok()),
    ])?;
    if inserted == 0 {
        return there(&tables.connection, new);
    }
    let job = tables.connection.last_insert_rowid();
    if !is_beside {
        let text = "INSERT INTO bodies (job, arguments) VALUES (?, ?)";
        tables.connection.prepare_cached(text)?.execute(params![job, &*new.arguments])?;
    }
    if state == JobState::Ready {
        tables.ready.offer_new(new, (rank, job));
    }
    tables.counters.moved(&new.queue, None, Some(state));
    Ok((new.id, due))
}

/// The existing job: the same one, enqueued a second time, or one with its key.
fn there(connection: &Connection, new: &NewJob) -> Result<(JobId, Option<Wall>)> {
    let by_id = "SELECT id, state, due FROM jobs WHERE id = ?";
    let by_key = "SELECT id, state, due FROM jobs WHERE name = ? AND key = ? AND state < 4";
    let found = |row: &rusqlite::Row<'_>| {
        let due: Option<i64> = row.get(2)?;
        let is_scheduled = row.get::<_, u8>(1)? == number(JobState::Scheduled);
        Ok((JobId::from_bytes(row.get(0)?), due.filter(|_| is_scheduled).map(Wall)))
    };
    match connection.prepare_cached(by_id)?.query_row([new.id.bytes()], found).optional()? {
        Some(found) => Ok(found),
        None => connection.prepare_cached(by_key)?.query_row(params![new.name, new.key], found),
    }
}
