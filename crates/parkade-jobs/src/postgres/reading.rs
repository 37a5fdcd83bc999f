//! Queries of people and programs.

use std::collections::HashMap;

use bytes::Bytes;
use parkade_sql::Parameter;
use serde::Deserialize;

use super::command_queue::PendingCommand;
use super::limits::LISTED_COUNT_MAX;
use super::rows::{self, array, first, text_or_null, uuid};
use super::statement::StoreStatement;
use super::texts;
use crate::{Command, Correlation, Filter, JobCounts, JobId, JobRecord, JobState, Reply, ScheduleProgress, Tag, Wall};

#[derive(Deserialize)]
struct JobRow {
    /// Jobs that were requested by their ids.
    #[serde(default)]
    place: usize,
    #[serde(default, deserialize_with = "rows::id_or_none")]
    id: Option<JobId>,
    name: Box<str>,
    queue: Box<str>,
    key: Option<Box<str>>,
    priority: i16,
    #[serde(default, deserialize_with = "rows::bytes")]
    arguments: Option<Bytes>,
    enqueued: i64,
    #[serde(deserialize_with = "rows::state")]
    state: JobState,
    attempt: u32,
    due: Option<i64>,
    started: Option<i64>,
    ended: Option<i64>,
    #[serde(default, deserialize_with = "rows::bytes")]
    result: Option<Bytes>,
    error: Option<Box<str>>,
    request_id: Option<Box<str>>,
    traceparent: Option<Box<str>>,
}

#[derive(Deserialize)]
struct CountRow {
    scheduled: u64,
    ready: u64,
    running: u64,
    completed: u64,
    dead: u64,
    cancelled: u64,
    unknown: u64,
    oldest: Option<i64>,
    queues: Vec<(Box<str>, u64)>,
}

#[derive(Deserialize)]
struct ScheduleRow {
    name: Box<str>,
    last: i64,
}

impl JobRow {
    fn job(self, id: JobId) -> JobRecord {
        JobRecord {
            id,
            name: self.name,
            queue: self.queue,
            key: self.key,
            priority: self.priority,
            state: self.state,
            attempt: self.attempt,
            arguments: self.arguments.unwrap_or_default(),
            enqueued: Wall(self.enqueued),
            due: self.due.map(Wall),
            started: self.started.map(Wall),
            ended: self.ended.map(Wall),
            result: self.result,
            error: self.error,
            correlation: Correlation::of_texts(self.request_id.as_deref(), self.traceparent.as_deref()),
        }
    }
}

pub fn prepare_find(batch: &[PendingCommand]) -> StoreStatement {
    let ids = batch.iter().filter_map(|waiting| match &waiting.command {
        Command::Find { job, .. } => Some(uuid(*job)),
        _ => None,
    });
    StoreStatement::new(&texts::FIND, vec![array(ids)])
}

/// A reply for each command of the batch.
pub fn read_found(rows: &[u8], batch: &[PendingCommand]) -> Result<Vec<Reply>, serde_json::Error> {
    let mut found: HashMap<usize, JobRow> =
        rows::read::<JobRow>(rows)?.into_iter().map(|row| (rows::place(row.place), row)).collect();
    let reply = |(place, waiting): (usize, &PendingCommand)| match waiting.command {
        Command::Find { tag, job } => {
            Some(Reply::Found { tag, job: found.remove(&place).map(|row| Box::new(row.job(job))) })
        }
        _ => None,
    };
    Ok(batch.iter().enumerate().filter_map(reply).collect())
}

pub fn read_counts(rows: &[u8]) -> Result<JobCounts, serde_json::Error> {
    let counts = first::<CountRow>(rows)?.map(|row| JobCounts {
        scheduled: row.scheduled,
        ready: row.ready,
        running: row.running,
        completed: row.completed,
        dead: row.dead,
        cancelled: row.cancelled,
        unknown: row.unknown,
        oldest_ready: row.oldest.map(Wall),
        queues: row.queues,
    });
    Ok(counts.unwrap_or_default())
}

pub fn prepare_list(filter: &Filter) -> StoreStatement {
    let parameters = vec![
        text_or_null(filter.name.as_deref()),
        text_or_null(filter.queue.as_deref()),
        Parameter::Int(filter.count.min(LISTED_COUNT_MAX).into()),
    ];
    StoreStatement::new(texts::list_of(filter.state), parameters)
}

pub fn read_list(tag: Tag, rows: &[u8]) -> Result<Reply, serde_json::Error> {
    let rows = rows::read::<JobRow>(rows)?;
    let jobs = rows.into_iter().filter_map(|row| row.id.map(|id| row.job(id))).collect();
    Ok(Reply::Listed { tag, jobs })
}

pub fn read_schedules(tag: Tag, rows: &[u8]) -> Result<Reply, serde_json::Error> {
    let rows = rows::read::<ScheduleRow>(rows)?;
    let schedules = rows.into_iter().map(|row| ScheduleProgress { name: row.name, last: Wall(row.last) }).collect();
    Ok(Reply::Schedules { tag, schedules })
}
