//! The rest of a body that its application reads while it arrives, a piece for each that is wanted.

use bytes::Bytes;
use tokio::sync::mpsc;

use super::incoming::{BodyPace, IncomingBody};
use super::unread_body::discard;
use super::{FromStream, H2Context, StreamKey};
use crate::body_rest::BodyRest;
use crate::http::fault::RequestFault;

pub struct IncomingRest {
    body: IncomingBody,
    pace: BodyPace,
}

impl IncomingRest {
    /// `pace`: that of what has been passed on with the request.
    pub const fn new(body: IncomingBody, mut pace: BodyPace) -> Self {
        pace.pass_on();
        Self { body, pace }
    }

    /// Sends a piece for each that is wanted, until nobody can want one: the request has its response. What is left then
    /// is dropped.
    pub async fn serve(mut self, key: StreamKey, mut wanted: mpsc::UnboundedReceiver<()>, shared: H2Context) {
        while wanted.recv().await.is_some() {
            let piece = tokio::select! {
                piece = self.piece() => piece,
                // The response is complete, or the client has left.
                () = closed(&mut wanted) => break,
            };
            match piece {
                Ok((bytes, rest)) => {
                    let _ = shared.inbox.send(FromStream::Piece { key, bytes, rest });
                    if rest == BodyRest::Nothing {
                        return;
                    }
                }
                Err(fault) => {
                    let _ = shared.inbox.send(FromStream::Failed { key, fault });
                    break;
                }
            }
        }
        discard(self.body, shared).await;
    }

    async fn piece(&mut self) -> Result<(Bytes, BodyRest), RequestFault> {
        loop {
            let bytes = self.body.next_in_time(&mut self.pace).await?;
            let rest = if bytes.is_none() || self.body.is_end() { BodyRest::Nothing } else { BodyRest::Follows };
            let bytes = bytes.unwrap_or_default();
            if rest == BodyRest::Nothing || !bytes.is_empty() {
                return Ok((bytes, rest));
            }
        }
    }
}

async fn closed(wanted: &mut mpsc::UnboundedReceiver<()>) {
    // Nothing more is wanted before the piece that is awaited.
    while wanted.recv().await.is_some() {}
}
