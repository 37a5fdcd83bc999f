//! A batch of commands in one transaction: either all of them become durable or none; a command that fails does not
//! undo the others.

use std::collections::VecDeque;
use std::time::Instant;

use rusqlite::{Connection, Error};

use super::limits::{BATCH_COUNT_MAX, BATCH_TIME_MAX, PAGE_BYTES, RESERVED_PAGES_MIN, UNTIMED_COUNT};
use super::mailbox::Submitted;
use super::maintenance::Maintenance;
use super::options::SqliteStoreOptions;
use super::tables::{self, JobTables};
use super::{changes, claim, end, enqueue, faults, reading};
use crate::{Command, Fault, Reply};

pub struct JobDb {
    tables: JobTables,
    options: SqliteStoreOptions,
    maintenance: Maintenance,
    /// The number of commits since the file was opened; an injected fault affects some of them.
    commits: u64,
}

struct Savepoint {
    tables: tables::Mark,
    maintenance: Maintenance,
}

/// A transaction with the first commands of a batch.
struct BatchAttempt<'a> {
    batch: &'a VecDeque<Submitted>,
    count: usize,
    /// A command that fails is refused by itself.
    is_careful: bool,
}

/// Why a transaction is not committed.
enum RollbackReason {
    /// A command has failed, or maintenance for all of them.
    Failed,
    /// The same, and SQLite has also undone the commands before it.
    Undone { index: usize, fault: Fault },
    /// The commit failed: none of the commands was carried out.
    Refused(Fault),
}

impl JobDb {
    pub fn new(connection: Connection, options: SqliteStoreOptions) -> rusqlite::Result<Self> {
        Ok(Self { tables: JobTables::new(connection)?, options, maintenance: Maintenance::default(), commits: 0 })
    }

    pub fn needs_maintenance(&self) -> bool {
        self.maintenance.is_pending()
    }

    /// Carries out commands of the batch and removes them from it: at least one.
    pub fn carry_out(&mut self, batch: &mut VecDeque<Submitted>, replies: &mut Vec<Reply>) {
        let mut count = batch.len().min(BATCH_COUNT_MAX);
        let mut outcome = self.transaction(&BatchAttempt { batch, count, is_careful: false }, replies);
        loop {
            match outcome {
                Ok(done) => {
                    batch.drain(..done);
                    return;
                }
                // A second try, in which each command can be undone by itself. That takes longer, and is rarely needed.
                Err(RollbackReason::Failed) => {}
                Err(RollbackReason::Undone { index: 0, fault }) => return refuse(batch, 1, &fault, replies),
                Err(RollbackReason::Undone { index, .. }) => count = index,
                Err(RollbackReason::Refused(fault)) => {
                    self.maintenance.rest();
                    return refuse(batch, count, &fault, replies);
                }
            }
            outcome = self.transaction(&BatchAttempt { batch, count, is_careful: true }, replies);
        }
    }

    /// How many commands it has answered.
    fn transaction(&mut self, attempt: &BatchAttempt<'_>, replies: &mut Vec<Reply>) -> Result<usize, RollbackReason> {
        let before = self.mark();
        replies.clear();
        let done = self.within(attempt, replies);
        if done.is_ok() {
            self.tables.committed();
        } else {
            self.tables.roll_back();
            self.back_to(before);
            replies.clear();
        }
        done
    }

    fn within(&mut self, attempt: &BatchAttempt<'_>, replies: &mut Vec<Reply>) -> Result<usize, RollbackReason> {
        let &BatchAttempt { batch, count, is_careful } = attempt;
        let refused = |error: Error| RollbackReason::Refused(faults::of(&error));
        self.run("BEGIN IMMEDIATE").map_err(refused)?;
        let began = Instant::now();
        let mut done = 0;
        for (now, command) in batch.iter().take(count) {
            self.tables.now = *now;
            let reply = if is_careful { self.carefully(done, command)? } else { self.quickly(command)? };
            replies.push(reply);
            done += 1;
            if done.is_multiple_of(UNTIMED_COUNT) && began.elapsed() >= BATCH_TIME_MAX {
                break;
            }
        }
        if is_careful {
            self.maintenance.rest();
        } else if let Err(error) = self.maintenance.tidy(&mut self.tables, &self.options, done) {
            return Err(if count == 0 { refused(error) } else { RollbackReason::Failed });
        }
        self.tables.write().and_then(|()| self.commit()).map_err(refused)?;
        Ok(done)
    }

