//! Claims the best ready jobs: the heads of the lists are merged, so that neither a million jobs nor the jobs of a
//! queue at its limit are searched.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::limits::{CLAIM_BYTES_MAX, CLAIM_COUNT_MAX, PROMOTED_COUNT_MAX};
use super::ready_index::{KnownJob, ReadyIndex, ReadyKey, ReadyList};
use super::running::{RunningJob, RunningJobs};
use super::schema::rank::rank;
use super::tables::JobTables;
use crate::cluster::ClaimId;
use crate::{Allowance, Claimed, Correlation, JobId, JobState, Reply, Tag, Wall};

pub fn claim(tables: &mut JobTables, tag: Tag, count: u32, limited: &[Allowance]) -> Result<Reply> {
    promote(tables)?;
    let count = count.min(CLAIM_COUNT_MAX) as usize;
    let mut jobs = Vec::new();
    let mut runs = Vec::new();
    let mut bytes = 0;
    let mut merge = Merge::begin(&tables.connection, &tables.running, &mut tables.ready, count, limited)?;
    while jobs.len() < count && bytes < CLAIM_BYTES_MAX {
        let Some(place) = merge.next()? else { break };
        let claim = tables.running.next_claim(runs.len());
        let ReadyPosition { queue, priority, head: (rank, job), known } = place;
        let claimed = match known {
            Some(known) => first_claim(*known, &queue, claim),
            None => read(&tables.connection, job, &queue, claim)?,
        };
        bytes += claimed.arguments.len();
        runs.push(RunningJob {
            id: claimed.id,
            job,
            queue,
            priority,
            rank,
            attempt: claimed.attempt,
            started: tables.now,
        });
        jobs.push(claimed);
    }
    let more = merge.has_more();
    tables.ready.sweep();
    for run in &runs {
        tables.counters.moved(&run.queue, Some(JobState::Ready), Some(JobState::Running));
    }
    tables.running.begin(runs);
    Ok(Reply::Claimed { tag, jobs, more, next: next_due(tables)? })
}

/// Makes scheduled jobs that are due ready, as of their due time.
fn promote(tables: &mut JobTables) -> Result<()> {
    if tables.counters.total(JobState::Scheduled) == 0 {
        return Ok(());
    }
    let due: Vec<(i64, Box<str>, i16, i64)> = {
        let text = "SELECT job, queue, priority, due FROM jobs INDEXED BY jobs_scheduled WHERE state = 0 AND due <= ? ORDER BY due, job LIMIT ?";
        let mut statement = tables.connection.prepare_cached(text)?;
        let rows = statement.query_map(params![tables.now.0, PROMOTED_COUNT_MAX], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?;
        rows.collect::<Result<_>>()?
    };
    for (job, queue, priority, due) in due {
        let rank = rank(Wall(due), priority);
        let text = "UPDATE jobs SET state = 1, rank = ? WHERE job = ?";
        tables.connection.prepare_cached(text)?.execute([rank, job])?;
        tables.ready.offer(&queue, priority, (rank, job));
        tables.counters.moved(&queue, Some(JobState::Scheduled), Some(JobState::Ready));
    }
    Ok(())
}

fn next_due(tables: &JobTables) -> Result<Option<Wall>> {
    if tables.counters.total(JobState::Scheduled) == 0 {
        return Ok(None);
    }
    let text = "SELECT due FROM jobs INDEXED BY jobs_scheduled WHERE state = 0 ORDER BY due LIMIT 1";
    tables.connection.prepare_cached(text)?.query_row([], |row| row.get(0).map(Wall)).optional()
}

/// The position of a ready job.
struct ReadyPosition {
    queue: Arc<str>,
    priority: i16,
    head: ReadyKey,
    known: Option<Box<KnownJob>>,
}

struct Merge<'a> {
    connection: &'a Connection,
    running: &'a RunningJobs,
    lists: Vec<AllowedList<'a>>,
    /// How many more may be claimed of each queue.
    allowed: Vec<u32>,
    heads: BinaryHeap<Reverse<(ReadyKey, usize)>>,
    /// How many jobs will probably be needed from each list.
    share: usize,
}

