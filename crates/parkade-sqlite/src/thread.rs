//! What a thread does: it takes the next piece of work, carries it out, and says how it ended.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use parkade_sql::{
    Availability, Certainty, DatabaseWork, FailureKind, Query, QueryEnd, QueryFailure, SlotState, Summary,
    TransactionMode,
};
use rusqlite::Connection;

use crate::board::{Cancelled, Item, Lane, Shared, Task};
use crate::failures::Stop;
use crate::open;
use crate::statement::{self, Rights};
use crate::{failures, transaction};

/// Until the database is ended.
pub fn run(shared: &Shared, index: usize) {
    let _leaving = Leaving(shared);
    let seat = Seat { shared, index };
    let (lane, stop) = shared.change(|board| {
        let slot = &mut board.slots[index];
        slot.introduce(std::thread::current());
        (slot.lane, Arc::clone(&slot.stop))
    });
    let mut thread = Thread { seat, lane, stop, connection: None, mode: TransactionMode::default() };
    loop {
        match shared.next(index) {
            Task::Work(item) => thread.serve(item),
            Task::RollBack => thread.roll_back(),
            Task::End => break,
        }
    }
    thread.disconnect();
}

struct Leaving<'a>(&'a Shared);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

struct Thread<'a> {
    seat: Seat<'a>,
    lane: Lane,
    stop: Arc<AtomicBool>,
    connection: Option<Connection>,
    /// Of the transaction that it holds.
    mode: TransactionMode,
}

type Done = Result<(Bytes, Summary), Stop>;

impl Thread<'_> {
    /// A panic would be a bug here or in the binding: it ends the query and the connection, not the thread.
    fn serve(&mut self, item: Item) {
        if catch_unwind(AssertUnwindSafe(|| self.carry_out(item))).is_err() {
            self.disconnect();
            let message = "the thread has panicked while it ran: this is a bug";
            let failure =
                QueryFailure { certainty: Certainty::Unknown, ..QueryFailure::new(FailureKind::Lost, message) };
            self.seat.finish_lease(Err(failure.into()));
        }
    }

    fn carry_out(&mut self, item: Item) {
        if let Err(stop) = self.connect() {
            return self.seat.finish_lease(Err(stop));
        }
        match item.work {
            DatabaseWork::Alone(query) => self.alone(query),
            DatabaseWork::Begin { mode, .. } => self.begin(mode),
            DatabaseWork::Within { query, .. } => self.within(&query),
            DatabaseWork::Commit { .. } => self.commit(),
            DatabaseWork::Rollback { .. } => {
                self.seat.say_started();
                self.connection().map(transaction::roll_back);
                self.seat.finish_lease(Ok(transaction::summary("ROLLBACK")));
            }
        }
    }

    fn alone(&mut self, query: Query) {
        let rights = if self.lane == Lane::Reads { Rights::ReadOrHandOver } else { Rights::Write };
        match self.statement(&query, rights) {
            Err(Stop::Writes) => self.seat.hand_over(query),
            done => {
                let end = self.seat.finish(done);
                // The only connection to a database in memory is that database.
                if failures::is_of_the_file(&end) && self.seat.shared.options.readers > 0 {
                    self.disconnect();
                }
            }
        }
    }

    fn begin(&mut self, mode: TransactionMode) {
        self.mode = mode;
        let begun =
            self.seat.start(|| self.connection().map_or(Ok(()), |connection| transaction::begin(connection, mode)));
        match begun {
            Ok(()) => drop(self.seat.finish(Ok(transaction::summary("BEGIN")))),
            Err(stop) => self.seat.finish_lease(Err(stop)),
        }
    }

    fn within(&mut self, query: &Query) {
        let rights = if self.mode.is_read_only { Rights::ReadOnly } else { Rights::Write };
        let lasts = self.connection().map_or(Ok(()), transaction::lasts);
        let done = lasts.map_err(Stop::from).and_then(|()| self.statement(query, rights));
        self.seat.finish(done);
    }

    /// Its gate stays shut: whether a COMMIT that is cut off has happened, nobody could say. It ends the lease in any case: whoever asked for it
    /// asks for nothing more.
    fn commit(&mut self) {
        self.seat.say_started();
        let committed = self.connection().map_or(Ok(()), transaction::commit);
        self.seat.finish_lease(committed.map(|()| transaction::summary("COMMIT")));
    }

    fn roll_back(&mut self) {
        self.connection().map(transaction::roll_back);
        self.seat.shared.change(|board| board.end_lease(self.seat.index));
    }

    fn statement(&self, query: &Query, rights: Rights) -> Done {
        let connection = self.connection().expect("what is served has a connection");
        statement::run(connection, &self.seat, query, rights)
    }

    fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }

    fn connect(&mut self) -> Result<(), Stop> {
        if self.connection.is_some() {
            return Ok(());
        }
        let Seat { shared, index } = self.seat;
        shared.change(|board| board.slots[index].turn_to(SlotState::Connecting));
        let opened = self.seat.open(|| open::open(shared, self.lane, &self.stop));
        shared.change(|board| match &opened {
            Ok(connection) => {
                board.counts.connects += 1;
                board.reach = Availability::Up;
                board.slots[index].connect(Some(connection.get_interrupt_handle()));
                board.slots[index].turn_to(SlotState::Busy);
            }
            Err(Stop::Failed(failure)) => {
                board.counts.connects_failed += 1;
                board.reach = Availability::Down { why: failure.message.to_string() };
            }
            Err(_) => board.counts.connects_failed += 1,
        });
        self.connection = Some(opened?);
        Ok(())
    }

    /// The last connection that closes writes the log into the file and removes it. The writer writes it even where another process
    /// keeps the file open.
    fn disconnect(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let _alone = self.seat.shared.coming_and_going.lock().unwrap_or_else(PoisonError::into_inner);
        self.seat.shared.change(|board| board.slots[self.seat.index].connect(None));
        if self.lane == Lane::Writes {
            transaction::roll_back(&connection);
            let _written = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
        drop(connection);
    }
}

