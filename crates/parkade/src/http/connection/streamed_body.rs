//! The body of a request that has been passed on: it is read in pieces, each when it is wanted, so that a client that
//! sends faster than its application reads waits in its own kernel.

use std::time::Duration;

use bytes::Bytes;

use crate::http::body::BodyDecoder;
use crate::http::fault::RequestFault;
use crate::http::limits::{BODY_BYTES_PER_SECOND_MIN, DROPPED_BODY_BYTES_MAX, HttpLimits};
use crate::http::tick::Tick;

#[derive(Debug)]
pub struct StreamedBody {
    decoder: BodyDecoder,
    bytes_max: u64,
    bytes: u64,
    demand: PieceDemand,
    /// How long pieces were awaited, before the current one.
    awaited: Duration,
}

#[derive(Debug)]
enum PieceDemand {
    /// The client waits for `100 Continue` before it sends anything.
    Uninvited,
    /// No piece is wanted: the bytes stay in the kernel.
    None,
    Piece {
        since: Tick,
    },
    /// The request has its response: what comes is dropped.
    Dropped {
        since: Tick,
    },
}

impl StreamedBody {
    /// `bytes`: those that have been passed on with the request. `is_invited`: nobody waits for `100 Continue`.
    pub const fn new(decoder: BodyDecoder, bytes: u64, bytes_max: u64, is_invited: bool) -> Self {
        let demand = if is_invited { PieceDemand::None } else { PieceDemand::Uninvited };
        Self { decoder, bytes_max, bytes, demand, awaited: Duration::ZERO }
    }

    /// One more piece may be read. Returns whether the client waits to be invited.
    pub fn want(&mut self, now: Tick) -> bool {
        let is_uninvited = matches!(self.demand, PieceDemand::Uninvited);
        if !self.wants() {
            self.demand = PieceDemand::Piece { since: now };
        }
        is_uninvited
    }

    pub const fn wants(&self) -> bool {
        matches!(self.demand, PieceDemand::Piece { .. } | PieceDemand::Dropped { .. })
    }

    /// Whether the rest is short enough to be dropped, and will come: a client that waits for `100 Continue` may never
    /// send it.
    pub fn can_be_dropped(&self) -> bool {
        !matches!(self.demand, PieceDemand::Uninvited)
            && self.decoder.left().is_some_and(|left| left <= DROPPED_BODY_BYTES_MAX)
    }

    /// What comes of it from now on is dropped.
    pub const fn drop_rest(&mut self, now: Tick) {
        self.demand = PieceDemand::Dropped { since: now };
    }

    pub const fn is_dropped(&self) -> bool {
        matches!(self.demand, PieceDemand::Dropped { .. })
    }

    pub const fn is_complete(&self) -> bool {
        self.decoder.is_complete()
    }

    /// Takes as many of the bytes as it can use into `piece`, and returns their number.
    pub fn take(&mut self, bytes: &[u8], piece: &mut Vec<u8>) -> Result<usize, RequestFault> {
        let left = usize::try_from(self.bytes_max.saturating_sub(self.bytes)).unwrap_or(usize::MAX);
        self.decoder.decode(bytes, piece, left).map_err(of_a_stream)
    }

    /// The piece is passed on.
    pub fn taken(&mut self, piece: Vec<u8>, now: Tick) -> Bytes {
        if let PieceDemand::Piece { since } = self.demand {
            self.awaited += now.since(since);
            self.demand = PieceDemand::None;
        }
        self.bytes += piece.len() as u64;
        piece.into()
    }

    /// Whether nothing has arrived for too long, or too little in total, while a piece was wanted.
    pub fn is_too_slow(&self, limits: &HttpLimits, now: Tick) -> bool {
        match self.demand {
            PieceDemand::Uninvited | PieceDemand::None => false,
            PieceDemand::Piece { since } => {
                let earned = Duration::from_secs(self.bytes / BODY_BYTES_PER_SECOND_MIN);
                let stalled = now.since(since);
                stalled > limits.body_stall || self.awaited + stalled > limits.body_stall + earned
            }
            PieceDemand::Dropped { since } => now.since(since) > limits.body_stall,
        }
    }
}

/// The limit of a body that its application reads while it arrives is another than that of other bodies.
pub const fn of_a_stream(fault: RequestFault) -> RequestFault {
    match fault {
        RequestFault::BodyTooLarge => RequestFault::StreamTooLarge,
        other => other,
    }
}
