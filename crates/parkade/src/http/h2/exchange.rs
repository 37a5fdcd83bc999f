//! The server's end of one stream: its answer, in one piece or in many.

use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, HeaderMap};
use tokio::sync::{mpsc, oneshot};

use super::StreamKey;
use crate::http::Purpose;
use crate::http::answer::{self, BadAnswer};
use crate::http::limits::is_too_far_behind;
use crate::http::tick::Tick;

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub fields: HeaderMap,
    pub body: Body,
}

#[derive(Debug)]
pub enum Body {
    Whole(Bytes),
    /// For `HEAD`: the length that a body would have.
    Announced(u64),
    Pieces(mpsc::UnboundedReceiver<Bytes>, Purpose),
}

/// The server's end of a stream.
#[derive(Debug)]
pub struct Exchange {
    pub key: StreamKey,
    pub is_head: bool,
    /// Whether a body is sent: not for HEAD, nor with a status that has none.
    pub has_body: bool,
    answer: Option<oneshot::Sender<Answer>>,
    pieces: Option<mpsc::UnboundedSender<Bytes>>,
    waiting_bytes: usize,
    /// Bytes of a streamed answer that were announced and have not come.
    left: Option<u64>,
    /// When the client last took something of what waits for it.
    since: Tick,
    /// Ends the stream's task, with all that waits in it.
    cut: Option<oneshot::Sender<()>>,
}

impl Exchange {
    pub fn new(key: StreamKey, is_head: bool, answer: oneshot::Sender<Answer>, cut: oneshot::Sender<()>) -> Self {
        Self {
            key,
            is_head,
            has_body: !is_head,
            answer: Some(answer),
            pieces: None,
            waiting_bytes: 0,
            left: None,
            since: Tick::default(),
            cut: Some(cut),
        }
    }

    /// `length`: what is told of it, also to `HEAD`.
    pub fn answer(&mut self, status: u16, fields: HeaderMap, length: u64, body: Bytes) {
        let body = if answer::is_bodiless(status) {
            Body::Whole(Bytes::new())
        } else if self.is_head {
            Body::Announced(length)
        } else {
            Body::Whole(body)
        };
        self.reply(Answer { status, fields, body });
    }

    /// `announced`: the length of the body, where the application gave one.
    pub fn begin(&mut self, status: u16, mut fields: HeaderMap, announced: Option<u64>, purpose: Purpose) {
        let (pieces, receiver) = mpsc::unbounded_channel();
        self.pieces = Some(pieces);
        self.has_body &= !answer::is_bodiless(status);
        self.left = announced.filter(|_| self.has_body);
        if let Some(length) = announced.filter(|_| !answer::is_bodiless(status)) {
            fields.insert(CONTENT_LENGTH, length.into());
        }
        self.reply(Answer { status, fields, body: Body::Pieces(receiver, purpose) });
    }

    fn reply(&mut self, answer: Answer) {
        if let Some(sender) = self.answer.take() {
            // The stream may just have been reset: then `Left` is on its way.
            let _ = sender.send(answer);
        }
    }

    /// A piece of a streamed answer, which must not be longer than was announced.
    pub fn piece(&mut self, bytes: Bytes, now: Tick) -> Result<(), BadAnswer> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(bytes.len() as u64).ok_or(BadAnswer::Length)?;
        }
        self.send(bytes, now);
        Ok(())
    }

    /// An event. False when the client has let too many pile up.
    pub fn event(&mut self, bytes: Bytes, now: Tick) -> bool {
        self.send(bytes, now);
        !is_too_far_behind(self.waiting_bytes, now.since(self.since))
    }

    fn send(&mut self, bytes: Bytes, now: Tick) {
        if bytes.is_empty() || !self.has_body {
            return;
        }
        if self.waiting_bytes == 0 {
            self.since = now;
        }
        self.waiting_bytes += bytes.len();
        if let Some(pieces) = &self.pieces {
            let _ = pieces.send(bytes);
        }
    }

    pub fn taken(&mut self, bytes: usize, now: Tick) {
        self.since = now;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
    }

    /// The answer is complete. False when it is shorter than was announced: then it is broken off.
    pub fn finish(&mut self) -> bool {
        if self.left.is_some_and(|left| left > 0) {
            self.abort();
            return false;
        }
        self.pieces = None;
        true
    }

    /// Breaks the answer off: what waits for the client is dropped, and it is told at once.
    pub fn abort(&mut self) {
        // First, so that the end of the pieces is not taken for that of the answer.
        if let Some(cut) = self.cut.take() {
            let _ = cut.send(());
        }
        self.pieces = None;
        self.answer = None;
    }
}
