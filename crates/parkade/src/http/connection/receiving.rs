//! The way in: bytes become a request.

use bytes::Bytes;

use super::{Connection, FarEnd, Input, PREFACE, Phase, Step, Turn};
use crate::http::body::{BodyDecoder, make_room};
use crate::http::budget::{Held, Stage};
use crate::http::fault::Fault;
use crate::http::head::{self, Framing, Head};
use crate::http::limits::{BODY_BYTES_PER_SECOND_MIN, HEAD_READ_BYTES_MAX, METHOD_BYTES_MAX, TURN_READ_BYTES_MAX};
use crate::http::socket::Filled;
use crate::http::tick::Tick;

/// A request whose body is on its way.
#[derive(Debug)]
pub(super) struct Receiving {
    head: Head,
    decoder: BodyDecoder,
    body: Vec<u8>,
    held: Held,
    began: Tick,
}

/// What bytes came to.
enum Took {
    NotEnough,
    Request(Head, Bytes, Held),
    Preface,
}

impl Receiving {
    pub(super) fn is_too_slow(&self, turn: &Turn<'_>) -> bool {
        let earned = std::time::Duration::from_secs(self.body.len() as u64 / BODY_BYTES_PER_SECOND_MIN);
        turn.now.since(self.began) > turn.limits.body_stall + earned
    }
}

fn stepped(took: Took) -> Option<Step> {
    match took {
        Took::NotEnough => None,
        Took::Request(head, body, share) => Some(Step::Arrived(head, body, share)),
        Took::Preface => Some(Step::Http2),
    }
}

impl Connection {
    pub(super) fn receive(&mut self, turn: &mut Turn<'_>) -> Result<Step, Fault> {
        let mut held = None;
        let mut input = self.input.take().map_or_else(Vec::new, |kept| {
            held = Some(kept.held);
            kept.bytes
        });
        if std::mem::take(&mut self.has_leftover) {
            let (used, took) = self.take_in(&input, turn)?;
            input.drain(..used);
            if let Some(step) = stepped(took) {
                return self.keep_leftover(input, held, turn).map(|()| step);
            }
        }
        let mut left = TURN_READ_BYTES_MAX;
        while self.readiness.readable && left > 0 {
            let room = if matches!(self.phase, Phase::Body(_)) { turn.scratch.len() } else { HEAD_READ_BYTES_MAX };
            let count = match self.socket.read(&mut turn.scratch[..room]) {
                Filled::Bytes(count) => count,
                Filled::Nothing => {
                    self.readiness.readable = false;
                    break;
                }
                Filled::End if matches!(self.phase, Phase::Body(_)) => return Err(Fault::BodyEndedEarly),
                Filled::End | Filled::Broken => return Ok(Step::Close),
            };
            left = left.saturating_sub(count);
            // A short read has emptied the socket: what comes later is told by a new event.
            self.readiness.readable = count == room || self.readiness.far != FarEnd::There;
            let took = if input.is_empty() {
                let scratch = std::mem::take(&mut turn.scratch);
                let taken = self.take_in(&scratch[..count], turn);
                if let Ok((used, _)) = &taken {
                    input.extend_from_slice(&scratch[*used..count]);
                }
                turn.scratch = scratch;
                taken?.1
            } else {
                input.extend_from_slice(&turn.scratch[..count]);
                let (used, took) = self.take_in(&input, turn)?;
                input.drain(..used);
                took
            };
            if let Some(step) = stepped(took) {
                return self.keep_leftover(input, held, turn).map(|()| step);
            }
        }
        self.keep_input(input, held, turn)?;
        Ok(if self.is_gone() { Step::Close } else { Step::Stay })
    }

    /// What has come after a request waits for its answer.
    fn keep_leftover(&mut self, input: Vec<u8>, held: Option<Held>, turn: &Turn<'_>) -> Result<(), Fault> {
        self.has_leftover = !input.is_empty();
        self.keep_input(input, held, turn)
    }

    /// A connection without leftover bytes keeps no buffer.
    fn keep_input(&mut self, bytes: Vec<u8>, held: Option<Held>, turn: &Turn<'_>) -> Result<(), Fault> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut held = held.unwrap_or_else(|| turn.budget.share());
        if !held.hold(bytes.capacity(), Stage::Coming) {
            return Err(Fault::RequestsFull);
        }
        self.input = Some(Box::new(Input { bytes, held }));
        Ok(())
    }

