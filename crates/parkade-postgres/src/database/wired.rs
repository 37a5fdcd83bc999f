//! The socket of a line, and what the poll has said of it.

use std::mem;

use bytes::{Buf, BytesMut};

use crate::limits::BUFFER_KEPT_BYTES;
use crate::transport::{Attempt, Attempts, Transport};
use crate::wire::frames::Frames;

#[derive(Debug)]
pub(super) struct Wired {
    pub(super) attempts: Attempts,
    pub(super) attempt: Option<Attempt>,
    /// `None`: the name is being resolved.
    pub(super) transport: Option<Transport>,
    /// The beginning of a message.
    pub(super) rest: BytesMut,
    pub(super) poll: PollState,
}

/// What the poll has said and was not used up.
#[derive(Debug, Default)]
pub(super) struct PollState {
    pub(super) readable: Readable,
    /// It is in the list of those that are to be read.
    pub(super) is_queued: bool,
    /// The socket took less than was to be written.
    pub(super) is_blocked: bool,
}

/// What there is to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Readable {
    #[default]
    Nothing,
    Bytes,
    /// The other end says no more: it is to be read to its end, for no other news will come of it.
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

    /// The way that an open connection has gone, to go it again.
    pub(super) fn way(&self) -> Option<Attempt> {
        let transport = self.transport.as_ref()?;
        self.attempt.as_ref().map(|attempt| attempt.again(transport.is_tls()))
    }

    /// Whether it has to be put on the list of those that are to be read.
    pub(super) fn queue(&mut self) -> bool {
        !mem::replace(&mut self.poll.is_queued, true)
    }

    /// The next address comes: nothing is known of its socket. Returns the old one.
    pub(super) fn start_again(&mut self) -> Option<Transport> {
        self.rest.clear();
        self.poll = PollState { is_queued: self.poll.is_queued, ..PollState::default() };
        self.transport.take()
    }

    /// The beginning of a message stays with its connection; the buffer is for all.
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
