//! The bytes of a stream that has become a WebSocket, in both directions (RFC 8441).
//!
//! Flow control of HTTP/2 makes the client wait while nothing of it is wished for. What waits for the client has the
//! timeouts of a response; one piece is under way at a time.

use std::pin::pin;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::FromStream;
use super::incoming::IncomingBody;
use super::outgoing::{EarlyEnd, Guard, ToClient};
use super::piece_queue::BodyPiece;
use super::stream_answer::SocketEnds;
use crate::body_rest::BodyRest;
use crate::http::limits::{LINGER_BYTES_MAX, LINGER_TIME};

/// Until either end has closed, or the stream was reset. `guard`: tells the server when it is over.
pub async fn pass(
    to_client: &mut ToClient,
    mut from_client: IncomingBody,
    ends: SocketEnds,
    guard: Guard,
) -> Result<(), EarlyEnd> {
    let mut sending = pin!(send(to_client, ends.frames, &guard));
    let mut receiving = pin!(receive(&mut from_client, ends.wished, &guard));
    tokio::select! {
        biased;
        sent = &mut sending => {
            // If its client is still sending, a reset could destroy what it has not read. What a client has said before
            // it left is heard, too.
            if matches!(sent, Ok(()) | Err(EarlyEnd::Left)) {
                let _ = timeout(LINGER_TIME, receiving).await;
            }
            sent
        }
        () = &mut receiving => sending.await,
    }
}

/// Sends the frames, and then the end of the stream.
async fn send(
    to_client: &mut ToClient,
    mut frames: mpsc::UnboundedReceiver<BodyPiece>,
    guard: &Guard,
) -> Result<(), EarlyEnd> {
    // A WebSocket has no trailers.
    while let Some(BodyPiece::Bytes(frame)) = to_client.next(&mut frames).await? {
        let bytes = frame.len();
        to_client.send(frame, false).await?;
        let _ = guard.inbox.send(FromStream::Taken { key: guard.key, bytes });
    }
    to_client.end()
}

/// Reads a piece for each wish, until the client ends the stream. What comes when nobody can wish for it is dropped.
async fn receive(from_client: &mut IncomingBody, mut wished: mpsc::UnboundedReceiver<()>, guard: &Guard) {
    while wished.recv().await.is_some() {
        let bytes = piece(from_client).await;
        let rest = if bytes.is_empty() { BodyRest::Nothing } else { BodyRest::Follows };
        let _ = guard.inbox.send(FromStream::Piece { key: guard.key, bytes, rest });
        if rest == BodyRest::Nothing {
            return;
        }
    }
    let mut dropped = 0;
    while dropped < LINGER_BYTES_MAX as usize {
        match piece(from_client).await.len() {
            0 => return,
            length => dropped += length,
        }
    }
}

/// Empty at the end, also if the stream was reset.
async fn piece(from_client: &mut IncomingBody) -> Bytes {
    loop {
        match from_client.next().await {
            Ok(Some(bytes)) if bytes.is_empty() => {}
            Ok(Some(bytes)) => return bytes,
            Ok(None) | Err(_) => return Bytes::new(),
        }
    }
}
