//! The bytes of a stream that has become a WebSocket, in both directions (RFC 8441).
//!
//! Flow control of HTTP/2 makes the client wait while nothing of it is wished for. What waits for the client has the
//! timeouts of a response; one piece is under way at a time.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Poll, ready};

use bytes::Bytes;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::outgoing::Guard;
use super::piece_queue::BodyPiece;
use super::{FromStream, write_timeout};
use crate::body_rest::BodyRest;
use crate::http::limits::{H2_CUT_BYTES_MAX, LINGER_BYTES_MAX, LINGER_TIME};

/// What the server's end of the stream sends into it.
#[derive(Debug)]
pub struct TunnelEnds {
    /// For the client; their end is that of the stream.
    pub frames: mpsc::UnboundedReceiver<BodyPiece>,
    /// Each for a piece of what the client sends.
    pub wished: mpsc::UnboundedReceiver<()>,
}

/// Dropping it resets the stream, unless that has ended.
pub struct Tunnel {
    /// Tells the server when it is over.
    guard: Guard,
    /// Resets the stream: hyper writes to it in a task of its own.
    cut: Option<oneshot::Sender<()>>,
}

type FromClient = ReadHalf<TokioIo<Upgraded>>;
type ToClient = WriteHalf<TokioIo<Upgraded>>;

impl Tunnel {
    pub const fn new(guard: Guard, cut: oneshot::Sender<()>) -> Self {
        Self { guard, cut: Some(cut) }
    }

    /// Until either end has closed, or the stream was reset.
    pub async fn pass(mut self, upgrade: OnUpgrade, ends: TunnelEnds) {
        let Ok(upgraded) = upgrade.await else { return };
        let (reader, writer) = tokio::io::split(TokioIo::new(upgraded));
        let Self { guard, cut: Some(cut) } = &mut self else { return };
        let guard = &*guard;
        let (mut sending, mut receiving) =
            (pin!(send(writer, ends.frames, guard)), pin!(receive(reader, ends.wished, guard)));
        tokio::select! {
            biased;
            sent = &mut sending => if sent.is_ok() {
                // If its client is still sending, a reset could destroy what it has not read.
                let _ = timeout(LINGER_TIME, receiving).await;
            },
            () = &mut receiving => drop(sending.await),
            () = cut.closed() => {}
        }
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        if let Some(cut) = self.cut.take() {
            let _ = cut.send(());
        }
    }
}

/// Sends the frames, and then the end of the stream; returns when hyper has written it.
async fn send(mut writer: ToClient, mut frames: mpsc::UnboundedReceiver<BodyPiece>, guard: &Guard) -> io::Result<()> {
    loop {
        write_timeout::rest();
        // A WebSocket has no trailers.
        let Some(BodyPiece::Bytes(frame)) = frames.recv().await else { break };
        for piece in frame.chunks(H2_CUT_BYTES_MAX) {
            write_timeout::offer(piece.len());
            writer.write_all(piece).await?;
        }
        let _ = guard.inbox.send(FromStream::Taken { key: guard.key, bytes: frame.len() });
    }
    write_timeout::offer(0);
    writer.shutdown().await?;
    write_timeout::rest();
    Ok(())
}

/// Reads a piece for each wish, until the client ends the stream. What comes when nobody can wish for it is dropped.
async fn receive(mut reader: FromClient, mut wished: mpsc::UnboundedReceiver<()>, guard: &Guard) {
    while wished.recv().await.is_some() {
        let bytes = piece(&mut reader).await;
        let rest = if bytes.is_empty() { BodyRest::Nothing } else { BodyRest::Follows };
        let _ = guard.inbox.send(FromStream::Piece { key: guard.key, bytes, rest });
        if rest == BodyRest::Nothing {
            return;
        }
    }
    let mut dropped = 0;
    while dropped < LINGER_BYTES_MAX as usize {
        match piece(&mut reader).await.len() {
            0 => return,
            length => dropped += length,
        }
    }
}

/// Empty at the end. The buffer is only there while it is filled: most clients are silent.
async fn piece(reader: &mut FromClient) -> Bytes {
    poll_fn(|context| {
        let mut space = [MaybeUninit::uninit(); H2_CUT_BYTES_MAX];
        let mut buffer = ReadBuf::uninit(&mut space);
        let read = ready!(Pin::new(&mut *reader).poll_read(context, &mut buffer));
        Poll::Ready(read.map_or_else(|_| Bytes::new(), |()| Bytes::copy_from_slice(buffer.filled())))
    })
    .await
}
