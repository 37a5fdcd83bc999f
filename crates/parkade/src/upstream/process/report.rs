//! Reports about the process of a worker, for the owner of the workers.

use std::io::PipeReader;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use parkade_model::WorkerId;
use tokio::process::Child;

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
    /// All its output has been logged.
    Silent,
}

/// Carries reports to the owner of the workers and wakes it.
#[derive(Clone)]
pub struct Post {
    pub sender: Sender<ProcessReport>,
    pub waker: Arc<mio::Waker>,
}

impl Post {
    pub fn send(&self, worker: WorkerId, news: News) {
        // Neither fails while the owner exists; without it nobody needs the report.
        let _ = self.sender.send(ProcessReport { worker, news });
        let _ = self.waker.wake();
    }
}

/// A process that has just been started, and its output.
pub struct Started {
    pub child: Child,
    pub output: PipeReader,
}
