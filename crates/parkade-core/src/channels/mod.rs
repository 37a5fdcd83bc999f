//! Channels: named streams of messages that requests wait for.
//!
//! A waiter is put on its channel and what it missed is looked up in one call, so no message can fall between the two.

mod channel;
mod history;
mod rules;
mod upkeep;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

pub(crate) use channel::Waiter;
use parkade_model::{ChannelName, Cursor, HistoryLimits, MessageId, RequestId};

use crate::config::Config;
use crate::moment::Moment;
use crate::report::status::ChannelStatus;
use crate::structures::chain::{Chain, Place};
use channel::Channel;
use history::Entry;
use rules::Rules;

/// A channel that is there. Its number is used again after it was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChannelId(u32);

#[derive(Debug)]
pub(crate) struct Channels {
    by_name: HashMap<ChannelName, ChannelId>,
    slots: Vec<Option<Channel>>,
    vacant: Vec<ChannelId>,
    /// Those without waiters and messages, and since when: the first is idle longest.
    idle: Chain<(ChannelId, Moment)>,
    /// Those without waiters that hold messages, by the number of their newest: the first has been silent longest.
    quiet: BTreeMap<u64, ChannelId>,
    /// All messages that are held, by their channels: the first is the oldest.
    elders: Chain<ChannelId>,
    bytes: usize,
    /// Messages that were ever published, which numbers them.
    published: u64,
    rules: Rules,
    next_epoch: u64,
    count_max: usize,
    bytes_max: usize,
    sweep_due: Option<Moment>,
    /// Where the sweep goes on: it has looked at those before.
    swept: usize,
}

/// No more channels: somebody waits on each that there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChannelsFull;

/// How a wait for the next message begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Began {
    Waiting {
        channel: ChannelId,
        place: Place,
    },
    /// It missed this one: no need to wait.
    Missed {
        message: MessageId,
        cursor: Cursor,
        gap: bool,
    },
}

/// How a stream begins: what it missed follows at once.
#[derive(Debug)]
pub(crate) struct StreamBegan {
    pub(crate) channel: ChannelId,
    pub(crate) place: Place,
    pub(crate) cursor: Cursor,
    pub(crate) gap: bool,
    pub(crate) missed: Vec<(Cursor, MessageId)>,
}

/// A message, and who waited for it.
#[derive(Debug)]
pub(crate) struct Publication {
    pub(crate) cursor: Cursor,
    pub(crate) nexts: Vec<Waiter>,
    pub(crate) streams: Vec<RequestId>,
}

