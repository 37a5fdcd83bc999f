//! What a channel still holds of its past: the last messages without a hole between them.

use std::collections::VecDeque;

use crate::moment::Moment;
use crate::structures::chain::Place;
use parkade_model::{HistoryLimits, MessageId};

#[derive(Debug, Default)]
pub struct History {
    entries: VecDeque<HistoryEntry>,
    bytes: usize,
}

/// `elder` is its place in the line of all channels' messages by age.
#[derive(Debug, Clone, Copy)]
pub struct HistoryEntry {
    pub message: MessageId,
    pub bytes: usize,
    pub at: Moment,
    pub elder: Place,
}

impl History {
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn push(&mut self, entry: HistoryEntry) {
        self.bytes += entry.bytes;
        self.entries.push_back(entry);
    }

    pub fn drop_oldest(&mut self) -> Option<HistoryEntry> {
        let entry = self.entries.pop_front()?;
        self.bytes -= entry.bytes;
        Some(entry)
    }

    /// Whether the oldest has to go.
    pub fn exceeds(&self, limits: &HistoryLimits, now: Moment) -> bool {
        let Some(oldest) = self.entries.front() else { return false };
        self.entries.len() > limits.count || self.bytes > limits.bytes || now.since(oldest.at) >= limits.age
    }

    /// The newest messages, the oldest of them first: at most so many, and so many bytes. The last one is always among them.
    pub fn newest(&self, count_max: usize, bytes_max: usize) -> impl Iterator<Item = MessageId> {
        let mut bytes = 0;
        let fit = self.entries.iter().rev().take(count_max).take_while(|entry| {
            let is_first = bytes == 0;
            bytes += entry.bytes;
            is_first || bytes <= bytes_max
        });
        let skipped = self.entries.len() - fit.count();
        self.entries.iter().skip(skipped).map(|entry| entry.message)
    }

    /// The messages after `sequence`, with their numbers. The last message has the number `last`.
    pub fn behind(&self, sequence: u64, last: u64) -> impl Iterator<Item = (u64, MessageId)> {
        let first = last + 1 - self.entries.len() as u64;
        let skipped = usize::try_from((sequence + 1).saturating_sub(first)).unwrap_or(usize::MAX);
        self.entries.iter().zip(first..).skip(skipped).map(|(entry, sequence)| (sequence, entry.message))
    }
}
