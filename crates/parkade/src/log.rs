//! What is written down: the log of the server to standard error, the access log beside it.
//!
//! Neither ever blocks serving: lines that the pipe or the disk does not take are dropped, counted and shown on the status page.

mod access;
mod writer;

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

use crate::config::{AccessFormat, LogFormat, LogLevel, LogSettings};
pub use access::{AccessLog, Entry};
use writer::LineWriter;
pub use writer::{Dropped, Flush};

/// A log that cannot be written to: the operator's to mend.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("cannot open the access log {}: {source}; give --access-log-file a file that can be written", path.display())]
    AccessLog { path: PathBuf, source: io::Error },
    #[error("standard error or standard output is closed ({0}): open it, to /dev/null if need be")]
    Closed(io::Error),
    #[error("the log has been started already")]
    Twice,
}

/// The logs, once they run. Writes what is left when dropped, for at most a second.
#[must_use]
pub struct LogGuard {
    access: Option<AccessLog>,
    dropped: Dropped,
    flush: Vec<Flush>,
}

/// Starts the log and the access log. From here on `tracing` works and panics are logged.
pub fn init(settings: &LogSettings) -> Result<LogGuard, LogError> {
    let dropped = Dropped::default();
    let standard_error = unlocked(rustix::stdio::stderr())?;
    let colours = standard_error.is_terminal();
    let (writer, flush) = writer::start("log", standard_error, dropped.clone());
    subscribe(settings, writer, colours)?;
    std::panic::set_hook(Box::new(|panic| {
        // The usual hook writes to standard error, and would wait for a blocked pipe.
        let backtrace = std::backtrace::Backtrace::capture();
        tracing::error!(%backtrace, "a bug in parkade: {panic}");
    }));
    let mut guard = LogGuard { access: None, dropped: dropped.clone(), flush: vec![flush] };
    if settings.access_log != AccessFormat::Off {
        let (writer, flush) = writer::start("access log", destination(&settings.access_log_file)?, dropped);
        guard.access = Some(AccessLog::new(writer, settings.access_log));
        guard.flush.push(flush);
    }
    Ok(guard)
}

impl LogGuard {
    /// The access log, if there is one. Each thread takes a clone.
    #[must_use]
    pub fn access(&self) -> Option<AccessLog> {
        self.access.clone()
    }

    /// How many lines were lost, now and later.
    #[must_use]
    pub fn dropped(&self) -> Dropped {
        self.dropped.clone()
    }
}

fn subscribe(settings: &LogSettings, writer: LineWriter, colours: bool) -> Result<(), LogError> {
    let level = level(settings.log_level);
    // What the libraries tell is for their authors, unless they warn.
    let told = Targets::new().with_target("parkade", level).with_default(level.min(LevelFilter::WARN));
    let layer = tracing_subscriber::fmt::layer().with_writer(writer).with_target(false).with_ansi(colours);
    let layer = match settings.log_format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(layer.with_filter(told)).try_init().map_err(|_| LogError::Twice)
}

fn level(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

fn destination(path: &Path) -> Result<File, LogError> {
    if path.as_os_str() == "-" {
        return unlocked(rustix::stdio::stdout());
    }
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map_err(|source| LogError::AccessLog { path: path.into(), source })
}

/// The same open file without the lock of the standard library: whoever else prints does not wait for a blocked log.
fn unlocked(standard: rustix::fd::BorrowedFd<'_>) -> Result<File, LogError> {
    standard.try_clone_to_owned().map(File::from).map_err(LogError::Closed)
}
