//! The interface of a database for its owner.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use parkade_sql::{DatabaseStatus, DatabaseWork, LeaseId, QueryEvent, QueryId};

use crate::options::Options;
use crate::scheduler::{Lane, Scheduler, SharedScheduler};
use crate::thread;

/// A database file with its threads. Dropping it ends them, like [`end`](Self::end).
pub struct Database {
    shared: Arc<SharedScheduler>,
    threads: Vec<JoinHandle<()>>,
}

impl Database {
    /// Opens nothing yet: the first query does. `wake` is called, from any thread, when [`turn`](Self::turn) has
    /// events.
    ///
    /// `:memory:` is a private database that exists as long as this value. It has one thread, because a second
    /// connection would see another database.
    pub fn new(file: PathBuf, mut options: Options, wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        if file.as_os_str() == ":memory:" {
            options.readers = 0;
        }
        Self { shared: Arc::new(SharedScheduler::new(file, options, wake)), threads: Vec::new() }
    }

    /// Returns events of the threads, at most a few hundred at once.
    pub fn turn(&mut self, _now: Instant, events: &mut Vec<QueryEvent>) {
        self.shared.tell(events);
    }

    /// Submits work. Every query ends with exactly one `Ended`.
    pub fn submit(&mut self, _now: Instant, query: QueryId, work: DatabaseWork) {
        match self.start() {
            Ok(()) => self.shared.change(|scheduler| scheduler.submit(query, work)),
            Err(error) => {
                let why = format!("cannot start a thread: {error}");
                self.shared.change(|scheduler| scheduler.refuse(query, &why));
            }
        }
    }

    /// Cancels a query: no piece of it comes after this, and it is interrupted if possible. If it has ended, nothing
    /// happens.
    pub fn cancel(&mut self, _now: Instant, query: QueryId) {
        self.shared.change(|scheduler| scheduler.cancel(query));
    }

    /// The owner has passed on this many bytes of a query's pieces.
    pub fn taken(&mut self, query: QueryId, bytes: usize) {
        self.shared.change(|scheduler| scheduler.taken(query, bytes));
    }

    /// The holder of the lease is gone: its work is cancelled, and its transaction rolled back if it is still open.
    pub fn release(&mut self, _now: Instant, lease: LeaseId) {
        self.shared.change(|scheduler| scheduler.release(lease));
    }

    #[must_use]
    pub fn status(&self, now: Instant) -> DatabaseStatus {
        self.shared.change(|scheduler| scheduler.status(now))
    }

    /// Cancels everything; the threads close their connections and end. `wake` is called after the last one has ended.
    pub fn end(&mut self, _now: Instant) {
        self.shared.change(Scheduler::end);
    }

    /// No thread exists, and none will be started.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.shared.change(|scheduler| scheduler.is_ended())
    }

    fn start(&mut self) -> std::io::Result<()> {
        while self.threads.len() < self.shared.slot_count() {
            let index = self.threads.len();
            let name = if index == 0 { "sqlite writer".to_owned() } else { format!("sqlite reader {index}") };
            let lane = if index == 0 { Lane::Writes } else { Lane::Reads };
            let is_ending = self.shared.change(|scheduler| {
                let is_ending = scheduler.is_ending();
                if !is_ending {
                    scheduler.add_thread(lane);
                }
                is_ending
            });
            if is_ending {
                break;
            }
            let shared = Arc::clone(&self.shared);
            match std::thread::Builder::new().name(name).spawn(move || thread::run(&shared, index)) {
                Ok(handle) => self.threads.push(handle),
                Err(error) => {
                    self.shared.change(Scheduler::remove_thread);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &SharedScheduler {
        &self.shared
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.shared.change(Scheduler::end);
    }
}
