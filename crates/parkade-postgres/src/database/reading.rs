//! Reading a socket until it is empty, or enough has been read for one turn.

use std::mem;
use std::time::Instant;

use bytes::{Buf, BytesMut};

use super::{Database, Readable, Wired, wired};
use crate::limits::{BUFFER_KEPT_BYTES, READING_MAX, READS_COUNT_MAX};
use crate::line::{Line, Loss};
use crate::transport::Read;
use crate::wire::frames::Frames;

/// What a read came to.
enum After {
    /// There is more, or may be.
    Again,
    Enough,
}

impl Database {
    /// As many of the sockets that have something to say as there is time for in one turn; at least one.
    pub(super) fn read_all(&mut self, now: Instant) {
        let until = Instant::now() + READING_MAX;
        let mut ready = mem::take(&mut self.ready).into_iter();
        for line in ready.by_ref() {
            self.look(now, line, until);
            if Instant::now() >= until {
                break;
            }
        }
        // They come before those that have been read and have more.
        let read = mem::replace(&mut self.ready, ready.collect());
        self.ready.extend(read);
    }

    /// A socket has something to say, or may be read on.
    fn look(&mut self, now: Instant, line: Line, until: Instant) {
        let Some(wired) = wired(&mut self.wires, &mut self.pool, now, line) else { return };
        wired.stand.is_queued = false;
        if !self.go_on(now, line) {
            return;
        }
        for _ in 0..READS_COUNT_MAX {
            if !self.pool.wants_read(line) {
                return;
            }
            match self.read(now, line) {
                After::Again if Instant::now() < until => {}
                After::Again => break,
                After::Enough => return,
            }
        }
        self.look_at(now, line);
    }

    /// In the next turn.
    pub(super) fn look_at(&mut self, now: Instant, line: Line) {
        if let Some(wired) = wired(&mut self.wires, &mut self.pool, now, line)
            && wired.stand.readable > Readable::Nothing
            && !mem::replace(&mut wired.stand.is_queued, true)
        {
            self.ready.push(line);
        }
    }

    fn read(&mut self, now: Instant, line: Line) -> After {
        let Some(wired) = wired(&mut self.wires, &mut self.pool, now, line) else { return After::Enough };
        let Some(transport) = &mut wired.transport else { return After::Enough };
        let buffer = if wired.rest.is_empty() { &mut self.buffer } else { &mut wired.rest };
        match transport.read(buffer) {
            Ok(Read::Bytes(_)) => {
                let is_drained = transport.is_drained();
                self.pool.received(now, line, buffer);
                wired.keep(&mut self.buffer);
                // A connection at rest has said all it has to: the read that would find nothing is spared.
                if is_drained && wired.stand.readable < Readable::End && self.pool.is_at_rest(line) {
                    wired.stand.readable = Readable::Nothing;
                    return After::Enough;
                }
                self.compute_due(now, line);
                After::Again
            }
            Ok(Read::Nothing) => {
                wired.stand.readable = Readable::Nothing;
                After::Enough
            }
            Ok(Read::End) => {
                self.pool.lost(now, line, Loss::Closed);
                After::Enough
            }
            Err(error) => {
                self.pool.lost(now, line, Loss::Broken(error.to_string()));
                After::Enough
            }
        }
    }
}

impl Wired {
    /// The beginning of a message stays with its connection; the buffer is for all.
    fn keep(&mut self, buffer: &mut BytesMut) {
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
