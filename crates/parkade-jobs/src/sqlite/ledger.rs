//! A batch of commands in one transaction: all of them are durable, or none is; one that fails does not undo the others.

use std::collections::VecDeque;
use std::time::Instant;

use rusqlite::{Connection, Error};

use super::board::Submitted;
use super::chores::{self, Chores};
use super::lanes::Lanes;
use super::limits::{BATCH_COUNT_MAX, BATCH_TIME_MAX, PAGE_BYTES, RESERVED_PAGES_MIN};
use super::options::Options;
use super::running::Running;
use super::tally::{Changes, Tally};
use super::{changes, claim, end, enqueue, faults, reading};
use crate::{Command, Fault, Reply, State, Wall};

/// The file and what is known of it.
pub struct Ledger {
    pub connection: Connection,
    pub options: Options,
    pub tally: Tally,
    pub running: Running,
    pub lanes: Lanes,
    pub chores: Chores,
    /// Of the last command.
    pub now: Wall,
    /// Tried since it was opened; those that an injected fault may hit.
    commits: u64,
}

/// What a command has done to what is known, until it is committed.
struct Mark {
    changes: Changes,
    running: usize,
    chores: Chores,
}

/// Why a transaction is not committed.
enum Stop {
    /// A command has failed, or what belongs to all of them.
    Failed,
    /// As above, and SQLite has undone those before it.
    Undone { index: usize, fault: Fault },
    /// It was tried: none of them has happened.
    Refused(Fault),
}

impl Ledger {
    pub fn new(connection: Connection, options: Options) -> rusqlite::Result<Self> {
        let mut ledger = Self {
            tally: Tally::read(&connection)?,
            running: Running::default(),
            lanes: Lanes::default(),
            connection,
            options,
            chores: Chores::default(),
            now: Wall::default(),
            commits: 0,
        };
        ledger.rescue()?;
        Ok(ledger)
    }

