//! `parkade reload` and `parkade stop`: they wait until it is done, and report the outcome.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::{AdminAddress, AskError, CommandError, report};
use crate::admin::{ReloadState, ReloadView, Report};
use crate::cli::{ReloadArgs, StopArgs};
use crate::terminal;

/// The maximum time of one request: less than the time after which a server counts as unreachable.
const STEP: Duration = Duration::from_secs(2);
/// How often to check whether the server has stopped.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// `parkade reload`. Fails if the new code does not load, with the worker's message.
pub fn reload(args: &ReloadArgs) -> Result<ExitCode, CommandError> {
    let address = AdminAddress::find(&args.whom)?;
    let end = args.timeout.map(|timeout| Instant::now() + timeout);
    let mut seen: ReloadView = view(&address, "POST", "/reload")?;
    while seen.state == ReloadState::Running {
        let left = end.map_or(STEP, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Err(CommandError::StillReloading { after: args.timeout.unwrap_or_default() });
        }
        let path = format!("/reload/{}?wait={}", seen.reload, left.min(STEP).as_secs_f64());
        seen = view(&address, "GET", &path)?;
    }
    if seen.state == ReloadState::Done {
        let report = report(&address)?;
        terminal::print(&format!("{} is reloaded: generation {} serves", named(&report), report.code.generation))?;
        return Ok(ExitCode::SUCCESS);
    }
    for line in seen.error.as_deref().unwrap_or_default().lines() {
        eprintln!("{}", terminal::visible(line));
    }
    eprintln!("{}", terminal::visible(&not_loaded(&seen.not_reloaded)));
    Ok(ExitCode::FAILURE)
}

/// `mounts`: of the applications of which this is true, if there are several.
fn not_loaded(mounts: &[String]) -> String {
    match mounts {
        [] => "parkade: the new code does not load (above); the old code goes on serving".into(),
        [mount] => format!(
            "parkade: the new code of the application at {mount} does not load (above): its old code goes on serving; \
             the others are reloaded"
        ),
        _ => format!(
            "parkade: the new code of the applications at {} does not load (above): their old code goes on serving",
            mounts.join(", ")
        ),
    }
}

/// `parkade stop`. Fails if the server still runs after the given time.
pub fn stop(args: &StopArgs) -> Result<ExitCode, CommandError> {
    let address = AdminAddress::find(&args.whom)?;
    let stopped = report(&address)?;
    let end = args.timeout.map(|timeout| Instant::now() + timeout);
    match address.ask("POST", if args.now { "/stop?now" } else { "/stop" }, "", b"") {
        // It may be gone before its response is read.
        Ok(_) | Err(AskError::Unreachable { .. } | AskError::NoSense { .. }) => {}
        Err(refused) => return Err(refused.into()),
    }
    loop {
        let seen = look(&address, stopped.pid);
        if matches!(seen, Sight::Gone) {
            break;
        }
        if end.is_some_and(|end| end <= Instant::now()) {
            let after = args.timeout.unwrap_or_default();
            return Err(CommandError::StillRunning { what: named(&stopped), after, holds: held(&seen) });
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    terminal::print(&format!("{} has stopped", named(&stopped)))?;
    Ok(ExitCode::SUCCESS)
}

fn view(address: &AdminAddress, method: &str, path: &str) -> Result<ReloadView, AskError> {
    let body = address.ask(method, path, "", b"")?;
    serde_json::from_slice(&body).map_err(|_| AskError::NoSense { place: address.to_string() })
}

/// What is seen of a server that was told to stop.
enum Sight {
    /// Nothing answers at its address, or a successor does.
    Gone,
    /// It has closed the connection without a response: it is about to end.
    Silent,
    Alive(Box<Report>),
}

fn look(address: &AdminAddress, pid: u32) -> Sight {
    match report(address) {
        Ok(report) if report.pid == pid => Sight::Alive(Box::new(report)),
        Ok(_) => Sight::Gone,
        Err(AskError::Unreachable { source, .. }) if is_absent(&source) => Sight::Gone,
        Err(_) => Sight::Silent,
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, NotFound};
    matches!(error.kind(), ConnectionRefused | NotFound)
}

fn named(report: &Report) -> String {
    terminal::visible(&format!("{} (process {})", report.target, report.pid))
}

/// What still prevents it from stopping.
fn held(seen: &Sight) -> String {
    let Sight::Alive(report) = seen else { return "it does not answer".into() };
    let lives = &report.lives;
    let requests = format!("requests: {} running, {} queued, {} parked", lives.running, lives.queued, lives.parked);
    let jobs = report.jobs.running;
    if jobs > 0 { format!("{requests}; jobs: {jobs} running") } else { requests }
}
