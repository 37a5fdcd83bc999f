//! All channels, in slots. A channel is made when it is first named, trimmed to its limits, and forgotten when it is idle,
//! or evicted when there are too many (`make_room`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::channel::{Channel, IdleState};
use super::history::HistoryEntry;
use super::rules::{self, HistoryRules};
use crate::config::Config;
use crate::limits::{CHANNEL_LINGER, SWEEP_CHANNELS_COUNT, SWEEP_STEP};
use crate::moment::Moment;
use crate::structures::chain::Chain;
use crate::structures::ref_counts::RefCounts;
use parkade_model::{ChannelName, HistoryLimits, MessageId};

/// A channel that is there. Its number is used again after it was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(u32);

#[derive(Debug)]
pub struct ChannelTable {
    by_name: HashMap<ChannelName, ChannelId>,
    slots: Vec<Option<Channel>>,
    vacant: Vec<ChannelId>,
    /// Those without waiters and messages, and since when: the first is idle longest.
    idle: Chain<(ChannelId, Moment)>,
    /// Those without waiters that hold messages, by the number of their newest: the first has been silent longest.
    quiet: BTreeMap<u64, ChannelId>,
    histories: Histories,
    rules: HistoryRules,
    next_epoch: u64,
    count_max: usize,
    sweep: Sweep,
}

/// The messages that all channels hold.
#[derive(Debug)]
struct Histories {
    /// By their channels: the first is the oldest.
    by_age: Chain<ChannelId>,
    bytes: usize,
    bytes_max: usize,
    /// Messages that were ever published, which numbers them.
    published: u64,
    /// Who needs the messages: a history, and each call that has not ended and was woken by one.
    messages: RefCounts<MessageId>,
}

#[derive(Debug, Default)]
struct Sweep {
    due: Option<Moment>,
    /// Where the sweep continues: the channels before this one have been checked.
    next: usize,
}

/// There cannot be another channel: somebody waits on every one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelsFull;

impl ChannelTable {
    pub fn new(config: &Config) -> Self {
        let histories = Histories {
            by_age: Chain::default(),
            bytes: 0,
            bytes_max: config.history_bytes_max,
            published: 0,
            messages: RefCounts::default(),
        };
        Self {
            by_name: HashMap::new(),
            slots: Vec::new(),
            vacant: Vec::new(),
            idle: Chain::default(),
            quiet: BTreeMap::new(),
            histories,
            rules: HistoryRules::new(config.history),
            next_epoch: config.epoch,
            count_max: config.channels_count_max.max(1),
            sweep: Sweep::default(),
        }
    }

    pub fn count(&self) -> usize {
        self.by_name.len()
    }

    pub fn history_bytes(&self) -> usize {
        self.histories.bytes
    }

    pub fn sweep_due(&self) -> Option<Moment> {
        self.sweep.due
    }

    pub fn messages(&self) -> &RefCounts<MessageId> {
        &self.histories.messages
    }

    pub fn messages_mut(&mut self) -> &mut RefCounts<MessageId> {
        &mut self.histories.messages
    }

    pub fn named(&self, name: &ChannelName) -> Option<ChannelId> {
        self.by_name.get(name).copied()
    }

    pub fn channel(&self, id: ChannelId) -> &Channel {
        self.slots[id.0 as usize].as_ref().expect("a channel with a number is there")
    }

    /// [`settle`](Self::settle) it when its waiters have changed.
    pub fn channel_mut(&mut self, id: ChannelId) -> &mut Channel {
        self.slots[id.0 as usize].as_mut().expect("a channel with a number is there")
    }

    pub fn iter(&self) -> impl Iterator<Item = (ChannelId, &Channel)> {
        self.slots.iter().zip(0..).filter_map(|(channel, id)| channel.as_ref().map(|channel| (ChannelId(id), channel)))
    }

    /// At most `count` channels, those with most waiters first. Each channel is looked at, and only these are sorted.
    pub fn busiest(&self, count: usize) -> impl Iterator<Item = &Channel> {
        let mut busiest: Vec<_> = self.iter().map(|(id, channel)| (Reverse(channel.waiters_count()), id)).collect();
        if count < busiest.len() {
            busiest.select_nth_unstable(count);
            busiest.truncate(count);
        }
        busiest.sort_unstable();
        busiest.into_iter().map(|(_, id)| self.channel(id))
    }

