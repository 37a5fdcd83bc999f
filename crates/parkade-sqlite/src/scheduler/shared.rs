//! The scheduler behind its lock, and the wake-ups after changes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parkade_sql::QueryEvent;

use super::slot::StatementCancelled;
use super::{Scheduler, Task};
use crate::limits::EVENTS_COUNT_MAX;
use crate::options::Options;

pub struct SharedScheduler {
    pub file: PathBuf,
    pub options: Options,
    /// Held while a connection is opened or closed. SQLite changes to WAL, and removes the log again, only if the
    /// connection has the file to itself; if two closed at the same time, each would assume that the other one stays.
    pub coming_and_going: Mutex<()>,
    scheduler: Mutex<Scheduler>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl SharedScheduler {
    pub fn new(file: PathBuf, options: Options, wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        let scheduler = Mutex::new(Scheduler::new(&options));
        Self { file, options, coming_and_going: Mutex::default(), scheduler, wake }
    }

    pub fn slot_count(&self) -> usize {
        self.options.readers + 1
    }

    /// Changes the scheduler. Wakes the owner if there are events now and there were none before.
    pub fn change<T>(&self, change: impl FnOnce(&mut Scheduler) -> T) -> T {
        let mut scheduler = self.lock();
        let had_said = scheduler.queries.has_said();
        let result = change(&mut scheduler);
        self.unlock(scheduler, had_said);
        result
    }

    /// The events since the last call; the rest of a long list with the next one.
    pub fn tell(&self, events: &mut Vec<QueryEvent>) {
        let mut scheduler = self.lock();
        scheduler.queries.take_said(EVENTS_COUNT_MAX, events);
        self.unlock(scheduler, false);
    }

    /// Waits for the next task of a thread.
    pub fn next(&self, index: usize) -> Task {
        let mut scheduler = self.lock();
        loop {
            if let Some(task) = scheduler.next(index) {
                return task;
            }
            scheduler.slot(index).sleep();
            scheduler = wait(scheduler, index);
            scheduler.slot(index).woke();
        }
    }

    /// Passes a piece on, once there is room for it.
    pub fn give(&self, index: usize, bytes: Bytes) -> Result<(), StatementCancelled> {
        let mut scheduler = self.lock();
        let room = loop {
            match scheduler.has_room(index) {
                Some(room) => break room,
                None => scheduler = wait(scheduler, index),
            }
        };
        room?;
        let had_said = scheduler.queries.has_said();
        scheduler.say_piece(index, bytes);
        self.unlock(scheduler, had_said);
        Ok(())
    }

    /// Wakes the owner, in case the last thread has ended.
    pub fn leave(&self) {
        self.change(Scheduler::leave);
        (self.wake)();
    }

    fn lock(&self) -> MutexGuard<'_, Scheduler> {
        self.scheduler.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Never wakes while holding the lock, which the woken thread may take at once.
    fn unlock(&self, scheduler: MutexGuard<'_, Scheduler>, had_said: bool) {
        let is_new = !had_said && scheduler.queries.has_said();
        drop(scheduler);
        if is_new {
            (self.wake)();
        }
    }
}

fn wait(scheduler: MutexGuard<'_, Scheduler>, index: usize) -> MutexGuard<'_, Scheduler> {
    let bell = scheduler.slots[index].bell();
    bell.wait(scheduler).unwrap_or_else(PoisonError::into_inner)
}