    fn quickly(&mut self, command: &Command) -> Result<Reply, RollbackReason> {
        self.obey(command).map_err(|_| RollbackReason::Failed)
    }

    fn carefully(&mut self, index: usize, command: &Command) -> Result<Reply, RollbackReason> {
        let refused = |error: Error| RollbackReason::Refused(faults::of(&error));
        let mark = self.mark();
        self.run("SAVEPOINT command").map_err(refused)?;
        match self.obey(command) {
            Ok(reply) => {
                self.run("RELEASE command").map_err(refused)?;
                Ok(reply)
            }
            Err(error) => {
                let fault = faults::of(&error);
                // SQLite rolls back the whole transaction by itself if it cannot undo a single statement.
                if self.tables.connection.is_autocommit() {
                    return Err(RollbackReason::Undone { index, fault });
                }
                self.run("ROLLBACK TO command").and_then(|()| self.run("RELEASE command")).map_err(refused)?;
                self.back_to(mark);
                Ok(Reply::Refused { tag: command.tag(), fault })
            }
        }
    }

    fn obey(&mut self, command: &Command) -> rusqlite::Result<Reply> {
        let is_full =
            matches!(command, Command::Enqueue { .. } | Command::Recur { job: Some(_), .. }) && self.is_full()?;
        let tables = &mut self.tables;
        let changed = |tag, changed: rusqlite::Result<bool>| changed.map(|changed| Reply::Changed { tag, changed });
        match command {
            Command::Enqueue { tag, .. } | Command::Recur { tag, .. } if is_full => {
                let why = "the job file has reached its size limit: raise the limit, or drop jobs";
                Ok(Reply::Refused { tag: *tag, fault: Fault::Full(why.into()) })
            }
            Command::Enqueue { tag, job } => enqueue::enqueue(tables, *tag, job),
            Command::Claim { tag, count, limited } => claim::claim(tables, *tag, *count, limited),
            Command::End { tag, job, claim, verdict, is_again } => {
                end::end(tables, *tag, *job, *claim, verdict, *is_again)
            }
            Command::Cancel { tag, job } => changed(*tag, changes::cancel(tables, *job)),
            Command::Retry { tag, job } => changed(*tag, changes::retry(tables, *job)),
            Command::Drop { tag, job } => changed(*tag, changes::drop(tables, *job)),
            Command::Find { tag, job } => reading::find(tables, *job).map(|job| Reply::Found { tag: *tag, job }),
            Command::List { tag, filter } => {
                reading::list(tables, filter).map(|jobs| Reply::Listed { tag: *tag, jobs })
            }
            Command::Count { tag } => reading::count(tables).map(|counts| Reply::Counted { tag: *tag, counts }),
            Command::Recognise { tag, names } => changed(*tag, self.maintenance.recognise(tables, names)),
            Command::Schedules { tag } => {
                reading::schedules(&tables.connection).map(|schedules| Reply::Schedules { tag: *tag, schedules })
            }
            Command::Recur { tag, name, due, job } => changed(*tag, enqueue::recur(tables, name, *due, job.as_ref())),
        }
    }

    /// Some room is left for existing jobs, so that they can continue and end.
    fn is_full(&self) -> rusqlite::Result<bool> {
        let Some(bytes) = self.options.file_bytes_max else { return Ok(false) };
        let pragma = |text| self.tables.connection.prepare_cached(text)?.query_row([], |row| row.get::<_, u64>(0));
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
        self.tables.connection.prepare_cached(text)?.execute([]).map(|_| ())
    }

    fn mark(&self) -> Savepoint {
        Savepoint { tables: self.tables.mark(), maintenance: self.maintenance.clone() }
    }

    fn back_to(&mut self, mark: Savepoint) {
        self.tables.back_to(mark.tables);
        self.maintenance = mark.maintenance;
    }

    /// Continues after a panic.
    pub fn recover(&mut self) {
        self.maintenance = Maintenance::default();
        self.tables.recover();
    }

    /// Writes the log into the file. SQLite would do it too, but does not report failures. If it fails, the log is
    /// kept, and nothing is lost.
    pub fn close(&self) {
        let _written = self.tables.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
}

fn refuse(batch: &mut VecDeque<Submitted>, count: usize, fault: &Fault, replies: &mut Vec<Reply>) {
    replies.clear();
    replies
        .extend(batch.drain(..count).map(|(_, command)| Reply::Refused { tag: command.tag(), fault: fault.clone() }));
}
