//! The access log: one line for each request, with separate times for the queue, for running and for being parked.

use std::fmt::Write;
use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use super::writer::LineWriter;
use crate::config::AccessFormat;

/// The access log. Cheap to clone; each thread has one.
#[derive(Debug, Clone)]
pub struct AccessLog {
    writer: LineWriter,
    format: AccessFormat,
    is_file: bool,
    line: String,
}

/// A request that has ended.
#[derive(Debug, Clone, Copy)]
pub struct AccessEntry<'a> {
    /// `None` if the request came over a Unix socket and names no client.
    pub client: Option<IpAddr>,
    pub method: &'a str,
    /// The target as received, with its query.
    pub path: &'a str,
    /// Zero if the client left before a response began.
    pub status: u16,
    /// Bytes of the response's body that were written.
    pub bytes: u64,
    pub queue: Duration,
    pub run: Duration,
    pub park: Duration,
    pub total: Duration,
    pub ending: &'static str,
    pub user_agent: Option<&'a [u8]>,
    pub referrer: Option<&'a [u8]>,
    /// Of HTTP; `None` if the request was refused while it was read, as for the id.
    pub version: Option<&'a str>,
    pub request_id: Option<&'a str>,
}

impl AccessLog {
    pub(super) fn new(writer: LineWriter, format: AccessFormat, is_file: bool) -> Self {
        Self { writer, format, is_file, line: String::new() }
    }

    /// It goes to a file, not to standard output.
    pub fn is_file(&self) -> bool {
        self.is_file
    }

    /// Opens its file again, which may have been renamed. Does not wait.
    pub fn reopen(&self) {
        self.writer.reopen();
    }

    /// Writes a line, or drops it. Never waits.
    pub fn write(&mut self, entry: &AccessEntry<'_>) {
        let mut now = String::with_capacity(32);
        // If the clock is before 1970, the line has no time.
        let _ = SystemTime.format_time(&mut Writer::new(&mut now));
        self.line.clear();
        match self.format {
            AccessFormat::Json => write_json(&mut self.line, &now, entry),
            AccessFormat::Combined => write_combined(&mut self.line, std::time::SystemTime::now(), entry),
            AccessFormat::Text | AccessFormat::Off => write_text(&mut self.line, &now, entry),
        }
        self.writer.put(self.line.as_bytes());
    }
}

/// Control characters, quotes and backslashes are escaped, so that a client cannot forge a line or a field.
fn write_text(line: &mut String, now: &str, entry: &AccessEntry<'_>) {
    let client = entry.client.map_or_else(|| "unix".into(), |address| address.to_string());
    let target = entry.path.as_bytes().escape_ascii();
    let _ = write!(line, "{now} {client} \"{} {target}\"", entry.method.as_bytes().escape_ascii());
    let _ = write!(line, " {} {}", entry.status, entry.bytes);
    let [queue, run, park, total] = [entry.queue, entry.run, entry.park, entry.total].map(milliseconds);
    let _ = write!(line, " queue={queue:.3}ms run={run:.3}ms park={park:.3}ms total={total:.3}ms");
    let _ = write!(line, " \"{}\"", entry.ending);
    if let Some(agent) = entry.user_agent {
        let _ = write!(line, " \"{}\"", agent.escape_ascii());
    }
    if let (Some(version), Some(id)) = (entry.version, entry.request_id) {
        let _ = write!(line, " HTTP/{version} id={id}");
    }
    if let Some(referrer) = entry.referrer {
        let _ = write!(line, " referrer=\"{}\"", referrer.escape_ascii());
    }
    line.push('\n');
}

/// The format of Apache and nginx that existing tools read.
fn write_combined(line: &mut String, now: std::time::SystemTime, entry: &AccessEntry<'_>) {
    let client = entry.client.map_or_else(|| "-".into(), |address| address.to_string());
    // "Sun, 06 Nov 1994 08:49:37 GMT"
    let date = httpdate::fmt_http_date(now);
    let (day, month, year, time) = (&date[5..7], &date[8..11], &date[12..16], &date[17..25]);
    let (method, target) = (entry.method.as_bytes().escape_ascii(), entry.path.as_bytes().escape_ascii());
    let version = entry.version.unwrap_or("1.1");
    let _ = write!(line, "{client} - - [{day}/{month}/{year}:{time} +0000] \"{method} {target} HTTP/{version}\"");
    let _ = write!(line, " {} {}", entry.status, entry.bytes);
    for text in [entry.referrer, entry.user_agent] {
        let _ = write!(line, " \"{}\"", text.unwrap_or(b"-").escape_ascii());
    }
    line.push('\n');
}