/// A thread's place at the board.
#[derive(Clone, Copy)]
pub struct Seat<'a> {
    pub shared: &'a Shared,
    index: usize,
}

impl Seat<'_> {
    /// What happens inside may be interrupted; what happens outside never is.
    pub fn open<T>(&self, act: impl FnOnce() -> Result<T, Stop>) -> Result<T, Stop> {
        self.shared.change(|board| board.slots[self.index].open())?;
        self.shut_behind(act)
    }

    /// As [`open`](Self::open), and says that the database has it.
    pub fn start<T>(&self, act: impl FnOnce() -> Result<T, Stop>) -> Result<T, Stop> {
        self.shared.change(|board| {
            board.slots[self.index].open()?;
            board.say_started(self.index);
            Ok::<(), Cancelled>(())
        })?;
        self.shut_behind(act)
    }

    fn shut_behind<T>(&self, act: impl FnOnce() -> Result<T, Stop>) -> Result<T, Stop> {
        let result = act();
        self.shared.change(|board| board.slots[self.index].shut());
        result
    }

    pub fn is_cancelled(&self) -> bool {
        self.shared.change(|board| board.slots[self.index].is_cancelled())
    }

    fn say_started(&self) {
        self.shared.change(|board| board.say_started(self.index));
    }

    /// Gives rows away; waits while the owner has too many of them.
    pub fn give(&self, bytes: Bytes) -> Result<(), Stop> {
        Ok(self.shared.give(self.index, bytes)?)
    }

    fn finish(&self, done: Done) -> QueryEnd {
        self.shared.change(|board| {
            let is_cancelled = board.slots[self.index].is_cancelled();
            if !is_cancelled && matches!(done, Err(Stop::Interrupted)) {
                board.counts.strays += 1;
            }
            let (last, end) = match done {
                Ok((last, summary)) => (last, QueryEnd::Completed(summary)),
                Err(stop) => (Bytes::new(), stop.end(is_cancelled, self.shared.options.busy_timeout)),
            };
            board.finish(self.index, last, end.clone());
            end
        })
    }

    /// It was the last of its transaction, if it was in one.
    fn finish_lease(&self, done: Done) {
        self.finish(done);
        self.shared.change(|board| board.end_lease(self.index));
    }

    fn hand_over(&self, query: Query) {
        self.shared.change(|board| board.hand_over(self.index, query));
    }
}
