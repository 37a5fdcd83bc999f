//! Why a socket is closed (RFC 6455, section 7.4).

use crate::limits::CLOSE_TEXT_MAX;
use crate::socket_fault::SocketFault;

/// The body of a close frame that has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Close {
    /// 1000 to 4999.
    pub code: u16,
    pub text: String,
}

impl Close {
    /// Whether a peer may send it in a frame. 1004 to 1006 and 1015 are for programs to tell each other (section 7.4.1).
    #[must_use]
    pub fn is_sendable(code: u16) -> bool {
        matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
    }

    /// The payload of a close frame. `None`: its peer gives no reason.
    pub fn parse(payload: &[u8]) -> Result<Option<Self>, SocketFault> {
        let (code, text) = match payload {
            [] => return Ok(None),
            [_] => return Err(SocketFault::BadControl),
            [high, low, text @ ..] => (u16::from_be_bytes([*high, *low]), text),
        };
        if !Self::is_sendable(code) {
            return Err(SocketFault::BadCloseCode);
        }
        let text = str::from_utf8(text).map_err(|_| SocketFault::BadText)?;
        Ok(Some(Self { code, text: text.to_owned() }))
    }

    /// How a client is told that it breaks the rules.
    #[must_use]
    pub fn of(fault: SocketFault) -> Self {
        Self { code: fault.close_code(), text: fault.to_string() }
    }

    /// What of the text fits into a frame: whole characters.
    #[must_use]
    pub fn short_text(&self) -> &str {
        let end = (0..=CLOSE_TEXT_MAX.min(self.text.len())).rev().find(|end| self.text.is_char_boundary(*end));
        &self.text[..end.unwrap_or_default()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_frame_has_no_reason_or_a_code_and_a_text() {
        for (payload, parsed) in [
            (&b""[..], Ok(None)),
            (b"\x03\xe8", Ok(Some((1000, "")))),
            (b"\x0f\xa0bye", Ok(Some((4000, "bye")))),
            (b"\x03", Err(SocketFault::BadControl)),
            (b"\x03\xed", Err(SocketFault::BadCloseCode)),
            (b"\x03\xe8\xff", Err(SocketFault::BadText)),
        ] {
            let parsed = parsed.map(|parsed| parsed.map(|(code, text): (u16, &str)| Close { code, text: text.into() }));
            assert_eq!(Close::parse(payload), parsed, "{payload:?}");
        }
    }

    #[test]
    fn a_client_is_told_what_it_did_wrong() {
        for (fault, code) in
            [(SocketFault::Unmasked, 1002), (SocketFault::BadText, 1007), (SocketFault::TooLarge, 1009)]
        {
            let told = Close::of(fault);
            assert_eq!(told.code, code);
            assert_eq!(told.short_text(), fault.to_string(), "the whole text fits into a frame");
        }
    }

    #[test]
    fn codes_that_only_programs_use_may_not_be_sent() {
        for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] {
            assert!(!Close::is_sendable(code), "{code}");
        }
        for code in [1000, 1001, 1003, 1007, 1011, 1014, 3000, 3999, 4000, 4999] {
            assert!(Close::is_sendable(code), "{code}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_two_characters() {
        let close = Close { code: 1000, text: format!("{}é", "x".repeat(122)) };
        assert_eq!(close.short_text(), "x".repeat(122));
    }
}
