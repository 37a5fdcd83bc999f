//! The body of an answer on its way to hyper, and the watch over its stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc;

use super::exchange::Piece;
use super::{FromStream, StreamKey};

/// Tells the server that the client has left, unless the stream has come to its end.
pub struct Guard {
    pub key: StreamKey,
    pub inbox: mpsc::UnboundedSender<FromStream>,
    pub has_ended: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.has_ended {
            let _ = self.inbox.send(FromStream::Left { key: self.key });
        }
    }
}

/// The body of an answer on its way to hyper.
pub enum Outgoing {
    Whole(Option<Bytes>),
    Pieces { pieces: mpsc::UnboundedReceiver<Piece>, guard: Guard },
}

#[derive(Debug, thiserror::Error)]
#[error("the answer was broken off")]
pub struct BrokenOff;

impl hyper::body::Body for Outgoing {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            Self::Whole(bytes) => {
                Poll::Ready(bytes.take().filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes))))
            }
            Self::Pieces { pieces, guard } => pieces.poll_recv(context).map(|piece| match piece {
                Some(Piece::Data(bytes)) => {
                    let _ = guard.inbox.send(FromStream::Taken { key: guard.key, bytes: bytes.len() });
                    Some(Ok(Frame::data(bytes)))
                }
                Some(Piece::Aborted) => {
                    guard.has_ended = true;
                    Some(Err(BrokenOff))
                }
                None => {
                    guard.has_ended = true;
                    None
                }
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Pieces { .. } => SizeHint::default(),
        }
    }
}
