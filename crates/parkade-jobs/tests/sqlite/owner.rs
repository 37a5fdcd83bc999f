//! An owner for tests: it asks, and waits for the answers.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parkade_jobs::sqlite::{Durability, OpenError, SqliteStoreOptions};
use parkade_jobs::{AttemptEnd, ClaimId, Command, Correlation, JobId, JobState, NewJob, Reply, SqliteStore, Tag, Wall};

/// No answer is waited for longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder of its own, gone at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("parkade-jobs-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        // An earlier process with the same id may have left it.
        let _left = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub fn file(&self) -> PathBuf {
        self.0.join("jobs.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

pub struct Owner {
    pub store: SqliteStore,
    rung: mpsc::Receiver<()>,
    tags: u64,
}

pub fn options() -> SqliteStoreOptions {
    SqliteStoreOptions { durability: Durability::Process, ..SqliteStoreOptions::default() }
}

impl Owner {
    pub fn shut(folder: &Folder, options: SqliteStoreOptions) -> Self {
        Self::of(folder.0.clone(), options)
    }

    pub fn of(folder: PathBuf, options: SqliteStoreOptions) -> Self {
        let (bell, rung) = mpsc::channel();
        let wake = Arc::new(move || {
            let _heard = bell.send(());
        });
        Self { store: SqliteStore::new(folder, options, wake), rung, tags: 0 }
    }

    pub fn open(folder: &Folder, options: SqliteStoreOptions) -> Result<Self, OpenError> {
        let mut owner = Self::shut(folder, options);
        owner.store.open().map(|()| owner)
    }

    /// All at once, each with the tag that it gets; the answers in the order in which they come.
    pub fn ask_all(&mut self, commands: impl IntoIterator<Item = Box<dyn Fn(Tag) -> Command>>) -> Vec<Reply> {
        let mut count = 0;
        for command in commands {
            self.submit(command);
            count += 1;
        }
        self.replies(count)
    }

    pub fn submit(&mut self, command: impl Fn(Tag) -> Command) {
        self.tags += 1;
        self.store.submit(Wall(1_000), command(Tag(self.tags)));
    }

    pub fn replies(&mut self, count: usize) -> Vec<Reply> {
        let mut replies = Vec::new();
        while replies.len() < count {
            self.rung.recv_timeout(PATIENCE).expect("the store answers");
            self.store.turn(&mut replies);
        }
        replies
    }

    pub fn ask(&mut self, command: impl Fn(Tag) -> Command) -> Reply {
        self.submit(command);
        self.replies(1).remove(0)
    }

    pub fn enqueue(&mut self, number: u128, bytes: usize) -> Reply {
        self.ask(enqueue(number, bytes))
    }

    /// `None`: no such job.
    pub fn state(&mut self, number: u128) -> Option<JobState> {
        match self.ask(|tag| Command::Find { tag, job: JobId::new(number) }) {
            Reply::Found { job, .. } => job.map(|job| job.state),
            other => panic!("{other:?}"),
        }
    }

    /// The jobs that it gets, each with its claim.
    pub fn claim(&mut self, count: u32) -> Vec<(u128, ClaimId)> {
        match self.ask(|tag| Command::Claim { tag, count, limited: Vec::new() }) {
            Reply::Claimed { jobs, .. } => jobs.iter().map(|job| (job.id.number(), job.claim)).collect(),
            other => panic!("{other:?}"),
        }
    }

    pub fn complete(&mut self, number: u128, claim: ClaimId, bytes: usize) -> Reply {
        let verdict = AttemptEnd::Completed { result: vec![7; bytes].into() };
        self.ask(end(number, claim, verdict))
    }
}

pub fn end(number: u128, claim: ClaimId, verdict: AttemptEnd) -> impl Fn(Tag) -> Command {
    move |tag| Command::End { tag, job: JobId::new(number), claim, verdict: verdict.clone(), is_again: false }
}

pub fn enqueue(number: u128, bytes: usize) -> impl Fn(Tag) -> Command {
    move |tag| {
        let job = NewJob {
            id: JobId::new(number),
            name: "work".into(),
            queue: "default".into(),
            arguments: vec![1; bytes].into(),
            priority: 0,
            due: None,
            key: None,
            correlation: Correlation::default(),
        };
        Command::Enqueue { tag, job }
    }
}
