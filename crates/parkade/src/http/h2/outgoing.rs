//! The body of a response on its way to hyper, and the watch over its stream.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc;

use super::piece_queue::BodyPiece;
use super::{FromStream, StreamKey, write_timeout};
use crate::http::StreamedContent;
use crate::http::limits::{H2_CUT_BYTES_MAX, H2_LAST_BYTES_MAX};

/// Reports to the server that the client has left, unless the stream has ended.
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

/// The body of a response on its way to hyper.
pub enum Outgoing {
    Whole(Bytes),
    Pieces(Pieces),
}

/// A body that the server sends in pieces.
pub struct Pieces {
    /// The rest of the last one.
    current: Bytes,
    queue: mpsc::UnboundedReceiver<BodyPiece>,
    purpose: StreamedContent,
    guard: Guard,
}

impl Pieces {
    pub fn new(queue: mpsc::UnboundedReceiver<BodyPiece>, purpose: StreamedContent, guard: Guard) -> Self {
        Self { current: Bytes::new(), queue, purpose, guard }
    }

    /// The next piece for hyper; None at the end.
    fn poll_cut(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        if self.current.is_empty() {
            write_timeout::rest();
            let piece = match ready!(self.queue.poll_recv(context)) {
                Some(BodyPiece::Bytes(piece)) => piece,
                Some(BodyPiece::Trailers(trailers)) => {
                    self.guard.has_ended = true;
                    return Poll::Ready(Some(Frame::trailers(*trailers)));
                }
                None => {
                    self.guard.has_ended = true;
                    return Poll::Ready(None);
                }
            };
            let _ = self.guard.inbox.send(FromStream::Taken { key: self.guard.key, bytes: piece.len() });
            self.current = piece;
        }
        let purpose = self.purpose;
        let next = cut(&mut self.current).inspect(|next| match purpose {
            StreamedContent::Body => write_timeout::offer(next.len()),
            StreamedContent::Events => write_timeout::offer_event(next.len()),
        });
        Poll::Ready(next.map(Frame::data))
    }
}

impl hyper::body::Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.get_mut() {
            Self::Whole(bytes) => cut(bytes).inspect(|next| write_timeout::offer(next.len())).map(Frame::data),
            Self::Pieces(pieces) => ready!(pieces.poll_cut(context)),
        };
        Poll::Ready(next.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Pieces(_) => SizeHint::default(),
        }
    }
}

/// The next piece for hyper. hyper takes all of it as soon as the client accepts one byte, and waits for more window
/// only before the next piece. The last piece is small, because the stream's task ends with it, and so does its
/// timeout.
fn cut(bytes: &mut Bytes) -> Option<Bytes> {
    match bytes.len() {
        0 => None,
        length if length <= H2_LAST_BYTES_MAX => Some(std::mem::take(bytes)),
        length => Some(bytes.split_to((length - H2_LAST_BYTES_MAX).min(H2_CUT_BYTES_MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_a_body_is_small() {
        for (length, cuts) in [
            (0, &[][..]),
            (1, &[1]),
            (1_024, &[1_024]),
            (1_025, &[1, 1_024]),
            (17_408, &[16_384, 1_024]),
            (40_000, &[16_384, 16_384, 6_208, 1_024]),
        ] {
            let mut bytes = Bytes::from(vec![0; length]);
            let cut: Vec<_> = std::iter::from_fn(|| cut(&mut bytes)).map(|bytes| bytes.len()).collect();
            assert_eq!(cut, cuts, "{length}");
        }
    }
}
