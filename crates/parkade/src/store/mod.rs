//! The job store as the server uses it. Nothing is decided here.

mod in_file;
mod in_postgres;

use std::io;
use std::path::Path;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parkade_jobs::sqlite::{Injected, OpenError};
use parkade_jobs::{Command, Fault, Reply, postgres, sqlite};
use parkade_model::{JobId, Wall};

use crate::poll::{NextTurn, Pollable};
use in_file::InFile;
pub use in_postgres::AddressError;
use in_postgres::InPostgres;

/// The name of the file in the state folder.
pub const FILE: &str = "jobs.db";

/// One of the two backends.
pub struct Store {
    place: Backend,
    is_open: bool,
    /// Commands without a reply.
    outstanding: usize,
}

enum Backend {
    File(Box<InFile>),
    Postgres(Box<InPostgres>),
}

impl Store {
    /// Opens nothing yet.
    pub fn new(folder: &Path, options: sqlite::SqliteStoreOptions) -> io::Result<Self> {
        Ok(Self::at(Backend::File(Box::new(InFile::new(folder, options)?))))
    }

    /// Connects to nothing yet.
    pub fn in_postgres(address: &str, options: postgres::PostgresStoreOptions) -> Result<Self, AddressError> {
        Ok(Self::at(Backend::Postgres(Box::new(InPostgres::new(address, options)?))))
    }

    fn at(place: Backend) -> Self {
        Self { place, is_open: false, outstanding: 0 }
    }

    /// Opens the file, creating it if necessary, or begins to connect to the database. Does nothing if the store is
    /// open.
    pub fn open(&mut self) -> Result<(), OpenError> {
        if !self.is_open {
            match &mut self.place {
                Backend::File(file) => file.open()?,
                Backend::Postgres(postgres) => postgres.open(),
            }
            self.is_open = true;
        }
        Ok(())
    }

    /// The same without waiting for the disk, which may be slow.
    pub fn begin_to_open(&mut self) {
        if let Backend::File(file) = &mut self.place {
            file.begin_to_open();
        }
    }

    /// Whether opening waits for a disk. A database is connected to in the background.
    pub fn needs_a_disk(&self) -> bool {
        matches!(self.place, Backend::File(_))
    }

    /// Whether it is being opened.
    pub fn is_opening(&self) -> bool {
        matches!(&self.place, Backend::File(file) if file.is_opening())
    }

    /// The outcome of opening; returned once.
    pub fn take_opened(&mut self) -> Option<Result<(), OpenError>> {
        let Backend::File(file) = &mut self.place else { return None };
        let opened = file.take_opened()?;
        self.is_open |= opened.is_ok();
        Some(opened)
    }

    /// Why this program can never use the store, if that is known. A file is checked when it is opened, a database when
    /// it is reached.
    pub fn unusable(&self) -> Option<&str> {
        match &self.place {
            Backend::File(_) => None,
            Backend::Postgres(postgres) => postgres.unusable(),
        }
    }

    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Submits a command. Each gets one reply.
    pub fn submit(&mut self, command: Command) {
        self.outstanding += 1;
        match &mut self.place {
            Backend::File(file) => file.submit(command),
            Backend::Postgres(postgres) => postgres.submit(command),
        }
    }

    pub fn turn(&mut self, replies: &mut Vec<Reply>) -> io::Result<()> {
        let before = replies.len();
        match &mut self.place {
            Backend::File(file) => file.turn(replies)?,
            Backend::Postgres(postgres) => postgres.turn(self.outstanding, replies)?,
        }
        self.outstanding = self.outstanding.saturating_sub(replies.len() - before);
        Ok(())
    }

    /// What a transaction on the store's database needs in order to enqueue jobs: nothing yet while the store is being
    /// opened. `None`: its backend has no such transactions.
    pub fn within(&self) -> Option<Result<Option<postgres::Within>, Fault>> {
        match &self.place {
            Backend::File(_) => None,
            Backend::Postgres(postgres) => Some(postgres.within()),
        }
    }

    /// Whether there may be jobs to claim that another server has enqueued. Returned once.
    pub fn take_hint(&mut self) -> bool {
        match &mut self.place {
            Backend::File(_) => false,
            Backend::Postgres(postgres) => postgres.take_hint(),
        }
    }

    /// Jobs that have ended for good in other servers.
    pub fn take_ended(&mut self) -> Vec<JobId> {
        match &mut self.place {
            Backend::File(_) => Vec::new(),
            Backend::Postgres(postgres) => postgres.take_ended(),
        }
    }

    /// Jobs that run here, and that another server was asked to cancel.
    pub fn take_cancelled(&mut self) -> Vec<JobId> {
        match &mut self.place {
            Backend::File(_) => Vec::new(),
            Backend::Postgres(postgres) => postgres.take_cancelled(),
        }
    }

    /// The current time by the clock of the store.
    pub fn time(&self) -> Wall {
        match &self.place {
            Backend::File(_) => wall(),
            Backend::Postgres(postgres) => postgres.time(),
        }
    }

    /// Commands without a reply.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Carries out what was submitted, and closes. Returns whether that is done: a database needs more turns.
    pub fn end(&mut self) -> bool {
        match &mut self.place {
            Backend::File(file) => {
                file.end();
                true
            }
            Backend::Postgres(postgres) => postgres.end(),
        }
    }
}

impl Pollable for Store {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.place {
            Backend::File(file) => file.poll_ready(cx),
            Backend::Postgres(postgres) => postgres.poll_ready(cx),
        }
    }

    fn next_turn(&self) -> NextTurn {
        match &self.place {
            Backend::File(file) => file.next_turn(),
            Backend::Postgres(postgres) => postgres.next_turn(),
        }
    }

    fn look(&mut self) {
        match &mut self.place {
            Backend::File(file) => file.look(),
            Backend::Postgres(postgres) => postgres.look(),
        }
    }
}

/// For crash tests: `PARKADE_INJECT_COMMIT=delay=5ms,fail=50` makes the disk slow, and every 50th commit fail. Not a
/// setting; the log warns about it.
pub fn injected() -> io::Result<Option<Injected>> {
    let Ok(text) = std::env::var("PARKADE_INJECT_COMMIT") else { return Ok(None) };
    let wrong = || {
        io::Error::other(format!("PARKADE_INJECT_COMMIT (for tests only) cannot be {text:?}: write delay=5ms,fail=50"))
    };
    let mut injected = Injected::default();
    for part in text.split(',') {
        match part.split_once('=').ok_or_else(wrong)? {
            ("delay", millis) => {
                let millis = millis.strip_suffix("ms").and_then(|millis| millis.parse().ok()).ok_or_else(wrong)?;
                injected.delay = Duration::from_millis(millis);
            }
            ("fail", every) => injected.fail_every = Some(every.parse().map_err(|_| wrong())?),
            _ => return Err(wrong()),
        }
    }
    tracing::warn!(injected = %text, "injecting faults into the job store; this is for tests only");
    Ok(Some(injected))
}

/// The wall clock. Jobs outlive the process, and with it the start of its monotonic clock.
pub fn wall() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
