//! The output of a worker: each line is logged.

use std::os::fd::OwnedFd;

use parkade_model::WorkerId;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use super::limits;

/// Reads until the last holder of the other end has closed it. It yields after each read: a worker that prints
/// endlessly waits for its pipe, and does not delay the core.
pub async fn log_lines(output: OwnedFd, worker: WorkerId, pid: u32) -> std::io::Result<()> {
    let mut pipe = Receiver::from_owned_fd(output)?;
    let mut piece = [0; 4096];
    let mut lines = Lines::default();
    let print = |line: &str| tracing::info!(target: "parkade::worker", worker = worker.0, pid, "{line}");
    loop {
        match pipe.read(&mut piece).await {
            Ok(0) | Err(_) => break,
            Ok(count) => lines.take(&piece[..count], print),
        }
        tokio::task::yield_now().await;
    }
    lines.finish(print);
    Ok(())
}

/// Splits bytes into lines.
#[derive(Default)]
struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    fn take(&mut self, mut bytes: &[u8], mut print: impl FnMut(&str)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.append(&bytes[..end], &mut print);
            self.finish(&mut print);
            bytes = &bytes[end + 1..];
        }
        self.append(bytes, &mut print);
    }

    fn append(&mut self, mut bytes: &[u8], mut print: impl FnMut(&str)) {
        while self.begun.len() + bytes.len() > limits::LINE_BYTES_MAX {
            let (piece, rest) = bytes.split_at(limits::LINE_BYTES_MAX - self.begun.len());
            self.begun.extend_from_slice(piece);
            self.finish(&mut print);
            bytes = rest;
        }
        self.begun.extend_from_slice(bytes);
    }

    fn finish(&mut self, mut print: impl FnMut(&str)) {
        let line = self.begun.strip_suffix(b"\r").unwrap_or(&self.begun);
        if !line.is_empty() {
            print(&String::from_utf8_lossy(line));
        }
        self.begun.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&[u8]], expected: &[&str]) {
        let mut lines = Lines::default();
        let mut printed = Vec::new();
        for piece in pieces {
            lines.take(piece, |line| printed.push(line.to_owned()));
        }
        lines.finish(|line| printed.push(line.to_owned()));
        assert_eq!(printed, expected);
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
}
