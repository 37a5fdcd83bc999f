//! The board behind its lock, and who is woken when it has changed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parkade_sql::QueryEvent;

use super::slot::Rest;
use super::working::{Cancelled, Task};
use super::{Board, Limits};
use crate::database::Options;
use crate::limits::EVENTS_COUNT_MAX;

pub struct Shared {
    pub file: PathBuf,
    pub options: Options,
    /// Held while a connection is opened or closed. SQLite changes to WAL, and removes the log again, only for a connection that has
    /// the file to itself; of two that close at once, each would take the other for one that stays.
    pub coming_and_going: Mutex<()>,
    board: Mutex<Board>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Shared {
    pub fn new(file: PathBuf, options: Options, wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        let Options { readers, queue_count_max, window_bytes, .. } = options;
        let board = Board::new(Limits { readers, queue_count_max, window_bytes });
        Self { file, options, coming_and_going: Mutex::default(), board: Mutex::new(board), wake }
    }

    pub fn slot_count(&self) -> usize {
        self.options.readers + 1
    }

    /// Changes the board, and wakes the owner when there is something to tell where there was nothing.
    pub fn change<T>(&self, change: impl FnOnce(&mut Board) -> T) -> T {
        let mut board = self.lock();
        let had_said = !board.said.is_empty();
        let result = change(&mut board);
        self.unlock(board, had_said);
        result
    }

    /// What was said since the last time; the rest of a long list at the next.
    pub fn tell(&self, events: &mut Vec<QueryEvent>) {
        let mut board = self.lock();
        let count = board.said.len().min(EVENTS_COUNT_MAX);
        events.extend(board.said.drain(..count));
        self.unlock(board, false);
    }

    /// Waits for the next task of a thread.
    pub fn next(&self, index: usize) -> Task {
        let mut board = self.lock();
        loop {
            if let Some(task) = board.next(index) {
                return task;
            }
            board.slots[index].rest = Rest::Asleep;
            board = wait(board, index);
            board.slots[index].rest = Rest::Awake;
        }
    }

    /// Gives a piece away, once there is room for it.
    pub fn give(&self, index: usize, bytes: Bytes) -> Result<(), Cancelled> {
        let mut board = self.lock();
        let room = loop {
            match board.has_room(index) {
                Some(room) => break room,
                None => board = wait(board, index),
            }
        };
        room?;
        let had_said = !board.said.is_empty();
        board.say_piece(index, bytes);
        self.unlock(board, had_said);
        Ok(())
    }

    /// The last thread has ended, perhaps: the owner looks.
    pub fn leave(&self) {
        self.change(Board::leave);
        (self.wake)();
    }

    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Never wakes under the lock: whoever is woken may come straight for it.
    fn unlock(&self, board: MutexGuard<'_, Board>, had_said: bool) {
        let is_new = !had_said && !board.said.is_empty();
        drop(board);
        if is_new {
            (self.wake)();
        }
    }
}

fn wait(board: MutexGuard<'_, Board>, index: usize) -> MutexGuard<'_, Board> {
    let bell = Arc::clone(&board.slots[index].bell);
    bell.wait(board).unwrap_or_else(PoisonError::into_inner)
}
