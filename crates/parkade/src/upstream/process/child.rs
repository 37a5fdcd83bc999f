//! One worker process: starts it, signals it, measures it, and reports its end.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, PipeReader, PipeWriter};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

use parkade_model::WorkerId;
use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::limits;
use super::link::Ends;
use super::output;
use super::report::{News, Post, Started};
use super::starter::{Starter, Wanted};
use crate::language::Program;
use crate::log::{self, RecordLevel};
use crate::platform;

/// How a worker is started.
#[derive(Debug, Clone)]
pub struct Launch {
    pub program: Program,
    /// What the worker loads: `module:name`, `Some::Module` or a path to a file.
    pub target: String,
    /// What the application is written for, if the operator says so.
    pub interface: Option<&'static str>,
    /// The target is a function that returns the application.
    pub is_factory: bool,
    /// Plain functions that run at the same time, in addition to an event loop.
    pub threads: u32,
    /// The prefix of the application's paths; empty if it has none.
    pub root_path: String,
    /// What happens to an application of ASGI when its client leaves: `notify` or `cancel`.
    pub on_disconnect: &'static str,
    /// Errors are shown to clients.
    pub dev: bool,
    /// Variables that it has in addition to those of the core.
    pub environment: Vec<(String, String)>,
    /// The working directory; `None`: that of the core.
    pub directory: Option<PathBuf>,
    /// During development: the socket where the worker tells which files its code writes.
    pub own_files: Option<PathBuf>,
    /// The core's own version, for the worker's logs.
    pub core_version: &'static str,
}

/// The process of a worker, from the moment it is requested.
pub struct Process {
    /// `None` until it has been started.
    running: Option<Running>,
    /// It has to be killed as soon as it has started.
    is_killed: bool,
}

/// When dropped, kills the process group if the process is still there.
struct Running {
    pid: u32,
    waiter: JoinHandle<()>,
    logger: JoinHandle<()>,
}

impl Process {
    /// Requests the start of the program; a report follows. The link is its standard input and output;
    /// its prints come on its standard error.
    pub fn start(launch: &Launch, starter: &Starter, worker: WorkerId, post: &Post) -> io::Result<(Self, Ends)> {
        let (requests, to_worker) = link_pipe()?;
        let (from_worker, answers) = link_pipe()?;
        let ends = Ends::new(from_worker, to_worker)?;
        let (output, printed) = io::pipe()?;
        let mark = format!("{:016x}", RandomState::new().hash_one(worker.0));
        let mut command = command(launch);
        command.env("PARKADE_LOG", format!("{mark} {}", level_word()));
        command.stdin(requests).stdout(answers).stderr(printed);
        starter.start(Wanted { worker, command, output, mark, post: post.clone(), runtime: Handle::current() });
        Ok((Self { running: None, is_killed: false }, ends))
    }

    /// A process that is never started.
    #[cfg(test)]
    pub fn never() -> Self {
        Self { running: None, is_killed: false }
    }

    /// The process has been started.
    pub fn has_started(&mut self, started: Started, worker: WorkerId, post: &Post) {
        self.running = Running::new(started, worker, post);
        if self.is_killed {
            self.kill();
        }
    }

    /// `None` before it has been started.
    pub fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(|running| running.pid)
    }

    /// Kills it and the processes that it has started in its process group.
    pub fn kill(&mut self) {
        match &self.running {
            Some(running) => running.kill(),
            None => self.is_killed = true,
        }
    }

    /// SIGUSR1: the worker prints the stack of its code.
    pub fn dump_stack(&self) {
        if let Some(pid) = self.running.as_ref().and_then(Running::living) {
            let _ = rustix::process::kill_process(pid, Signal::USR1);
        }
    }

    /// Resident memory, as the kernel counts it now.
    pub fn resident_bytes(&self) -> Option<u64> {
        let pid = self.running.as_ref()?.living()?;
        platform::resident_bytes(pid.as_raw_nonzero().get().unsigned_abs())
    }
}