fn write_json(line: &mut String, now: &str, entry: &AccessEntry<'_>) {
    #[derive(Serialize)]
    struct Line<'a> {
        timestamp: &'a str,
        client: Option<IpAddr>,
        method: &'a str,
        path: &'a str,
        status: u16,
        bytes: u64,
        queue_ms: f64,
        run_ms: f64,
        park_ms: f64,
        total_ms: f64,
        ending: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        user_agent: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        referrer: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        protocol: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<&'a str>,
    }
    let told = serde_json::to_string(&Line {
        timestamp: now,
        client: entry.client,
        method: entry.method,
        path: entry.path,
        status: entry.status,
        bytes: entry.bytes,
        queue_ms: milliseconds(entry.queue),
        run_ms: milliseconds(entry.run),
        park_ms: milliseconds(entry.park),
        total_ms: milliseconds(entry.total),
        ending: entry.ending,
        user_agent: entry.user_agent.map(|agent| String::from_utf8_lossy(agent).into_owned()),
        referrer: entry.referrer.map(|referrer| String::from_utf8_lossy(referrer).into_owned()),
        protocol: entry.version.map(|version| format!("HTTP/{version}")),
        request_id: entry.request_id,
    });
    line.push_str(&told.expect("numbers and texts can always be written as JSON"));
    line.push('\n');
}

/// To the microsecond: more would be noise.
#[expect(clippy::cast_precision_loss, reason = "exact up to 285 years")]
fn milliseconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: AccessEntry<'static> = AccessEntry {
        client: None,
        method: "GET",
        path: "/echo?field=\"a\nb",
        status: 200,
        bytes: 512,
        queue: Duration::from_micros(12),
        run: Duration::from_micros(480),
        park: Duration::from_millis(2_002),
        total: Duration::from_micros(2_002_700),
        ending: "client left",
        user_agent: Some(b"curl/8\x1b[31m\xff"),
        referrer: Some(b"http://x/\"\n"),
        version: Some("1.1"),
        request_id: Some("abc"),
    };

    fn line(write: fn(&mut String, &str, &AccessEntry<'_>), entry: &AccessEntry<'_>) -> String {
        let mut line = String::new();
        write(&mut line, "NOW", entry);
        line
    }

    #[test]
    fn a_text_line_tells_the_times_apart_and_cannot_be_forged() {
        assert_eq!(
            line(write_text, &ENTRY),
            "NOW unix \"GET /echo?field=\\\"a\\nb\" 200 512 queue=0.012ms run=0.480ms park=2002.000ms total=2002.700ms \
             \"client left\" \"curl/8\\x1b[31m\\xff\" HTTP/1.1 id=abc referrer=\"http://x/\\\"\\n\"\n"
        );
    }

    #[test]
    fn a_combined_line_is_that_of_other_servers() {
        let mut line = String::new();
        let entry = AccessEntry { client: "192.0.2.1".parse().ok(), ..ENTRY };
        write_combined(&mut line, std::time::UNIX_EPOCH + Duration::from_secs(784_111_777), &entry);
        assert_eq!(
            line,
            "192.0.2.1 - - [06/Nov/1994:08:49:37 +0000] \"GET /echo?field=\\\"a\\nb HTTP/1.1\" 200 512 \
             \"http://x/\\\"\\n\" \"curl/8\\x1b[31m\\xff\"\n"
        );
    }

    #[test]
    fn a_json_line_is_one_object() {
        let line = line(write_json, &AccessEntry { client: "192.0.2.1".parse().ok(), ..ENTRY });
        assert_eq!(line.matches('\n').count(), 1);
        let told: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            told,
            serde_json::json!({
                "timestamp": "NOW", "client": "192.0.2.1", "method": "GET", "path": "/echo?field=\"a\nb", "status": 200,
                "bytes": 512, "queue_ms": 0.012, "run_ms": 0.48, "park_ms": 2002.0, "total_ms": 2002.7,
                "ending": "client left", "user_agent": "curl/8\u{1b}[31m\u{fffd}",
                "referrer": "http://x/\"\n", "protocol": "HTTP/1.1", "request_id": "abc",
            })
        );
    }
}
