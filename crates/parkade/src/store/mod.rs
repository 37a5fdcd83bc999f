//! The store of jobs, as the server waits for it. Everything here is done because somebody asked; nothing is decided.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mio::{Token, Waker};
use parkade_jobs::sqlite::{Injected, OpenError, Options, SqliteStore};
use parkade_jobs::{Command, Reply, Wall};

use crate::poll::PollSet;

/// The file in the state folder.
pub const FILE: &str = "jobs.db";

const THREAD: Token = Token(0);

pub struct Store {
    sqlite: SqliteStore,
    is_open: bool,
    poll: PollSet,
    spoke: Arc<AtomicBool>,
    /// Commands that have not been answered: while there are any, each turn looks whether they have.
    outstanding: usize,
}

impl Store {
    /// Opens nothing yet.
    pub fn new(folder: &Path, options: Options) -> io::Result<Self> {
        let poll = PollSet::new(1)?;
        let waker = Waker::new(poll.registry(), THREAD)?;
        let spoke = Arc::new(AtomicBool::new(false));
        let speaks = Arc::clone(&spoke);
        let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
            speaks.store(true, Ordering::Release);
            // It fails only when the owner is gone.
            let _ = waker.wake();
        });
        let sqlite = SqliteStore::new(folder.to_owned(), options, wake);
        Ok(Self { sqlite, is_open: false, poll, spoke, outstanding: 0 })
    }

    /// Opens the file, and makes it when there is none. Opening twice is opening once.
    pub fn open(&mut self) -> Result<(), OpenError> {
        if !self.is_open {
            self.sqlite.open()?;
            self.is_open = true;
        }
        Ok(())
    }

    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Every command is answered once.
    pub fn submit(&mut self, command: Command) {
        self.outstanding += 1;
        self.sqlite.submit(wall(), command);
    }

    /// Waits until it has answered. Cancel safe.
    pub async fn ready(&self) -> io::Result<()> {
        if self.spoke.load(Ordering::Acquire) {
            tokio::task::yield_now().await;
            return Ok(());
        }
        self.poll.ready().await?;
        // Its wake may come after what it was for has been taken: it is to be taken too, or it would be told for ever.
        self.spoke.store(true, Ordering::Release);
        Ok(())
    }

    pub fn turn(&mut self, replies: &mut Vec<Reply>) -> io::Result<()> {
        if !self.spoke.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        self.poll.take()?;
        self.sqlite.turn(replies);
        self.outstanding = self.outstanding.saturating_sub(replies.len());
        Ok(())
    }

    /// Commands that have not been answered.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Carries out what was asked, and closes.
    pub fn end(&mut self) {
        self.sqlite.end();
    }
}

/// For crash tests: `PARKADE_INJECT_COMMIT=delay=5ms,fail=50` makes the disk slow, and each so many-th commit fail. No setting, and said in the log.
pub fn injected() -> io::Result<Option<Injected>> {
    let Ok(text) = std::env::var("PARKADE_INJECT_COMMIT") else { return Ok(None) };
    let wrong = || {
        io::Error::other(format!("PARKADE_INJECT_COMMIT is for tests, and {text:?} is none: write delay=5ms,fail=50"))
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
    tracing::warn!(?injected, "faults are injected into the store of jobs: this is a test");
    Ok(Some(injected))
}

/// What the wall clock says. Jobs outlive the process, and so what its monotonic clock counts from.
pub fn wall() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
