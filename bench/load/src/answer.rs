//! Finds the end of an HTTP/1.1 answer in the bytes received so far.

use anyhow::{Context, bail};

#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Bytes from the start of the head to the end of the body.
    pub length: usize,
    /// The server will close the connection after it.
    pub closes: bool,
}

/// The answer that `bytes` start with, or `None` if it is not complete yet; `at_end` when no more bytes will come.
pub fn parse(bytes: &[u8], at_end: bool) -> anyhow::Result<Option<Answer>> {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(head_length) = head.parse(bytes)? else { return Ok(None) };
    let status = head.code.context("a complete head has a status")?;
    let body = &bytes[head_length..];
    let (body_length, delimited) = match framing(status, head.headers)? {
        Framing::Length(length) if body.len() >= length => (length, true),
        Framing::Chunked => match chunked_length(body)? {
            Some(length) => (length, true),
            None => return Ok(None),
        },
        Framing::UntilClose if at_end => (body.len(), false),
        Framing::Length(_) | Framing::UntilClose => return Ok(None),
    };
    let closes = !delimited || says_close(head.version, head.headers);
    Ok(Some(Answer { status, length: head_length + body_length, closes }))
}

enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

/// RFC 9112, section 6.3.
fn framing(status: u16, fields: &[httparse::Header<'_>]) -> anyhow::Result<Framing> {
    if matches!(status, 100..=199 | 204 | 304) {
        return Ok(Framing::Length(0));
    }
    if value(fields, "transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case(b"chunked")) {
        return Ok(Framing::Chunked);
    }
    match value(fields, "content-length") {
        Some(length) => Ok(Framing::Length(std::str::from_utf8(length)?.trim().parse()?)),
        None => Ok(Framing::UntilClose),
    }
}

fn chunked_length(body: &[u8]) -> anyhow::Result<Option<usize>> {
    let mut at = 0;
    loop {
        let (line, size) = match httparse::parse_chunk_size(&body[at..]) {
            Ok(httparse::Status::Complete(found)) => found,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => bail!("a chunk without a size"),
        };
        // No peer sends trailers, so the last chunk is followed by an empty line like all others.
        at += line + usize::try_from(size)? + 2;
        if at > body.len() {
            return Ok(None);
        }
        if size == 0 {
            return Ok(Some(at));
        }
    }
}

fn says_close(version: Option<u8>, fields: &[httparse::Header<'_>]) -> bool {
    match value(fields, "connection") {
        Some(v) if v.eq_ignore_ascii_case(b"close") => true,
        Some(v) if v.eq_ignore_ascii_case(b"keep-alive") => false,
        _ => version == Some(0),
    }
}

fn value<'a>(fields: &[httparse::Header<'a>], name: &str) -> Option<&'a [u8]> {
    fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, at_end: bool, expected: Option<(u16, usize, bool)>) {
        let found = parse(text.as_bytes(), at_end).expect("this answer is well formed");
        assert_eq!(found.map(|a| (a.status, a.length, a.closes)), expected, "{text:?}");
    }

    #[test]
    fn a_complete_answer_says_where_it_ends() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP", false, Some((200, 40, false)));
        check("HTTP/1.1 204 No Content\r\n\r\n", false, Some((204, 27, false)));
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            false,
            Some((200, 59, false)),
        );
        check("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", false, Some((200, 57, true)));
        check("HTTP/1.0 200 OK\r\n\r\nok", true, Some((200, 21, true)));
    }

    #[test]
    fn a_part_of_an_answer_is_not_an_answer() {
        check("HTTP/1.1 200 OK\r\nContent-Le", false, None);
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no", true, None);
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", true, None);
        check("HTTP/1.0 200 OK\r\n\r\nok", false, None);
    }
}
