//! How a frame begins (RFC 6455, section 5.2).

use crate::limits::{CONTROL_MAX, HEAD_MAX};
use crate::message_kind::MessageKind;
use crate::socket_fault::SocketFault;

const FINAL: u8 = 0x80;
/// The first reserved bit: the message is compressed (RFC 7692, section 6).
const COMPRESSED: u8 = 0x40;
const RESERVED: u8 = 0x30;
const MASKED: u8 = 0x80;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    Continuation,
    Message(MessageKind),
    Control(Control),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    Close,
    Ping,
    Pong,
}

impl Opcode {
    fn parse(bits: u8) -> Option<Self> {
        Some(match bits {
            0x0 => Self::Continuation,
            0x1 => Self::Message(MessageKind::Text),
            0x2 => Self::Message(MessageKind::Binary),
            0x8 => Self::Control(Control::Close),
            0x9 => Self::Control(Control::Ping),
            0xa => Self::Control(Control::Pong),
            _ => return None,
        })
    }

    fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0x0,
            Self::Message(MessageKind::Text) => 0x1,
            Self::Message(MessageKind::Binary) => 0x2,
            Self::Control(Control::Close) => 0x8,
            Self::Control(Control::Ping) => 0x9,
            Self::Control(Control::Pong) => 0xa,
        }
    }
}

/// The head of a client's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    pub opcode: Opcode,
    pub is_final: bool,
    pub is_compressed: bool,
    pub mask: [u8; 4],
    /// Bytes of payload.
    pub length: u64,
}

impl FrameHead {
    /// The head at the beginning of `bytes`, and how many bytes it takes; `None` as long as some are missing.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, SocketFault> {
        let [first, second, rest @ ..] = bytes else { return Ok(None) };
        let opcode = Opcode::parse(first & 0x0f).ok_or(SocketFault::UnknownOpcode)?;
        let (is_final, is_compressed) = (first & FINAL != 0, first & COMPRESSED != 0);
        if first & RESERVED != 0 || is_compressed && !matches!(opcode, Opcode::Message(_)) {
            return Err(SocketFault::ReservedBits);
        }
        if second & MASKED == 0 {
            return Err(SocketFault::Unmasked);
        }
        let short = second & !MASKED;
        if matches!(opcode, Opcode::Control(_)) && (!is_final || usize::from(short) > CONTROL_MAX) {
            return Err(SocketFault::BadControl);
        }
        let (length, rest) = match short {
            126 => match rest.split_first_chunk() {
                None => return Ok(None),
                Some((length, rest)) => (u64::from(u16::from_be_bytes(*length)), rest),
            },
            127 => match rest.split_first_chunk() {
                None => return Ok(None),
                Some((length, rest)) => (u64::from_be_bytes(*length), rest),
            },
            short => (u64::from(short), rest),
        };
        let least = [0, 126, 65_536][usize::from(short.saturating_sub(125))];
        if length < least || length > i64::MAX as u64 {
            return Err(SocketFault::BadLength);
        }
        let Some((mask, rest)) = rest.split_first_chunk() else { return Ok(None) };
        let head = Self { opcode, is_final, is_compressed, mask: *mask, length };
        Ok(Some((head, bytes.len() - rest.len())))
    }
}

/// The head of a frame of the server, which has no mask.
pub struct OwnHead {
    bytes: [u8; HEAD_MAX],
    count: usize,
}

impl OwnHead {
    /// Of a frame that is a whole message, or its last one.
    pub fn new(opcode: Opcode, is_compressed: bool, length: usize) -> Self {
        let mut bytes = [0; HEAD_MAX];
        bytes[0] = FINAL | if is_compressed { COMPRESSED } else { 0 } | opcode.bits();
        let count = match length {
            0..=125 => {
                bytes[1] = length.to_le_bytes()[0];
                2
            }
            126..=0xffff => {
                bytes[1] = 126;
                bytes[2..4].copy_from_slice(&(length as u64).to_be_bytes()[6..]);
                4
            }
            _ => {
                bytes[1] = 127;
                bytes[2..10].copy_from_slice(&(length as u64).to_be_bytes());
                10
            }
        };
        Self { bytes, count }
    }

    /// Of a frame after which the message goes on.
    pub fn unfinished(self) -> Self {
        let mut bytes = self.bytes;
        bytes[0] &= !FINAL;
        Self { bytes, ..self }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASK: [u8; 4] = [1, 2, 3, 4];

    fn parse(bytes: &[&[u8]]) -> Result<Option<(FrameHead, usize)>, SocketFault> {
        FrameHead::parse(&bytes.concat())
    }

    #[test]
    fn a_length_has_three_forms_and_only_the_shortest_is_right() {
        for (form, length) in [
            (&[0x80][..], Ok(0)),
            (&[0xfd], Ok(125)),
            (&[0xfe, 0, 126], Ok(126)),
            (&[0xfe, 0, 125], Err(SocketFault::BadLength)),
            (&[0xfe, 0xff, 0xff], Ok(65_535)),
            (&[0xff, 0, 0, 0, 0, 0, 1, 0, 0], Ok(65_536)),
            (&[0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff], Err(SocketFault::BadLength)),
            (&[0xff, 0x80, 0, 0, 0, 0, 0, 0, 0], Err(SocketFault::BadLength)),
        ] {
            let parsed = parse(&[&[0x82], form, &MASK]);
            assert_eq!(parsed.map(|head| head.map(|(head, _)| head.length)), length.map(Some), "{form:x?}");
            if length.is_ok() {
                assert_eq!(parse(&[&[0x82], form, &MASK[..3]]), Ok(None), "{form:x?}");
                assert_eq!(parse(&[&[0x82], &form[..form.len() - 1]]), Ok(None), "{form:x?}");
            }
        }
    }

    #[test]
    fn a_frame_that_breaks_the_rules_is_known_by_its_first_two_bytes() {
        for (start, fault) in [
            ([0x81, 0x05], SocketFault::Unmasked),
            ([0x83, 0x80], SocketFault::UnknownOpcode),
            ([0x8f, 0x80], SocketFault::UnknownOpcode),
            ([0xa1, 0x80], SocketFault::ReservedBits),
            ([0x91, 0x80], SocketFault::ReservedBits),
            ([0xc9, 0x80], SocketFault::ReservedBits),
            ([0xc0, 0x80], SocketFault::ReservedBits),
            ([0x09, 0x80], SocketFault::BadControl),
            ([0x88, 0xfe], SocketFault::BadControl),
        ] {
            assert_eq!(FrameHead::parse(&start), Err(fault), "{start:x?}");
        }
    }

    #[test]
    fn own_heads_are_those_of_the_rfc() {
        let text = Opcode::Message(MessageKind::Text);
        assert_eq!(OwnHead::new(text, false, 5).bytes(), [0x81, 0x05]);
        assert_eq!(OwnHead::new(text, true, 7).bytes(), [0xc1, 0x07]);
        assert_eq!(OwnHead::new(text, false, 3).unfinished().bytes(), [0x01, 0x03]);
        assert_eq!(OwnHead::new(Opcode::Continuation, false, 2).bytes(), [0x80, 0x02]);
        let binary = Opcode::Message(MessageKind::Binary);
        assert_eq!(OwnHead::new(binary, false, 256).bytes(), [0x82, 0x7e, 0x01, 0x00]);
        assert_eq!(OwnHead::new(binary, false, 65_536).bytes(), [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(OwnHead::new(Opcode::Control(Control::Ping), false, 5).bytes(), [0x89, 0x05]);
    }
}
