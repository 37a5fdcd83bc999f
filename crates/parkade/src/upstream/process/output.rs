//! The output of a worker: records, and lines that something prints.

use std::os::fd::OwnedFd;

use parkade_model::WorkerId;
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use super::limits;
use super::report::{News, Post};
use crate::log::{self, Record};

/// Begins a record (`PROTOCOL.md`, *The worker's log*): as in RFC 7464. After it comes the mark of the process, which
/// nobody else knows, so that no printed text is taken for a record.
const RECORD_BEGIN: u8 = 0x1e;

/// Reads until the last holder of the other end has closed it. It yields after each read: a worker that prints
/// endlessly waits for its pipe, and does not delay the core. `mark`: that of its records.
pub async fn log_output(output: OwnedFd, mark: String, worker: WorkerId, pid: u32, post: &Post) -> std::io::Result<()> {
    let mut pipe = Receiver::from_owned_fd(output)?;
    let mut piece = [0; 4096];
    let mut lines = Lines::new(mark);
    let level = log::level();
    let take = |line: Line<'_>| match line {
        Line::Printed(line) => tracing::info!(target: "parkade::worker", worker = worker.0, pid, "{line}"),
        Line::Record(record) if record.level >= level => post.send_record(worker, record),
        Line::Record(_) => {}
    };
    loop {
        match pipe.read(&mut piece).await {
            Ok(0) | Err(_) => break,
            Ok(count) => lines.take(&piece[..count], take),
        }
        tokio::task::yield_now().await;
        while post.is_full() {
            tokio::time::sleep(limits::RECORDS_RETRY_TIME).await;
        }
    }
    lines.end(take);
    post.send(worker, News::Silent);
    Ok(())
}

enum Line<'a> {
    Printed(&'a str),
    Record(Box<Record>),
}

/// A record as it is written.
#[derive(Deserialize)]
struct WrittenRecord {
    #[serde(flatten)]
    record: Box<Record>,
    /// Of text that was printed: whether its line goes on in the next record.
    #[serde(default)]
    unfinished: Option<bool>,
}

impl WrittenRecord {
    fn goes_on(&self) -> bool {
        self.unfinished == Some(true)
    }

    fn is_end_of(&self, begun: &Record) -> bool {
        self.unfinished.is_some() && (self.record.stream, self.record.level) == (begun.stream, begun.level)
    }
}

/// Splits bytes into lines.
struct Lines {
    mark: String,
    begun: Vec<u8>,
    /// The beginning of a line that was printed in several pieces.
    begun_record: Option<Box<Record>>,
}

impl Lines {
    fn new(mark: String) -> Self {
        Self { mark, begun: Vec::new(), begun_record: None }
    }