    /// Finds the channel, or makes it. Drops messages that it has held for too long.
    pub fn open(&mut self, now: Moment, name: &ChannelName) -> Result<ChannelId, ChannelsFull> {
        if let Some(&id) = self.by_name.get(name) {
            self.trim(now, id);
            return Ok(id);
        }
        if self.by_name.len() >= self.count_max {
            self.make_room()?;
        }
        let channel = Channel::new(name.clone(), self.new_epoch(), self.rules.limits(name));
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            ChannelId(u32::try_from(self.slots.len() - 1).expect("channels are bounded far below 2^32 by limits.rs"))
        });
        self.by_name.insert(name.clone(), id);
        self.slots[id.0 as usize] = Some(channel);
        Ok(id)
    }

    /// Another message of a channel.
    pub fn append(&mut self, now: Moment, id: ChannelId, message: MessageId, bytes: usize) {
        let histories = &mut self.histories;
        let elder = histories.by_age.push_back(id);
        histories.bytes += bytes;
        histories.published += 1;
        let newest = histories.published;
        let channel = self.channel_mut(id);
        channel.sequence += 1;
        channel.newest = newest;
        channel.history.push(HistoryEntry { message, bytes, at: now, elder });
    }

    /// Drops messages beyond the limits: first of this channel, then of all histories.
    pub fn bound(&mut self, now: Moment, id: ChannelId) {
        self.trim(now, id);
        while self.histories.bytes > self.histories.bytes_max {
            let Some(eldest) = self.histories.by_age.first() else { break };
            self.drop_oldest(eldest);
            self.settle(now, eldest);
        }
        self.settle(now, id);
    }

    /// The channel begins anew: its messages are dropped, and earlier cursors have a gap.
    pub fn restart(&mut self, id: ChannelId) {
        self.clear(id);
        let epoch = self.new_epoch();
        let channel = self.channel_mut(id);
        (channel.epoch, channel.sequence) = (epoch, 0);
    }

    /// Channels that match `pattern` keep so much from now on.
    pub fn configure(&mut self, now: Moment, pattern: &str, limits: HistoryLimits) {
        if !self.rules.learn(pattern, limits) {
            return;
        }
        let is_about = |channel: &Channel| rules::matches(pattern, channel.name.as_str());
        let concerned: Vec<_> = self.iter().filter(|(_, channel)| is_about(channel)).map(|(id, _)| id).collect();
        for id in concerned {
            let limits = self.rules.limits(&self.channel(id).name);
            self.channel_mut(id).limits = limits;
            self.trim(now, id);
            self.settle(now, id);
        }
    }

    /// Drops messages that are too old. Only some channels are checked at a time, and the next ones are due at once, so other events are heard in
    /// between.
    pub fn sweep(&mut self, now: Moment) {
        if self.sweep.due.is_none_or(|due| due > now) {
            return;
        }
        let end = (self.sweep.next + SWEEP_CHANNELS_COUNT).min(self.slots.len());
        for slot in self.sweep.next..end {
            let Some(channel) = &self.slots[slot] else { continue };
            if channel.history.count() > 0 {
                let id = ChannelId(u32::try_from(slot).expect("channels are numbered by u32"));
                self.trim(now, id);
                self.settle(now, id);
            }
        }
        self.sweep.next = if end < self.slots.len() { end } else { 0 };
        let has_more = self.forget_idle(now) || self.sweep.next > 0;
        self.sweep.due = if has_more { Some(now) } else { self.sweep_wanted().then(|| now + SWEEP_STEP) };
    }

    /// Puts the channel where it can be found when room is needed, if anywhere, and sees to the next sweep.
    pub fn settle(&mut self, now: Moment, id: ChannelId) {
        if !self.channel(id).is_settled() {
            self.unsettle(id);
            let channel = self.channel(id);
            let rest = if channel.waiters_count() > 0 {
                IdleState::Awaited
            } else if channel.is_idle() {
                IdleState::Idle(self.idle.push_back((id, now)))
            } else {
                let newest = channel.newest;
                self.quiet.insert(newest, id);
                IdleState::Quiet(newest)
            };
            self.channel_mut(id).rest = rest;
        }
        if self.sweep.due.is_none() && self.sweep_wanted() {
            self.sweep.due = Some(now + SWEEP_STEP);
        }
    }

    fn unsettle(&mut self, id: ChannelId) {
        match self.channel(id).rest {
            IdleState::Awaited => {}
            IdleState::Idle(place) => drop(self.idle.remove(place)),
            IdleState::Quiet(newest) => drop(self.quiet.remove(&newest)),
        }
    }

    fn sweep_wanted(&self) -> bool {
        !self.idle.is_empty() || !self.histories.by_age.is_empty()
    }

    /// Forgets those that have been idle for long. Returns whether there are more than are forgotten at a time.
    fn forget_idle(&mut self, now: Moment) -> bool {
        for _ in 0..SWEEP_CHANNELS_COUNT {
            match self.idle.first() {
                Some((id, since)) if now.since(since) >= CHANNEL_LINGER => self.forget(id),
                _ => return false,
            }
        }
        true
    }

    /// Forgets a channel on which nobody waits: one that is idle, else the one that has been silent longest. So made-up names
    /// push out each other, and other channels only for a short time. A client that comes back with a cursor of a forgotten channel is told of a gap.
    fn make_room(&mut self) -> Result<(), ChannelsFull> {
        let idle = self.idle.first().map(|(id, _)| id);
        let id = idle.or_else(|| self.quiet.values().next().copied()).ok_or(ChannelsFull)?;
        self.clear(id);
        self.forget(id);
        Ok(())
    }

    fn forget(&mut self, id: ChannelId) {
        self.unsettle(id);
        let channel = self.slots[id.0 as usize].take().expect("a channel with a number is there");
        self.by_name.remove(&channel.name);
        self.vacant.push(id);
    }

    fn trim(&mut self, now: Moment, id: ChannelId) {
        while {
            let channel = self.channel(id);
            channel.history.exceeds(&channel.limits, now)
        } {
            self.drop_oldest(id);
        }
    }

    fn clear(&mut self, id: ChannelId) {
        while self.channel(id).history.count() > 0 {
            self.drop_oldest(id);
        }
    }

    fn drop_oldest(&mut self, id: ChannelId) {
        let Some(entry) = self.channel_mut(id).history.drop_oldest() else { return };
        self.histories.by_age.remove(entry.elder);
        self.histories.bytes -= entry.bytes;
        self.histories.messages.release(entry.message);
    }

    fn new_epoch(&mut self) -> u64 {
        let epoch = self.next_epoch;
        self.next_epoch += 1;
        epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parkade_model::limits::HISTORY_AGE_MAX;

    #[test]
    fn thousands_of_channels_are_swept_in_parts_and_none_is_left_out() {
        const COUNT: u64 = 5 * SWEEP_CHANNELS_COUNT as u64 / 2;
        let mut channels = ChannelTable::new(&Config { channels_count_max: usize::MAX, ..Config::default() });
        for number in 0..COUNT {
            let name = ChannelName::parse(&format!("of/{number}")).unwrap();
            let id = channels.open(Moment::default(), &name).unwrap();
            channels.messages_mut().hold(MessageId(number));
            channels.append(Moment::default(), id, MessageId(number), 10);
            channels.bound(Moment::default(), id);
        }
        let swept = |channels: &mut ChannelTable, now| {
            let mut parts = Vec::new();
            while channels.sweep_due().is_some_and(|due| due <= now) {
                let (mut dropped, before) = (0, channels.count());
                channels.sweep(now);
                channels.messages_mut().drop_unheld(|_| dropped += 1);
                parts.push((dropped, before - channels.count()));
                assert!(dropped.max(before - channels.count()) <= SWEEP_CHANNELS_COUNT, "{parts:?}");
            }
            parts
        };
        let now = Moment::default() + HISTORY_AGE_MAX;
        assert_eq!(swept(&mut channels, now).iter().map(|part| part.0).sum::<usize>() as u64, COUNT);
        assert_eq!((channels.history_bytes(), channels.count() as u64), (0, COUNT));
        let now = now + CHANNEL_LINGER;
        assert_eq!(swept(&mut channels, now).iter().map(|part| part.1).sum::<usize>() as u64, COUNT);
        assert_eq!((channels.count(), channels.sweep_due()), (0, None));
    }
}
