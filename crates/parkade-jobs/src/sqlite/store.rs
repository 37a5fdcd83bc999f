//! What the owner can ask of the store.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::board::Shared;
use super::ledger::Ledger;
use super::open::{self, OpenError};
use super::options::Options;
use super::thread;
use crate::{Command, Reply, Wall};

/// Jobs in a SQLite file, with the thread that writes it. It ends when it is dropped, as by [`end`](Self::end).
pub struct SqliteStore {
    folder: PathBuf,
    options: Options,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl SqliteStore {
    /// Opens nothing yet. `wake` is called, from any thread, when [`turn`](Self::turn) has something to tell.
    pub fn new(folder: PathBuf, options: Options, wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self { folder, options, shared: Arc::new(Shared::new(wake)), thread: None }
    }

    /// Opens `jobs.db` in the folder, or makes it. Jobs that ran when the last server ended are ready again. Called once; at most one store at
    /// a time has the file.
    pub fn open(&mut self) -> Result<(), OpenError> {
        let file = self.folder.join("jobs.db");
        let connection = open::open(&self.folder, &self.options)?;
        let mut ledger =
            Ledger::new(connection, self.options.clone()).map_err(|error| open::why(file.clone(), &error))?;
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new()
            .name("jobs".to_owned())
            .spawn(move || thread::run(&shared, &mut ledger))
            .map_err(|error| OpenError::Unreachable { file, why: format!("no thread can be started: {error}") })?;
        self.thread = Some(thread);
        self.shared.open();
        Ok(())
    }

    /// Every command is answered exactly once, in their order but for those that are refused at once.
    pub fn submit(&mut self, now: Wall, command: Command) {
        self.shared.submit(&self.options, (now, command));
    }

    /// Takes what has been answered since the last time.
    pub fn turn(&mut self, replies: &mut Vec<Reply>) {
        self.shared.take(replies);
    }

    /// Carries out what was submitted, and closes the file. Its answers can still be taken.
    pub fn end(&mut self) {
        self.shared.end();
        if let Some(thread) = self.thread.take() {
            // It catches its own panics.
            let _ended = thread.join();
        }
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.end();
    }
}
