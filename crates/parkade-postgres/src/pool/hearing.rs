//! What the server says to a slot: which message moves which state.

use std::time::Instant;

use bytes::{Buf, Bytes, BytesMut};
use parkade_sql::{Certainty, QueryEnd, QueryFailure, QueryId};

use super::following::means;
use super::{Pool, Role};
use crate::Event;
use crate::job::{Heard, Job, Means, Outcome, Step};
use crate::lease::Part;
use crate::limits::PIECE_BYTES_MAX;
use crate::line::{Line, Loss};
use crate::slot::{Busy, Cancelling, Cancels, State, Why};
use crate::wire::message::{Message, Transaction};
use crate::wire::{Broken, write};

const OUT_OF_TURN: Broken = Broken("a message out of turn");

impl Pool {
    /// Bytes have come; what is left in `buffer` is the beginning of a message.
    pub(crate) fn received(&mut self, now: Instant, line: Line, buffer: &mut BytesMut) {
        self.now = self.attention.looks(now);
        self.silence.heard(self.now);
        match self.roles.get(&line) {
            Some(&Role::Slot(index)) => self.slot_received(index, line, buffer),
            Some(Role::Canceller) => self.canceller_received(line, buffer),
            Some(Role::Listener) => self.listener_received(line, buffer),
            // Nothing is said there, and nobody knows the others any more.
            Some(Role::Request) | None => buffer.clear(),
        }
    }

    fn slot_received(&mut self, index: usize, line: Line, buffer: &mut BytesMut) {
        let mut at = 0;
        let broken = loop {
            // What was said may have closed it.
            if !self.roles.contains_key(&line) {
                return buffer.clear();
            }
            let frame = self.slot(index).wire.frames.next(buffer, &mut at);
            let heard = match frame.and_then(|frame| frame.as_ref().map(Message::parse).transpose()) {
                Ok(Some(message)) => self.hear(index, message),
                Ok(None) => break None,
                Err(broken) => Err(broken),
            };
            if let Err(broken) = heard {
                break Some(broken);
            }
        };
        buffer.advance(at);
        match broken {
            Some(broken) => self.lost(self.now, line, Loss::Broken(broken.to_string())),
            None => self.give_piece(index),
        }
    }

    fn hear(&mut self, index: usize, message: Message<'_>) -> Result<(), Broken> {
        let slot = self.slots[index].as_mut().expect("a slot that hears is there");
        if matches!(message, Message::Setting { .. }) && !matches!(slot.state, State::Connecting(_)) {
            // A pooler tells of the settings of whichever server it links.
            slot.is_changed |= !slot.identity.is_pooled;
        }
        let heard = match (&mut slot.state, message) {
            (State::Busy(Busy { job, .. }) | State::Cancelling(Cancelling { job, .. }), message) => {
                job.hear(message, &self.types)?
            }
            (State::Connecting(connecting), message) => {
                let dialled = connecting.dial.hear(self.now, message, &self.terms, &mut slot.wire);
                self.dialled(index, dialled);
                return Ok(());
            }
            (_, Message::Notice(notice)) => {
                tracing::debug!(code = %notice.code, "notice: {}", notice.message);
                return Ok(());
            }
            (_, Message::Setting { .. } | Message::Notification { .. })
            | (State::Resetting(_), Message::Complete(_)) => return Ok(()),
            (State::Resetting(_), Message::Ready(Transaction::None)) => {
                self.follow(index, crate::slot::Then::Idle);
                return Ok(());
            }
            (State::Resetting(_), Message::Ready(_)) => {
                self.doom(index, false);
                return Ok(());
            }
            (State::Resetting(_), Message::Error(error)) if error.is_cancel() => {
                self.count_stray(&error);
                return Ok(());
            }
            // Nobody has asked: the server says good-bye.
            (_, Message::Error(error)) => {
                self.dismissed(index, &error.message);
                return Ok(());
            }
            (
                State::Idle(_)
                | State::Held(_)
                | State::Settling(_)
                | State::Resetting(_)
                | State::Doomed(_)
                | State::Moving,
                _,
            ) => return Err(OUT_OF_TURN),
        };
        match heard {
            Heard::Nothing => {}
            Heard::Ready(transaction) => self.ready(index, transaction),
            Heard::Unwanted(failure) => self.unwanted(index, failure),
            Heard::Dismissed => self.dismissed(index, "the server ended it"),
            Heard::CopyIn => {
                write::refuse_copy(&mut slot.wire.out);
                self.speak(index);
            }
        }
        Ok(())
    }

    fn dismissed(&mut self, index: usize, why: &str) {
        self.close_line_of(index);
        self.lost_slot(index, &Loss::Closed, why);
    }

    fn unwanted(&mut self, index: usize, failure: QueryFailure) {
        if let State::Busy(busy) = &mut self.slot(index).state {
            if busy.job.is_cancellable() {
                self.cancel_slot(index, Why::Failed(failure));
            } else {
                busy.job.fail(failure);
            }
        }
    }

