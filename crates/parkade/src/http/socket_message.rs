//! A message for any number of WebSockets. Frames of a server have no mask, so each of its forms is made once.

use std::cell::OnceCell;

use bytes::Bytes;
use parkade_websocket::{self as websocket, MessageKind, WindowBits};

use super::limits::SOCKET_COMPRESSED_BYTES_MIN;
use super::web_socket::Compressors;

#[derive(Debug)]
pub struct SocketMessage {
    kind: MessageKind,
    bytes: Bytes,
    plain: OnceCell<Bytes>,
    /// For each window.
    compressed: [OnceCell<Bytes>; WindowBits::COUNT],
}

impl SocketMessage {
    /// Text, if the content type says so and the bytes are text; otherwise binary.
    pub fn new(content_type: &str, bytes: Bytes) -> Self {
        let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_text = media.starts_with("text/") || media == "application/json" || media.ends_with("+json");
        let kind = if is_text && str::from_utf8(&bytes).is_ok() { MessageKind::Text } else { MessageKind::Binary };
        Self { kind, bytes, plain: OnceCell::new(), compressed: Default::default() }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The frame for a WebSocket that agreed to compression with this window, or to none. No message refers to an
    /// earlier one.
    pub fn frame(&self, window: Option<WindowBits>, shared: &mut Compressors) -> &Bytes {
        if let Some(window) = window.filter(|_| self.bytes.len() >= SOCKET_COMPRESSED_BYTES_MIN) {
            return self.compressed[window.index()]
                .get_or_init(|| websocket::compressed(self.kind, &self.bytes, shared.deflater(window)));
        }
        self.plain.get_or_init(|| websocket::message(self.kind, &self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_as_text_is_text_if_it_is() {
        for (content_type, bytes, kind) in [
            ("text/plain; charset=utf-8", &b"hello"[..], MessageKind::Text),
            ("application/json", b"{}", MessageKind::Text),
            ("application/problem+json", b"{}", MessageKind::Text),
            ("text/plain", b"\xff", MessageKind::Binary),
            ("application/octet-stream", b"hello", MessageKind::Binary),
            ("", b"hello", MessageKind::Binary),
        ] {
            assert_eq!(SocketMessage::new(content_type, Bytes::from_static(bytes)).kind, kind, "{content_type}");
        }
    }

    #[test]
    fn each_form_is_made_once() {
        let rows: Vec<String> = (0..400).map(|row| format!("row {row}\n")).collect();
        let message = SocketMessage::new("text/plain", Bytes::from(rows.concat().repeat(3)));
        let shared = &mut Compressors::default();
        let windows = [None, WindowBits::new(9), Some(WindowBits::LARGEST)];
        let made = windows.map(|window| message.frame(window, shared).clone());
        assert!(made[1].len() < made[0].len() && made[2].len() < made[1].len());
        let again = windows.map(|window| message.frame(window, shared).as_ptr());
        assert_eq!(again, made.map(|frame| frame.as_ptr()));
    }
}
