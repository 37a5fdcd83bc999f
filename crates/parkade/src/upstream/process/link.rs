//! The bytes of one link: those that have been read, and those that wait to be sent.

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;

use bytes::{Buf, BytesMut};
use mio::event::Event;
use mio::unix::pipe::{Receiver, Sender};
use mio::{Interest, Registry, Token};

use super::limits;

/// The core's ends of the two pipes of a link, neither of which blocks.
///
/// Pipes are cheaper than a socket: a small response takes a third of the time (0.6 µs less to write, 0.5 µs less to
/// read), because the kernel appends it to the one before instead of keeping each as a packet.
pub struct Ends {
    from_worker: Receiver,
    to_worker: Sender,
}

impl Ends {
    pub fn new(from_worker: PipeReader, to_worker: PipeWriter) -> io::Result<Self> {
        let from_worker = Receiver::from(OwnedFd::from(from_worker));
        let to_worker = Sender::from(OwnedFd::from(to_worker));
        from_worker.set_nonblocking(true)?;
        to_worker.set_nonblocking(true)?;
        Ok(Self { from_worker, to_worker })
    }
}

pub struct Link {
    from_worker: Receiver,
    to_worker: Sender,
    token: Token,
    /// Bytes that have been read and are not a complete frame yet.
    pub read: BytesMut,
    /// Frames for the worker.
    pub unsent: BytesMut,
    inlet: Inlet,
    outlet: Outlet,
    /// Whether the poll set reports when the worker has read.
    outlet_is_watched: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inlet {
    Open,
    /// The worker has closed its end: the rest can be read up to the end of file.
    HungUp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outlet {
    /// Nothing waits.
    Idle,
    /// Bytes wait for the next flush.
    Queued,
    /// The pipe is full; the poll set reports when it is not.
    Blocked,
}

/// How much of the waiting bytes was written.
#[derive(Debug, PartialEq, Eq)]
pub enum Written {
    All,
    Part,
    /// The worker has closed the pipe.
    Nothing,
}

/// The outcome of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// This many bytes, and perhaps more after them.
    Bytes(usize),
    /// Nothing more for now.
    Dry,
    /// The worker has closed its end; all of it has been read.
    End,
}

impl Link {
    pub fn new(ends: Ends, registry: &Registry, token: Token) -> io::Result<Self> {
        let Ends { mut from_worker, to_worker } = ends;
        registry.register(&mut from_worker, token, Interest::READABLE)?;
        Ok(Self {
            from_worker,
            to_worker,
            token,
            read: BytesMut::new(),
            unsent: BytesMut::new(),
            inlet: Inlet::Open,
            outlet: Outlet::Idle,
            outlet_is_watched: false,
        })
    }

    /// Takes an event of the poll set. Returns whether there is something to read, and whether the link has to be
    /// flushed.
    pub fn notice(&mut self, event: &Event) -> (bool, bool) {
        // The two pipes share a token. Only the outlet can be writable, or have an error: nobody reads it any more.
        let unblocked = (event.is_writable() || event.is_error()) && self.outlet == Outlet::Blocked;
        if unblocked {
            self.outlet = Outlet::Queued;
        }
        if event.is_read_closed() {
            self.inlet = Inlet::HungUp;
        }
        (event.is_readable() || event.is_read_closed(), unblocked)
    }

    /// Bytes may have been added to `unsent`. Returns whether the link has to be flushed and is not marked for that
    /// yet.
    pub fn queue(&mut self) -> bool {
        let unknown = self.outlet == Outlet::Idle;
        if unknown {
            self.outlet = Outlet::Queued;
        }
        unknown
    }

    /// The pipe is full.
    pub fn is_blocked(&self) -> bool {
        self.outlet == Outlet::Blocked
    }

    /// Reads once. `piece` is the buffer for the kernel: shared by all links, so that a quiet link holds no buffer.
    pub fn fill(&mut self, piece: &mut [u8]) -> Found {
        match self.from_worker.read(piece) {
            Ok(0) => Found::End,
            Ok(count) => {
                self.read.extend_from_slice(&piece[..count]);
                // A short read has emptied the pipe (epoll(7), questions and answers, 9). But an end of file after it
                // would not be reported again.
                if count < piece.len() && self.inlet == Inlet::Open { Found::Dry } else { Found::Bytes(count) }
            }
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => Found::Bytes(0),
                ErrorKind::WouldBlock => Found::Dry,
                _ => Found::End,
            },
        }
    }

    /// Writes as much as the pipe accepts.
    ///
    /// The pipe is watched for writability only while it is full; otherwise the core would be woken whenever its worker
    /// reads.
    pub fn flush(&mut self, registry: &Registry) -> Written {
        let written = self.write();
        self.outlet = if written == Written::Part { Outlet::Blocked } else { Outlet::Idle };
        self.watch_outlet(registry);
        written
    }

    fn watch_outlet(&mut self, registry: &Registry) {
        let is_to_be_watched = self.outlet == Outlet::Blocked;
        if is_to_be_watched == self.outlet_is_watched {
            return;
        }
        let watched = if is_to_be_watched {
            registry.register(&mut self.to_worker, self.token, Interest::WRITABLE)
        } else {
            registry.deregister(&mut self.to_worker)
        };
        match watched {
            Ok(()) => self.outlet_is_watched = is_to_be_watched,
            Err(error) => {
                tracing::warn!(link = self.token.0, %error, "cannot register a worker pipe for polling; will retry on the next write");
                self.outlet = Outlet::Idle;
            }
        }
    }

    /// Writes as much as the pipe accepts.
    pub fn write(&mut self) -> Written {
        while !self.unsent.is_empty() {
            match self.to_worker.write(&self.unsent) {
                Ok(count @ 1..) => self.unsent.advance(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Written::Part,
                Ok(_) | Err(_) => {
                    self.empty();
                    return Written::Nothing;
                }
            }
        }
        self.empty();
        Written::All
    }

    /// Frees buffers that are empty.
    pub fn give_room_back(&mut self) {
        for buffer in [&mut self.read, &mut self.unsent] {
            if buffer.is_empty() {
                *buffer = BytesMut::new();
            }
        }
    }

    /// Makes room for the next frames; a buffer that had to grow is freed.
    fn empty(&mut self) {
        if self.unsent.capacity() > limits::BUFFER_BYTES_KEPT {
            self.unsent = BytesMut::new();
        } else {
            self.unsent.clear();
        }
    }
}
