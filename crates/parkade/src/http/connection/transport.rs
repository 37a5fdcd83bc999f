//! The socket of a connection, what the poll set has reported about it, and the bytes that wait to be written to it.

use std::time::Duration;

use bytes::Bytes;

use super::readiness::{FarEnd, SocketReadiness};
use crate::http::limits::is_too_far_behind;
use crate::http::socket::{ClientSocket, Endpoints, Filled, Output, Peer};
use crate::http::tick::Tick;

#[derive(Debug)]
pub struct ClientTransport {
    socket: ClientSocket,
    endpoints: Endpoints,
    /// The poll set has reported bytes, and no read has found the end of them.
    readable: bool,
    far_end: FarEnd,
    output: Output,
}

impl ClientTransport {
    pub fn new(socket: ClientSocket, endpoints: Endpoints) -> Self {
        Self { socket, endpoints, readable: false, far_end: FarEnd::Open, output: Output::default() }
    }

    /// The poll set reports a change.
    pub fn note(&mut self, readiness: SocketReadiness) {
        self.readable |= readiness.readable || readiness.far_end == FarEnd::HalfClosed;
        self.far_end = self.far_end.max(readiness.far_end);
    }

    pub fn peer(&self) -> Peer {
        self.endpoints.peer
    }

    pub fn endpoints(&self) -> Endpoints {
        self.endpoints
    }

    pub fn is_readable(&self) -> bool {
        self.readable
    }

    /// Whether the client has closed its side, or is gone.
    pub fn has_hung_up(&self) -> bool {
        self.far_end != FarEnd::Open
    }

    pub fn is_gone(&self) -> bool {
        self.far_end == FarEnd::Gone
    }

    /// The client is treated as gone from now on.
    pub fn give_up(&mut self) {
        self.far_end = FarEnd::Gone;
    }

    pub fn read(&mut self, into: &mut [u8]) -> Filled {
        let filled = self.socket.read(into);
        match filled {
            // A short read has emptied the socket: a new event reports what comes later.
            Filled::Bytes(count) => self.readable = count == into.len() || self.has_hung_up(),
            Filled::Nothing => self.readable = false,
            Filled::End | Filled::Broken => {}
        }
        filled
    }

    /// Writes what the socket takes now and keeps a copy of the rest. Returns the number of bytes written at once.
    pub fn write(&mut self, bytes: &[u8], now: Tick) -> usize {
        self.output.send(&self.socket, bytes, now).unwrap_or_else(|_| self.broken())
    }

    /// The same for bytes that are shared: the rest is kept without a copy.
    pub fn write_shared(&mut self, bytes: &Bytes, now: Tick) -> usize {
        self.output.send_shared(&self.socket, bytes, now).unwrap_or_else(|_| self.broken())
    }

    /// The same for bytes with something before and after them, in one call.
    pub fn write_framed(&mut self, framed: (&[u8], &Bytes, &[u8]), now: Tick) -> usize {
        self.output.send_framed(&self.socket, framed, now).unwrap_or_else(|_| self.broken())
    }

    /// The socket is writable again. Returns the number of bytes written.
    pub fn flush(&mut self, now: Tick) -> usize {
        self.output.flush(&self.socket, now).unwrap_or_else(|_| self.broken())
    }

    /// The next `advance` of the connection finds out.
    fn broken(&mut self) -> usize {
        self.give_up();
        0
    }

    pub fn has_unsent(&self) -> bool {
        !self.output.is_empty()
    }

    /// Whether the client has read none of the waiting bytes for longer than `stall`.
    pub fn has_stalled(&self, now: Tick, stall: Duration) -> bool {
        self.output.untouched_for(now) > stall
    }

    /// Whether the client reads the waiting bytes more slowly than the minimum rate.
    pub fn is_read_too_slowly(&self, now: Tick, stall: Duration) -> bool {
        self.output.is_too_slow(now, stall)
    }

    /// How many bytes wait for the client.
    pub fn unsent_bytes(&self) -> usize {
        self.output.bytes()
    }

    /// Whether too many events wait for the client.
    pub fn is_too_far_behind(&self, now: Tick) -> bool {
        is_too_far_behind(self.output.bytes(), self.output.untouched_for(now))
    }

    /// A response is complete: the client has the whole stall timeout for the rest of it.
    pub fn restart_stall(&mut self, now: Tick) {
        self.output.touch(now);
    }

    /// The minimum rate counts from now on: before, there were events, which have none.
    pub fn restart_rate(&mut self, now: Tick) {
        self.output.begin_anew(now);
    }

    /// Closes this side, after everything has been written.
    pub fn end_writing(&self) {
        self.socket.end_writing();
    }

    /// The client must not take what it has received for a complete response.
    pub fn reset_on_close(&self) {
        self.socket.reset_on_close();
    }

    pub fn into_socket(self) -> ClientSocket {
        self.socket
    }
}