    /// Uses what it can of the bytes and says how many that were.
    fn take_in(&mut self, bytes: &[u8], turn: &mut Turn<'_>) -> Result<(usize, Took), Fault> {
        match &mut self.phase {
            Phase::Body(receiving) => {
                make_room(&mut receiving.body, bytes.len());
                let used = receiving.decoder.decode(bytes, &mut receiving.body, turn.limits.body_bytes_max)?;
                #[cfg(test)]
                assert!(
                    receiving.head.field("x-bug") != Some("body") || receiving.body.is_empty(),
                    "a bug in reading a body"
                );
                if !receiving.held.hold(receiving.head.held_bytes() + receiving.body.capacity(), Stage::Coming) {
                    return Err(Fault::RequestsFull);
                }
                self.since = turn.now;
                Ok((used, self.whole_body()))
            }
            Phase::Quiet => {
                // A client may send empty lines behind a body (RFC 9112, section 2.2).
                let empty_lines = bytes.chunks_exact(2).take_while(|pair| pair == b"\r\n").count() * 2;
                let rest = &bytes[empty_lines..];
                self.has_spoken |= empty_lines > 0;
                if rest.is_empty() || rest == b"\r" {
                    return Ok((empty_lines, Took::NotEnough));
                }
                self.since = turn.now;
                let (used, took) = self.take_head(rest, 0, turn)?;
                Ok((empty_lines + used, took))
            }
            Phase::Head { scanned } => {
                let scanned = *scanned;
                self.take_head(bytes, scanned, turn)
            }
            Phase::Waiting { .. } | Phase::Answering { .. } | Phase::Closing | Phase::Lingering { .. } => {
                Ok((0, Took::NotEnough))
            }
        }
    }

    fn take_head(&mut self, bytes: &[u8], mut scanned: usize, turn: &mut Turn<'_>) -> Result<(usize, Took), Fault> {
        // The preface changes the protocol where it comes first, and nowhere else: what has spoken HTTP/1.1 goes on with it.
        if !self.has_spoken && bytes.starts_with(PREFACE) {
            return Ok((0, Took::Preface));
        }
        if !self.has_spoken && PREFACE.starts_with(bytes) {
            self.phase = Phase::Head { scanned: 0 };
            return Ok((0, Took::NotEnough));
        }
        if scanned <= METHOD_BYTES_MAX {
            head::begins(bytes)?;
        }
        let Some(end) = head::end_of_head(bytes, &mut scanned)? else {
            self.phase = Phase::Head { scanned };
            return if bytes.len() > turn.limits.head_bytes_max {
                Err(Fault::HeadTooLarge)
            } else {
                Ok((0, Took::NotEnough))
            };
        };
        if end > turn.limits.head_bytes_max {
            return Err(Fault::HeadTooLarge);
        }
        let head = head::parse(&bytes[..end], turn.limits.header_count_max)?;
        #[cfg(test)]
        assert!(head.field("x-bug") != Some("head"), "a bug in reading a head");
        let mut share = turn.budget.share();
        let stage = if head.has_body() { Stage::Coming } else { Stage::Whole };
        if !share.hold(head.held_bytes(), stage) {
            return Err(Fault::RequestsFull);
        }
        let announced = match head.framing {
            Framing::None | Framing::Length(0) => {
                self.phase = Phase::Quiet;
                return Ok((end, Took::Request(head, Bytes::new(), share)));
            }
            Framing::Length(length) if length > turn.limits.body_bytes_max as u64 => return Err(Fault::BodyTooLarge),
            Framing::Length(length) => usize::try_from(length).unwrap_or(0),
            Framing::Chunked => 0,
        };
        let expects_continue = head.expects_continue;
        // Room is made when bytes come: an announcement costs nothing.
        let body = Vec::with_capacity(announced.min(bytes.len() - end));
        self.phase = Phase::Body(Box::new(Receiving {
            decoder: BodyDecoder::new(head.framing),
            head,
            body,
            held: share,
            began: turn.now,
        }));
        let (used, took) = self.take_in(&bytes[end..], turn)?;
        if expects_continue && used == 0 {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n", turn.now);
        }
        Ok((end + used, took))
    }

    fn whole_body(&mut self) -> Took {
        match std::mem::replace(&mut self.phase, Phase::Quiet) {
            Phase::Body(receiving) if receiving.decoder.is_complete() => {
                Took::Request(receiving.head, receiving.body.into(), receiving.held)
            }
            unfinished => {
                self.phase = unfinished;
                Took::NotEnough
            }
        }
    }
}
