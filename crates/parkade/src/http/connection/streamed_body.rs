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

    /// How many of the next bytes are a piece as they are: they need not be decoded.
    pub fn plain_bytes(&self) -> usize {
        usize::try_from(self.decoder.plain_bytes()).unwrap_or(usize::MAX)
    }

    /// So many of them have been read.
    pub const fn advance(&mut self, bytes: usize) {
        self.decoder.advance(bytes as u64);
    }

    /// The piece is passed on.
    pub fn taken(&mut self, piece: Bytes, now: Tick) -> Bytes {
        if let PieceDemand::Piece { since } = self.demand {
            self.awaited += now.since(since);
            self.demand = PieceDemand::None;
        }
        self.bytes += piece.len() as u64;
        piece
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

#[cfg(test)]
mod tests {
    use parkade_core::Random;

    use super::*;
    use crate::http::connection::tests::LIMITS;
    use crate::http::head::Framing;

    const SEEDS: u64 = 300;
    const NEXT: &[u8] = b"GET /next HTTP/1.1\r\n";

    fn count(random: &mut Random, most: usize) -> usize {
        usize::try_from(random.below(most as u64 + 1)).unwrap()
    }

    /// What the client sends: the body, and its next request.
    fn sent(random: &mut Random, body: &[u8]) -> (Framing, Vec<u8>) {
        let mut bytes = Vec::new();
        if random.below(2) == 0 {
            bytes.extend_from_slice(body);
            bytes.extend_from_slice(NEXT);
            return (Framing::Length(body.len() as u64), bytes);
        }
        let mut rest = body;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(1 + count(random, rest.len() - 1));
            bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
            rest = after;
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        bytes.extend_from_slice(NEXT);
        (Framing::Chunked, bytes)
    }

    /// Reads as a connection does: bytes come at any time, and are taken when a piece is wanted, which happens at any time.
    fn reads(seed: u64) -> (Result<Vec<u8>, RequestFault>, Vec<u8>, Vec<u8>, u64) {
        let random = &mut Random::new(seed);
        let body: Vec<u8> = (0..=count(random, 3_000)).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let (framing, mut wire) = sent(random, &body);
        // A length that is announced was compared with the limit before.
        let is_bounded = framing == Framing::Chunked && random.below(2) == 0;
        let bytes_max = if is_bounded { random.below(3_000) } else { 10_000 };
        let mut streamed = StreamedBody::new(BodyDecoder::new(framing), 0, bytes_max, random.below(2) == 0);
        let (mut come, mut got, mut now) = (Vec::new(), Vec::new(), Duration::ZERO);
        let mut was_invited = matches!(streamed.demand, PieceDemand::None);
        while !streamed.is_complete() {
            let arriving = count(random, 200).min(wire.len());
            come.extend(wire.drain(..arriving));
            if !streamed.wants() {
                now += Duration::from_secs(random.below(3_600));
                assert!(!streamed.is_too_slow(&LIMITS, Tick::at(now)), "slow, and nobody reads");
                let invites = random.below(3) > 0 && streamed.want(Tick::at(now));
                assert!(!invites || !std::mem::replace(&mut was_invited, true), "invited twice");
                continue;
            }
            let silent = Tick::at(now + LIMITS.body_stall + Duration::from_secs(1));
            assert!(streamed.is_too_slow(&LIMITS, silent), "silent for ever");
            let mut piece = Vec::new();
            let plain = streamed.plain_bytes().min(come.len());
            if plain > 0 && random.below(2) == 0 {
                streamed.advance(plain);
                piece.extend(come.drain(..plain));
                got.extend_from_slice(&streamed.taken(piece.into(), Tick::at(now)));
                continue;
            }
            match streamed.take(&come, &mut piece) {
                Ok(used) => drop(come.drain(..used)),
                Err(fault) => return (Err(fault), body, come, bytes_max),
            }
            if !piece.is_empty() || streamed.is_complete() {
                got.extend_from_slice(&streamed.taken(piece.into(), Tick::at(now)));
                assert!(!streamed.wants(), "one piece was wanted");
            }
        }
        come.extend(wire);
        (Ok(got), body, come, bytes_max)
    }

    #[test]
    fn however_it_is_cut_a_body_arrives_once_in_order_and_takes_nothing_of_the_next_request() {
        let mut too_large = 0;
        for seed in 1..=SEEDS {
            match reads(seed) {
                (Ok(got), body, rest, bytes_max) => {
                    assert!(got == body && got.len() as u64 <= bytes_max, "seed {seed}: other bytes, or too many");
                    assert_eq!(rest, NEXT, "seed {seed}");
                }
                (Err(fault), body, _, bytes_max) => {
                    assert_eq!(fault, RequestFault::StreamTooLarge, "seed {seed}");
                    assert!(body.len() as u64 > bytes_max, "seed {seed}: refused, and not too large");
                    too_large += 1;
                }
            }
        }
        assert!(too_large > 0 && too_large < SEEDS / 2);
    }
}
