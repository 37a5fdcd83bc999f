//! What the client of a WebSocket has sent and has not been written to its worker.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use parkade_wire::encode;
use parkade_wire::limits::FRAME_BYTES_MAX;

use super::limits::MESSAGE_PIECE_BYTES;

/// At most a window, and a message: the client's connection takes no more.
#[derive(Debug, Default)]
pub struct Inbox {
    waiting: VecDeque<ClientFrame>,
}

/// A frame for the worker, or several for a long message.
#[derive(Debug)]
pub enum ClientFrame {
    Message {
        is_text: bool,
        bytes: Bytes,
    },
    /// Of a message that has begun.
    Rest {
        bytes: Bytes,
    },
    Close {
        code: u16,
        text: String,
    },
}

impl Inbox {
    /// Returns whether `send` has to be called, which is not yet going to be.
    pub fn add(&mut self, frame: ClientFrame) -> bool {
        self.waiting.push_back(frame);
        self.waiting.len() == 1
    }

    /// Writes frames until so many bytes are unsent, or a piece of a long message: then it is another stream's turn.
    /// Returns whether it has to be called again.
    pub fn send(&mut self, out: &mut BytesMut, stream: u32, unsent_max: usize) -> bool {
        while out.len() < unsent_max
            && let Some(frame) = self.waiting.pop_front()
        {
            let rest = match frame {
                ClientFrame::Message { is_text, bytes } if bytes.len() > FRAME_BYTES_MAX => {
                    send_piece(out, stream, is_text, bytes)
                }
                ClientFrame::Message { is_text, bytes } => {
                    encode::message(out, stream, is_text, &bytes, false);
                    None
                }
                ClientFrame::Rest { bytes } => send_piece(out, stream, false, bytes),
                ClientFrame::Close { code, text } => {
                    encode::close(out, stream, code, &text);
                    None
                }
            };
            if let Some(bytes) = rest {
                self.waiting.push_front(ClientFrame::Rest { bytes });
                break;
            }
        }
        !self.waiting.is_empty()
    }
}

/// Writes the next piece of a message. Returns what is left of it.
fn send_piece(out: &mut BytesMut, stream: u32, is_text: bool, mut bytes: Bytes) -> Option<Bytes> {
    let piece = bytes.split_to(bytes.len().min(MESSAGE_PIECE_BYTES));
    let rest = Some(bytes).filter(|rest| !rest.is_empty());
    encode::message(out, stream, is_text, &piece, rest.is_some());
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: &'static [u8]) -> ClientFrame {
        ClientFrame::Message { is_text: true, bytes: Bytes::from_static(bytes) }
    }

    /// The lengths and flags of the frames that were written.
    fn written(out: &mut BytesMut) -> Vec<(usize, u8)> {
        let mut written = Vec::new();
        while let Some(frame) = parkade_wire::next_raw(out).unwrap() {
            written.push((frame.payload.len(), frame.flags));
        }
        written
    }

    #[test]
    fn a_long_message_is_written_in_pieces_and_others_get_a_turn_between_them() {
        let (mut inbox, mut out) = (Inbox::default(), BytesMut::new());
        let long = Bytes::from(vec![b'x'; FRAME_BYTES_MAX + 1]);
        assert!(inbox.add(ClientFrame::Message { is_text: true, bytes: long.slice(1..) }));
        assert!(!inbox.send(&mut out, 1, usize::MAX));
        assert_eq!(written(&mut out), [(FRAME_BYTES_MAX, 2)], "it fits into a frame");
        inbox.add(ClientFrame::Message { is_text: true, bytes: long });
        inbox.add(message(b"next"));
        for piece in 0..16 {
            assert!(inbox.send(&mut out, 1, usize::MAX));
            assert_eq!(written(&mut out), [(MESSAGE_PIECE_BYTES, if piece == 0 { 3 } else { 1 })]);
        }
        assert!(!inbox.send(&mut out, 1, usize::MAX));
        assert_eq!(written(&mut out), [(1, 0), (4, 2)]);
    }

    #[test]
    fn frames_keep_their_order_and_fill_a_link_only_so_far() {
        let (mut inbox, mut out) = (Inbox::default(), BytesMut::new());
        assert!(inbox.add(message(b"one")));
        assert!(!inbox.add(message(b"two")), "it is going to be called");
        assert!(!inbox.add(ClientFrame::Close { code: 1000, text: String::new() }));
        assert!(inbox.send(&mut out, 1, 1));
        assert_eq!(out.len(), 12 + 3);
        assert!(!inbox.send(&mut out, 1, usize::MAX));
        assert_eq!(out.len(), 2 * (12 + 3) + 12 + 5);
        assert!(inbox.add(message(b"next")));
    }
}
