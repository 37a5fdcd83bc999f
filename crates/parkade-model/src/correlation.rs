//! What joins log records, spans and jobs to the request that they belong to.

use std::fmt;
use std::sync::Arc;

use crate::write_hex;

/// The id of a request as its client, its application and the logs know it. Copying one takes no allocation.
#[derive(Clone, PartialEq, Eq)]
pub enum RequestIdText {
    /// 32 hexadecimal digits: one of our own, or that of a trace.
    Hex([u8; 32]),
    /// As a trusted peer gave it.
    Given(Arc<str>),
}

/// `traceparent` (W3C Trace Context, section 3.2): the trace, and the span that is the parent of what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    pub trace: [u8; 16],
    pub span: [u8; 8],
    pub flags: u8,
}

/// What is passed on from a request to the jobs that it enqueues, and from these to theirs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Correlation {
    /// `None`: a job that a server stored before jobs had one.
    pub request_id: Option<RequestIdText>,
    pub trace: Option<TraceParent>,
}

impl RequestIdText {
    /// Of 16 bytes that nothing else has.
    #[must_use]
    pub fn of_bytes(bytes: &[u8; 16]) -> Self {
        let mut digits = [0; 32];
        write_hex(bytes, &mut digits);
        Self::Hex(digits)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Hex(digits) => ascii(digits),
            Self::Given(text) => text,
        }
    }
}

impl From<&str> for RequestIdText {
    fn from(text: &str) -> Self {
        match text.as_bytes().try_into() {
            Ok(digits) if is_hex(text.as_bytes()) => Self::Hex(digits),
            Ok(_) | Err(_) => Self::Given(text.into()),
        }
    }
}

impl fmt::Debug for RequestIdText {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), text)
    }
}

impl TraceParent {
    /// Bytes of its text.
    pub const LENGTH: usize = 55;
    const SAMPLED: u8 = 1;

    /// `00-<32 digits>-<16 digits>-<2 digits>`; a later version may have more after that. A trace or a span of zeros is
    /// none.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (known, rest) = text.split_at_checked(Self::LENGTH)?;
        let version = &known[..2];
        let is_separated = [2, 35, 52].into_iter().all(|place| known[place] == b'-');
        let fits = rest.is_empty() || (version != b"00" && rest[0] == b'-');
        if !is_separated || !fits || !is_hex(version) || version == b"ff" {
            return None;
        }
        let (trace, span, flags) = (read_hex(&known[3..35])?, read_hex(&known[36..52])?, read_hex::<1>(&known[53..])?);
        (trace != [0; 16] && span != [0; 8]).then_some(Self { trace, span, flags: flags[0] })
    }

    /// In version 0, which has two flags: what others mean is not known.
    #[must_use]
    pub fn text(&self) -> [u8; Self::LENGTH] {
        const KNOWN_FLAGS: u8 = 0b11;
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        write_hex(&self.trace, &mut text[3..35]);
        write_hex(&self.span, &mut text[36..52]);
        write_hex(&[self.flags & KNOWN_FLAGS], &mut text[53..]);
        text
    }

    /// Whether whoever began the trace wants its spans recorded.
    #[must_use]
    pub const fn is_sampled(&self) -> bool {
        self.flags & Self::SAMPLED != 0
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str(ascii(&self.text()))
    }
}

impl Correlation {
    /// Of a job that no request has enqueued: the id of the job, without its hyphens.
    #[must_use]
    pub fn of_job(job: crate::JobId) -> Self {
        Self { request_id: Some(RequestIdText::of_bytes(&job.bytes())), trace: None }
    }

    /// As it was stored. A trace that cannot be read is none.
    #[must_use]
    pub fn of_texts(request_id: Option<&str>, traceparent: Option<&str>) -> Self {
        Self {
            request_id: request_id.map(Into::into),
            trace: traceparent.and_then(|text| TraceParent::parse(text.as_bytes())),
        }
    }

    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_ref().map(RequestIdText::as_str)
    }
}

fn is_hex(digits: &[u8]) -> bool {
    digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

fn read_hex<const COUNT: usize>(digits: &[u8]) -> Option<[u8; COUNT]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; COUNT];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

fn ascii(digits: &[u8]) -> &str {
    std::str::from_utf8(digits).expect("digits are ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_read_and_written() {
        let parent = TraceParent::parse(TEXT.as_bytes()).unwrap();
        assert_eq!((parent.to_string().as_str(), parent.is_sampled()), (TEXT, true));
        let later = TraceParent::parse(format!("{}-more", TEXT.replacen("00", "01", 1)).as_bytes()).unwrap();
        assert_eq!(later, parent, "a later version may say more");
        let other = TraceParent::parse(TEXT.replace("-01", "-fe").as_bytes()).unwrap();
        assert_eq!((other.is_sampled(), other.to_string()), (false, TEXT.replace("-01", "-02")));
    }

    #[test]
    fn what_is_no_traceparent_is_refused() {
        let zeros = "0".repeat(32);
        for bad in [
            "",
            &TEXT[..54],
            &TEXT.replacen("00", "ff", 1),
            &format!("{TEXT}-more"),
            &format!("{}x", TEXT.replacen("00", "01", 1)),
            &TEXT.to_uppercase(),
            &TEXT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &zeros),
            &TEXT.replace("00f067aa0ba902b7", &zeros[..16]),
            &TEXT.replace('-', "_"),
        ] {
            assert_eq!(TraceParent::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn an_id_is_the_text_that_it_was_made_of() {
        for text in ["4bf92f3577b34da6a3ce929d0e0e4736", "4BF92F3577B34DA6A3CE929D0E0E4736", "mine-1"] {
            assert_eq!(RequestIdText::from(text).as_str(), text);
        }
        let job = Correlation::of_job("0192f3a4-5b6c-7d8e-9f01-23456789abcd".parse().unwrap());
        assert_eq!(job.request_id(), Some("0192f3a45b6c7d8e9f0123456789abcd"));
    }
}
