//! The loop of a thread: it takes the next piece of work, carries it out, and reports how it ended.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};

use parkade_sql::{Certainty, DatabaseWork, FailureKind, Query, QueryFailure, SlotState, TransactionMode};
use rusqlite::Connection;

use crate::failures::StopReason;
use crate::open;
use crate::scheduler::{Lane, QueuedWork, SharedScheduler, Task};
use crate::statement::{self, Rights};
use crate::thread_handle::{StatementResult, ThreadHandle};
use crate::{failures, transaction};

/// Runs until the database is ended.
pub fn run(shared: &SharedScheduler, index: usize) {
    let _leaving = Leaving(shared);
    let handle = ThreadHandle::new(shared, index);
    let (lane, stop) = handle.slot(|slot| {
        slot.introduce(std::thread::current());
        (slot.lane, Arc::clone(&slot.stop))
    });
    let mut thread = Thread { handle, lane, stop, connection: None, mode: TransactionMode::default() };
    loop {
        match shared.next(index) {
            Task::Work(item) => thread.serve(item),
            Task::RollBack => thread.roll_back(),
            Task::End => break,
        }
    }
    thread.disconnect();
}

struct Leaving<'a>(&'a SharedScheduler);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

struct Thread<'a> {
    handle: ThreadHandle<'a>,
    lane: Lane,
    stop: Arc<AtomicBool>,
    connection: Option<Connection>,
    /// The mode of the transaction that the thread holds.
    mode: TransactionMode,
}

impl Thread<'_> {
    /// A panic would be a bug here or in the binding. It ends the query and the connection, not the thread.
    fn serve(&mut self, item: QueuedWork) {
        if catch_unwind(AssertUnwindSafe(|| self.carry_out(item))).is_err() {
            self.disconnect();
            let message = "the thread has panicked while it ran: this is a bug";
            let failure =
                QueryFailure { certainty: Certainty::Unknown, ..QueryFailure::new(FailureKind::Lost, message) };
            self.handle.finish_lease(Err(failure.into()));
        }
    }

    fn carry_out(&mut self, item: QueuedWork) {
        if let Err(stop) = self.connect() {
            return self.handle.finish_lease(Err(stop));
        }
        match item.work {
            DatabaseWork::Alone(query) => self.alone(query),
            DatabaseWork::Begin { mode, .. } => self.begin(mode),
            DatabaseWork::Within { query, .. } => self.within(&query),
            DatabaseWork::Commit { .. } => self.commit(),
            DatabaseWork::Rollback { .. } => {
                self.handle.say_started();
                self.connection().map(transaction::roll_back);
                self.handle.finish_lease(Ok(transaction::summary("ROLLBACK")));
            }
        }
    }

    fn alone(&mut self, query: Query) {
        let rights = if self.lane == Lane::Reads { Rights::ReadOrHandOver } else { Rights::Write };
        match self.statement(&query, rights) {
            Err(StopReason::Writes) => self.handle.hand_over(query),
            done => {
                let end = self.handle.finish(done);
                // For a database in memory, the only connection is the database.
                if failures::is_of_the_file(&end) && self.handle.shared.options.readers > 0 {
                    self.disconnect();
                }
            }
        }
    }

    fn begin(&mut self, mode: TransactionMode) {
        self.mode = mode;
        let begun =
            self.handle.start(|| self.connection().map_or(Ok(()), |connection| transaction::begin(connection, mode)));
        match begun {
            Ok(()) => drop(self.handle.finish(Ok(transaction::summary("BEGIN")))),
            Err(stop) => self.handle.finish_lease(Err(stop)),
        }
    }

    fn within(&mut self, query: &Query) {
        let rights = if self.mode.is_read_only { Rights::ReadOnly } else { Rights::Write };
        let lasts = self.connection().map_or(Ok(()), transaction::lasts);
        let done = lasts.map_err(StopReason::from).and_then(|()| self.statement(query, rights));
        self.handle.finish(done);
    }

    /// Its fence stays shut: if a COMMIT were interrupted, its outcome would be unknown. The lease ends in any case:
    /// nothing follows a COMMIT.
    /// more is asked.
    fn commit(&mut self) {
        self.handle.say_started();
        let committed = self.connection().map_or(Ok(()), transaction::commit);
        self.handle.finish_lease(committed.map(|()| transaction::summary("COMMIT")));
    }

    fn roll_back(&mut self) {
        self.connection().map(transaction::roll_back);
        self.handle.end_lease();
    }

    fn statement(&self, query: &Query, rights: Rights) -> StatementResult {
        let connection = self.connection().expect("what is served has a connection");
        statement::run(connection, &self.handle, query, rights)
    }

    fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }

    fn connect(&mut self) -> Result<(), StopReason> {
        if self.connection.is_some() {
            return Ok(());
        }
        let shared = self.handle.shared;
        self.handle.slot(|slot| slot.turn_to(SlotState::Connecting));
        let opened = self.handle.open(|| open::open(shared, self.lane, &self.stop));
        self.handle.note_opened(opened.as_ref().map(Connection::get_interrupt_handle));
        self.connection = Some(opened?);
        Ok(())
    }

    /// The last connection that closes writes the log into the file and removes it. The writer does so even if another
    /// process keeps the file open.
    /// keeps the file open.
    fn disconnect(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let _alone = self.handle.shared.coming_and_going.lock().unwrap_or_else(PoisonError::into_inner);
        self.handle.slot(|slot| slot.connect(None));
        if self.lane == Lane::Writes {
            transaction::roll_back(&connection);
            let _written = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
        drop(connection);
    }
}
