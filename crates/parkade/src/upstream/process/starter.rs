//! The thread that starts workers.

use std::fs;
use std::io::{self, PipeReader};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use parkade_model::WorkerId;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;

use super::limits;
use super::report::{News, Post, Started};

/// Starts processes, one after the other. Whoever starts one stands still until it has loaded its program: 1 ms on a quiet machine and 50 on a
/// busy one.
///
/// A worker asks the kernel to kill it when its parent dies, and the kernel takes the thread that started it for the parent (`PR_SET_PDEATHSIG`,
/// prctl(2)). So one thread starts them all, and it lives as long as the workers are wanted: until this is dropped.
pub struct Starter {
    wanted: Sender<Wanted>,
}

/// A process that is to be started.
pub struct Wanted {
    pub worker: WorkerId,
    pub command: Command,
    /// What it will print.
    pub output: PipeReader,
    /// Who is told.
    pub post: Post,
    /// That of the server, which will wait for the process.
    pub runtime: Handle,
}

impl Starter {
    pub fn new() -> io::Result<Self> {
        let (wanted, others) = channel::<Wanted>();
        let thread = thread::Builder::new().name("starter".into());
        thread.spawn(move || others.into_iter().for_each(Wanted::start))?;
        Ok(Self { wanted })
    }

    /// News say when it is done.
    pub fn start(&self, wanted: Wanted) {
        if let Err(lost) = self.wanted.send(wanted) {
            // Its thread is gone, by a panic.
            lost.0.post.send(lost.0.worker, News::NotStarted("the thread that starts workers has ended".into()));
        }
    }
}

impl Wanted {
    fn start(self) {
        let _runtime = self.runtime.enter();
        let news = match spawn(self.command) {
            Ok(child) => News::Started(Box::new(Started { child, output: self.output })),
            Err(error) => News::NotStarted(error.to_string()),
        };
        self.post.send(self.worker, news);
    }
}

/// Waits until the program is loaded. After that our copies of the worker's ends are closed: end of file must come when the worker is gone.
fn spawn(mut command: Command) -> io::Result<Child> {
    let child = command.spawn()?;
    if let Some(pid) = child.id() {
        let _ = fs::write(format!("/proc/{pid}/oom_score_adj"), limits::OOM_SCORE_ADJUST.to_string());
    }
    Ok(child)
}
