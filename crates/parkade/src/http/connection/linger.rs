//! The end of a connection: the last response has been sent, and what the client still sends is read and dropped, so that the reset which
//! unread bytes cause does not destroy the response.

use super::transport::ClientTransport;
use crate::http::limits::{LINGER_BYTES_MAX, LINGER_TIME};
use crate::http::socket::Filled;
use crate::http::tick::Tick;

#[derive(Debug, Clone, Copy)]
pub struct Linger {
    since: Tick,
    left_bytes: u32,
}

impl Linger {
    /// Closes our side.
    pub fn begin(transport: &ClientTransport, now: Tick) -> Self {
        transport.end_writing();
        Self { since: now, left_bytes: LINGER_BYTES_MAX }
    }

    /// Drops what has arrived. False if the connection can be closed.
    pub fn discard(&mut self, transport: &mut ClientTransport, scratch: &mut [u8]) -> bool {
        loop {
            let count = match transport.read(scratch) {
                Filled::Bytes(count) => u32::try_from(count).unwrap_or(u32::MAX),
                Filled::Nothing => return true,
                Filled::End | Filled::Broken => return false,
            };
            match self.left_bytes.checked_sub(count) {
                None | Some(0) => return false,
                Some(left) => self.left_bytes = left,
            }
        }
    }

    pub fn is_over(self, now: Tick) -> bool {
        now.since(self.since) > LINGER_TIME
    }
}
