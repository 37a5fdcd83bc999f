//! SQLite as a subject.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parkade_jobs::sqlite::{Durability, Injected, SqliteStoreOptions};
use parkade_jobs::{Command, Reply, SqliteStore, Wall};

use super::{Settings, Subject};

/// No answer is waited for longer.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct InSqlite {
    folder: PathBuf,
    options: SqliteStoreOptions,
    store: SqliteStore,
    rung: mpsc::Receiver<()>,
}

impl Subject for InSqlite {
    const IN_ORDER: bool = true;

    fn new(settings: Settings) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("parkade-conformance-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        // An earlier process with the same id may have left it.
        let _left = std::fs::remove_dir_all(&folder);
        let options = SqliteStoreOptions {
            durability: Durability::Process,
            keep_completed: settings.keep_completed,
            keep_completed_count_max: settings.keep_completed_count_max,
            injected: settings.fail_every.map(|every| Injected { fail_every: Some(every), ..Injected::default() }),
            ..SqliteStoreOptions::default()
        };
        let (store, rung) = opened(&folder, &options);
        Self { folder, options, store, rung }
    }

    fn submit(&mut self, now: Wall, command: Command) {
        self.store.submit(now, command);
    }

    fn turn(&mut self, replies: &mut Vec<Reply>) {
        self.rung.recv_timeout(PATIENCE).expect("the store answers");
        self.store.turn(replies);
    }

    fn reopen(&mut self) {
        self.store.end();
        (self.store, self.rung) = opened(&self.folder, &self.options);
    }
}

fn opened(folder: &std::path::Path, options: &SqliteStoreOptions) -> (SqliteStore, mpsc::Receiver<()>) {
    let (bell, rung) = mpsc::channel();
    // Nobody hears it when the subject is gone.
    let wake = Arc::new(move || {
        let _heard = bell.send(());
    });
    let mut store = SqliteStore::new(folder.to_owned(), options.clone(), wake);
    store.open().unwrap();
    (store, rung)
}

impl Drop for InSqlite {
    fn drop(&mut self) {
        self.store.end();
        let _gone = std::fs::remove_dir_all(&self.folder);
    }
}
