//! The next ready jobs of each queue and priority: kept in memory, so that a claim need not search the file, nor read
//! the rows of jobs that were stored a moment ago.
//!
//! Ready jobs of one queue and priority form a list. Running jobs keep their place in the list's index until they end,
//! and are skipped.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Result, params};

use super::limits::{ARGUMENTS_BESIDE_BYTES_MAX, KNOWN_COUNT_MAX, LANE_COUNT_MAX};
use super::running::RunningJobs;
use crate::{Correlation, JobId, NewJob};

/// Rank and order of insertion: the lowest goes first.
pub type ReadyKey = (i64, i64);

const FIRST: ReadyKey = (i64::MIN, i64::MIN);
const LAST: ReadyKey = (i64::MAX, i64::MAX);

/// Loaded when they are first needed. From then on every list is here that has a job which could be claimed.
#[derive(Default)]
pub struct ReadyIndex {
    is_read: bool,
    queues: BTreeMap<Arc<str>, BTreeMap<i16, ReadyList>>,
    /// One reference for each known job.
    known: Arc<()>,
}

/// A job of this server that has never been claimed: what a claim needs of it.
pub struct KnownJob {
    pub id: JobId,
    pub name: Box<str>,
    pub arguments: Bytes,
    pub correlation: Correlation,
    _counted: Arc<()>,
}

pub struct ReadyList {
    /// A job that is not known is read when it is claimed.
    heads: BTreeMap<ReadyKey, Option<Box<KnownJob>>>,
    /// All claimable jobs up to this one are among the heads.
    until: ReadyKey,
    /// How many are read at once: twice as many each time, so that little is read in vain if there are many lists.
    chunk: usize,
}

impl ReadyIndex {
    /// The file has changed since it was read.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Loads the lists, if they are not known.
    pub fn read(&mut self, connection: &Connection) -> Result<()> {
        let text = "SELECT queue, priority FROM jobs INDEXED BY jobs_ready \
                    WHERE state = 1 AND (queue, priority) > (?1, ?2) ORDER BY queue, priority LIMIT 1";
        let mut last: (Arc<str>, i16) = ("".into(), i16::MIN);
        while !self.is_read {
            let mut statement = connection.prepare_cached(text)?;
            let found =
                statement.query_row(params![last.0, last.1], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            let Some((queue, priority)) = found else {
                self.is_read = true;
                break;
            };
            let ready = ReadyList { heads: BTreeMap::new(), until: FIRST, chunk: 1 };
            self.queues.entry(Arc::clone(&queue)).or_default().insert(priority, ready);
            last = (queue, priority);
        }
        Ok(())
    }

    /// Each queue with its lists.
    pub fn each(&mut self) -> impl Iterator<Item = (&Arc<str>, &mut BTreeMap<i16, ReadyList>)> {
        self.queues.iter_mut()
    }

    /// A job has become ready.
    pub fn offer(&mut self, queue: &str, priority: i16, head: ReadyKey) {
        self.put(queue, priority, head, || None);
    }

    /// A new job is ready.
    pub fn offer_new(&mut self, new: &NewJob, head: ReadyKey) {
        let known = Arc::clone(&self.known);
        let is_small = new.arguments.len() <= ARGUMENTS_BESIDE_BYTES_MAX;
        let has_room = is_small && Arc::strong_count(&known) <= KNOWN_COUNT_MAX;
        self.put(&new.queue, new.priority, head, || has_room.then(|| Box::new(KnownJob::of(new, known))));
    }

    fn put(&mut self, queue: &str, priority: i16, head: ReadyKey, known: impl FnOnce() -> Option<Box<KnownJob>>) {
        if !self.is_read {
            return;
        }
        if !self.queues.contains_key(queue) {
            self.queues.insert(queue.into(), BTreeMap::new());
        }
        let lists = self.queues.get_mut(queue).expect("it has been put there");
        // If this one is not here, no other job of its list can be claimed.
        let new = || ReadyList { heads: BTreeMap::new(), until: LAST, chunk: 1 };
        lists.entry(priority).or_insert_with(new).offer(head, known);
    }

    /// A job is no longer ready, without having been claimed.
    pub fn withdraw(&mut self, queue: &str, priority: i16, head: ReadyKey) {
        if let Some(list) = self.queues.get_mut(queue).and_then(|lists| lists.get_mut(&priority)) {
            list.heads.remove(&head);
        }
    }

    /// Removes lists that are empty.
    pub fn sweep(&mut self) {
        self.queues.retain(|_, lists| {
            lists.retain(|_, list| !list.heads.is_empty() || list.until < LAST);
            !lists.is_empty()
        });
    }
}

impl ReadyList {
    /// The jobs that could be claimed next, up to `count`.
    pub fn first(
        &mut self,
        connection: &Connection,
        running: &RunningJobs,
        of: (&str, i16),
        count: usize,
    ) -> Result<Option<ReadyKey>> {
        self.chunk = self.chunk.max(count.min(LANE_COUNT_MAX));
        while self.heads.is_empty() && self.until < LAST {
            self.read(connection, running, of)?;
        }
        Ok(self.heads.first_key_value().map(|(head, _)| *head))
    }

    /// What is known of that job.
    pub fn take_first(&mut self) -> Option<Box<KnownJob>> {
        self.heads.pop_first()?.1
    }

    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    fn read(&mut self, connection: &Connection, running: &RunningJobs, (queue, priority): (&str, i16)) -> Result<()> {
        let text = "SELECT rank, job FROM jobs INDEXED BY jobs_ready \
                    WHERE state = 1 AND queue = ?1 AND priority = ?2 AND (rank, job) > (?3, ?4) ORDER BY rank, job LIMIT ?5";
        let mut statement = connection.prepare_cached(text)?;
        let mut rows = statement.query(params![queue, priority, self.until.0, self.until.1, self.chunk])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            let head = (row.get(0)?, row.get(1)?);
            if !running.has(head.1) {
                self.heads.insert(head, None);
            }
            self.until = head;
            count += 1;
        }
        if count < self.chunk {
            self.until = LAST;
        }
        self.chunk = (self.chunk * 2).min(LANE_COUNT_MAX);
        Ok(())
    }

    fn offer(&mut self, head: ReadyKey, known: impl FnOnce() -> Option<Box<KnownJob>>) {
        if head <= self.until {
            self.heads.insert(head, known());
        }
        if self.heads.len() > 2 * LANE_COUNT_MAX {
            self.heads.pop_last();
            self.until = self.heads.last_key_value().map_or(FIRST, |(head, _)| *head);
        }
    }
}

impl KnownJob {
    /// In its own memory.
    fn of(new: &NewJob, counted: Arc<()>) -> Self {
        Self {
            id: new.id,
            name: new.name.clone(),
            arguments: Bytes::copy_from_slice(&new.arguments),
            correlation: new.correlation.clone(),
            _counted: counted,
        }
    }
}
