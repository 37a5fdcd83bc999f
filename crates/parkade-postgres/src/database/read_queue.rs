//! The sockets that can be read: each is read until it is empty, or until enough has been read for one turn.

use std::mem;
use std::time::Instant;

use bytes::BytesMut;

use super::sockets::Sockets;
use super::wired::Readable;
use crate::limits::{READING_MAX, READS_COUNT_MAX};
use crate::line::{Line, Loss};
use crate::pool::Pool;
use crate::transport::ReadOutcome;

#[derive(Debug, Default)]
pub(super) struct ReadQueue {
    /// They are read in the next turn.
    lines: Vec<Line>,
    /// The read buffer of all connections: a connection itself keeps only the beginning of a message.
    buffer: BytesMut,
}

/// The result of a read.
enum AfterRead {
    /// There is, or may be, more to read.
    Again,
    Enough,
}

impl ReadQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn push(&mut self, line: Line) {
        self.lines.push(line);
    }

    /// A connection may be read again, in the next turn.
    pub(super) fn resume(&mut self, now: Instant, line: Line, sockets: &mut Sockets, pool: &mut Pool) {
        if let Some(wired) = sockets.get(now, line, pool)
            && wired.poll.readable > Readable::Nothing
            && wired.queue()
        {
            self.lines.push(line);
        }
    }

    /// Reads as many of them as fit into one turn; at least one.
    pub(super) fn read_all(&mut self, now: Instant, sockets: &mut Sockets, pool: &mut Pool) {
        let until = Instant::now() + READING_MAX;
        let mut lines = mem::take(&mut self.lines).into_iter();
        for line in lines.by_ref() {
            self.look(now, line, until, sockets, pool);
            if Instant::now() >= until {
                break;
            }
        }
        // They come before those that were read in this turn and have more.
        let read = mem::replace(&mut self.lines, lines.collect());
        self.lines.extend(read);
    }

    /// A socket is readable, or may be read again.
    fn look(&mut self, now: Instant, line: Line, until: Instant, sockets: &mut Sockets, pool: &mut Pool) {
        let Some(wired) = sockets.get(now, line, pool) else { return };
        wired.poll.is_queued = false;
        if !sockets.go_on(now, line, pool) {
            return;
        }
        for _ in 0..READS_COUNT_MAX {
            if !pool.wants_read(line) {
                return;
            }
            match self.read(now, line, sockets, pool) {
                AfterRead::Again if Instant::now() < until => {}
                AfterRead::Again => break,
                AfterRead::Enough => return,
            }
        }
        self.resume(now, line, sockets, pool);
    }

    fn read(&mut self, now: Instant, line: Line, sockets: &mut Sockets, pool: &mut Pool) -> AfterRead {
        let Some(wired) = sockets.get(now, line, pool) else { return AfterRead::Enough };
        let Some(transport) = &mut wired.transport else { return AfterRead::Enough };
        let buffer = if wired.rest.is_empty() { &mut self.buffer } else { &mut wired.rest };
        match transport.read(buffer) {
            Ok(ReadOutcome::Bytes(_)) => {
                let is_drained = transport.is_drained();
                pool.received(now, line, buffer);
                wired.keep(&mut self.buffer);
                // Nothing is expected on a connection at rest, so the read that would find nothing is skipped.
                if is_drained && wired.poll.readable < Readable::End && pool.is_at_rest(line) {
                    wired.poll.readable = Readable::Nothing;
                    return AfterRead::Enough;
                }
                sockets.compute_due(now, line, pool);
                AfterRead::Again
            }
            Ok(ReadOutcome::Nothing) => {
                wired.poll.readable = Readable::Nothing;
                AfterRead::Enough
            }
            Ok(ReadOutcome::End) => {
                pool.lost(now, line, Loss::Closed);
                AfterRead::Enough
            }
            Err(error) => {
                pool.lost(now, line, Loss::Broken(error.to_string()));
                AfterRead::Enough
            }
        }
    }
}
