//! Raw frames into typed ones, and typed ones into bytes.

mod application;
pub(crate) mod columns;
mod core;
pub mod encode;
mod job;
mod outcome;
mod park;
mod query;
pub(crate) mod read;
mod registered;
mod worker;
mod write;

use std::marker::PhantomData;

use bytes::BytesMut;

use crate::error::{ProtocolRule, Violation};
use crate::frame::FromWorker;
use crate::framing::{RawFrame, next_raw};
use crate::kind::{FrameScope, Kind};

/// The frames of one end: [`FromWorker`] or [`crate::FromCore`].
pub trait Receive: Sized {
    /// Types a frame of a known kind, on a stream where that kind belongs.
    #[doc(hidden)]
    fn decode(kind: Kind, raw: &RawFrame) -> Result<Self, Violation>;
}

/// Takes frames from the front of what was read. It keeps no state: an incomplete frame stays in the buffer.
#[derive(Debug)]
pub struct Decoder<F = FromWorker> {
    skipped: u64,
    frames: PhantomData<fn() -> F>,
}

impl Decoder {
    /// For the frames of a worker.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<F> Default for Decoder<F> {
    fn default() -> Self {
        Decoder { skipped: 0, frames: PhantomData }
    }
}

impl<F: Receive> Decoder<F> {
    /// The next frame of a known kind; `None` when more bytes are needed. After a violation the link is over.
    pub fn next(&mut self, from: &mut BytesMut) -> Result<Option<F>, Violation> {
        while let Some(raw) = next_raw(from)? {
            if let Some(frame) = self.typed(&raw)? {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// A frame whose payload was read into memory of its own; `None` if its kind is unknown.
    pub fn typed(&mut self, raw: &RawFrame) -> Result<Option<F>, Violation> {
        let Some(kind) = Kind::of(raw.kind) else {
            self.skipped += 1;
            return Ok(None);
        };
        place(kind, raw.stream)?;
        F::decode(kind, raw).map(Some)
    }

    /// How many frames of unknown kinds were skipped.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }
}

fn place(kind: Kind, stream: u32) -> Result<(), Violation> {
    match (kind.place(), stream) {
        (FrameScope::Link, 0) | (FrameScope::Request, 1..) | (FrameScope::Either, _) => Ok(()),
        (FrameScope::Link, 1..) | (FrameScope::Request, 0) => Err(Violation::new(ProtocolRule::Stream, kind, stream)),
    }
}