    fn take(&mut self, mut bytes: &[u8], mut take: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.append(&bytes[..end], &mut take);
            self.finish(&mut take);
            bytes = &bytes[end + 1..];
        }
        self.append(bytes, &mut take);
    }

    fn append(&mut self, mut bytes: &[u8], mut take: impl FnMut(Line<'_>)) {
        let is_record = self.begun.first().or(bytes.first()) == Some(&RECORD_BEGIN);
        let max = if is_record { limits::RECORD_BYTES_MAX } else { limits::LINE_BYTES_MAX };
        while self.begun.len() + bytes.len() > max {
            let (piece, rest) = bytes.split_at(max.saturating_sub(self.begun.len()));
            self.begun.extend_from_slice(piece);
            self.finish(&mut take);
            bytes = rest;
        }
        self.begun.extend_from_slice(bytes);
    }

    /// The line has ended.
    fn finish(&mut self, mut take: impl FnMut(Line<'_>)) {
        let line = std::mem::take(&mut self.begun);
        if let Some(written) = self.record(&line) {
            self.join(written, &mut take);
        } else {
            let text = line.strip_suffix(b"\r").unwrap_or(&line);
            if !text.is_empty() {
                self.finish_record(&mut take);
                take(Line::Printed(&String::from_utf8_lossy(text)));
            }
        }
        self.begun = line;
        self.begun.clear();
    }

    /// Nothing follows.
    fn end(&mut self, mut take: impl FnMut(Line<'_>)) {
        self.finish(&mut take);
        self.finish_record(take);
    }

    /// Joins the pieces of a line. It goes on in the worker's next record of the same stream; anything else ends it.
    fn join(&mut self, mut written: WrittenRecord, mut take: impl FnMut(Line<'_>)) {
        if let Some(mut begun) = self.begun_record.take() {
            if written.is_end_of(&begun) && begun.message.len() < limits::LINE_BYTES_MAX {
                begun.message.push_str(&written.record.message);
                written.record = begun;
            } else {
                take(Line::Record(begun));
            }
        }
        if written.goes_on() {
            self.begun_record = Some(written.record);
        } else if written.unfinished.is_none() || !written.record.message.is_empty() {
            take(Line::Record(written.record));
        }
    }

    fn finish_record(&mut self, mut take: impl FnMut(Line<'_>)) {
        if let Some(begun) = self.begun_record.take() {
            take(Line::Record(begun));
        }
    }

    fn record(&self, line: &[u8]) -> Option<WrittenRecord> {
        let marked = line.strip_prefix(&[RECORD_BEGIN])?;
        serde_json::from_slice(marked.strip_prefix(self.mark.as_bytes())?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&[u8]], expected: &[&str]) {
        let mut lines = Lines::new("m4rk".into());
        let mut seen = Vec::new();
        let mut take = |line: Line<'_>| match line {
            Line::Printed(line) => seen.push(line.to_owned()),
            Line::Record(record) => seen.push(format!("record: {}", record.message)),
        };
        for piece in pieces {
            lines.take(piece, &mut take);
        }
        lines.end(&mut take);
        assert_eq!(seen, expected);
    }

    #[test]
    fn lines_are_cut_wherever_the_pieces_end() {
        check(&[b"one\ntw", b"o\r\n", b"\n", b"three"], &["one", "two", "three"]);
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_such() {
        check(&[b"a\xffb\n"], &["a\u{fffd}b"]);
    }

    #[test]
    fn a_line_without_end_is_logged_in_pieces() {
        let long = vec![b'x'; limits::LINE_BYTES_MAX * 2 + 1];
        let whole = "x".repeat(limits::LINE_BYTES_MAX);
        check(&[&long], &[&whole, &whole, "x"]);
    }

    #[test]
    fn a_record_has_the_mark_of_its_process() {
        let long = "y".repeat(limits::LINE_BYTES_MAX * 2);
        let record = format!("\u{1e}m4rk{{\"level\":\"warn\",\"message\":\"{long}\"}}\n");
        let (first, second) = record.as_bytes().split_at(9_000);
        check(&[b"before\n", first, second, b"after\n"], &["before", &format!("record: {long}"), "after"]);
        let forged = "\u{1e}other{\"level\":\"error\",\"message\":\"x\"}";
        check(&[forged.as_bytes(), b"\n"], &[forged]);
        check(&["\u{1e}m4rk{no JSON\n".as_bytes()], &["\u{1e}m4rk{no JSON"]);
        let unknown = "\u{1e}m4rk{\"level\":\"loud\",\"message\":\"x\"}";
        check(&[unknown.as_bytes()], &[unknown]);
    }

    /// Records that a worker writes of what is printed: the stream and the text, which goes on unless it has a line end.
    fn check_pieces(pieces: &[&str], expected: &[&str]) {
        let written: Vec<String> = pieces
            .iter()
            .map(|piece| match piece.split_once(' ') {
                Some((stream, text)) if stream.parse::<u32>().is_ok() => {
                    let record = serde_json::json!({
                        "level": "info", "message": text.trim_end_matches('\n'), "stream": stream.parse::<u32>().ok(),
                        "unfinished": !text.ends_with('\n'),
                    });
                    format!("\n\u{1e}m4rk{record}\n")
                }
                _ => (*piece).to_owned(),
            })
            .collect();
        check(&written.iter().map(String::as_bytes).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_line_that_is_printed_in_pieces_is_one_record() {
        check_pieces(&["7 one ", "7 two ", "7 three\n"], &["record: one two three"]);
        check_pieces(&["7 one", "7 \n", "7 \n", "7 two\n"], &["record: one", "record: two"]);
        check_pieces(&["7 one"], &["record: one"]);
    }

    #[test]
    fn anything_else_ends_a_line_that_is_printed_in_pieces() {
        check_pieces(&["7 one", "9 two\n", "7 three\n"], &["record: one", "record: two", "record: three"]);
        check_pieces(&["7 one", "of a child\n", "7 two\n"], &["record: one", "of a child", "record: two"]);
        let warning = "\n\u{1e}m4rk{\"level\":\"warn\",\"message\":\"warned\",\"stream\":7}\n";
        check_pieces(&["7 one", warning, "7 two\n"], &["record: one", "record: warned", "record: two"]);
    }

    #[test]
    fn a_line_without_end_that_is_printed_in_pieces_is_logged_in_pieces() {
        let long = "x".repeat(limits::LINE_BYTES_MAX);
        let piece = format!("7 {long}");
        check_pieces(
            &[&piece, &piece, "7 y\n"],
            &[&format!("record: {long}"), &format!("record: {long}"), "record: y"],
        );
    }
}
