//! Violations by the other end. There is one type, because every violation ends with `GOODBYE`, and only the violated rule differs.

use std::fmt;

use crate::kind::Kind;

/// The rules of section 4 of the protocol (the last one is of section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolRule {
    /// A frame, or a part of it, is longer than the protocol allows.
    Length,
    /// The payload is not one `MessagePack` value, is not the array described, or has trailing bytes.
    Payload,
    /// A frame from the wrong end.
    End,
    /// Stream 0 where a request's is required, or the reverse; a job's where a request's is required, or the reverse.
    Stream,
    /// A frame that comes too early.
    Time,
    /// A second `HELLO`, `READY` or `FAILED`.
    Second,
    /// A frame on a stream that was never opened.
    Unopened,
    /// A frame after the closing frame of its stream.
    Closed,
    /// `DATA` beyond the window.
    Window,
    /// `DATA` without a `MORE` before it; a `RESUME` whose `MORE` does not match its rows.
    More,
    /// A second `RESPONSE`.
    Response,
    /// `["await"]` by a worker that is not concurrent.
    Await,
    /// `CREDIT` out of its range, or bringing the credit over 65,536.
    Credit,
    /// The ranges of versions do not meet. This is the only violation without a culprit.
    Version,
}

impl ProtocolRule {
    /// The rule's word in the vectors.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            ProtocolRule::Length => "length",
            ProtocolRule::Payload => "payload",
            ProtocolRule::End => "end",
            ProtocolRule::Stream => "stream",
            ProtocolRule::Time => "time",
            ProtocolRule::Second => "second",
            ProtocolRule::Unopened => "unopened",
            ProtocolRule::Closed => "closed",
            ProtocolRule::Window => "window",
            ProtocolRule::More => "more",
            ProtocolRule::Response => "response",
            ProtocolRule::Await => "await",
            ProtocolRule::Credit => "credit",
            ProtocolRule::Version => "version",
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            ProtocolRule::Length => "longer than allowed",
            ProtocolRule::Payload => "not the payload described",
            ProtocolRule::End => "from the wrong end",
            ProtocolRule::Stream => "on the wrong stream",
            ProtocolRule::Time => "before its time",
            ProtocolRule::Second => "for a second time",
            ProtocolRule::Unopened => "on a stream that was never opened",
            ProtocolRule::Closed => "on a stream that is closed",
            ProtocolRule::Window => "beyond the window",
            ProtocolRule::More => "without a MORE before it",
            ProtocolRule::Response => "after a RESPONSE",
            ProtocolRule::Await => "await by a worker that is not concurrent",
            ProtocolRule::Credit => "credit out of its range",
            ProtocolRule::Version => "no version in common",
        }
    }
}

/// The other end violated a rule: write `GOODBYE` with [`Violation::code`] and this text, and close.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Violation {
    pub rule: ProtocolRule,
    /// `None` for a kind that this version does not know (it may still be too long).
    pub kind: Option<Kind>,
    /// 0 is the link.
    pub stream: u32,
    /// The part of the rule; empty if the rule says everything.
    pub why: &'static str,
}

impl Violation {
    /// A violation by the frame itself, whatever it carries.
    #[must_use]
    pub const fn new(rule: ProtocolRule, kind: Kind, stream: u32) -> Self {
        Violation { rule, kind: Some(kind), stream, why: "" }
    }

    /// The code of the `GOODBYE` that answers it.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self.rule {
            ProtocolRule::Version => "version",
            _ => "violation",
        }
    }
}

impl fmt::Display for Violation {
    /// `RESPONSE on stream 7: not the payload described: status is 200 to 599`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.map_or("a frame of an unknown kind", Kind::name))?;
        if self.stream != 0 {
            write!(f, " on stream {}", self.stream)?;
        }
        write!(f, ": {}", self.rule.sentence())?;
        if self.why.is_empty() { Ok(()) } else { write!(f, ": {}", self.why) }
    }
}

/// A fault in a payload, found by a reader that does not know its frame yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PayloadFault {
    pub rule: ProtocolRule,
    pub why: &'static str,
}

impl PayloadFault {
    pub const fn payload(why: &'static str) -> Self {
        PayloadFault { rule: ProtocolRule::Payload, why }
    }

    pub const fn length(why: &'static str) -> Self {
        PayloadFault { rule: ProtocolRule::Length, why }
    }

    pub const fn on(self, kind: Kind, stream: u32) -> Violation {
        Violation { rule: self.rule, kind: Some(kind), stream, why: self.why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_frame_stream_and_rule() {
        let violation = PayloadFault::payload("status is 200 to 599").on(Kind::Response, 7);
        assert_eq!(violation.to_string(), "RESPONSE on stream 7: not the payload described: status is 200 to 599");
        let violation = Violation::new(ProtocolRule::Second, Kind::Hello, 0);
        assert_eq!(violation.to_string(), "HELLO: for a second time");
    }
}
