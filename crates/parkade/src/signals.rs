//! What each signal means to the server.

use std::io::{self, IsTerminal};

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::log::AccessLog;
use crate::server::Input;

/// The signals that are handled: the default action of each ends or stops the process.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    hang_up: Signal,
    /// SIGUSR1: `logrotate` has renamed the access log.
    rotated: Signal,
    /// Gunicorn's for a new binary.
    user_2: Signal,
    /// Gunicorn's for one worker more.
    terminal_input: Signal,
    /// Gunicorn's for one worker less.
    terminal_output: Option<Signal>,
    /// At the file size limit, a log only fails to be written.
    _file_size: Signal,
}

impl Signals {
    /// From here on no signal has its default action.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hang_up: signal(SignalKind::hangup())?,
            rotated: signal(SignalKind::user_defined1())?,
            user_2: signal(SignalKind::user_defined2())?,
            terminal_input: signal(numbered(Number::TTIN))?,
            terminal_output: (!may_stop_for_output()).then(|| signal(numbered(Number::TTOU))).transpose()?,
            _file_size: signal(numbered(Number::XFSZ))?,
        })
    }
}

/// A terminal with `stty tostop` sends SIGTTOU for each line that a background process logs, and the kernel tries a
/// caught one again without end. So there it stops the process, as the user of that terminal has asked.
fn may_stop_for_output() -> bool {
    io::stdout().is_terminal() || io::stderr().is_terminal()
}

fn numbered(number: Number) -> SignalKind {
    SignalKind::from_raw(number.as_raw())
}

/// SIGTERM and SIGINT drain; a second one, or SIGQUIT, stops at once; SIGHUP reloads; SIGUSR1 reopens the access log.
/// Signals that other servers understand are ignored, with advice.
pub async fn forward(mut signals: Signals, access: Option<AccessLog>, inputs: mpsc::Sender<Input>) {
    let mut is_stopping = false;
    loop {
        let input = tokio::select! {
            _ = signals.terminate.recv() => if is_stopping { Input::Stop } else { Input::Drain },
            _ = signals.interrupt.recv() => if is_stopping { Input::Stop } else { Input::Drain },
            _ = signals.quit.recv() => Input::Stop,
            _ = signals.hang_up.recv() => Input::Reload,
            _ = signals.rotated.recv() => { reopen(access.as_ref()); continue }
            _ = signals.user_2.recv() => { ignore("SIGUSR2", NEW_CODE); continue }
            _ = signals.terminal_input.recv() => { ignore("SIGTTIN", MORE_WORKERS); continue }
            Some(()) = received(&mut signals.terminal_output) => { ignore("SIGTTOU", MORE_WORKERS); continue }
        };
        is_stopping |= matches!(input, Input::Drain | Input::Stop);
        if inputs.send(input).await.is_err() {
            return;
        }
    }
}

const NEW_CODE: &str = "`parkade reload`, or SIGHUP, loads new code; a new version of parkade needs a restart";
const MORE_WORKERS: &str = "the number of workers changes with --workers and a restart";
const NO_FILE: &str = "there is no --access-log-file to reopen, and the log goes to standard error";

fn ignore(name: &str, advice: &str) {
    tracing::warn!("{name} was ignored: {advice}");
}

fn reopen(access: Option<&AccessLog>) {
    match access {
        Some(access) if access.is_file() => access.reopen(),
        _ => ignore("SIGUSR1", NO_FILE),
    }
}

async fn received(signal: &mut Option<Signal>) -> Option<()> {
    signal.as_mut()?.recv().await
}
