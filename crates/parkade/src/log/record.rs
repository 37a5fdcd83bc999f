//! Records of applications: what a worker logs, with its level, its logger and its fields. Each is one record of the log.
//!
//! They do not go through `tracing`, whose fields have names that are known when it is compiled.

use std::fmt::Write;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use super::writer::LineWriter;
use crate::config::{LogFormat, LogLevel};
use crate::words;

/// In ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

/// A record as a worker writes it (`PROTOCOL.md`, *The worker's log*). Members that this core does not know are ignored.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Record {
    pub level: RecordLevel,
    pub message: String,
    #[serde(default)]
    pub logger: Option<String>,
    /// The stream that it is about.
    #[serde(default)]
    pub stream: Option<u32>,
    #[serde(default)]
    pub method: Option<String>,
    #[serde(default)]
    pub path: Option<String>,
    #[serde(default)]
    pub job: Option<String>,
    /// Type and text.
    #[serde(default)]
    pub exception: Option<String>,
    #[serde(default)]
    pub traceback: Option<String>,
    /// What the application adds.
    #[serde(default)]
    pub fields: Map<String, Value>,
}

impl Record {
    /// The application does not load. `text`: its traceback, or one line that says why.
    pub fn of_load_error(text: &str) -> Self {
        let text = text.trim_end();
        let why = words::reason_of_load_error(text);
        Self {
            level: RecordLevel::Error,
            message: format!("the application does not load: {why}"),
            traceback: (why.len() < text.len()).then(|| text.to_owned()),
            logger: None,
            stream: None,
            method: None,
            path: None,
            job: None,
            exception: None,
            fields: Map::new(),
        }
    }
}

/// What the core knows of a record's origin.
#[derive(Debug, Clone, Default)]
pub struct RecordOrigin {
    pub worker: u32,
    pub pid: Option<u32>,
    /// The prefix of its application, if there are several.
    pub mount: Option<String>,
    /// That of its request: method and pattern.
    pub route: Option<String>,
    pub request_id: Option<String>,
}

struct RecordLog {
    writer: LineWriter,
    format: LogFormat,
    level: RecordLevel,
    colours: bool,
}

static LOG: OnceLock<RecordLog> = OnceLock::new();

pub(super) fn init(writer: LineWriter, format: LogFormat, level: LogLevel, colours: bool) {
    let level = match level {
        LogLevel::Error => RecordLevel::Error,
        LogLevel::Warn => RecordLevel::Warn,
        LogLevel::Info => RecordLevel::Info,
        LogLevel::Debug => RecordLevel::Debug,
        LogLevel::Trace => RecordLevel::Trace,
    };
    // A second log is refused by `tracing`, too.
    let _ = LOG.set(RecordLog { writer, format, level, colours });
}

/// The lowest level that is logged.
pub fn level() -> RecordLevel {
    LOG.get().map_or(RecordLevel::Info, |log| log.level)
}

/// Writes a record, or drops it if its level is too low. Never waits.
pub fn record(record: &Record, origin: &RecordOrigin) {
    let Some(log) = LOG.get().filter(|log| record.level >= log.level) else { return };
    let mut now = String::with_capacity(32);
    // If the clock is before 1970, the line has no time.
    let _ = SystemTime.format_time(&mut Writer::new(&mut now));
    let line = match log.format {
        LogFormat::Json => json_line(&now, record, origin),
        LogFormat::Text => text_line(&now, record, origin, log.colours),
    };
    log.writer.put(line.as_bytes());
}

/// As the subscriber writes its own events. The traceback follows in continuation lines.
fn text_line(now: &str, record: &Record, origin: &RecordOrigin, colours: bool) -> String {
    let (name, colour) = match record.level {
        RecordLevel::Trace => ("TRACE", "35"),
        RecordLevel::Debug => ("DEBUG", "34"),
        RecordLevel::Info => (" INFO", "32"),
        RecordLevel::Warn => (" WARN", "33"),
        RecordLevel::Error => ("ERROR", "31"),
    };
    let mut line = if colours {
        format!("\u{1b}[2m{now}\u{1b}[0m \u{1b}[{colour}m{name}\u{1b}[0m {}", record.message.trim_end())
    } else {
        format!("{now} {name} {}", record.message.trim_end())
    };
    for (name, value) in members(record, origin) {
        // Quoted, so that no value looks like further fields.
        let _ = match value {
            Value::String(text) => write!(line, " {name}={text:?}"),
            other => write!(line, " {name}={other}"),
        };
    }
    if let Some(traceback) = &record.traceback {
        let _ = write!(line, "\n{}", traceback.trim_end());
    }
    line.push('\n');
    line
}

fn json_line(now: &str, record: &Record, origin: &RecordOrigin) -> String {
    let level = match record.level {
        RecordLevel::Trace => "TRACE",
        RecordLevel::Debug => "DEBUG",
        RecordLevel::Info => "INFO",
        RecordLevel::Warn => "WARN",
        RecordLevel::Error => "ERROR",
    };
    let mut line = Map::new();
    line.insert("timestamp".into(), now.into());
    line.insert("level".into(), level.into());
    line.insert("message".into(), record.message.as_str().into());
    for (name, value) in members(record, origin) {
        line.insert(name, value);
    }
    if let Some(traceback) = &record.traceback {
        line.insert("traceback".into(), traceback.trim_end().into());
    }
    format!("{}\n", Value::Object(line))
}

