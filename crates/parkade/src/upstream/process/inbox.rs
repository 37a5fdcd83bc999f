//! What the client of a WebSocket has sent and has not been written to its worker.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use parkade_wire::encode;

/// At most a window, and a message: the client's connection takes no more.
#[derive(Debug, Default)]
pub struct Inbox {
    waiting: VecDeque<ClientFrame>,
}

/// A frame for the worker.
#[derive(Debug)]
pub enum ClientFrame {
    Message { is_text: bool, bytes: Bytes },
    Close { code: u16, text: String },
}

impl Inbox {
    /// Returns whether `send` has to be called, which is not yet going to be.
    pub fn add(&mut self, frame: ClientFrame) -> bool {
        self.waiting.push_back(frame);
        self.waiting.len() == 1
    }

    /// Writes frames until so many bytes are unsent. Returns whether it has to be called again.
    pub fn send(&mut self, out: &mut BytesMut, stream: u32, unsent_max: usize) -> bool {
        while out.len() < unsent_max
            && let Some(frame) = self.waiting.pop_front()
        {
            match frame {
                ClientFrame::Message { is_text, bytes } => encode::message(out, stream, is_text, &bytes),
                ClientFrame::Close { code, text } => encode::close(out, stream, code, &text),
            }
        }
        !self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: &'static [u8]) -> ClientFrame {
        ClientFrame::Message { is_text: true, bytes: Bytes::from_static(bytes) }
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