impl Channels {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            by_name: HashMap::new(),
            slots: Vec::new(),
            vacant: Vec::new(),
            idle: Chain::default(),
            quiet: BTreeMap::new(),
            elders: Chain::default(),
            bytes: 0,
            published: 0,
            rules: Rules::new(config.history),
            next_epoch: config.epoch,
            count_max: config.channels_count_max.max(1),
            bytes_max: config.history_bytes_max,
            sweep_due: None,
            swept: 0,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.by_name.len()
    }

    pub(crate) fn history_bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn sweep_due(&self) -> Option<Moment> {
        self.sweep_due
    }

    pub(crate) fn named(&self, name: &ChannelName) -> Option<ChannelId> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn cursor(&self, channel: ChannelId) -> Cursor {
        self.channel(channel).cursor()
    }

    /// Waits for the next message behind `since`, or tells the first that was missed.
    pub(crate) fn wait(
        &mut self,
        now: Moment,
        request: RequestId,
        name: &ChannelName,
        since: Option<Cursor>,
        dropped: &mut Vec<MessageId>,
    ) -> Result<Began, ChannelsFull> {
        let id = self.open(now, name, dropped)?;
        let channel = self.channel_mut(id);
        let start = channel.start(since);
        let missed = channel.behind(start.sequence).next();
        let began = match missed {
            Some((cursor, message)) => Began::Missed { message, cursor, gap: start.gap },
            None => Began::Waiting { channel: id, place: channel.nexts.push_back(Waiter { request, gap: start.gap }) },
        };
        self.settle(now, id);
        Ok(began)
    }

    /// Every message behind `since`, from now on.
    pub(crate) fn stream(
        &mut self,
        now: Moment,
        request: RequestId,
        name: &ChannelName,
        since: Option<Cursor>,
        dropped: &mut Vec<MessageId>,
    ) -> Result<StreamBegan, ChannelsFull> {
        let id = self.open(now, name, dropped)?;
        let channel = self.channel_mut(id);
        let start = channel.start(since);
        let began = StreamBegan {
            channel: id,
            place: channel.streams.push_back(request),
            cursor: Cursor { epoch: channel.epoch, sequence: start.sequence },
            gap: start.gap,
            missed: channel.behind(start.sequence).collect(),
        };
        self.settle(now, id);
        Ok(began)
    }

    pub(crate) fn leave_next(&mut self, now: Moment, channel: ChannelId, place: Place) {
        self.channel_mut(channel).nexts.remove(place);
        self.settle(now, channel);
    }

    pub(crate) fn leave_stream(&mut self, now: Moment, channel: ChannelId, place: Place) {
        self.channel_mut(channel).streams.remove(place);
        self.settle(now, channel);
    }

    /// Appends a message. Those who wait stay where they are until each has been woken.
    pub(crate) fn publish(
        &mut self,
        now: Moment,
        name: &ChannelName,
        message: MessageId,
        bytes: usize,
        dropped: &mut Vec<MessageId>,
    ) -> Result<Publication, ChannelsFull> {
        let id = self.open(now, name, dropped)?;
        let elder = self.elders.push_back(id);
        self.bytes += bytes;
        self.published += 1;
        let newest = self.published;
        let channel = self.channel_mut(id);
        channel.sequence += 1;
        channel.newest = newest;
        channel.history.push(Entry { message, bytes, at: now, elder });
        let publication = Publication {
            cursor: channel.cursor(),
            nexts: channel.nexts.values().collect(),
            streams: channel.streams.values().collect(),
        };
        self.trim(now, id, dropped);
        while self.bytes > self.bytes_max {
            let Some(eldest) = self.elders.first() else { break };
            self.drop_oldest(eldest, dropped);
            self.settle(now, eldest);
        }
        self.settle(now, id);
        Ok(publication)
    }

    /// Messages may be missing behind what is held: nothing that was held counts any more, and every cursor from before has a gap.
    pub(crate) fn lose(
        &mut self,
        now: Moment,
        name: &ChannelName,
        dropped: &mut Vec<MessageId>,
    ) -> Option<(Cursor, Vec<RequestId>)> {
        let id = self.named(name)?;
        while self.channel(id).history.count() > 0 {
            self.drop_oldest(id, dropped);
        }
        let epoch = self.next_epoch;
        self.next_epoch += 1;
        let channel = self.channel_mut(id);
        (channel.epoch, channel.sequence) = (epoch, 0);
        channel.nexts.for_each_mut(|waiter| waiter.gap = true);
        let told = (channel.cursor(), channel.streams.values().collect());
        self.settle(now, id);
        Some(told)
    }

    pub(crate) fn streams_of(&self, name: &ChannelName) -> Vec<RequestId> {
        self.named(name).map_or_else(Vec::new, |id| self.channel(id).streams.values().collect())
    }

    pub(crate) fn configure(
        &mut self,
        now: Moment,
        pattern: &str,
        limits: HistoryLimits,
        dropped: &mut Vec<MessageId>,
    ) {
        if !self.rules.learn(pattern, limits) {
            return;
        }
        let is_about = |id: &ChannelId| rules::matches(pattern, self.channel(*id).name.as_str());
        let concerned: Vec<_> = self.ids().into_iter().filter(is_about).collect();
        for id in concerned {
            let limits = self.rules.limits(&self.channel(id).name);
            self.channel_mut(id).limits = limits;
            self.trim(now, id, dropped);
            self.settle(now, id);
        }
    }

    /// All requests that wait for the next message, and all streams.
    pub(crate) fn waiters(&self) -> (Vec<(ChannelId, RequestId)>, Vec<RequestId>) {
        let present = || self.ids().into_iter().map(|id| (id, self.channel(id)));
        let nexts = present().flat_map(|(id, channel)| channel.nexts.values().map(move |waiter| (id, waiter.request)));
        let streams = present().flat_map(|(_, channel)| channel.streams.values());
        (nexts.collect(), streams.collect())
    }

    /// Those on which most requests wait come first, so many at most. A look at each, and an order of those alone.
    pub(crate) fn busiest(&self, count: usize) -> Vec<ChannelId> {
        let waited = |id| Reverse(self.channel(id).nexts.count() + self.channel(id).streams.count());
        let mut busiest: Vec<_> = self.ids().into_iter().map(|id| (waited(id), id.0)).collect();
        if count < busiest.len() {
            busiest.select_nth_unstable(count);
            busiest.truncate(count);
        }
        busiest.sort_unstable();
        busiest.into_iter().map(|(_, id)| ChannelId(id)).collect()
    }

    /// And the first who waits on it.
    pub(crate) fn status_of(&self, id: ChannelId) -> (ChannelStatus, Option<RequestId>) {
        let channel = self.channel(id);
        let status = ChannelStatus {
            name: channel.name.clone(),
            waiters: channel.nexts.count(),
            streams: channel.streams.count(),
            oldest: None,
            history_count: channel.history.count(),
            history_bytes: channel.history.bytes(),
            cursor: channel.cursor(),
        };
        (status, channel.nexts.first().map(|waiter| waiter.request).or_else(|| channel.streams.first()))
    }
}
