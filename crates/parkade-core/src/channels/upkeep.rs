//! Channels made, trimmed and forgotten: nothing is held longer than its limits say.

use super::channel::{Channel, Rest};
use super::{ChannelId, ChannelName, Channels, ChannelsFull};
use crate::id::MessageId;
use crate::limits::{CHANNEL_LINGER, SWEEP_STEP};
use crate::moment::Moment;

impl Channels {
    /// Lets go what is too old.
    pub(crate) fn sweep(&mut self, now: Moment, dropped: &mut Vec<MessageId>) {
        if self.sweep_due.is_none_or(|due| due > now) {
            return;
        }
        for id in self.ids() {
            if self.channel(id).history.count() > 0 {
                self.trim(now, id, dropped);
                self.settle(now, id);
            }
        }
        while let Some((id, since)) = self.idle.first()
            && now.since(since) >= CHANNEL_LINGER
        {
            self.forget(id);
        }
        self.sweep_due = self.sweep_wanted().then(|| now + SWEEP_STEP);
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
        let channel = Channel::new(name.clone(), self.next_epoch, self.rules.limits(name.as_str()));
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
