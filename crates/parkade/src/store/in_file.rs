//! Jobs in a file of the state folder: a thread writes it, and wakes the owner.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use mio::{Token, Waker};
use parkade_jobs::sqlite::{OpenError, SqliteStore, SqliteStoreOptions};
use parkade_jobs::{Command, Reply};

use super::wall;
use crate::poll::{NextTurn, PollSet, Pollable};

const THREAD: Token = Token(0);

pub struct InFile {
    sqlite: SqliteStore,
    poll: PollSet,
    spoke: Arc<AtomicBool>,
}

impl InFile {
    pub fn new(folder: &Path, options: SqliteStoreOptions) -> io::Result<Self> {
        let poll = PollSet::new(1)?;
        let waker = Waker::new(poll.registry(), THREAD)?;
        let spoke = Arc::new(AtomicBool::new(false));
        let speaks = Arc::clone(&spoke);
        let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
            speaks.store(true, Ordering::Release);
            // It fails only if the owner is gone.
            let _ = waker.wake();
        });
        let sqlite = SqliteStore::new(folder.to_owned(), options, wake);
        Ok(Self { sqlite, poll, spoke })
    }

    pub fn open(&mut self) -> Result<(), OpenError> {
        self.sqlite.open()
    }

    /// Does not wait for the disk.
    pub fn begin_to_open(&mut self) {
        self.sqlite.begin_to_open();
    }

    pub fn is_opening(&self) -> bool {
        self.sqlite.is_opening()
    }

    /// The outcome of opening; returned once.
    pub fn take_opened(&mut self) -> Option<Result<(), OpenError>> {
        self.sqlite.take_opened()
    }

    pub fn submit(&mut self, command: Command) {
        self.sqlite.submit(wall(), command);
    }

    pub fn turn(&mut self, replies: &mut Vec<Reply>) -> io::Result<()> {
        if !self.spoke.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        self.poll.take()?;
        self.sqlite.turn(replies);
        Ok(())
    }

    pub fn end(&mut self) {
        self.sqlite.end();
    }
}

impl Pollable for InFile {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ready = self.poll.poll_ready(cx);
        if ready.is_ready() {
            // The wake-up may arrive after its replies were taken: it is consumed too, otherwise it would be reported
            // for ever.
            self.spoke.store(true, Ordering::Release);
        }
        ready
    }

    fn next_turn(&self) -> NextTurn {
        if self.spoke.load(Ordering::Acquire) { NextTurn::AtOnce } else { NextTurn::WhenReady }
    }
}
