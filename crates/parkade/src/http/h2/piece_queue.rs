//! The pieces of a response that wait for the client of a stream.

use bytes::Bytes;
use hyper::header::HeaderMap;
use tokio::sync::mpsc;

use crate::http::limits::is_too_far_behind;
use crate::http::tick::Tick;

/// A part of a body that is sent in pieces.
#[derive(Debug)]
pub enum BodyPiece {
    Bytes(Bytes),
    /// The last one.
    Trailers(Box<HeaderMap>),
}

/// Closed until the response begins, and when it is complete.
#[derive(Debug, Default)]
pub struct PieceQueue {
    pieces: Option<mpsc::UnboundedSender<BodyPiece>>,
    waiting_bytes: usize,
    /// When the client last took some of them.
    since: Tick,
}

impl PieceQueue {
    /// Returns the end that the stream's task reads.
    pub fn open(&mut self) -> mpsc::UnboundedReceiver<BodyPiece> {
        let (pieces, receiver) = mpsc::unbounded_channel();
        self.pieces = Some(pieces);
        receiver
    }

    pub fn send(&mut self, bytes: Bytes, now: Tick) {
        let Some(pieces) = self.pieces.as_ref().filter(|_| !bytes.is_empty()) else { return };
        if self.waiting_bytes == 0 {
            self.since = now;
        }
        self.waiting_bytes += bytes.len();
        let _ = pieces.send(BodyPiece::Bytes(bytes));
    }

    pub fn taken(&mut self, bytes: usize, now: Tick) {
        self.since = now;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
    }

    pub const fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Whether the client has let too many pile up.
    pub fn is_too_long(&self, now: Tick) -> bool {
        is_too_far_behind(self.waiting_bytes, now.since(self.since))
    }

    /// Nothing follows but these trailers.
    pub fn close_with(&mut self, trailers: HeaderMap) {
        if let Some(pieces) = self.pieces.take() {
            let _ = pieces.send(BodyPiece::Trailers(Box::new(trailers)));
        }
    }

    /// Nothing follows. What waits is still sent.
    pub fn close(&mut self) {
        self.pieces = None;
    }
}
