//! The way out: an answer becomes bytes.

use bytes::Bytes;

use super::{Connection, Phase, Purpose, Terms, Turn};
use crate::http::answer::{self, BadAnswer, Ending, Field, Persistence, Prepared};
use crate::http::head::Version;
use crate::http::limits::{COPIED_BODY_BYTES_MAX, is_too_far_behind};
use crate::http::tick::Tick;

impl Connection {
    /// Writes a whole answer. Nothing is written when it breaks HTTP.
    pub fn answer<'a>(
        &mut self,
        status: u16,
        fields: impl Iterator<Item = Field<'a>> + Clone,
        body: &Bytes,
        turn: &mut Turn<'_>,
    ) -> Result<(), BadAnswer> {
        let Phase::Waiting { terms, .. } = self.phase else { return Ok(()) };
        let announced = answer::check(status, fields.clone())?;
        let length = answer::length(status, terms.is_head, announced, body)?;
        let ending = Ending::of(status).unwrap_or(Ending::Length(length));
        let persistence = terms.persistence(turn);
        let out = &mut *turn.out;
        out.clear();
        answer::write_head(out, status, fields, ending, persistence, turn.date.as_bytes());
        let has_body = !terms.is_head && ending.has_body();
        let is_copied = has_body && body.len() <= COPIED_BODY_BYTES_MAX;
        if is_copied {
            out.extend_from_slice(body);
        }
        let out = std::mem::take(turn.out);
        self.write(&out, turn.now);
        *turn.out = out;
        if has_body && !is_copied {
            self.write_shared(body, turn.now);
        }
        self.answered(persistence, turn.now);
        Ok(())
    }

    /// Writes an answer that was serialised before.
    pub fn answer_prepared(&mut self, prepared: &Prepared, turn: &mut Turn<'_>) {
        let Phase::Waiting { terms, .. } = self.phase else { return };
        let persistence = match terms.persistence(turn) {
            Persistence::Keep => Persistence::Keep,
            Persistence::KeepAnnounced | Persistence::Close => Persistence::Close,
        };
        self.write_shared(&prepared.bytes(persistence, terms.is_head), turn.now);
        self.answered(persistence, turn.now);
    }

    fn answered(&mut self, persistence: Persistence, now: Tick) {
        self.phase = if persistence == Persistence::Close { Phase::Closing } else { Phase::Quiet };
        self.since = now;
    }

    /// Begins an answer whose body follows in pieces.
    pub fn begin<'a>(
        &mut self,
        status: u16,
        fields: impl Iterator<Item = Field<'a>> + Clone,
        purpose: Purpose,
        turn: &mut Turn<'_>,
    ) -> Result<(), BadAnswer> {
        let Phase::Waiting { request, terms } = self.phase else { return Ok(()) };
        let announced = answer::check(status, fields.clone())?;
        let ending = Ending::of(status).unwrap_or(match announced {
            Some(length) => Ending::Length(length),
            None if terms.version == Version::Http10 => Ending::Close,
            None => Ending::Chunked,
        });
        let persistence = if ending == Ending::Close { Persistence::Close } else { terms.persistence(turn) };
        turn.out.clear();
        answer::write_head(turn.out, status, fields, ending, persistence, turn.date.as_bytes());
        let out = std::mem::take(turn.out);
        self.write(&out, turn.now);
        *turn.out = out;
        let terms = Terms { keep_alive: persistence != Persistence::Close, ..terms };
        self.phase = Phase::Answering { request, terms, ending, left: announced.unwrap_or(0), purpose };
        Ok(())
    }

    /// Writes a piece of the body. Answers how many of its bytes the client's socket took, or that there are more than announced.
    pub fn piece(&mut self, bytes: &Bytes, now: Tick) -> Result<usize, BadAnswer> {
        let Phase::Answering { terms, ending, left, purpose, .. } = &mut self.phase else { return Ok(bytes.len()) };
        let has_body = !terms.is_head && ending.has_body();
        if let (Ending::Length(_), true) = (*ending, has_body) {
            *left = left.checked_sub(bytes.len() as u64).ok_or(BadAnswer::Length)?;
        }
        if bytes.is_empty() || !has_body {
            return Ok(bytes.len());
        }
        let (ending, purpose) = (*ending, *purpose);
        if purpose == Purpose::Events && is_too_far_behind(self.output.bytes(), now.since(self.since)) {
            return Ok(self.broken());
        }
        if ending == Ending::Chunked {
            let size = format!("{:x}\r\n", bytes.len());
            self.write(size.as_bytes(), now);
        }
        let taken = self.write_shared(bytes, now);
        if ending == Ending::Chunked {
            self.write(b"\r\n", now);
        }
        Ok(taken)
    }

    /// Writes bytes that carry their chunk's frame already.
    pub fn framed_piece(&mut self, chunked: &Bytes, plain: &Bytes, now: Tick) {
        let Phase::Answering { terms, ending, .. } = &self.phase else { return };
        if terms.is_head {
            return;
        }
        if is_too_far_behind(self.output.bytes(), now.since(self.since)) {
            self.broken();
            return;
        }
        let bytes = if *ending == Ending::Chunked { chunked } else { plain };
        self.write_shared(bytes, now);
    }

    /// The body is complete. False when fewer bytes came than were announced: then the connection has to be broken.
    pub fn finish(&mut self, turn: &mut Turn<'_>) -> bool {
        let Phase::Answering { terms, ending, left, purpose, .. } = self.phase else { return true };
        let has_body = !terms.is_head && ending.has_body();
        if has_body && matches!(ending, Ending::Length(_)) && left > 0 {
            return false;
        }
        if purpose == Purpose::Events {
            self.output.begin_anew(turn.now);
        }
        if has_body && ending == Ending::Chunked {
            self.write(b"0\r\n\r\n", turn.now);
        }
        let persistence = if turn.is_draining { Persistence::Close } else { terms.persistence(turn) };
        self.answered(persistence, turn.now);
        true
    }
}
