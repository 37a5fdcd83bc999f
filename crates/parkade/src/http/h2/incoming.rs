//! The rest of a request body that its application reads while it arrives. Flow control of HTTP/2 makes the client wait
//! while no piece is wanted.

use std::time::Duration;

use crate::body_rest::BodyRest;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{FromStream, StreamKey};
use crate::http::fault::RequestFault;
use crate::http::limits::BODY_BYTES_PER_SECOND_MIN;

pub struct IncomingRest {
    body: Incoming,
    bytes: u64,
    bytes_max: u64,
    /// How long pieces were awaited.
    awaited: Duration,
}

impl IncomingRest {
    /// `bytes`: those that have been passed on with the request.
    pub const fn new(body: Incoming, bytes: u64, bytes_max: u64) -> Self {
        Self { body, bytes, bytes_max, awaited: Duration::ZERO }
    }

    /// Sends a piece for each that is wanted, until the end, or until nobody can want one: the request has its response.
    pub async fn serve(
        mut self,
        key: StreamKey,
        mut wanted: mpsc::UnboundedReceiver<()>,
        inbox: mpsc::UnboundedSender<FromStream>,
        stall: Duration,
    ) {
        while wanted.recv().await.is_some() {
            let piece = tokio::select! {
                piece = self.piece(stall) => piece,
                // The response is complete, or the client has left.
                () = closed(&mut wanted) => return,
            };
            match piece {
                Ok((bytes, rest)) => {
                    let _ = inbox.send(FromStream::Piece { key, bytes, rest });
                    if rest == BodyRest::Nothing {
                        return;
                    }
                }
                Err(fault) => {
                    let _ = inbox.send(FromStream::Failed { key, fault });
                    return;
                }
            }
        }
    }

    async fn piece(&mut self, stall: Duration) -> Result<(Bytes, BodyRest), RequestFault> {
        let earned = Duration::from_secs(self.bytes / BODY_BYTES_PER_SECOND_MIN);
        let began = Instant::now();
        let until = began + stall.min((stall + earned).saturating_sub(self.awaited));
        loop {
            let data = match tokio::time::timeout_at(until, self.body.frame()).await {
                Err(_) => return Err(RequestFault::BodyTooSlow),
                Ok(None) => Bytes::new(),
                Ok(Some(Err(_))) => return Err(RequestFault::BodyEndedEarly),
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            };
            self.bytes += data.len() as u64;
            if self.bytes > self.bytes_max {
                return Err(RequestFault::StreamTooLarge);
            }
            let is_end = self.body.is_end_stream();
            if is_end || !data.is_empty() {
                self.awaited += began.elapsed();
                return Ok((data, if is_end { BodyRest::Nothing } else { BodyRest::Follows }));
            }
        }
    }
}

async fn closed(wanted: &mut mpsc::UnboundedReceiver<()>) {
    // Nothing more is wanted before the piece that is awaited.
    while wanted.recv().await.is_some() {}
}
