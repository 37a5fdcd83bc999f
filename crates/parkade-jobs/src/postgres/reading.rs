//! What people and programs look at.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use parkade_sql::Parameter;
use serde::Deserialize;

use super::flight::Carried;
use super::lanes::Waiting;
use super::limits::{COUNT_SHARE, LISTED_COUNT_MAX};
use super::rows::{self, array, text_or_null, uuid};
use super::store::{Counted, PostgresStore};
use super::texts;
use crate::{Command, Counts, Filter, Job, JobId, Reply, Schedule, State, Tag, Wall};

#[derive(Deserialize)]
struct Row {
    /// Of those that were asked for by their ids.
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
    state: State,
    attempt: u32,
    due: Option<i64>,
    started: Option<i64>,
    ended: Option<i64>,
    #[serde(default, deserialize_with = "rows::bytes")]
    result: Option<Bytes>,
    error: Option<Box<str>>,
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

impl Row {
    fn job(self, id: JobId) -> Job {
        Job {
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
        }
    }
}

impl PostgresStore {
    pub(super) fn find(&mut self, now: Instant, batch: Vec<Waiting>) {
        let ids = batch.iter().filter_map(|waiting| match &waiting.command {
            Command::Find { job, .. } => Some(uuid(*job)),
            _ => None,
        });
        let parameters = vec![array(ids)];
        self.launch(now, Carried::Find(batch), &texts::FIND, parameters);
    }

    pub(super) fn found(&mut self, batch: &[Waiting], rows: &[u8]) {
        let mut found: HashMap<usize, Row> = match rows::read::<Row>(rows) {
            Ok(rows) => rows.into_iter().map(|row| (rows::place(row.place), row)).collect(),
            Err(why) => return self.garbled(batch, &why),
        };
        for (place, waiting) in batch.iter().enumerate() {
            let Command::Find { tag, job } = waiting.command else { continue };
            let job = found.remove(&place).map(|row| Box::new(row.job(job)));
            self.answer(waiting, Reply::Found { tag, job });
        }
    }

    /// What the last count came to, where it took so long that it has to do for a while.
    pub(super) fn count_known(&self, now: Instant) -> Option<Counts> {
        self.counted.as_ref().filter(|counted| counted.until > now).map(|counted| counted.counts.clone())
    }

    pub(super) fn counted(
        &mut self,
        now: Instant,
        began: Instant,
        tag: Tag,
        rows: &[u8],
    ) -> Result<Reply, serde_json::Error> {
        let row = rows::read::<CountRow>(rows)?.into_iter().next();
        let counts = row.map_or_else(Counts::default, |row| Counts {
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
        let pause = now.saturating_duration_since(began).saturating_mul(COUNT_SHARE).min(self.options.pace.count);
        self.counted = Some(Counted { counts: counts.clone(), until: now + pause });
        Ok(Reply::Counted { tag, counts })
    }
}

pub fn list(filter: &Filter) -> (&'static Arc<str>, Vec<Parameter>) {
    let parameters = vec![
        text_or_null(filter.name.as_deref()),
        text_or_null(filter.queue.as_deref()),
        Parameter::Int(filter.count.min(LISTED_COUNT_MAX).into()),
    ];
    (texts::list_of(filter.state), parameters)
}

pub fn listed(tag: Tag, rows: &[u8]) -> Result<Reply, serde_json::Error> {
    let rows = rows::read::<Row>(rows)?;
    let jobs = rows.into_iter().filter_map(|row| row.id.map(|id| row.job(id))).collect();
    Ok(Reply::Listed { tag, jobs })
}

pub fn schedules(tag: Tag, rows: &[u8]) -> Result<Reply, serde_json::Error> {
    let rows = rows::read::<ScheduleRow>(rows)?;
    let schedules = rows.into_iter().map(|row| Schedule { name: row.name, last: Wall(row.last) }).collect();
    Ok(Reply::Schedules { tag, schedules })
}
