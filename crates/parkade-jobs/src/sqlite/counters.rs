//! How many jobs each queue has in each state: stored, since counting a million takes long, and written together with
//! each change.

use std::collections::BTreeMap;

use rusqlite::{Connection, Result, params};

use super::schema;
use crate::JobState;

type CounterRow = [i64; JobState::ALL.len()];

/// What a transaction has changed so far.
pub type Changes = BTreeMap<Box<str>, CounterRow>;

pub struct Counters {
    queues: BTreeMap<Box<str>, CounterRow>,
    /// Not committed yet.
    changes: Changes,
}

impl Counters {
    pub fn read(connection: &Connection) -> Result<Self> {
        let mut queues: BTreeMap<Box<str>, CounterRow> = BTreeMap::new();
        let mut statement = connection.prepare("SELECT queue, state, count FROM counts")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let queue: Box<str> = row.get(0)?;
            let number: u8 = row.get(1)?;
            if let Some(count) = queues.entry(queue).or_default().get_mut(usize::from(number)) {
                *count = row.get(2)?;
            }
        }
        Ok(Self { queues, changes: BTreeMap::new() })
    }

    /// A job was added (`from` nowhere), changed its state, or was removed.
    pub fn moved(&mut self, queue: &str, from: Option<JobState>, to: Option<JobState>) {
        for (state, by) in [(from, -1), (to, 1)] {
            if let Some(state) = state {
                add(&mut self.queues, queue, state, by);
                add(&mut self.changes, queue, state, by);
            }
        }
    }

    pub fn total(&self, state: JobState) -> u64 {
        self.queues.values().map(|row| count(row, state)).sum()
    }

    /// Each queue and the number of its scheduled and ready jobs.
    pub fn depths(&self) -> Vec<(Box<str>, u64)> {
        let depth = |row| count(row, JobState::Scheduled) + count(row, JobState::Ready);
        self.queues.iter().map(|(queue, row)| (queue.clone(), depth(row))).filter(|(_, depth)| *depth > 0).collect()
    }

    pub fn write(&self, connection: &Connection) -> Result<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let mut put =
            connection.prepare_cached("INSERT OR REPLACE INTO counts (queue, state, count) VALUES (?, ?, ?)")?;
        let mut forget = connection.prepare_cached("DELETE FROM counts WHERE queue = ? AND state = ?")?;
        for (queue, changes) in &self.changes {
            let (changes, counts) = (as_written(changes), self.queues.get(queue).map(as_written).unwrap_or_default());
            for number in (0..changes.len()).filter(|number| changes[*number] != 0) {
                let count = counts[number];
                if count == 0 {
                    forget.execute(params![queue, number])?;
                } else {
                    put.execute(params![queue, number, count])?;
                }
            }
        }
        Ok(())
    }

    pub fn committed(&mut self) {
        self.changes.clear();
        self.queues.retain(|_, row| row.iter().any(|count| *count != 0));
    }

    pub fn mark(&self) -> Changes {
        self.changes.clone()
    }

    /// Undoes all changes since the mark.
    pub fn back_to(&mut self, mark: Changes) {
        for (queue, row) in &self.changes {
            let kept = mark.get(queue).copied().unwrap_or_default();
            if let Some(counts) = self.queues.get_mut(queue) {
                for number in 0..row.len() {
                    counts[number] -= row[number] - kept[number];
                }
            }
        }
        self.changes = mark;
    }
}

/// In the file, running jobs are ready ones.
fn as_written(row: &CounterRow) -> CounterRow {
    let [ready, running] = [JobState::Ready, JobState::Running].map(|state| usize::from(schema::number(state)));
    let mut written = *row;
    written[ready] += std::mem::take(&mut written[running]);
    written
}

fn add(rows: &mut BTreeMap<Box<str>, CounterRow>, queue: &str, state: JobState, by: i64) {
    let number = usize::from(schema::number(state));
    match rows.get_mut(queue) {
        Some(row) => row[number] += by,
        None => rows.entry(queue.into()).or_default()[number] = by,
    }
}

fn count(row: &CounterRow, state: JobState) -> u64 {
    u64::try_from(row[usize::from(schema::number(state))]).unwrap_or(0)
}
