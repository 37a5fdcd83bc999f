//! The messages of PostgreSQL's protocol (version 3.0): reading and writing them.
//!
//! Rows are read in place in the receive buffer, without a copy; that is why the messages of the server are not read by
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

/// The server sent something that is not a message of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server broke the protocol: {0}")]
pub(crate) struct ProtocolViolation(pub(crate) &'static str);

/// The output of a connection, and the state of its input.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) out: BytesMut,
    pub(crate) frames: Frames,
}

impl Wire {
    pub(crate) fn new(row_bytes_max: usize) -> Self {
        Self { out: BytesMut::new(), frames: Frames::new(row_bytes_max) }
    }

    /// A buffer that grew for a large parameter is not kept.
    pub(crate) fn tidy(&mut self) {
        if self.out.is_empty() && self.out.capacity() > BUFFER_KEPT_BYTES {
            self.out = BytesMut::new();
        }
    }
}
