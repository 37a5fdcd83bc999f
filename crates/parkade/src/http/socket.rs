//! A client's socket, TCP or Unix, and what waits to be written to it.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::{IpAddr, Shutdown};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use bytes::{Buf, Bytes};
use mio::net::{TcpStream, UnixStream};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer};

use super::limits::time_to_take;
use super::tick::Tick;
use crate::platform;

#[derive(Debug)]
pub enum ClientSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The other end: an address, or unknown for a Unix socket.
pub type Peer = Option<IpAddr>;

/// Where a connection comes from, and where it was accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Endpoints {
    pub peer: Peer,
    /// 0 for a Unix socket.
    pub peer_port: u16,
    /// The number of the listener that accepted it.
    pub listener: u16,
}

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum Filled {
    /// This many bytes, and perhaps more after them.
    Bytes(usize),
    Nothing,
    End,
    Broken,
}

impl AsFd for ClientSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

/// Reads and writes are direct system calls, not the C library's: those are points of cancellation for threads, which costs some
/// per cent of a short request.
impl ClientSocket {
    pub fn read(&self, into: &mut [u8]) -> Filled {
        loop {
            return match rustix::net::recv(self, &mut *into, RecvFlags::empty()) {
                Ok((0, _)) => Filled::End,
                Ok((count, _)) => Filled::Bytes(count),
                Err(Errno::WOULDBLOCK) => Filled::Nothing,
                Err(Errno::INTR) => continue,
                Err(_) => Filled::Broken,
            };
        }
    }

    /// The number of bytes written; 0 if the socket takes none now.
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            return match rustix::net::send(self, bytes, platform::SEND_FLAGS) {
                Err(Errno::WOULDBLOCK) => Ok(0),
                Err(Errno::INTR) => continue,
                outcome => Ok(outcome?),
            };
        }
    }

    /// The same for several parts.
    fn write_parts(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            let nothing = &mut SendAncillaryBuffer::default();
            return match rustix::net::sendmsg(self, parts, nothing, platform::SEND_FLAGS) {
                Err(Errno::WOULDBLOCK) => Ok(0),
                Err(Errno::INTR) => continue,
                outcome => Ok(outcome?),
            };
        }
    }

    pub fn end_writing(&self) {
        // The close has been reported already: there is nothing left to do about an error.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
        };
    }

    /// Makes `close` send a reset, so that the client cannot take what it received for a complete response.
    pub fn reset_on_close(&self) {
        if let Self::Tcp(stream) = self {
            let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }

    pub fn source(&mut self) -> &mut dyn mio::event::Source {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
        }
    }
}

/// Pieces that are written with one call.
const PARTS_MAX: usize = 16;

/// Bytes that the socket has not accepted yet. Exists only while there are some: a quiet connection has none.
#[derive(Debug, Default)]
pub struct Output {
    waiting: Option<Box<UnsentBytes>>,
}

#[derive(Debug, Default)]
struct UnsentBytes {
    queue: VecDeque<Bytes>,
    bytes: usize,
    /// Since when bytes have been waiting without interruption.
    began: Tick,
    /// How many bytes the socket has accepted since then.
    taken_bytes: usize,
    /// When the socket last accepted some of them.
    since: Tick,
}

impl UnsentBytes {
    /// So many of them have been written.
    fn advance(&mut self, written: usize) {
        self.bytes -= written;
        self.taken_bytes += written;
        let mut left = written;
        while left > 0
            && let Some(first) = self.queue.front_mut()
        {
            let of_first = left.min(first.len());
            first.advance(of_first);
            left -= of_first;
            if first.is_empty() {
                self.queue.pop_front();
            }
        }
    }
}

