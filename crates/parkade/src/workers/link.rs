//! The bytes of one link: what has been read of it, what waits to be sent on it.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use bytes::{Buf, BytesMut};
use mio::event::Event;
use mio::{Interest, Registry, Token};

use super::limits;

pub struct Link {
    socket: mio::net::UnixStream,
    token: Token,
    /// Read, and not yet a whole frame.
    pub read: BytesMut,
    /// Frames for the worker.
    pub unsent: BytesMut,
    inlet: Inlet,
    outlet: Outlet,
    /// What the poll set tells about.
    interest: Interest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inlet {
    Open,
    /// The worker has closed its end: what is left leads up to the end of file.
    HungUp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outlet {
    /// Nothing waits.
    Idle,
    /// What waits is sent at the next flush.
    Queued,
    /// The socket is full; the poll set will tell when it is not.
    Blocked,
}

/// How much of what waited could be written.
#[derive(Debug, PartialEq, Eq)]
pub enum Written {
    All,
    Part,
}

/// What one read found.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// So many bytes, and perhaps more behind them.
    Bytes(usize),
    /// Nothing more for now.
    Dry,
    /// The worker has closed its end; all of it has been read.
    End,
}

impl Link {
    pub fn new(socket: UnixStream, registry: &Registry, token: Token) -> io::Result<Self> {
        let mut socket = mio::net::UnixStream::from_std(socket);
        let interest = Interest::READABLE;
        registry.register(&mut socket, token, interest)?;
        let (read, unsent) = (BytesMut::new(), BytesMut::new());
        Ok(Self { socket, token, read, unsent, inlet: Inlet::Open, outlet: Outlet::Idle, interest })
    }

    /// What the poll set says: whether there is something to read, and whether the link is to be flushed.
    pub fn notice(&mut self, event: &Event) -> (bool, bool) {
        let closed = event.is_read_closed() || event.is_error();
        if closed {
            self.inlet = Inlet::HungUp;
        }
        let unblocked = event.is_writable() && self.outlet == Outlet::Blocked;
        if unblocked {
            self.outlet = Outlet::Queued;
        }
        (event.is_readable() || closed, unblocked)
    }

    /// Something was written to `unsent`, perhaps: whether the link is to be flushed and nobody knows it yet.
    pub fn queue(&mut self) -> bool {
        let unknown = self.outlet == Outlet::Idle;
        if unknown {
            self.outlet = Outlet::Queued;
        }
        unknown
    }

    /// The socket is full.
    pub fn is_blocked(&self) -> bool {
        self.outlet == Outlet::Blocked
    }

    /// Reads once. `piece` is where the kernel puts the bytes: shared by all links, so that a quiet one holds no buffer.
    pub fn fill(&mut self, piece: &mut [u8]) -> Found {
        match self.socket.read(piece) {
            Ok(0) => Found::End,
            Ok(count) => {
                self.read.extend_from_slice(&piece[..count]);
                // A read that finds less than it could take has emptied the socket (epoll(7), questions and answers, 9); of an end of
                // file behind it nobody would be told again.
                if count < piece.len() && self.inlet == Inlet::Open { Found::Dry } else { Found::Bytes(count) }
            }
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => Found::Bytes(0),
                ErrorKind::WouldBlock => Found::Dry,
                // ECONNRESET: the worker ended without having read everything. What it wrote came before this.
                _ => Found::End,
            },
        }
    }

    /// Writes what waits, as far as the worker's socket takes it; the poll set tells when it takes more.
    ///
    /// The socket is watched for that only while it is full: else the core would be woken whenever its worker reads.
    pub fn flush(&mut self, registry: &Registry) {
        let (outlet, interest) = match self.write() {
            Written::All => (Outlet::Idle, Interest::READABLE),
            Written::Part => (Outlet::Blocked, Interest::READABLE | Interest::WRITABLE),
        };
        self.outlet = outlet;
        if interest != self.interest {
            match registry.reregister(&mut self.socket, self.token, interest) {
                Ok(()) => self.interest = interest,
                Err(error) => {
                    tracing::warn!(link = self.token.0, %error, "a link cannot be watched: what is said next tries again");
                    self.outlet = Outlet::Idle;
                }
            }
        }
    }

    /// Writes what waits, as far as the worker's socket takes it.
    pub fn write(&mut self) -> Written {
        while !self.unsent.is_empty() {
            match self.socket.write(&self.unsent) {
                Ok(count @ 1..) => self.unsent.advance(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Written::Part,
                // It no longer listens. What it still wrote is read, then its end is found there.
                Ok(_) | Err(_) => break,
            }
        }
        self.empty();
        Written::All
    }

    /// Room for the next frames; one that had to grow is given back.
    fn empty(&mut self) {
        if self.unsent.capacity() > limits::BUFFER_BYTES_KEPT {
            self.unsent = BytesMut::new();
        } else {
            self.unsent.clear();
        }
    }
}