    /// Jobs that ran when the last server ended are ready again, where they were in their queue, and their attempt has been one. One server has
    /// the file, so nobody runs them now.
    fn rescue(&mut self) -> rusqlite::Result<()> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        for run in Running::read(&self.connection)?.each() {
            let text = "UPDATE jobs SET attempt = ?, started = ? WHERE job = ?";
            self.connection.prepare_cached(text)?.execute((run.attempt, run.started.0, run.job))?;
        }
        self.connection.execute_batch("DELETE FROM claims; COMMIT")
    }

    pub fn has_chores(&self) -> bool {
        self.chores.is_pending()
    }

    /// Takes from the batch what it answers: at least one.
    pub fn carry_out(&mut self, batch: &mut VecDeque<Submitted>, replies: &mut Vec<Reply>) {
        let mut count = batch.len().min(BATCH_COUNT_MAX);
        let mut outcome = self.transaction(batch, count, replies, false);
        loop {
            match outcome {
                Ok(done) => {
                    batch.drain(..done);
                    return;
                }
                // Once more, each command so that it can be undone alone. That takes longer, and is rarely needed.
                Err(Stop::Failed) => {}
                Err(Stop::Undone { index: 0, fault }) => return refuse(batch, 1, &fault, replies),
                Err(Stop::Undone { index, .. }) => count = index,
                Err(Stop::Refused(fault)) => {
                    self.chores.rest();
                    return refuse(batch, count, &fault, replies);
                }
            }
            outcome = self.transaction(batch, count, replies, true);
        }
    }

    /// How many it has answered. `is_careful`: a command that fails is refused alone.
    fn transaction(
        &mut self,
        batch: &VecDeque<Submitted>,
        count: usize,
        replies: &mut Vec<Reply>,
        is_careful: bool,
    ) -> Result<usize, Stop> {
        let before = self.mark();
        replies.clear();
        let done = self.within(batch, count, replies, is_careful);
        if done.is_ok() {
            self.tally.committed();
            self.running.committed();
        } else {
            self.roll_back();
            self.back_to(before);
            replies.clear();
        }
        done
    }

    fn within(
        &mut self,
        batch: &VecDeque<Submitted>,
        count: usize,
        replies: &mut Vec<Reply>,
        is_careful: bool,
    ) -> Result<usize, Stop> {
        let refused = |error: Error| Stop::Refused(faults::of(&error));
        self.run("BEGIN IMMEDIATE").map_err(refused)?;
        let began = Instant::now();
        let mut done = 0;
        for (now, command) in batch.iter().take(count) {
            self.now = *now;
            let reply = if is_careful { self.carefully(done, command)? } else { self.quickly(command)? };
            replies.push(reply);
            done += 1;
            if began.elapsed() >= BATCH_TIME_MAX {
                break;
            }
        }
        if is_careful {
            self.chores.rest();
        } else if let Err(error) = chores::tidy(self, done) {
            return Err(if count == 0 { refused(error) } else { Stop::Failed });
        }
        self.write().and_then(|()| self.commit()).map_err(refused)?;
        Ok(done)
    }

    /// What is kept in memory and belongs to the transaction.
    fn write(&mut self) -> rusqlite::Result<()> {
        self.tally.write(&self.connection)?;
        self.running.write(&self.connection)
    }

    fn quickly(&mut self, command: &Command) -> Result<Reply, Stop> {
        self.obey(command).map_err(|_| Stop::Failed)
    }

    fn carefully(&mut self, index: usize, command: &Command) -> Result<Reply, Stop> {
        let refused = |error: Error| Stop::Refused(faults::of(&error));
        let mark = self.mark();
        self.run("SAVEPOINT command").map_err(refused)?;
        match self.obey(command) {
            Ok(reply) => {
                self.run("RELEASE command").map_err(refused)?;
                Ok(reply)
            }
            Err(error) => {
                let fault = faults::of(&error);
                // SQLite undoes a whole transaction by itself where it cannot undo a statement alone.
                if self.connection.is_autocommit() {
                    return Err(Stop::Undone { index, fault });
                }
                self.run("ROLLBACK TO command").and_then(|()| self.run("RELEASE command")).map_err(refused)?;
                self.back_to(mark);
                Ok(Reply::Refused { tag: command.tag(), fault })
            }
        }
    }

    fn obey(&mut self, command: &Command) -> rusqlite::Result<Reply> {
        match command {
            Command::Enqueue { tag, .. } | Command::Recur { tag, job: Some(_), .. } if self.is_full()? => {
                let why = "the file of the jobs is as large as it may be: raise its limit, or drop jobs";
                Ok(Reply::Refused { tag: *tag, fault: Fault::Full(why.into()) })
            }
            Command::Enqueue { tag, job } => enqueue::enqueue(self, *tag, job),
            Command::Claim { tag, count, limited } => claim::claim(self, *tag, *count, limited),
            Command::End { tag, job, attempt, verdict } => end::end(self, *tag, *job, *attempt, verdict),
            Command::Cancel { tag, job } => {
                changes::cancel(self, *job).map(|changed| Reply::Changed { tag: *tag, changed })
            }
            Command::Retry { tag, job } => {
                changes::retry(self, *job).map(|changed| Reply::Changed { tag: *tag, changed })
            }
            Command::Drop { tag, job } => {
                changes::drop(self, *job).map(|changed| Reply::Changed { tag: *tag, changed })
            }
            Command::Find { tag, job } => reading::find(self, *job).map(|job| Reply::Found { tag: *tag, job }),
            Command::List { tag, filter } => reading::list(self, filter).map(|jobs| Reply::Listed { tag: *tag, jobs }),
            Command::Count { tag } => reading::count(self).map(|counts| Reply::Counted { tag: *tag, counts }),
            Command::Recognise { tag, names } => {
                chores::recognise(self, names).map(|changed| Reply::Changed { tag: *tag, changed })
            }
            Command::Schedules { tag } => {
                reading::schedules(self).map(|schedules| Reply::Schedules { tag: *tag, schedules })
            }
            Command::Recur { tag, name, due, job } => {
                enqueue::recur(self, name, *due, job.as_ref()).map(|changed| Reply::Changed { tag: *tag, changed })
            }
        }
    }

    /// Some room is left for jobs that are there already: they go on, and end.
    fn is_full(&self) -> rusqlite::Result<bool> {
        let Some(bytes) = self.options.file_bytes_max else { return Ok(false) };
        let pragma = |text| self.connection.prepare_cached(text)?.query_row([], |row| row.get::<_, u64>(0));
        let used = pragma("PRAGMA page_count")? - pragma("PRAGMA freelist_count")?;
        let pages = bytes / PAGE_BYTES;
        Ok(used >= pages.saturating_sub(RESERVED_PAGES_MIN.max(pages / 16)))
    }

    fn commit(&mut self) -> rusqlite::Result<()> {
        self.commits += 1;
        if let Some(injected) = self.options.injected {
            std::thread::sleep(injected.delay);
            if injected.fail_every.is_some_and(|every| self.commits.is_multiple_of(u64::from(every.max(1)))) {
                let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR);
                return Err(Error::SqliteFailure(code, Some("an injected fault".to_owned())));
            }
        }
        self.run("COMMIT")
    }

    fn run(&self, text: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(text)?.execute([]).map(|_| ())
    }

    /// Fails only where SQLite has rolled back already.
    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            let _rolled_back = self.connection.execute_batch("ROLLBACK");
        }
    }

    fn mark(&self) -> Mark {
        Mark { changes: self.tally.mark(), running: self.running.mark(), chores: self.chores.clone() }
    }

    fn back_to(&mut self, mark: Mark) {
        self.tally.back_to(mark.changes);
        self.running.back_to(mark.running);
        self.lanes.forget();
        self.chores = mark.chores;
    }

    /// Behind a panic nothing that is remembered is believed.
    pub fn recover(&mut self) {
        self.roll_back();
        self.chores = Chores::default();
        self.lanes.forget();
        self.running.back_to(0);
        if let (Ok(tally), Ok(running)) = (Tally::read(&self.connection), Running::read(&self.connection)) {
            (self.tally, self.running) = (tally, running);
            for run in self.running.each() {
                self.tally.moved(&run.queue, Some(State::Ready), Some(State::Running));
            }
            self.tally.committed();
        }
    }

    /// What is in the log goes into the file; SQLite would do it too, but tells nobody when it cannot. The log is kept then, and nothing is lost.
    pub fn close(&self) {
        let _written = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
}

fn refuse(batch: &mut VecDeque<Submitted>, count: usize, fault: &Fault, replies: &mut Vec<Reply>) {
    replies.clear();
    replies
        .extend(batch.drain(..count).map(|(_, command)| Reply::Refused { tag: command.tag(), fault: fault.clone() }));
}
