//! Reports about the process of a worker, for the owner of the workers.

use std::io::PipeReader;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use parkade_model::WorkerId;
use tokio::process::Child;

use super::limits;
use crate::log::Record;

/// An event of a process, apart from its link.
pub struct ProcessReport {
    pub worker: WorkerId,
    pub news: News,
}

pub enum News {
    Started(Box<Started>),
    /// The process could not be started; why.
    NotStarted(String),
    /// The process has ended: "exit status 1", "signal 9 (SIGKILL)".
    Exited(String),
    /// It has logged something.
    Record(Box<Record>),
    /// All its output has been logged.
    Silent,
}

/// Carries reports to the owner of the workers and wakes it.
#[derive(Clone)]
pub struct Post {
    pub sender: Sender<ProcessReport>,
    pub waker: Arc<mio::Waker>,
    /// Records on their way.
    pub records_count: Arc<AtomicUsize>,
}

impl Post {
    pub fn send(&self, worker: WorkerId, news: News) {
        // Neither fails while the owner exists; without it nobody needs the report.
        let _ = self.sender.send(ProcessReport { worker, news });
        let _ = self.waker.wake();
    }

    pub fn send_record(&self, worker: WorkerId, record: Box<Record>) {
        self.records_count.fetch_add(1, Ordering::Relaxed);
        self.send(worker, News::Record(record));
    }

    /// Whether too many records are on their way to send another one.
    pub fn is_full(&self) -> bool {
        self.records_count.load(Ordering::Relaxed) >= limits::RECORDS_COUNT_MAX
    }

    /// A record has arrived.
    pub fn note_arrival(&self) {
        self.records_count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A process that has just been started, and its output.
pub struct Started {
    pub child: Child,
    pub output: PipeReader,
    /// What its records begin with.
    pub mark: String,
}
