//! The protocol of PostgreSQL (version 3.0) as messages: what is read, what is written.
//!
//! Rows are read where they lie in the receive buffer, without a copy; that is why the messages of the server are not read by
//! `postgres-protocol`, which writes ours.

pub(crate) mod error;
pub(crate) mod frames;
#[cfg(test)]
mod fuzz;
pub(crate) mod message;
pub(crate) mod parameters;
mod reader;
pub(crate) mod write;

use bytes::BytesMut;

use crate::limits::BUFFER_KEPT_BYTES;
use frames::Frames;

/// The server said something that is no message of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server broke the protocol: {0}")]
pub(crate) struct ProtocolViolation(pub(crate) &'static str);

/// What a connection has to say, and how it listens.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) out: BytesMut,
    pub(crate) frames: Frames,
}

impl Wire {
    pub(crate) fn new(row_bytes_max: usize) -> Self {
        Self { out: BytesMut::new(), frames: Frames::new(row_bytes_max) }
    }

    /// A large parameter is not remembered by its buffer.
    pub(crate) fn tidy(&mut self) {
        if self.out.is_empty() && self.out.capacity() > BUFFER_KEPT_BYTES {
            self.out = BytesMut::new();
        }
    }
}
