//! The state that commands work on: the file, and what is kept of it in memory.

use rusqlite::Connection;

use super::counters::{Changes, Counters};
use super::ready_index::ReadyIndex;
use super::running::RunningJobs;
use crate::{JobState, Wall};

pub struct JobTables {
    pub connection: Connection,
    pub counters: Counters,
    pub running: RunningJobs,
    pub ready: ReadyIndex,
    /// The owner's time when the command was submitted.
    pub now: Wall,
}

/// A mark in a transaction: what a command did after it can be undone in memory.
pub struct Mark {
    counters: Changes,
    running: usize,
}

impl JobTables {
    pub fn new(connection: Connection) -> rusqlite::Result<Self> {
        let counters = Counters::read(&connection)?;
        let tables = Self {
            connection,
            counters,
            running: RunningJobs::new(),
            ready: ReadyIndex::default(),
            now: Wall::default(),
        };
        tables.rescue()?;
        Ok(tables)
    }

    /// Makes jobs ready again that were running when the last server ended, at their old place in the queue; their
    /// attempt counts. Only one server at a time has the file, so nothing is running them now.
    fn rescue(&self) -> rusqlite::Result<()> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let running = RunningJobs::read(&self.connection)?;
        for run in running.each() {
            let text = "UPDATE jobs SET attempt = ?, started = ? WHERE job = ?";
            self.connection.prepare_cached(text)?.execute((run.attempt, run.started.0, run.job))?;
        }
        self.connection.execute_batch("DELETE FROM claims; COMMIT")?;
        let jobs = running.each().count();
        if jobs > 0 {
            tracing::warn!(jobs, "jobs were running when the last server ended; they are ready to run again");
        }
        Ok(())
    }

    /// Deletes all rows of a job.
    pub fn forget(&self, job: i64) -> rusqlite::Result<()> {
        for text in ["DELETE FROM jobs WHERE job = ?", "DELETE FROM bodies WHERE job = ?"] {
            self.connection.prepare_cached(text)?.execute([job])?;
        }
        Ok(())
    }

    /// Writes the data in memory that belongs to the transaction.
    pub fn write(&mut self) -> rusqlite::Result<()> {
        self.counters.write(&self.connection)?;
        self.running.write(&self.connection)
    }

    pub fn committed(&mut self) {
        self.counters.committed();
        self.running.committed();
    }

    pub fn mark(&self) -> Mark {
        Mark { counters: self.counters.mark(), running: self.running.mark() }
    }

    /// Undoes in memory what was done since the mark; SQLite has undone it in the file.
    pub fn back_to(&mut self, mark: Mark) {
        self.counters.back_to(mark.counters);
        self.running.back_to(mark.running);
        self.ready.forget();
    }

    /// Rolls the transaction back. This fails only if SQLite has done so by itself.
    pub fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            let _rolled_back = self.connection.execute_batch("ROLLBACK");
        }
    }

    /// Reloads everything after a panic: nothing in memory is trusted.
    pub fn recover(&mut self) {
        self.roll_back();
        self.ready.forget();
        self.running.back_to(0);
        if let (Ok(counters), Ok(running)) = (Counters::read(&self.connection), RunningJobs::read(&self.connection)) {
            self.counters = counters;
            self.running.replace(running);
            for run in self.running.each() {
                self.counters.moved(&run.queue, Some(JobState::Ready), Some(JobState::Running));
            }
            self.counters.committed();
        }
    }
}
