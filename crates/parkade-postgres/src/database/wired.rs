//! The socket of a connection, and the events that the poll has reported for it.

use std::mem;

use bytes::{Buf, BytesMut};

use crate::limits::BUFFER_KEPT_BYTES;
use crate::transport::{Attempt, Attempts, Transport};
use crate::wire::frames::Frames;

#[derive(Debug)]
pub(super) struct Wired {
    pub(super) attempts: Attempts,
    pub(super) attempt: Option<Attempt>,
    /// `None` while the name is being resolved.
    pub(super) transport: Option<Transport>,
    /// The beginning of a message.
    pub(super) rest: BytesMut,
    pub(super) poll: PollState,
}

/// Reported events that have not been handled.
#[derive(Debug, Default)]
pub(super) struct PollState {
    pub(super) readable: Readable,
    /// It is in the queue of readable sockets.
    pub(super) is_queued: bool,
    /// The socket accepted less than there was to write.
    pub(super) is_blocked: bool,
}

/// What can be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Readable {
    #[default]
    Nothing,
    Bytes,
    /// The other end has closed: the socket is read to its end, because no further event will come.
    End,
}

impl Wired {
    /// Nothing is open yet.
    pub(super) fn new(attempts: Attempts) -> Self {
        Self { attempts, attempt: None, transport: None, rest: BytesMut::new(), poll: PollState::default() }
    }

    pub(super) fn is_open(&self) -> bool {
        self.transport.as_ref().is_some_and(Transport::is_open)
    }

    /// The address and mode of an open connection, to connect in the same way again.
    pub(super) fn way(&self) -> Option<Attempt> {
        let transport = self.transport.as_ref()?;
        self.attempt.as_ref().map(|attempt| attempt.again(transport.is_tls()))
    }

    /// Whether it has to be added to the queue of readable sockets.
    pub(super) fn queue(&mut self) -> bool {
        !mem::replace(&mut self.poll.is_queued, true)
    }

    /// Switches to the next address: nothing is known about its socket yet. Returns the old one.
    pub(super) fn start_again(&mut self) -> Option<Transport> {
        self.rest.clear();
        self.poll = PollState { is_queued: self.poll.is_queued, ..PollState::default() };
        self.transport.take()
    }

    /// Keeps the beginning of a message with its connection; the buffer is shared.
    pub(super) fn keep(&mut self, buffer: &mut BytesMut) {
        if self.rest.is_empty() {
            if self.rest.capacity() > BUFFER_KEPT_BYTES {
                self.rest = BytesMut::new();
            }
            if !buffer.is_empty() {
                self.rest.extend_from_slice(buffer);
                buffer.advance(buffer.len());
            }
        }
        if !self.rest.is_empty() {
            self.rest.reserve(Frames::needed(&self.rest).saturating_sub(self.rest.len()).min(1 << 20));
        }
    }
}
