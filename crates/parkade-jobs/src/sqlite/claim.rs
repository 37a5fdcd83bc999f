//! The best of what is ready: the heads of the queues are merged, so that neither a million jobs nor a queue that may not run any are looked at.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use bytes::Bytes;
use rusqlite::{OptionalExtension, Result, params};

use super::ledger::Ledger;
use super::limits::{CLAIM_BYTES_MAX, CLAIM_COUNT_MAX, PROMOTED_COUNT_MAX};
use crate::{Allowance, Claimed, JobId, Reply, State, Tag, Wall};

pub fn claim(ledger: &mut Ledger, tag: Tag, count: u32, limited: &[Allowance]) -> Result<Reply> {
    promote(ledger)?;
    let mut lanes = lanes(ledger, limited);
    let mut jobs = Vec::new();
    let mut bytes = 0;
    let mut merge = Merge::begin(ledger, &mut lanes, count.min(CLAIM_COUNT_MAX))?;
    while jobs.len() < count.min(CLAIM_COUNT_MAX) as usize && bytes < CLAIM_BYTES_MAX {
        let Some(job) = merge.next(ledger)? else { break };
        let claimed = take(ledger, job)?;
        bytes += claimed.arguments.len();
        jobs.push(claimed);
    }
    // Of a queue that may run no more nobody needs to know.
    let more = lanes.iter().any(|lane| lane.ready > 0 && lane.allowed > 0);
    Ok(Reply::Claimed { tag, jobs, more, next: next_due(ledger)? })
}

/// Those that are due become ready, as of the moment at which they were.
fn promote(ledger: &mut Ledger) -> Result<()> {
    if ledger.tally.total(State::Scheduled) == 0 {
        return Ok(());
    }
    let due: Vec<(i64, Box<str>)> = {
        let text = "SELECT job, queue FROM jobs INDEXED BY jobs_scheduled WHERE state = 0 AND due <= ? ORDER BY due, job LIMIT ?";
        let mut statement = ledger.connection.prepare_cached(text)?;
        let rows =
            statement.query_map(params![ledger.now.0, PROMOTED_COUNT_MAX], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<Result<_>>()?
    };
    for (job, queue) in due {
        let text = "UPDATE jobs SET state = 1, rank = due - priority * 30000 WHERE job = ?";
        ledger.connection.prepare_cached(text)?.execute([job])?;
        ledger.tally.moved(&queue, Some(State::Scheduled), Some(State::Ready));
    }
    Ok(())
}

fn next_due(ledger: &Ledger) -> Result<Option<Wall>> {
    if ledger.tally.total(State::Scheduled) == 0 {
        return Ok(None);
    }
    let text = "SELECT due FROM jobs INDEXED BY jobs_scheduled WHERE state = 0 ORDER BY due LIMIT 1";
    ledger.connection.prepare_cached(text)?.query_row([], |row| row.get(0).map(Wall)).optional()
}

/// A queue that has ready jobs.
struct Lane {
    queue: Box<str>,
    ready: u64,
    /// How many more may be claimed.
    allowed: u64,
    /// The next of them, best first.
    heads: VecDeque<Head>,
    last: Option<Head>,
    /// How many are read at once: twice as many each time, so that of many queues little is read in vain.
    chunk: usize,
}

/// Rank and insertion: the lower goes first.
type Head = (i64, i64);

fn lanes(ledger: &Ledger, limited: &[Allowance]) -> Vec<Lane> {
    let lane = |(queue, ready): (&str, u64)| {
        let allowance = limited.iter().find(|allowance| &*allowance.queue == queue);
        let allowed = allowance.map_or(u64::MAX, |allowance| u64::from(allowance.count));
        Lane { queue: queue.into(), ready, allowed, heads: VecDeque::new(), last: None, chunk: 1 }
    };
    ledger.tally.ready().map(lane).filter(|lane| lane.allowed > 0).collect()
}

struct Merge<'a> {
    lanes: &'a mut [Lane],
    heads: BinaryHeap<Reverse<(Head, usize)>>,
}

impl<'a> Merge<'a> {
    fn begin(ledger: &Ledger, lanes: &'a mut [Lane], count: u32) -> Result<Self> {
        let chunk = (count as usize / lanes.len().max(1)).max(1);
        let mut merge = Self { lanes, heads: BinaryHeap::new() };
        if count > 0 {
            for index in 0..merge.lanes.len() {
                merge.lanes[index].chunk = chunk;
                merge.offer(ledger, index)?;
            }
        }
        Ok(merge)
    }

    fn next(&mut self, ledger: &Ledger) -> Result<Option<i64>> {
        let Some(Reverse(((_, job), index))) = self.heads.pop() else { return Ok(None) };
        let lane = &mut self.lanes[index];
        lane.ready = lane.ready.saturating_sub(1);
        lane.allowed -= 1;
        self.offer(ledger, index)?;
        Ok(Some(job))
    }

    fn offer(&mut self, ledger: &Ledger, index: usize) -> Result<()> {
        let lane = &mut self.lanes[index];
        if lane.allowed > 0
            && let Some(head) = lane.head(ledger)?
        {
            self.heads.push(Reverse((head, index)));
        }
        Ok(())
    }
}

impl Lane {
    fn head(&mut self, ledger: &Ledger) -> Result<Option<Head>> {
        if self.heads.is_empty() && self.ready > 0 {
            let text = "SELECT rank, job FROM jobs INDEXED BY jobs_ready \
                        WHERE state = 1 AND queue = ?1 AND (rank, job) > (?2, ?3) ORDER BY rank, job LIMIT ?4";
            let (rank, job) = self.last.unwrap_or((i64::MIN, i64::MIN));
            let mut statement = ledger.connection.prepare_cached(text)?;
            let found = statement
                .query_map(params![self.queue, rank, job, self.chunk], |row| Ok((row.get(0)?, row.get(1)?)))?;
            self.heads = found.collect::<Result<_>>()?;
            self.last = self.heads.back().copied();
            if self.heads.is_empty() {
                // Were the tally ever wrong, `more` would let the owner ask without end.
                self.ready = 0;
            }
            self.chunk *= 2;
        }
        Ok(self.heads.pop_front())
    }
}

fn take(ledger: &mut Ledger, job: i64) -> Result<Claimed> {
    let arguments = {
        let mut statement = ledger.connection.prepare_cached("SELECT arguments FROM bodies WHERE job = ?")?;
        statement.query_row([job], |row| Ok(Bytes::copy_from_slice(row.get_ref(0)?.as_blob()?)))?
    };
    let text = "UPDATE jobs SET state = 2, attempt = attempt + 1, started = ?2 WHERE job = ?1 RETURNING id, name, queue, attempt";
    let claimed = ledger.connection.prepare_cached(text)?.query_row(params![job, ledger.now.0], |row| {
        let id = JobId::from_bytes(row.get(0)?);
        Ok(Claimed { id, name: row.get(1)?, queue: row.get(2)?, arguments, attempt: row.get(3)? })
    })?;
    ledger.tally.moved(&claimed.queue, Some(State::Ready), Some(State::Running));
    Ok(claimed)
}