impl Output {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_none()
    }

    pub fn bytes(&self) -> usize {
        self.waiting.as_ref().map_or(0, |waiting| waiting.bytes)
    }

    /// For how long the socket has accepted none of the waiting bytes.
    pub fn untouched_for(&self, now: Tick) -> Duration {
        self.waiting.as_ref().map_or(Duration::ZERO, |waiting| now.since(waiting.since))
    }

    /// Restarts the stall timeout of the waiting bytes, but not the measurement of their rate.
    pub fn touch(&mut self, now: Tick) {
        if let Some(waiting) = &mut self.waiting {
            waiting.since = now;
        }
    }

    /// Whether the socket accepts the waiting bytes more slowly than required.
    pub fn is_too_slow(&self, now: Tick, stall: Duration) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| now.since(waiting.began) > time_to_take(waiting.taken_bytes, stall))
    }

    /// Restarts the measurement of the rate: being slow until now was allowed.
    pub fn begin_anew(&mut self, now: Tick) {
        if let Some(waiting) = &mut self.waiting {
            (waiting.began, waiting.taken_bytes) = (now, 0);
        }
    }

    /// Writes what can be written now and keeps a copy of the rest. Returns the number of bytes written at once.
    pub fn send(&mut self, socket: &ClientSocket, bytes: &[u8], now: Tick) -> io::Result<usize> {
        let written = if self.is_empty() { socket.write(bytes)? } else { 0 };
        if written < bytes.len() {
            self.keep(Bytes::copy_from_slice(&bytes[written..]), now);
        }
        Ok(written)
    }

    /// The same for bytes that are shared: the rest is kept without a copy.
    pub fn send_shared(&mut self, socket: &ClientSocket, bytes: &Bytes, now: Tick) -> io::Result<usize> {
        let written = if self.is_empty() { socket.write(bytes)? } else { 0 };
        if written < bytes.len() {
            self.keep(bytes.slice(written..), now);
        }
        Ok(written)
    }

    /// The same for bytes that have something before and after them, which is copied. Returns how many of the bytes
    /// themselves were written at once.
    pub fn send_framed(
        &mut self,
        socket: &ClientSocket,
        (before, bytes, after): (&[u8], &Bytes, &[u8]),
        now: Tick,
    ) -> io::Result<usize> {
        let parts = [before, bytes, after].map(IoSlice::new);
        let written = if self.is_empty() { socket.write_parts(&parts)? } else { 0 };
        let of_before = written.min(before.len());
        let of_bytes = (written - of_before).min(bytes.len());
        let of_after = written - of_before - of_bytes;
        self.keep(Bytes::copy_from_slice(&before[of_before..]), now);
        self.keep(bytes.slice(of_bytes..), now);
        self.keep(Bytes::copy_from_slice(&after[of_after..]), now);
        Ok(of_bytes)
    }

    fn keep(&mut self, bytes: Bytes, now: Tick) {
        if bytes.is_empty() {
            return;
        }
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::new(UnsentBytes { began: now, since: now, ..UnsentBytes::default() }));
        waiting.bytes += bytes.len();
        waiting.queue.push_back(bytes);
    }

    /// Continues writing. Returns the number of bytes written.
    pub fn flush(&mut self, socket: &ClientSocket, now: Tick) -> io::Result<usize> {
        let Some(waiting) = &mut self.waiting else { return Ok(0) };
        let before = waiting.bytes;
        while !waiting.queue.is_empty() {
            let mut parts = [IoSlice::new(&[]); PARTS_MAX];
            let (mut count, mut bytes) = (0, 0);
            for (part, waits) in parts.iter_mut().zip(&waiting.queue) {
                *part = IoSlice::new(waits);
                (count, bytes) = (count + 1, bytes + waits.len());
            }
            let written = socket.write_parts(&parts[..count])?;
            if written > 0 {
                waiting.since = now;
            }
            waiting.advance(written);
            if written < bytes {
                return Ok(before - waiting.bytes);
            }
        }
        self.waiting = None;
        Ok(before)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream as StdUnixStream;

    use parkade_core::Random;

    use super::*;

    /// A client that reads now and then gets all parts in order, and each byte of a body is reported once as taken.
    fn sends(seed: u64) {
        let random = &mut Random::new(seed);
        let (ours, mut theirs) = StdUnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        let socket = ClientSocket::Unix(UnixStream::from_std(ours));
        let (mut output, mut sent, mut came) = (Output::default(), Vec::new(), Vec::new());
        let (mut bytes, mut framing, mut at_once, mut later) = (0, 0, 0, 0);
        let mut read = |theirs: &mut StdUnixStream, most: usize| {
            let mut piece = vec![0; most];
            if let Ok(count) = theirs.read(&mut piece) {
                came.extend_from_slice(&piece[..count]);
            }
        };
        for number in 0..40_u8 {
            let length = usize::try_from(random.below(100_000)).unwrap();
            let (size, piece) = (format!("{length:x}\r\n"), Bytes::from(vec![number; length]));
            sent.extend([size.as_bytes(), &piece, b"\r\n"].concat());
            bytes += length;
            framing += size.len() + 2;
            at_once += output.send_framed(&socket, (size.as_bytes(), &piece, b"\r\n"), Tick::default()).unwrap();
            for _ in 0..random.below(4) {
                read(&mut theirs, usize::try_from(1 + random.below(90_000)).unwrap());
                later += output.flush(&socket, Tick::default()).unwrap();
            }
        }
        while !output.is_empty() {
            read(&mut theirs, 70_000);
            later += output.flush(&socket, Tick::default()).unwrap();
        }
        (0..100).for_each(|_| read(&mut theirs, 70_000));
        assert!(came == sent, "seed {seed}: {} of {} bytes", came.len(), sent.len());
        assert!((bytes..=bytes + framing).contains(&(at_once + later)), "seed {seed}");
    }

    #[test]
    fn pieces_and_their_framing_arrive_in_order_however_slowly_the_client_reads() {
        (1..=20).for_each(sends);
    }
}