impl Running {
    /// `None` if it has already gone without a trace.
    fn new(started: Started, worker: WorkerId, post: &Post) -> Option<Self> {
        let Started { mut child, output, mark } = started;
        let pid = child.id()?;
        let waiter = tokio::spawn({
            let post = post.clone();
            async move { post.send(worker, News::Exited(ending(&mut child).await)) }
        });
        let logger = tokio::spawn({
            let post = post.clone();
            async move {
                if let Err(error) = output::log_output(output.into(), mark, worker, pid, &post).await {
                    tracing::warn!(worker = worker.0, pid, %error, "cannot read a worker's output; from now on, what it logs and prints is lost");
                    post.send(worker, News::Silent);
                }
            }
        });
        Some(Self { pid, waiter, logger })
    }

    fn kill(&self) {
        if let Some(pid) = self.living() {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        }
    }

    /// The process, as long as its id cannot belong to another: the task that waits for it has not collected its
    /// status.
    fn living(&self) -> Option<Pid> {
        if self.waiter.is_finished() {
            return None;
        }
        Pid::from_raw(self.pid.try_into().ok()?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        self.waiter.abort();
        let logger = self.logger.abort_handle();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(limits::LAST_LINES_TIME).await;
                logger.abort();
            });
        }
    }
}

/// The lowest level that is logged, in the form that workers get.
fn level_word() -> &'static str {
    match log::level() {
        RecordLevel::Trace => "trace",
        RecordLevel::Debug => "debug",
        RecordLevel::Info => "info",
        RecordLevel::Warn => "warn",
        RecordLevel::Error => "error",
    }
}

fn command(launch: &Launch) -> Command {
    let mut command = Command::new(&launch.program.path);
    command
        .args(&launch.program.arguments)
        .arg(&launch.target)
        .envs(launch.program.environment.iter().copied())
        .envs(launch.environment.iter().map(|(name, value)| (name, value)))
        // The core alone speaks to the service manager.
        .env_remove("NOTIFY_SOCKET")
        .env_remove("PARKADE_ADMIN_TOKEN")
        .env_remove("WATCHDOG_USEC")
        .env_remove("WATCHDOG_PID")
        // Ctrl-C in a terminal is meant for the core, which drains; and killing the group reaches what the worker has
        // started.
        .process_group(0)
        .kill_on_drop(true);
    if let Some(own_files) = &launch.own_files {
        command.env("PARKADE_DEV_FILES", own_files);
    }
    if let Some(directory) = &launch.directory {
        command.current_dir(directory);
    }
    command
}

/// One direction of a link.
fn link_pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    platform::widen_pipe(&writer, limits::SMALLER_PIPE_BYTES);
    platform::widen_pipe(&writer, limits::PIPE_BYTES);
    Ok((reader, writer))
}

async fn ending(child: &mut Child) -> String {
    match child.wait().await {
        Ok(status) => describe(status),
        Err(error) => format!("unknown ({error})"),
    }
}

/// How a process ended, in words.
fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(number)) => format!("signal {number} ({})", signal_name(number)),
        (None, None) => status.to_string(),
    }
}

fn signal_name(number: i32) -> &'static str {
    const NAMED: [(Signal, &str); 15] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
    ];
    NAMED.iter().find(|(signal, _)| signal.as_raw() == number).map_or("unnamed", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_is_told_in_words() {
        assert_eq!(describe(ExitStatus::from_raw(1 << 8)), "exit status 1");
        assert_eq!(describe(ExitStatus::from_raw(9)), "signal 9 (SIGKILL)");
        assert_eq!(describe(ExitStatus::from_raw(11)), "signal 11 (SIGSEGV)");
        assert_eq!(describe(ExitStatus::from_raw(45)), "signal 45 (unnamed)");
    }
}
