//! What clients of WebSockets that wait on a channel have said, until the function that is called for it has answered.

use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use parkade_model::{IdMap, RequestId};
use parkade_wire::limits::{FRAME_BYTES_MAX, INLINE_BODY_BYTES_MAX};
use parkade_wire::{Response, WaitOutcome};

use crate::http::SocketMessage;
use crate::http::answer::{BadAnswer, HeaderField};

const NO_CONTENT: u16 = 204;
/// Closing codes (RFC 6455, section 7.4.1).
const POLICY_VIOLATION: u16 = 1008;
const INTERNAL_ERROR: u16 = 1011;
const CLOSING_CODE_MIN: u16 = 1000;

/// By the ids of the calls.
#[derive(Debug, Default)]
pub struct SocketCalls {
    calls: IdMap<RequestId, SocketCall>,
}

#[derive(Debug)]
pub struct SocketCall {
    pub socket: RequestId,
    is_text: bool,
    bytes: Bytes,
    pub answer: CallAnswer,
}

/// What a WebSocket gets when the call has ended.
#[derive(Debug, Default)]
pub enum CallAnswer {
    #[default]
    Nothing,
    Message(Rc<SocketMessage>),
    /// A long one, of which not everything has come.
    Begun {
        status: u16,
        content_type: String,
        bytes: BytesMut,
    },
    Close {
        code: u16,
        text: String,
    },
}

impl SocketCalls {
    pub fn begin(&mut self, call: RequestId, socket: RequestId, is_text: bool, bytes: Bytes) {
        self.calls.insert(call, SocketCall { socket, is_text, bytes, answer: CallAnswer::Nothing });
    }

    pub fn contains(&self, request: RequestId) -> bool {
        !self.calls.is_empty() && self.calls.contains_key(&request)
    }

    pub fn of(&mut self, request: RequestId) -> Option<&mut SocketCall> {
        if self.calls.is_empty() { None } else { self.calls.get_mut(&request) }
    }

    /// The WebSocket whose client has said what the call is about.
    pub fn socket_of(&self, call: RequestId) -> Option<RequestId> {
        self.calls.get(&call).map(|call| call.socket)
    }

    /// What the function is called with, and what follows that if it is long.
    pub fn outcome(&self, call: RequestId) -> Option<(WaitOutcome<'_>, Option<Bytes>)> {
        let SocketCall { is_text, bytes, .. } = self.calls.get(&call)?;
        let follows = bytes.len() > INLINE_BODY_BYTES_MAX;
        let body = (!follows).then(|| bytes[..].into());
        Some((WaitOutcome::Said { is_text: *is_text, body }, follows.then(|| bytes.clone())))
    }

    pub fn end(&mut self, request: RequestId) -> Option<SocketCall> {
        if self.calls.is_empty() { None } else { self.calls.remove(&request) }
    }
}

impl SocketCall {
    /// The answer comes in pieces.
    pub fn begin(&mut self, response: &Response) {
        let content_type = content_type(response.headers.iter());
        let (status, bytes) = (response.status, BytesMut::from(&response.body[..]));
        self.answer = CallAnswer::Begun { status, content_type, bytes };
    }

    /// A piece has come. An error if that is more than a message may have.
    pub fn add(&mut self, piece: &[u8]) -> Result<(), BadAnswer> {
        let CallAnswer::Begun { bytes, .. } = &mut self.answer else { return Ok(()) };
        if bytes.len() + piece.len() > FRAME_BYTES_MAX {
            return Err(BadAnswer::Message(bytes.len() + piece.len()));
        }
        bytes.extend_from_slice(piece);
        Ok(())
    }

    /// All of it has come.
    pub fn finish(&mut self) {
        if let CallAnswer::Begun { status, content_type, bytes } = std::mem::take(&mut self.answer) {
            let fields: [HeaderField<'_>; 1] = [(b"content-type", content_type.as_bytes())];
            self.answer = CallAnswer::new(status, fields.into_iter(), &bytes.freeze());
        }
    }

    /// It cannot be sent.
    pub fn spoil(&mut self) {
        self.answer = CallAnswer::Close { code: INTERNAL_ERROR, text: String::new() };
    }
}

fn content_type<'a>(mut fields: impl Iterator<Item = HeaderField<'a>>) -> String {
    let found = fields.find(|(name, _)| name.eq_ignore_ascii_case(b"content-type"));
    found.map_or_else(String::new, |(_, value)| String::from_utf8_lossy(value).into_owned())
}

impl CallAnswer {
    /// A response as what a WebSocket gets. One that is an error closes it. Not every response has a body, but every empty message has a type.
    pub fn new<'a>(status: u16, fields: impl Iterator<Item = HeaderField<'a>>, body: &Bytes) -> Self {
        let close = |code| Self::Close { code, text: String::new() };
        let content_type = content_type(fields);
        match status {
            NO_CONTENT => Self::Nothing,
            200..=299 if body.is_empty() && content_type.is_empty() => Self::Nothing,
            200..=299 => Self::Message(Rc::new(SocketMessage::new(&content_type, body.clone()))),
            400..=499 => close(POLICY_VIOLATION),
            code @ CLOSING_CODE_MIN.. => Self::Close { code, text: String::from_utf8_lossy(body).into_owned() },
            _ => close(INTERNAL_ERROR),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_a_message_or_closes() {
        let answer = |status, body: &'static [u8]| {
            let fields: [HeaderField<'_>; 1] = [(b"Content-Type", b"text/plain")];
            match CallAnswer::new(status, fields.into_iter(), &Bytes::from_static(body)) {
                CallAnswer::Nothing | CallAnswer::Begun { .. } => "nothing".to_owned(),
                CallAnswer::Message(message) => format!("message of {}", message.len()),
                CallAnswer::Close { code, text } => format!("{code} {text}"),
            }
        };
        assert_eq!(answer(204, b""), "nothing");
        assert_eq!(answer(200, b"hello"), "message of 5");
        assert_eq!(answer(201, b""), "message of 0");
        assert!(matches!(CallAnswer::new(202, std::iter::empty(), &Bytes::new()), CallAnswer::Nothing));
        assert_eq!(answer(307, b""), "1011 ");
        assert_eq!(answer(403, b"no"), "1008 ");
        assert_eq!(answer(500, b"no"), "1011 ");
        assert_eq!(answer(4000, b"bye"), "4000 bye");
    }
}