/// A list of a queue that is below its limit.
struct AllowedList<'a> {
    queue: &'a Arc<str>,
    /// Its index among these lists.
    number: usize,
    priority: i16,
    list: &'a mut ReadyList,
}

impl<'a> Merge<'a> {
    fn begin(
        connection: &'a Connection,
        running: &'a RunningJobs,
        ready: &'a mut ReadyIndex,
        count: usize,
        limited: &[Allowance],
    ) -> Result<Self> {
        ready.read(connection)?;
        let mut merge =
            Self { connection, running, lists: Vec::new(), allowed: Vec::new(), heads: BinaryHeap::new(), share: 1 };
        for (queue, lists) in ready.each() {
            let allowance = limited.iter().find(|allowance| *allowance.queue == **queue);
            let allowed = allowance.map_or(u32::MAX, |allowance| allowance.count);
            if allowed > 0 {
                let number = merge.allowed.len();
                merge.allowed.push(allowed);
                let open = |(priority, list): (&i16, &'a mut ReadyList)| AllowedList {
                    queue,
                    number,
                    priority: *priority,
                    list,
                };
                merge.lists.extend(lists.iter_mut().map(open));
            }
        }
        merge.share = (count / merge.lists.len().max(1)).max(1);
        for index in 0..merge.lists.len() {
            merge.offer(index)?;
        }
        Ok(merge)
    }

    /// Takes the best job of its list.
    fn next(&mut self) -> Result<Option<ReadyPosition>> {
        while let Some(Reverse((head, index))) = self.heads.pop() {
            let AllowedList { queue, number, priority, list } = &mut self.lists[index];
            if self.allowed[*number] > 0 {
                self.allowed[*number] -= 1;
                let known = list.take_first();
                let place = ReadyPosition { queue: Arc::clone(queue), priority: *priority, head, known };
                self.offer(index)?;
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    fn offer(&mut self, index: usize) -> Result<()> {
        let AllowedList { queue, number, priority, list } = &mut self.lists[index];
        if self.allowed[*number] > 0
            && let Some(head) = list.first(self.connection, self.running, (queue, *priority), self.share)?
        {
            self.heads.push(Reverse((head, index)));
        }
        Ok(())
    }

    /// The jobs of a queue at its limit need not be known.
    fn has_more(&self) -> bool {
        self.lists.iter().any(|open| self.allowed[open.number] > 0 && !open.list.is_empty())
    }
}

/// Of a job whose row says nothing else.
fn first_claim(known: KnownJob, queue: &str, claim: ClaimId) -> Claimed {
    let KnownJob { id, name, arguments, correlation, .. } = known;
    Claimed { id, name, queue: queue.into(), arguments, attempt: 1, claim, correlation }
}

fn read(connection: &Connection, job: i64, queue: &str, claim: ClaimId) -> Result<Claimed> {
    let text = "SELECT id, name, attempt, arguments, request_id, traceparent FROM jobs WHERE job = ?";
    let (mut claimed, is_beside) = connection.prepare_cached(text)?.query_row([job], |row| {
        let arguments = row.get_ref(3)?.as_blob_or_null()?;
        let claimed = Claimed {
            id: JobId::from_bytes(row.get(0)?),
            name: row.get(1)?,
            queue: queue.into(),
            arguments: arguments.map(Bytes::copy_from_slice).unwrap_or_default(),
            attempt: row.get::<_, u32>(2)? + 1,
            claim,
            correlation: correlation(row, 4)?,
        };
        Ok((claimed, arguments.is_some()))
    })?;
    if !is_beside {
        claimed.arguments = body(connection, job)?;
    }
    Ok(claimed)
}

/// The two columns from this one on.
pub fn correlation(row: &Row<'_>, from: usize) -> Result<Correlation> {
    let text = |index| row.get_ref(index)?.as_str_or_null().map_err(rusqlite::Error::from);
    Ok(Correlation::of_texts(text(from)?, text(from + 1)?))
}

/// Arguments that are stored in a separate row.
pub fn body(connection: &Connection, job: i64) -> Result<Bytes> {
    let mut statement = connection.prepare_cached("SELECT arguments FROM bodies WHERE job = ?")?;
    statement.query_row([job], |row| Ok(Bytes::copy_from_slice(row.get_ref(0)?.as_blob()?)))
}
