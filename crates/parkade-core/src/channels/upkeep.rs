//! Channels made, trimmed and forgotten: nothing is held longer than its limits say.

use super::channel::{Channel, Rest};
use super::{ChannelId, Channels, ChannelsFull};
use crate::limits::{CHANNEL_LINGER, SWEEP_CHANNELS_COUNT, SWEEP_STEP};
use crate::moment::Moment;
use parkade_model::{ChannelName, MessageId};

impl Channels {
    /// Lets go what is too old. A part of the channels is looked at at a time, and the next is due at once: whatever else has come is heard
    /// between them.
    pub(crate) fn sweep(&mut self, now: Moment, dropped: &mut Vec<MessageId>) {
        if self.sweep_due.is_none_or(|due| due > now) {
            return;
        }
        let end = (self.swept + SWEEP_CHANNELS_COUNT).min(self.slots.len());
        for slot in self.swept..end {
            let Some(channel) = &self.slots[slot] else { continue };
            if channel.history.count() > 0 {
                let id = ChannelId(u32::try_from(slot).expect("channels are numbered by u32"));
                self.trim(now, id, dropped);
                self.settle(now, id);
            }
        }
        self.swept = if end < self.slots.len() { end } else { 0 };
        let has_more = self.forget_idle(now) || self.swept > 0;
        self.sweep_due = if has_more { Some(now) } else { self.sweep_wanted().then(|| now + SWEEP_STEP) };
    }

    /// Those that have been idle for long; whether there are more than are forgotten at a time.
    fn forget_idle(&mut self, now: Moment) -> bool {
        for _ in 0..SWEEP_CHANNELS_COUNT {
            match self.idle.first() {
                Some((id, since)) if now.since(since) >= CHANNEL_LINGER => self.forget(id),
                _ => return false,
            }
        }
        true
    }

    /// Finds the channel, or makes it; lets go what it holds too long.
    pub(super) fn open(
        &mut self,
        now: Moment,
        name: &ChannelName,
        dropped: &mut Vec<MessageId>,
    ) -> Result<ChannelId, ChannelsFull> {
        if let Some(&id) = self.by_name.get(name) {
            self.trim(now, id, dropped);
            return Ok(id);
        }
        if self.by_name.len() >= self.count_max {
            self.make_room(dropped)?;
        }
        let channel = Channel::new(name.clone(), self.next_epoch, self.rules.limits(name));
        self.next_epoch += 1;
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            ChannelId(u32::try_from(self.slots.len() - 1).expect("channels are bounded far below 2^32 by limits.rs"))
        });
        self.by_name.insert(name.clone(), id);
        self.slots[id.0 as usize] = Some(channel);
        Ok(id)
    }

    /// Forgets a channel on which nobody waits: one that is idle, else the one that has been silent longest. So made-up names push out each
    /// other, and nobody else for long; who comes back with a cursor of a forgotten channel is told of a gap.
    fn make_room(&mut self, dropped: &mut Vec<MessageId>) -> Result<(), ChannelsFull> {
        let idle = self.idle.first().map(|(id, _)| id);
        let id = idle.or_else(|| self.quiet.values().next().copied()).ok_or(ChannelsFull)?;
        while self.channel(id).history.count() > 0 {
            self.drop_oldest(id, dropped);
        }
        self.forget(id);
        Ok(())
    }

    pub(super) fn trim(&mut self, now: Moment, id: ChannelId, dropped: &mut Vec<MessageId>) {
        while {
            let channel = self.channel(id);
            channel.history.exceeds(&channel.limits, now)
        } {
            self.drop_oldest(id, dropped);
        }
    }

    pub(super) fn drop_oldest(&mut self, id: ChannelId, dropped: &mut Vec<MessageId>) {
        let Some(entry) = self.channel_mut(id).history.drop_oldest() else { return };
        self.elders.remove(entry.elder);
        self.bytes -= entry.bytes;
        dropped.push(entry.message);
    }

    /// Puts the channel where it can be found when room is needed, if anywhere, and sees to the next sweep.
    pub(super) fn settle(&mut self, now: Moment, id: ChannelId) {
        if !self.channel(id).is_settled() {
            self.unsettle(id);
            let channel = self.channel(id);
            let rest = if channel.waiters_count() > 0 {
                Rest::Awaited
            } else if channel.is_idle() {
                Rest::Idle(self.idle.push_back((id, now)))
            } else {
                let newest = channel.newest;
                self.quiet.insert(newest, id);
                Rest::Quiet(newest)
            };
            self.channel_mut(id).rest = rest;
        }
        if self.sweep_due.is_none() && self.sweep_wanted() {
            self.sweep_due = Some(now + SWEEP_STEP);
        }
    }

    pub(super) fn sweep_wanted(&self) -> bool {
        !self.idle.is_empty() || !self.elders.is_empty()
    }

    fn unsettle(&mut self, id: ChannelId) {
        match self.channel(id).rest {
            Rest::Awaited => {}
            Rest::Idle(place) => drop(self.idle.remove(place)),
            Rest::Quiet(newest) => drop(self.quiet.remove(&newest)),
        }
    }

    fn forget(&mut self, id: ChannelId) {
        self.unsettle(id);
        let channel = self.slots[id.0 as usize].take().expect("a channel with a number is there");
        self.by_name.remove(&channel.name);
        self.vacant.push(id);
    }

    pub(super) fn ids(&self) -> Vec<ChannelId> {
        self.slots.iter().zip(0..).filter(|(channel, _)| channel.is_some()).map(|(_, id)| ChannelId(id)).collect()
    }

    pub(super) fn channel(&self, id: ChannelId) -> &Channel {
        self.slots[id.0 as usize].as_ref().expect("a channel with a number is there")
    }

    pub(super) fn channel_mut(&mut self, id: ChannelId) -> &mut Channel {
        self.slots[id.0 as usize].as_mut().expect("a channel with a number is there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use parkade_model::limits::HISTORY_AGE_MAX;

    #[test]
    fn thousands_of_channels_are_swept_in_parts_and_none_is_left_out() {
        const COUNT: u64 = 5 * SWEEP_CHANNELS_COUNT as u64 / 2;
        let mut channels = Channels::new(&Config { channels_count_max: usize::MAX, ..Config::default() });
        for number in 0..COUNT {
            let name = ChannelName::parse(&format!("of/{number}")).unwrap();
            channels.publish(Moment::default(), &name, MessageId(number), 10, &mut Vec::new()).unwrap();
        }
        let swept = |channels: &mut Channels, now| {
            let mut parts = Vec::new();
            while channels.sweep_due().is_some_and(|due| due <= now) {
                let (mut dropped, before) = (Vec::new(), channels.count());
                channels.sweep(now, &mut dropped);
                parts.push((dropped.len(), before - channels.count()));
                assert!(dropped.len().max(before - channels.count()) <= SWEEP_CHANNELS_COUNT, "{parts:?}");
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
