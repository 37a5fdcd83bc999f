//! The body of an answer on its way to hyper, and the watch over its stream.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc;

use super::{FromStream, StreamKey, patience};
use crate::http::Purpose;
use crate::http::limits::{H2_CUT_BYTES_MAX, H2_LAST_BYTES_MAX};

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
    Whole(Bytes),
    Pieces { piece: Bytes, pieces: mpsc::UnboundedReceiver<Bytes>, purpose: Purpose, guard: Guard },
}

impl hyper::body::Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let (rest, purpose) = match self.get_mut() {
            Self::Whole(bytes) => (bytes, Purpose::Body),
            Self::Pieces { piece, pieces, purpose, guard } => {
                if piece.is_empty() {
                    patience::rest();
                    match ready!(pieces.poll_recv(context)) {
                        Some(bytes) => {
                            let _ = guard.inbox.send(FromStream::Taken { key: guard.key, bytes: bytes.len() });
                            *piece = bytes;
                        }
                        None => guard.has_ended = true,
                    }
                }
                (piece, *purpose)
            }
        };
        Poll::Ready(cut(rest).map(|bytes| {
            match purpose {
                Purpose::Body => patience::offer(bytes.len()),
                Purpose::Events => patience::offer_event(bytes.len()),
            }
            Ok(Frame::data(bytes))
        }))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Pieces { .. } => SizeHint::default(),
        }
    }
}

/// What hyper gets next. It takes it whole as soon as the client has place for one byte of it, and waits for the rest of that place
/// only before the next: so the last that it gets, behind which its task ends and nobody watches, is small.
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
