//! The ids of requests: what a trusted peer said, the trace that a request belongs to, or a text of our own.

use std::hash::{BuildHasher, RandomState};

use parkade_model::RequestId;

use crate::http::Head;

/// Of an id that a peer gives. Then: the request gets one of our own.
const GIVEN_BYTES_MAX: usize = 128;

/// The bytes of an id of our own: 32 hexadecimal digits, as those of a trace.
pub type IdText = [u8; 32];

/// Makes ids out of what distinguishes requests anyway, so that nothing is kept for them, and an id is written only when
/// somebody needs it.
#[derive(Debug)]
pub struct RequestIds {
    /// That of this process, in hexadecimal.
    prefix: [u8; 16],
}

impl Default for RequestIds {
    fn default() -> Self {
        Self { prefix: hex(RandomState::new().hash_one(())) }
    }
}

impl RequestIds {
    pub fn text(&self, request: RequestId) -> IdText {
        let mut text = [0; 32];
        text[..16].copy_from_slice(&self.prefix);
        text[16..].copy_from_slice(&hex(u64::from(request.generation) << 32 | u64::from(request.slot)));
        text
    }

    /// The id: the given one, or one of our own, which is written into the buffer.
    pub fn of<'a>(&self, request: RequestId, given: Option<&'a str>, buffer: &'a mut IdText) -> &'a str {
        std::str::from_utf8(self.bytes(request, given, buffer)).expect("an id is text")
    }

    /// The same, for a header.
    pub fn bytes<'a>(&self, request: RequestId, given: Option<&'a str>, buffer: &'a mut IdText) -> &'a [u8] {
        given.map_or_else(
            || {
                *buffer = self.text(request);
                &buffer[..]
            },
            str::as_bytes,
        )
    }
}

/// The id that a request brings along: `X-Request-Id` of a trusted peer, otherwise that of its trace (W3C Trace Context,
/// section 3.2).
pub fn given(head: &Head, is_trusted: bool) -> Option<Box<str>> {
    let mut trace = None;
    for (name, value) in head.fields() {
        if is_trusted && name == "x-request-id" && is_id(value) {
            return std::str::from_utf8(value).ok().map(Into::into);
        }
        if name == "traceparent" {
            trace = trace_id(value);
        }
    }
    trace.map(Into::into)
}

fn is_id(value: &[u8]) -> bool {
    (1..=GIVEN_BYTES_MAX).contains(&value.len())
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/+=@".contains(byte))
}

/// `00-<32 digits>-<16 digits>-<2 digits>`; a trace of zeros is none.
fn trace_id(value: &[u8]) -> Option<&str> {
    let mut parts = value.split(|byte| *byte == b'-');
    let is_hex =
        |part: &[u8], count| part.len() == count && part.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let version = parts.next().filter(|version| is_hex(version, 2) && *version != b"ff")?;
    let trace = parts.next().filter(|trace| is_hex(trace, 32) && trace.iter().any(|byte| *byte != b'0'))?;
    parts.next().filter(|parent| is_hex(parent, 16))?;
    parts.next().filter(|flags| is_hex(flags, 2))?;
    (version != b"00" || parts.next().is_none()).then(|| std::str::from_utf8(trace).ok())?
}

fn hex(number: u64) -> [u8; 16] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 16];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::parse_head;

    fn check(fields: &str, is_trusted: bool) -> Option<String> {
        let head = parse_head(format!("GET / HTTP/1.1\r\nHost: x\r\n{fields}\r\n").as_bytes(), 10).unwrap();
        given(&head, is_trusted).map(Into::into)
    }

    #[test]
    fn only_a_trusted_peer_chooses_an_id() {
        assert_eq!(check("X-Request-Id: a-1.b:c\r\n", true).unwrap(), "a-1.b:c");
        assert_eq!(check("X-Request-Id: a\r\n", false), None);
        for bad in ["", "a b", "a\"b", "ü", &"x".repeat(129)] {
            assert_eq!(check(&format!("X-Request-Id: {bad}\r\n"), true), None, "{bad}");
        }
    }

    #[test]
    fn a_trace_is_an_id() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(check(&format!("traceparent: 00-{trace}-00f067aa0ba902b7-01\r\n"), false).unwrap(), trace);
        assert_eq!(check(&format!("traceparent: 01-{trace}-00f067aa0ba902b7-01-more\r\n"), false).unwrap(), trace);
        let both = format!("traceparent: 00-{trace}-00f067aa0ba902b7-01\r\nX-Request-Id: mine\r\n");
        assert_eq!(check(&both, true).unwrap(), "mine");
        for bad in [
            format!("ff-{trace}-00f067aa0ba902b7-01"),
            format!("00-{trace}-00f067aa0ba902b7-01-more"),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{}-00f067aa0ba902b7-01", trace.to_uppercase()),
            trace.to_owned(),
        ] {
            assert_eq!(check(&format!("traceparent: {bad}\r\n"), true), None, "{bad}");
        }
    }

    #[test]
    fn no_two_requests_have_the_same_id() {
        let ids = RequestIds::default();
        let text = |slot, generation| ids.text(RequestId { slot, generation });
        assert_ne!(text(1, 0), text(0, 1));
        assert_eq!(&text(0xab, 0xc)[16..], b"0000000c000000ab");
        assert_ne!(text(1, 1), RequestIds::default().text(RequestId { slot: 1, generation: 1 }));
    }
}
