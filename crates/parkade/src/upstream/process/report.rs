//! What happens to the process of a worker, and how the owner of the workers hears of it.

use std::io::PipeReader;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use parkade_model::WorkerId;
use tokio::process::Child;

/// What a process says of itself, apart from its link.
pub struct ProcessReport {
    pub worker: WorkerId,
    pub news: News,
}

pub enum News {
    Started(Box<Started>),
    /// There is no process, and none will be: why.
    NotStarted(String),
    /// It is gone: "exit status 1", "signal 9 (SIGKILL)".
    Exited(String),
    /// Everything that it printed has been logged.
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
        // Neither fails while the owner lives; without it nobody is left to be told.
        let _ = self.sender.send(ProcessReport { worker, news });
        let _ = self.waker.wake();
    }
}

/// A process that has just been started, and what it will print.
pub struct Started {
    pub child: Child,
    pub output: PipeReader,
}
