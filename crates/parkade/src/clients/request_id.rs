//! The ids of requests: what a trusted peer said, the trace that a request belongs to, or a text of our own. And what
//! else a request brings along that joins it to others.

use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use parkade_model::{Correlation, RequestId, RequestIdText, TraceParent, write_hex};

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
        given.unwrap_or_else(|| {
            *buffer = self.text(request);
            std::str::from_utf8(buffer).expect("hexadecimal digits are text")
        })
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

/// What a request brings along: the trace that it belongs to (W3C Trace Context, section 3.2), and as its id the
/// `X-Request-Id` of a trusted peer, otherwise that of its trace. `None`: nothing.
pub fn given(head: &Head, is_trusted: bool) -> Option<Rc<Correlation>> {
    let (mut id, mut parent, mut parents_count) = (None, None, 0);
    for (name, value) in head.fields() {
        match name {
            "x-request-id" if is_trusted && id.is_none() && is_id(value) => id = std::str::from_utf8(value).ok(),
            "traceparent" => (parent, parents_count) = (TraceParent::parse(value), parents_count + 1),
            _ => {}
        }
    }
    // Nobody knows which of several is meant.
    let trace = parent.filter(|_| parents_count == 1);
    let of_trace = |parent: TraceParent| RequestIdText::of_bytes(&parent.trace);
    let request_id = id.map(RequestIdText::from).or_else(|| trace.map(of_trace))?;
    Some(Rc::new(Correlation { request_id: Some(request_id), trace }))
}

fn is_id(value: &[u8]) -> bool {
    (1..=GIVEN_BYTES_MAX).contains(&value.len())
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/+=@".contains(byte))
}

fn hex(number: u64) -> [u8; 16] {
    let mut digits = [0; 16];
    write_hex(&number.to_be_bytes(), &mut digits);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::parse_head;

    fn check(fields: &str, is_trusted: bool) -> Option<String> {
        let head = parse_head(format!("GET / HTTP/1.1\r\nHost: x\r\n{fields}\r\n").as_bytes(), 10).unwrap();
        Some(given(&head, is_trusted)?.request_id()?.to_owned())
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
        assert_eq!(check(&both, false).unwrap(), trace);
        assert_eq!(check(&format!("traceparent: {trace}\r\n"), true), None);
        let line = format!("traceparent: 00-{trace}-00f067aa0ba902b7-01\r\n");
        let other = line.replace("4bf9", "aaaa");
        assert_eq!(check(&format!("{line}{other}"), false), None, "of two, none counts");
        assert_eq!(check(&format!("traceparent: nonsense\r\n{line}"), false), None);
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
