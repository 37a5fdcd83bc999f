//! The log of the server on standard error, and the access log.
//!
//! Neither ever blocks the server: lines that the pipe or the disk does not accept are dropped, counted and shown on
//! the status page.

mod access;
mod line;
mod record;
mod throttle;
mod writer;

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;

use crate::config::{AccessFormat, LogFormat, LogLevel, LogSettings};
pub use access::{AccessEntry, AccessLog};
pub use record::{Record, RecordLevel, RecordOrigin, level, record};
pub use throttle::LineThrottle;
pub use writer::{Dropped, Flush};
use writer::{LineWriter, LogDestination};

/// A log that cannot be opened: the operator has to correct the setting.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("cannot open the access log {}: {source}; give --access-log-file a file that can be written", path.display())]
    AccessLog { path: PathBuf, source: io::Error },
    #[error("standard error or standard output is closed ({0}): open it, or redirect it to /dev/null")]
    Closed(io::Error),
    #[error("the log has been started already")]
    Twice,
}

/// The running logs. When dropped, writes the remaining lines, for at most a second.
#[must_use]
pub struct LogGuard {
    access: Option<AccessLog>,
    dropped: Dropped,
    flush: Vec<Flush>,
}

/// Starts both logs. From here on `tracing` works and panics are logged.
pub fn init(settings: &LogSettings) -> Result<LogGuard, LogError> {
    let dropped = Dropped::default();
    let standard_error = unlocked(rustix::stdio::stderr())?;
    let colours = standard_error.is_terminal();
    let (writer, flush) = writer::start("log", standard_error, dropped.clone());
    let writer = writer.with_colours(colours);
    subscribe(settings, writer.clone(), colours)?;
    record::init(writer, settings.log_format, settings.log_level, colours);
    std::panic::set_hook(Box::new(|panic| {
        // The default hook writes to standard error, and would wait for a blocked pipe.
        let backtrace = std::backtrace::Backtrace::capture();
        tracing::error!(%backtrace, "a bug in parkade: {panic}");
    }));
    let mut guard = LogGuard { access: None, dropped: dropped.clone(), flush: vec![flush] };
    if settings.access_log != AccessFormat::Off {
        let path = &settings.access_log_file;
        let is_file = path.as_os_str() != "-";
        let (writer, flush) = if is_file {
            writer::start("access log", RotatedFile::open(path)?, dropped)
        } else {
            writer::start("access log", unlocked(rustix::stdio::stdout())?, dropped)
        };
        guard.access = Some(AccessLog::new(writer, settings.access_log, is_file));
        guard.flush.push(flush);
    }
    Ok(guard)
}

impl LogGuard {
    /// The access log, if it is configured. Each thread takes a clone.
    #[must_use]
    pub fn access(&self) -> Option<AccessLog> {
        self.access.clone()
    }

    /// Counts the lines that are lost.
    #[must_use]
    pub fn dropped(&self) -> Dropped {
        self.dropped.clone()
    }
}

fn subscribe(settings: &LogSettings, writer: LineWriter, colours: bool) -> Result<(), LogError> {
    let level = filter(settings.log_level);
    // Libraries log for their own authors, so only their warnings are shown, and of h2 only errors: it warns of what any
    // client does.
    let told = Targets::new()
        .with_target("parkade", level)
        .with_target("h2", level.min(LevelFilter::ERROR))
        .with_default(level.min(LevelFilter::WARN));
    let layer = layer(settings.log_format, writer, colours);
    tracing_subscriber::registry().with(layer.with_filter(told)).try_init().map_err(|_| LogError::Twice)
}

fn layer<S>(format: LogFormat, writer: LineWriter, colours: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    let layer = tracing_subscriber::fmt::layer().with_writer(writer).with_target(false).with_ansi(colours);
    match format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    }
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// A file that somebody may rename while it is written.
struct RotatedFile {
    path: PathBuf,
    file: File,
}

impl RotatedFile {
    fn open(path: &Path) -> Result<Self, LogError> {
        let opened = OpenOptions::new().create(true).append(true).open(path);
        let opened = opened.map_err(|source| LogError::AccessLog { path: path.into(), source });
        opened.map(|file| Self { path: path.into(), file })
    }
}

impl io::Write for RotatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl LogDestination for RotatedFile {
    fn reopen(&mut self) {
        match Self::open(&self.path) {
            Ok(reopened) => {
                *self = reopened;
                tracing::info!("reopened the access log {}", self.path.display());
            }
            Err(error) => tracing::error!("{error}; until then its lines go to the file that was open"),
        }
    }
}

impl LogDestination for File {}

/// The same open file without the lock of the standard library, so that other code that prints does not wait for a
/// blocked log.
fn unlocked(standard: rustix::fd::BorrowedFd<'_>) -> Result<File, LogError> {
    standard.try_clone_to_owned().map(File::from).map_err(LogError::Closed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    const EVIL: &str = "a\nERROR forged\r\u{1b}[2J\u{85}\u{2028}\u{202e}z";

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl LogDestination for Sink {}

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, colours: bool) -> String {
        let sink = Sink::default();
        let (writer, flush) = writer::start("test", sink.clone(), Dropped::default());
        let layer = layer(format, writer.with_colours(colours), colours);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::error!(job = EVIL, channel = %EVIL, text = ?EVIL, "{EVIL}");
        });
        drop(flush);
        let written = sink.0.lock().unwrap().clone();
        String::from_utf8(written).unwrap()
    }

    #[test]
    fn no_message_and_no_field_makes_a_line_or_steers_a_terminal() {
        for (format, colours) in [(LogFormat::Text, false), (LogFormat::Text, true), (LogFormat::Json, false)] {
            let log = logged(format, colours);
            let begun: Vec<&str> = log.lines().filter(|line| !line.starts_with("  | ")).collect();
            assert_eq!(begun.len(), 1, "{log}");
            assert!(!log.contains("\u{1b}[2J"), "{log}");
            assert!(!log.contains(['\r', '\u{85}', '\u{2028}', '\u{202e}']), "{log:?}");
            assert!(log.contains(r"\u2028"), "{log}");
        }
    }

    #[test]
    fn what_json_cannot_hold_raw_is_the_same_text_when_it_is_read() {
        let told: serde_json::Value = serde_json::from_str(&logged(LogFormat::Json, false)).unwrap();
        assert_eq!((&told["message"], &told["job"]), (&EVIL.into(), &EVIL.into()));
    }
}
