//! The thread that starts workers.

use std::io::{self, PipeReader};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use parkade_model::WorkerId;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;

use super::limits;
use super::report::{News, Post, Started};
use crate::platform;

/// Starts processes, one after the other. Starting one blocks the thread until the program is loaded: 1 ms on a quiet
/// machine and 50 ms on a busy one.
///
/// A worker asks the kernel to kill it when its parent dies, and the kernel takes the thread that started it for the
/// parent (`PR_SET_PDEATHSIG`, prctl(2)). So one thread starts all workers, and lives as long as they are needed: until
/// this is dropped.
pub struct Starter {
    wanted: Sender<Wanted>,
}

/// A process to be started.
pub struct Wanted {
    pub worker: WorkerId,
    pub command: Command,
    /// Its output.
    pub output: PipeReader,
    /// What its records begin with.
    pub mark: String,
    /// Receives the report.
    pub post: Post,
    /// The runtime of the server, which will wait for the process.
    pub runtime: Handle,
}

impl Starter {
    pub fn new() -> io::Result<Self> {
        let (wanted, others) = channel::<Wanted>();
        let thread = thread::Builder::new().name("starter".into());
        thread.spawn(move || others.into_iter().for_each(Wanted::start))?;
        Ok(Self { wanted })
    }

    /// Requests a start; a report follows.
    pub fn start(&self, wanted: Wanted) {
        if let Err(lost) = self.wanted.send(wanted) {
            // The thread has ended because of a panic.
            lost.0.post.send(lost.0.worker, News::NotStarted("the thread that starts workers has ended".into()));
        }
    }
}

impl Wanted {
    fn start(self) {
        let _runtime = self.runtime.enter();
        let news = match spawn(self.command) {
            Ok(child) => News::Started(Box::new(Started { child, output: self.output, mark: self.mark })),
            Err(error) => News::NotStarted(error.to_string()),
        };
        self.post.send(self.worker, news);
    }
}

/// Waits until the program is loaded. Then our copies of the worker's ends of the pipes are closed, so that end of file
/// comes when the worker is gone.
fn spawn(mut command: Command) -> io::Result<Child> {
    let child = command.spawn()?;
    if let Some(pid) = child.id() {
        platform::offer_to_oom_killer(pid, limits::OOM_SCORE_ADJUST);
    }
    Ok(child)
}
