//! What a thread reports to the scheduler while it runs a statement.

use bytes::Bytes;
use parkade_sql::{Query, QueryEnd, Summary};
use rusqlite::InterruptHandle;

use crate::failures::StopReason;
use crate::scheduler::{SharedScheduler, StatementCancelled, ThreadSlot};

/// The outcome of a statement: the end of its rows, and its summary.
pub type StatementResult = Result<(Bytes, Summary), StopReason>;

/// A thread's handle to its own slot.
#[derive(Clone, Copy)]
pub struct ThreadHandle<'a> {
    pub shared: &'a SharedScheduler,
    index: usize,
}

impl<'a> ThreadHandle<'a> {
    pub fn new(shared: &'a SharedScheduler, index: usize) -> Self {
        Self { shared, index }
    }

    /// Changes the slot.
    pub fn slot<T>(&self, change: impl FnOnce(&mut ThreadSlot) -> T) -> T {
        self.shared.change(|scheduler| change(scheduler.slot(self.index)))
    }

    /// Interrupts are allowed inside of `act`, and nowhere else.
    pub fn open<T>(&self, act: impl FnOnce() -> Result<T, StopReason>) -> Result<T, StopReason> {
        self.slot(ThreadSlot::open)?;
        self.shut_behind(act)
    }

    /// The same, and reports that the statement has started.
    pub fn start<T>(&self, act: impl FnOnce() -> Result<T, StopReason>) -> Result<T, StopReason> {
        self.shared.change(|scheduler| {
            scheduler.slot(self.index).open()?;
            scheduler.say_started(self.index);
            Ok::<(), StatementCancelled>(())
        })?;
        self.shut_behind(act)
    }

    fn shut_behind<T>(&self, act: impl FnOnce() -> Result<T, StopReason>) -> Result<T, StopReason> {
        let result = act();
        self.slot(ThreadSlot::shut);
        result
    }

    pub fn is_cancelled(&self) -> bool {
        self.slot(|slot| slot.is_cancelled())
    }

    pub fn say_started(&self) {
        self.shared.change(|scheduler| scheduler.say_started(self.index));
    }

    /// Passes rows on; waits while the owner has too many of them.
    pub fn give(&self, bytes: Bytes) -> Result<(), StopReason> {
        Ok(self.shared.give(self.index, bytes)?)
    }

    pub fn finish(&self, done: StatementResult) -> QueryEnd {
        self.shared.change(|scheduler| {
            let is_cancelled = scheduler.slot(self.index).is_cancelled();
            if !is_cancelled && matches!(done, Err(StopReason::Interrupted)) {
                scheduler.count_stray();
            }
            let (last, end) = match done {
                Ok((last, summary)) => (last, QueryEnd::Completed(summary)),
                Err(stop) => (Bytes::new(), stop.end(is_cancelled, self.shared.options.busy_timeout)),
            };
            scheduler.finish(self.index, last, end.clone());
            end
        })
    }

    /// The thread has opened its connection, or failed to.
    pub fn note_opened(&self, opened: Result<InterruptHandle, &StopReason>) {
        self.shared.change(|scheduler| scheduler.opened(self.index, opened));
    }

    /// Ends the query, and the transaction with it if there is one.
    pub fn finish_lease(&self, done: StatementResult) {
        self.finish(done);
        self.end_lease();
    }

    pub fn hand_over(&self, query: Query) {
        self.shared.change(|scheduler| scheduler.hand_over(self.index, query));
    }

    /// The transaction on this thread is over.
    pub fn end_lease(&self) {
        self.shared.change(|scheduler| scheduler.end_lease(self.index));
    }
}
