//! Messages of the server as frames. A frame has no mask, so one serves any number of sockets.

use bytes::{BufMut, Bytes, BytesMut};

use crate::close::Close;
use crate::deflate::Deflater;
use crate::frame::{Control, Opcode, OwnHead};
use crate::limits::CONTROL_MAX;
use crate::message_kind::MessageKind;

/// A message as it is.
#[must_use]
pub fn message(kind: MessageKind, payload: &[u8]) -> Bytes {
    whole(Opcode::Message(kind), false, payload)
}

/// A message for sockets that agreed to compression. It is not compressed if that would make it larger, unless later
/// messages refer to it.
pub fn compressed(kind: MessageKind, payload: &[u8], deflater: &mut Deflater) -> Bytes {
    let is_needed = deflater.keeps_context();
    let short = deflater.deflate(payload);
    if short.len() < payload.len() || is_needed {
        whole(Opcode::Message(kind), true, short)
    } else {
        message(kind, payload)
    }
}

#[must_use]
pub fn ping(payload: &[u8]) -> Bytes {
    control(Control::Ping, payload)
}

/// The answer to a ping with this payload.
#[must_use]
pub fn pong(payload: &[u8]) -> Bytes {
    control(Control::Pong, payload)
}

/// The last frame. A text that is too long is cut.
#[must_use]
pub fn close(close: Option<&Close>) -> Bytes {
    let payload = close.map(|close| [&close.code.to_be_bytes(), close.short_text().as_bytes()].concat());
    control(Control::Close, &payload.unwrap_or_default())
}

fn control(control: Control, payload: &[u8]) -> Bytes {
    whole(Opcode::Control(control), false, &payload[..payload.len().min(CONTROL_MAX)])
}

fn whole(opcode: Opcode, is_compressed: bool, payload: &[u8]) -> Bytes {
    frame(&OwnHead::new(opcode, is_compressed, payload.len()), payload)
}

pub fn frame(head: &OwnHead, payload: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(head.bytes().len() + payload.len());
    frame.put_slice(head.bytes());
    frame.put_slice(payload);
    frame.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 6455, section 5.7, and RFC 7692, section 7.2.3.
    #[test]
    fn frames_are_those_of_the_rfcs() {
        assert_eq!(message(MessageKind::Text, b"Hello"), &b"\x81\x05Hello"[..]);
        assert_eq!(ping(b"Hello"), &b"\x89\x05Hello"[..]);
        assert_eq!(pong(b""), &b"\x8a\x00"[..]);
        assert_eq!(close(None), &b"\x88\x00"[..]);
        assert_eq!(close(Some(&Close { code: 1000, text: "bye".into() })), &b"\x88\x05\x03\xe8bye"[..]);
    }

    #[test]
    fn a_message_is_compressed_if_that_makes_it_smaller() {
        let mut deflater = Deflater::new(false);
        assert_eq!(compressed(MessageKind::Text, b"Hello", &mut deflater), &b"\x81\x05Hello"[..]);
        let long = compressed(MessageKind::Binary, &[7; 1_000], &mut deflater);
        assert_eq!(long[0], 0xc2);
        assert!(long.len() < 30);
    }

    #[test]
    fn a_control_frame_has_at_most_125_bytes() {
        assert_eq!(ping(&[0; 200]).len(), 127);
        assert_eq!(close(Some(&Close { code: 1000, text: "x".repeat(500) })).len(), 127);
    }
}