    /// The server waits for the next statement.
    fn ready(&mut self, index: usize, transaction: Transaction) {
        self.doubt_statements(index);
        let slot = self.slots[index].as_mut().expect("a slot that is ready is there");
        match slot.leave() {
            State::Busy(mut busy) => match busy.job.advance(transaction, &mut means!(self, slot)) {
                Step::More => {
                    self.speaking.push(slot.line);
                    slot.state = State::Busy(busy);
                }
                Step::Over => self.over(index, busy, transaction),
            },
            State::Cancelling(cancelling) => self.settle(index, cancelling, transaction),
            state => slot.state = state,
        }
    }

    /// What the connection has prepared is stale, whatever the statement belonged to: it is forgotten at once. So it fails once at most, and for a changed
    /// table the other connections forget theirs before they are used again.
    fn doubt_statements(&mut self, index: usize) {
        let slot = self.slots[index].as_mut().expect("a slot that is ready is there");
        let Some(stale) = slot.state.job().and_then(Job::stale) else { return };
        self.changes += u64::from(stale.is_stale_plan());
        slot.changes = self.changes;
        slot.statements.forget_all();
    }

    /// A statement that nobody cancelled is over.
    fn over(&mut self, index: usize, busy: Busy, transaction: Transaction) {
        let Busy { job, is_unwanted } = busy;
        let query = job.query;
        let part = Part::of(&job.work);
        let outcome = job.finish();
        let then = self.sequel(part, transaction, matches!(outcome, Outcome::Completed { .. }));
        let end = match outcome {
            Outcome::Completed { summary, rest } => {
                self.counts.cancels_late += u64::from(is_unwanted);
                self.give(query, rest);
                QueryEnd::Completed(summary)
            }
            Outcome::Refused(error) => {
                self.count_stray(&error);
                QueryEnd::Failed(error.into_failure())
            }
            Outcome::Failed(failure) => QueryEnd::Failed(failure),
            Outcome::NotRun => QueryEnd::Cancelled,
        };
        self.end_query(query, end);
        self.follow(index, then);
    }

    /// A statement that was cancelled is over, one way or the other.
    fn settle(&mut self, index: usize, cancelling: Cancelling, transaction: Transaction) {
        let Cancelling { job, why, mut cancels } = cancelling;
        let query = job.query;
        let part = Part::of(&job.work);
        let outcome = job.finish();
        if let Outcome::Refused(error) = &outcome
            && error.is_cancel()
        {
            self.hit(error, &mut cancels);
        }
        let then = self.sequel(part, transaction, false);
        let end = self.end_of_cancelled(part, why, outcome, &cancels);
        self.end_query(query, end);
        let now = self.now;
        self.slot(index).enter(State::Settling(crate::slot::Settling { cancels, then }), now);
        self.settled(index);
    }

    fn end_of_cancelled(&mut self, part: Part, why: Why, outcome: Outcome, cancels: &Cancels) -> QueryEnd {
        match (why, outcome) {
            // It is rolled back before anybody can use it.
            (Why::Unwanted, Outcome::NotRun) => QueryEnd::Cancelled,
            (Why::Unwanted, Outcome::Completed { .. }) if matches!(part, Part::Begin(_)) => QueryEnd::Cancelled,
            (Why::Unwanted, Outcome::Completed { summary, .. }) => {
                self.counts.cancels_late += 1;
                QueryEnd::Completed(summary)
            }
            (Why::Unwanted, Outcome::Refused(error)) if error.is_cancel() && cancels.sent > 0 => QueryEnd::Cancelled,
            (Why::Unwanted, Outcome::Refused(error)) => {
                self.count_stray(&error);
                QueryEnd::Failed(error.into_failure())
            }
            // It was carried out although we refuse its rows: a statement may have changed something.
            (Why::Failed(failure), Outcome::Completed { .. }) => {
                QueryEnd::Failed(QueryFailure { certainty: Certainty::Unknown, ..failure })
            }
            (Why::Unwanted, Outcome::Failed(failure))
            | (Why::Failed(failure), Outcome::Refused(_) | Outcome::Failed(_) | Outcome::NotRun) => {
                QueryEnd::Failed(failure)
            }
        }
    }

    /// What has been read of a result so far.
    fn give_piece(&mut self, index: usize) {
        let Some(slot) = &mut self.slots[index] else { return };
        if let State::Busy(Busy { job, .. }) = &mut slot.state
            && let Some(piece) = job.piece()
        {
            let query = job.query;
            self.give(query, piece);
        }
    }

    fn give(&mut self, query: QueryId, mut bytes: Bytes) {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE_BYTES_MAX));
            self.events.push(Event::Query(parkade_sql::QueryEvent::Piece { query, bytes: piece }));
        }
    }

    /// For one whose server has said that it ends it: nothing is to be waited for.
    fn close_line_of(&mut self, index: usize) {
        let line = self.slot(index).line;
        self.close_line(line, crate::line::Manner::Abrupt);
    }
}
