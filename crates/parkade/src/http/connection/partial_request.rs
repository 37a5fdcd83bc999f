//! A request whose head has arrived and whose body is arriving.

use std::time::Duration;

use bytes::Bytes;

use super::streamed_body::{StreamedBody, of_a_stream};
use crate::http::StreamTerms;
use crate::http::body::{BodyDecoder, make_room};
use crate::http::budget::{ArrivingShare, RequestStage};
use crate::http::fault::RequestFault;
use crate::http::head::Head;
use crate::http::limits::{BODY_BYTES_PER_SECOND_MIN, HttpLimits, STREAMED_READ_BYTES};
use crate::http::tick::Tick;

#[derive(Debug)]
pub struct PartialRequest {
    head: Head,
    decoder: BodyDecoder,
    body: Vec<u8>,
    share: ArrivingShare,
    /// Set if its application reads the body while it arrives.
    terms: Option<StreamTerms>,
    began: Tick,
    /// When the last byte came.
    since: Tick,
}

impl PartialRequest {
    /// `expected_bytes`: how many bytes of the body have arrived, at most. An announced length reserves nothing by itself.
    pub fn new(head: Head, share: ArrivingShare, expected_bytes: usize, terms: Option<StreamTerms>, now: Tick) -> Self {
        let (decoder, body) = (BodyDecoder::new(head.framing), Vec::with_capacity(expected_bytes));
        Self { head, decoder, body, share, terms, began: now, since: now }
    }

    /// Takes as many of the bytes as it can use, and returns their number.
    pub fn take(&mut self, bytes: &[u8], limits: &HttpLimits, now: Tick) -> Result<usize, RequestFault> {
        make_room(&mut self.body, self.decoder.room_for(bytes.len()));
        let used = match self.terms {
            None => self.decoder.decode(bytes, &mut self.body, limits.body_bytes_max)?,
            Some(terms) => {
                let bytes_max = usize::try_from(terms.bytes_max).unwrap_or(usize::MAX);
                self.decoder.decode(bytes, &mut self.body, bytes_max).map_err(of_a_stream)?
            }
        };
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

    /// Whether it is to be passed on before the rest of its body has arrived.
    pub fn is_ripe(&self) -> bool {
        let collected = self.body.len() as u64;
        !self.is_complete() && self.terms.is_some_and(|terms| collected >= terms.collected_max)
    }

    /// The request with what has arrived of its body, and the rest. `is_invited`: its client does not wait for
    /// `100 Continue`.
    pub fn into_streamed(
        mut self,
        is_invited: bool,
    ) -> Result<(Head, Bytes, ArrivingShare, StreamedBody), RequestFault> {
        let bytes = self.head.held_bytes() + self.body.capacity() + STREAMED_READ_BYTES;
        if !self.share.hold(bytes, RequestStage::Coming) {
            return Err(RequestFault::RequestsFull);
        }
        let bytes_max = self.terms.map_or(0, |terms| terms.bytes_max);
        let rest = StreamedBody::new(self.decoder, self.body.len() as u64, bytes_max, is_invited);
        Ok((self.head, self.body.into(), self.share, rest))
    }

    pub fn into_whole(self) -> (Head, Bytes, ArrivingShare) {
        (self.head, self.body.into(), self.share)
    }

    /// Whether nothing has arrived for too long, or too little in total.
    pub fn is_too_slow(&self, limits: &HttpLimits, now: Tick) -> bool {
        let earned = Duration::from_secs(self.body.len() as u64 / BODY_BYTES_PER_SECOND_MIN);
        now.since(self.since) > limits.body_stall || now.since(self.began) > limits.body_stall + earned
    }
}
