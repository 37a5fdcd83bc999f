//! A request whose head has arrived and whose body is arriving.

use std::time::Duration;

use bytes::Bytes;

use crate::http::body::{BodyDecoder, make_room};
use crate::http::budget::{RequestStage, Reservation};
use crate::http::fault::RequestFault;
use crate::http::head::Head;
use crate::http::limits::{BODY_BYTES_PER_SECOND_MIN, HttpLimits};
use crate::http::tick::Tick;

#[derive(Debug)]
pub struct PartialRequest {
    head: Head,
    decoder: BodyDecoder,
    body: Vec<u8>,
    share: Reservation,
    began: Tick,
    /// When the last byte came.
    since: Tick,
}

impl PartialRequest {
    /// `expected_bytes`: how many bytes of the body have arrived, at most. An announced length reserves nothing by itself.
    pub fn new(head: Head, share: Reservation, expected_bytes: usize, now: Tick) -> Self {
        let (decoder, body) = (BodyDecoder::new(head.framing), Vec::with_capacity(expected_bytes));
        Self { head, decoder, body, share, began: now, since: now }
    }

    /// Takes as many of the bytes as it can use, and returns their number.
    pub fn take(&mut self, bytes: &[u8], limits: &HttpLimits, now: Tick) -> Result<usize, RequestFault> {
        make_room(&mut self.body, self.decoder.room_for(bytes.len()));
        let used = self.decoder.decode(bytes, &mut self.body, limits.body_bytes_max)?;
        #[cfg(test)]
        assert!(self.head.field("x-bug") != Some("body") || self.body.is_empty(), "a bug in reading a body");
        let stage = if self.is_complete() { RequestStage::Whole } else { RequestStage::Coming };
        if !self.share.hold(self.head.held_bytes() + self.body.capacity(), stage) {
            return Err(RequestFault::RequestsFull);
        }
        self.since = now;
        Ok(used)
    }

    pub const fn head(&self) -> &Head {
        &self.head
    }

    pub const fn is_complete(&self) -> bool {
        self.decoder.is_complete()
    }

    pub fn into_whole(self) -> (Head, Bytes, Reservation) {
        (self.head, self.body.into(), self.share)
    }

    /// Whether nothing has arrived for too long, or too little in total.
    pub fn is_too_slow(&self, limits: &HttpLimits, now: Tick) -> bool {
        let earned = Duration::from_secs(self.body.len() as u64 / BODY_BYTES_PER_SECOND_MIN);
        now.since(self.since) > limits.body_stall || now.since(self.began) > limits.body_stall + earned
    }
}
