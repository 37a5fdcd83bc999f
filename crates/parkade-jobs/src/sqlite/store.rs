//! The interface of the store for its owner.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::JoinHandle;

use super::job_db::JobDb;
use super::mailbox::Mailbox;
use super::open::{self, OpenError};
use super::options::SqliteStoreOptions;
use super::thread;
use crate::{Command, Fault, Reply, Wall};

const FILE: &str = "jobs.db";

/// Jobs in a SQLite file, with the thread that writes it. Dropping it ends it, like [`end`](Self::end).
pub struct SqliteStore {
    folder: PathBuf,
    options: SqliteStoreOptions,
    mailbox: Arc<Mailbox>,
    thread: Option<JoinHandle<()>>,
    opening: Option<Opening>,
}

/// The thread that opens the file, and then writes it.
struct Opening {
    thread: JoinHandle<()>,
    opened: Receiver<Result<(), OpenError>>,
}

impl SqliteStore {
    /// Opens nothing yet. `wake` is called, from any thread, when [`turn`](Self::turn) or
    /// [`take_opened`](Self::take_opened) has something to return.
    pub fn new(folder: PathBuf, options: SqliteStoreOptions, wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self { folder, options, mailbox: Arc::new(Mailbox::new(wake)), thread: None, opening: None }
    }

    /// Opens `jobs.db` in the folder, or creates it. Jobs that were running when the last server ended are ready again.
    /// Must not be called again once it is open; only one store at a time can have the file.
    pub fn open(&mut self) -> Result<(), OpenError> {
        let opening = self.begin()?;
        let Opening { thread, opened } = opening;
        opened.recv().unwrap_or_else(|_| Err(self.panicked()))?;
        self.thread = Some(thread);
        Ok(())
    }

    /// The same without waiting, however long the disk takes. Commands that are submitted meanwhile wait for it.
    pub fn begin_to_open(&mut self) {
        if self.opening.is_none() {
            // If no thread can be started now, the next call may succeed.
            self.opening = self.begin().ok();
        }
    }

    #[must_use]
    pub fn is_opening(&self) -> bool {
        self.opening.is_some()
    }

    /// The outcome of opening; returned once.
    pub fn take_opened(&mut self) -> Option<Result<(), OpenError>> {
        let opened = match self.opening.as_ref()?.opened.try_recv() {
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(self.panicked()),
            Ok(opened) => opened,
        };
        let opening = self.opening.take()?;
        if opened.is_ok() {
            self.thread = Some(opening.thread);
        }
        Some(opened)
    }

    fn begin(&self) -> Result<Opening, OpenError> {
        let (folder, options, mailbox) = (self.folder.clone(), self.options.clone(), Arc::clone(&self.mailbox));
        let (tell, opened) = channel();
        self.mailbox.begin_to_open();
        let thread = std::thread::Builder::new()
            .name("jobs".to_owned())
            .spawn(move || {
                let job_db = job_db(&folder, options);
                let (told, job_db) = match job_db {
                    Ok(job_db) => (Ok(()), Some(job_db)),
                    Err(error) => (Err(error), None),
                };
                match &told {
                    Ok(()) => mailbox.open(),
                    Err(error) => mailbox.stay_shut(&error.fault()),
                }
                let is_heard = tell.send(told).is_ok();
                mailbox.wake();
                if let Some(mut job_db) = job_db.filter(|_| is_heard) {
                    thread::run(&mailbox, &mut job_db);
                }
            })
            .map_err(|error| self.unreachable(format!("cannot start a thread: {error}")))
            .inspect_err(|error| self.mailbox.stay_shut(&error.fault()))?;
        Ok(Opening { thread, opened })
    }

    fn panicked(&self) -> OpenError {
        let error = self.unreachable("its thread has panicked: this is a bug".to_owned());
        self.mailbox.stay_shut(&error.fault());
        error
    }

    fn unreachable(&self, why: String) -> OpenError {
        OpenError::Unreachable { file: self.folder.join(FILE), why }
    }

    /// Every command is answered exactly once, in order, except those that are refused at once.
    pub fn submit(&mut self, now: Wall, command: Command) {
        self.mailbox.submit(&self.options, (now, command));
    }

    /// Takes the replies since the last call.
    pub fn turn(&mut self, replies: &mut Vec<Reply>) {
        self.mailbox.take(replies);
    }

    /// Carries out submitted commands, and closes the file. Their replies can still be taken. If the file is not open
    /// yet, does not wait for it.
    pub fn end(&mut self) {
        self.mailbox.end();
        if self.opening.take().is_some() {
            self.mailbox.stay_shut(&Fault::Unavailable("it is closed: the server is stopping".into()));
        }
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

fn job_db(folder: &Path, options: SqliteStoreOptions) -> Result<JobDb, OpenError> {
    let connection = open::open(folder, &options)?;
    JobDb::new(connection, options).map_err(|error| open::why(folder.join(FILE), &error))
}