/// All but the time, the level, the message and the traceback. A field of the application that has the name of one of
/// ours is shown with `extra_` before its name.
fn members(record: &Record, origin: &RecordOrigin) -> Vec<(String, Value)> {
    const RESERVED: [&str; 14] = [
        "timestamp",
        "level",
        "message",
        "logger",
        "method",
        "path",
        "route",
        "request_id",
        "job",
        "exception",
        "traceback",
        "worker",
        "pid",
        "mount",
    ];
    let texts = [
        ("logger", &record.logger),
        ("exception", &record.exception),
        ("method", &record.method),
        ("path", &record.path),
        ("route", &origin.route),
        ("request_id", &origin.request_id),
        ("job", &record.job),
    ];
    let known = texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), Value::from(text.as_deref()?))));
    let given = record.fields.iter().map(|(name, value)| {
        let prefix = if RESERVED.contains(&name.as_str()) { "extra_" } else { "" };
        (format!("{prefix}{name}"), value.clone())
    });
    let mut all: Vec<_> = known.chain(given).collect();
    all.push(("worker".into(), origin.worker.into()));
    all.extend(origin.pid.map(|pid| ("pid".into(), pid.into())));
    all.extend(origin.mount.as_deref().map(|mount| ("mount".into(), mount.into())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boom() -> (Record, RecordOrigin) {
        let record = serde_json::from_value(serde_json::json!({
            "level": "error", "message": "boom", "logger": "shop", "stream": 7, "method": "GET", "path": "/x/1",
            "exception": "ValueError: boom", "traceback": "Traceback:\n  line\n",
            "fields": {"user": "ana \"x\" y=1", "count": 3, "level": "mine"}, "later": true,
        }));
        (
            record.unwrap(),
            RecordOrigin {
                worker: 1,
                pid: Some(42),
                mount: None,
                route: Some("GET /x/{n}".into()),
                request_id: Some("abc".into()),
            },
        )
    }

    #[test]
    fn an_application_that_does_not_load_is_one_record_with_its_worker_before_the_traceback() {
        let origin = RecordOrigin { worker: 3, ..RecordOrigin::default() };
        let failed = Record::of_load_error("Traceback:\n  line\nSyntaxError: x\n");
        let line = text_line("now", &failed, &origin, false);
        let expected =
            "now ERROR the application does not load: SyntaxError: x worker=3\nTraceback:\n  line\nSyntaxError: x\n";
        assert_eq!(line, expected);
        let line = text_line("now", &Record::of_load_error("there is no file app.py"), &origin, false);
        assert_eq!(line, "now ERROR the application does not load: there is no file app.py worker=3\n");
        let mounted = RecordOrigin { mount: Some("/a".into()), ..origin };
        let line = text_line("now", &Record::of_load_error("no luck"), &mounted, false);
        assert_eq!(line, "now ERROR the application does not load: no luck worker=3 mount=\"/a\"\n");
        let perl = "Can't locate A.pm at lib/B.pm line 1.\nBEGIN failed--compilation aborted at lib/B.pm line 1.\n\
                    Compilation failed in require at app.psgi line 2.\nBEGIN failed--compilation aborted at app.psgi line 2.\n";
        let message = Record::of_load_error(perl).message;
        assert_eq!(message, "the application does not load: Can't locate A.pm at lib/B.pm line 1.");
    }

    #[test]
    fn a_record_is_one_line_of_text_with_its_traceback_below() {
        let (record, origin) = boom();
        assert_eq!(
            text_line("NOW", &record, &origin, false),
            "NOW ERROR boom logger=\"shop\" exception=\"ValueError: boom\" method=\"GET\" path=\"/x/1\" \
             route=\"GET /x/{n}\" request_id=\"abc\" count=3 extra_level=\"mine\" user=\"ana \\\"x\\\" y=1\" worker=1 pid=42\n\
             Traceback:\n  line\n"
        );
        let quiet = Record { level: RecordLevel::Info, ..record };
        assert!(
            text_line("NOW", &quiet, &origin, true).starts_with("\u{1b}[2mNOW\u{1b}[0m \u{1b}[32m INFO\u{1b}[0m boom")
        );
    }

    #[test]
    fn a_record_is_one_object() {
        let (record, origin) = boom();
        let line = json_line("NOW", &record, &origin);
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(
            serde_json::from_str::<Value>(&line).unwrap(),
            serde_json::json!({
                "timestamp": "NOW", "level": "ERROR", "message": "boom", "logger": "shop", "method": "GET",
                "path": "/x/1", "route": "GET /x/{n}", "request_id": "abc", "exception": "ValueError: boom",
                "traceback": "Traceback:\n  line", "user": "ana \"x\" y=1", "count": 3, "extra_level": "mine",
                "worker": 1, "pid": 42,
            })
        );
    }

    #[test]
    fn levels_are_in_order() {
        assert!(RecordLevel::Trace < RecordLevel::Debug && RecordLevel::Warn < RecordLevel::Error);
    }
}
