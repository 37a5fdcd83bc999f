//! One channel: who waits, what is held, where it stands.

use super::history::History;
use crate::report::status::ChannelStatus;
use crate::structures::chain::{Chain, Place};
use parkade_model::{ChannelName, Cursor, HistoryLimits, MessageId, RequestId};

#[derive(Debug)]
pub struct Channel {
    pub name: ChannelName,
    pub epoch: u64,
    /// Of the last message.
    pub sequence: u64,
    pub limits: HistoryLimits,
    pub history: History,
    pub nexts: Chain<NextWaiter>,
    pub streams: Chain<RequestId>,
    /// The number of its last message among those of all channels.
    pub newest: u64,
    pub rest: IdleState,
}

/// Where a channel stands among those that could be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleState {
    /// Somebody waits on it: nowhere.
    Awaited,
    /// Nobody waits and nothing is held: its place among the idle.
    Idle(Place),
    /// Nobody waits, and messages are held: under its newest message.
    Quiet(u64),
}

/// A request that waits for the next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextWaiter {
    pub request: RequestId,
    /// The message is its answer.
    pub is_answer: bool,
    /// Its cursor lay before the oldest message that is held: the next message tells it so.
    pub gap: bool,
}

/// Where a request with a cursor continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResumePoint {
    /// After this one.
    pub sequence: u64,
    /// Messages between the cursor and the oldest one held are lost.
    pub gap: bool,
}

impl Channel {
    pub fn new(name: ChannelName, epoch: u64, limits: HistoryLimits) -> Self {
        Self {
            name,
            epoch,
            sequence: 0,
            limits,
            history: History::default(),
            nexts: Chain::default(),
            streams: Chain::default(),
            newest: 0,
            rest: IdleState::Awaited,
        }
    }

    pub fn cursor(&self) -> Cursor {
        Cursor { epoch: self.epoch, sequence: self.sequence }
    }

    pub fn waiters_count(&self) -> usize {
        self.nexts.count() + self.streams.count()
    }

    pub fn is_idle(&self) -> bool {
        self.waiters_count() == 0 && self.history.count() == 0
    }

    pub fn first_waiter(&self) -> Option<RequestId> {
        self.nexts.first().map(|waiter| waiter.request).or_else(|| self.streams.first())
    }

    pub fn status(&self) -> ChannelStatus {
        ChannelStatus {
            name: self.name.clone(),
            waiters: self.nexts.count(),
            streams: self.streams.count(),
            oldest: None,
            history_count: self.history.count(),
            history_bytes: self.history.bytes(),
            cursor: self.cursor(),
        }
    }

    /// Whether it still stands where it was put.
    pub fn is_settled(&self) -> bool {
        match self.rest {
            IdleState::Awaited => self.waiters_count() > 0,
            IdleState::Idle(_) => self.is_idle(),
            IdleState::Quiet(newest) => self.waiters_count() == 0 && self.history.count() > 0 && newest == self.newest,
        }
    }

    /// A cursor of another epoch, or one that is ahead, says nothing about this channel: all messages held are new, and more may be lost.
    pub fn start(&self, since: Option<Cursor>) -> ResumePoint {
        let oldest_kept = self.sequence - self.history.count() as u64;
        match since {
            None => ResumePoint { sequence: self.sequence, gap: false },
            Some(Cursor::BEGINNING) => ResumePoint { sequence: oldest_kept, gap: false },
            Some(cursor) if cursor.epoch != self.epoch || cursor.sequence > self.sequence => {
                ResumePoint { sequence: oldest_kept, gap: true }
            }
            Some(cursor) => {
                ResumePoint { sequence: cursor.sequence.max(oldest_kept), gap: cursor.sequence < oldest_kept }
            }
        }
    }

    pub fn behind(&self, sequence: u64) -> impl Iterator<Item = (Cursor, MessageId)> {
        let epoch = self.epoch;
        self.history
            .behind(sequence, self.sequence)
            .map(move |(sequence, message)| (Cursor { epoch, sequence }, message))
    }
}
