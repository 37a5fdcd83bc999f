//! Channels: named streams of messages that requests wait for.
//!
//! A waiter is put on its channel and what it missed is looked up in one call, so no message can fall between the two.
//!
//! | question | where |
//! |---|---|
//! | one channel: who waits, where a cursor stands, what a subscriber that comes back has missed | `channel` |
//! | the messages that a channel still holds, and how many it may hold | `history`, `rules` |
//! | all channels; which one is forgotten when there is no room | `table` |
//! | what a request has published, and the cursors that it may ask for | `publications` |
//! | what `history()` gives | `snapshots` |
//! | when clients of streams reconnect | `reconnect` |

mod channel;
mod history;
mod publications;
mod reconnect;
mod rules;
mod snapshots;
mod table;

use std::time::Duration;

use crate::config::Config;
use crate::context::Context;
use crate::effect::{Effect, HttpEffect, Outcome, ServerEffect};
use crate::limits::HISTORY_ANSWER_BYTES_MAX;
use crate::moment::Moment;
use crate::report::status::ChannelStatus;
use crate::structures::chain::Place;
use crate::woken::Woken;
use channel::NextWaiter;
use parkade_model::{ChannelName, Cursor, HistoryId, HistoryLimits, MessageId, RequestId, Then};
use publications::Publications;
use reconnect::OpenStreams;
use snapshots::Snapshots;
use table::{ChannelId, ChannelTable};

pub use table::ChannelsFull;

#[derive(Debug)]
pub struct Channels {
    table: ChannelTable,
    open_streams: OpenStreams,
    snapshots: Snapshots,
    pub publications: Publications,
}

/// Where a request waits, for the next message or for all that follow.
#[derive(Debug, Clone, Copy)]
pub struct Subscription {
    channel: ChannelId,
    place: Place,
}

/// How a wait for the next message begins.
#[derive(Debug, Clone, Copy)]
pub enum NextBegan {
    Waits(Subscription),
    /// It missed a message: no need to wait.
    Missed(Outcome),
}

/// A message, and the requests that waited for the next one. Those whose answer it is have been sent it; all of them continue.
#[derive(Debug)]
pub struct Publication {
    message: MessageId,
    cursor: Cursor,
    waiters: Vec<NextWaiter>,
}

impl Publication {
    /// Where the channel stands after the message.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    pub fn woken(&self) -> impl DoubleEndedIterator<Item = Woken> {
        let (message, cursor) = (self.message, self.cursor);
        self.waiters.iter().map(move |&NextWaiter { request, gap, .. }| Woken {
            request,
            outcome: Outcome::Message { message, cursor, gap },
        })
    }
}

impl Channels {
    pub fn new(config: &Config) -> Self {
        Self {
            table: ChannelTable::new(config),
            open_streams: OpenStreams::default(),
            snapshots: Snapshots::default(),
            publications: Publications::default(),
        }
    }

    /// The channel that a request waits on.
    pub fn name_of(&self, subscription: Subscription) -> &ChannelName {
        &self.table.channel(subscription.channel).name
    }

    // Waiting.

    /// Waits for the next message after `since`, or tells the first that was missed.
    pub fn next(
        &mut self,
        cx: &mut Context,
        (request, then): (RequestId, Then),
        name: &ChannelName,
        since: Option<Cursor>,
    ) -> Result<NextBegan, ChannelsFull> {
        let id = self.table.open(cx.now, name)?;
        let channel = self.table.channel_mut(id);
        let start = channel.start(since);
        let (missed, gap) = (channel.behind(start.sequence).next(), start.gap);
        let began = if let Some((cursor, message)) = missed {
            if then == Then::Answer {
                let requests = vec![request];
                cx.effects.push(Effect::Http(HttpEffect::Deliver { message, cursor, gap, requests }));
            }
            NextBegan::Missed(Outcome::Message { message, cursor, gap })
        } else {
            let place = channel.nexts.push_back(NextWaiter { request, gap, is_answer: then == Then::Answer });
            NextBegan::Waits(Subscription { channel: id, place })
        };
        self.table.settle(cx.now, id);
        Ok(began)
    }

    /// Every message after `since`: the head of the answer, what was missed, then every new message.
    pub fn stream(
        &mut self,
        cx: &mut Context,
        request: RequestId,
        name: &ChannelName,
        since: Option<Cursor>,
    ) -> Result<Subscription, ChannelsFull> {
        self.subscribe(cx, request, name, since, |cursor, gap, reconnect_spread| HttpEffect::OpenStream {
            request,
            cursor,
            gap,
            reconnect_spread,
        })
    }

    /// The same for a WebSocket.
    pub fn socket(
        &mut self,
        cx: &mut Context,
        request: RequestId,
        name: &ChannelName,
        since: Option<Cursor>,
    ) -> Result<Subscription, ChannelsFull> {
        self.subscribe(cx, request, name, since, |_, _, _| HttpEffect::HoldSocket { request })
    }

    fn subscribe(
        &mut self,
        cx: &mut Context,
        request: RequestId,
        name: &ChannelName,
        since: Option<Cursor>,
        opened: impl FnOnce(Cursor, bool, Duration) -> HttpEffect,
    ) -> Result<Subscription, ChannelsFull> {
        let id = self.table.open(cx.now, name)?;
        let channel = self.table.channel_mut(id);
        let start = channel.start(since);
        let subscription = Subscription { channel: id, place: channel.streams.push_back(request) };
        let cursor = Cursor { epoch: channel.epoch, sequence: start.sequence };
        self.open_streams.open();
        let reconnect_spread = self.open_streams.reconnect_spread();
        cx.effects.push(Effect::Http(opened(cursor, start.gap, reconnect_spread)));
        cx.counts.gaps += u64::from(start.gap);
        for (cursor, message) in channel.behind(start.sequence) {
            cx.counts.delivered += 1;
            cx.effects.push(Effect::Http(HttpEffect::Feed { message, cursor, requests: vec![request] }));
        }
        self.table.settle(cx.now, id);
        Ok(subscription)
    }

    /// What the channel holds: at most `count` messages, the newest, without a hole up to the cursor where the channel stands.
    pub fn history(
        &mut self,
        cx: &mut Context,
        name: &ChannelName,
        count: Option<u64>,
    ) -> Result<HistoryId, ChannelsFull> {
        let id = self.table.open(cx.now, name)?;
        let channel = self.table.channel(id);
        let count_max = count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
        let messages = channel.history.newest(count_max, HISTORY_ANSWER_BYTES_MAX).collect();
        let history = self.snapshots.take(cx, channel.cursor(), messages);
        self.table.settle(cx.now, id);
        Ok(history)
    }

    pub fn leave_next(&mut self, now: Moment, Subscription { channel, place }: Subscription) {
        self.table.channel_mut(channel).nexts.remove(place);
        self.table.settle(now, channel);
    }

    pub fn leave_stream(&mut self, now: Moment, Subscription { channel, place }: Subscription) {
        self.table.channel_mut(channel).streams.remove(place);
        self.open_streams.close();
        self.table.settle(now, channel);
    }

    /// The client of this stream may come back, elsewhere or later.
    pub fn end_stream(&self, cx: &mut Context, request: RequestId) {
        let reconnect_spread = self.open_streams.reconnect_spread();
        cx.effects.push(Effect::Http(HttpEffect::EndStream { request, reconnect_spread }));
    }

    /// The outcome for a request for which no message came in time.
    pub fn timed_out(&self, subscription: Subscription) -> Outcome {
        Outcome::TimedOut { cursor: self.table.channel(subscription.channel).cursor() }
    }

    /// The server stops. All requests that wait for the next message continue as if their time were over.
    pub fn drained(&self) -> Vec<Woken> {
        let waiting = self.table.iter().flat_map(|(_, channel)| {
            let outcome = Outcome::TimedOut { cursor: channel.cursor() };
            channel.nexts.values().map(move |waiter| Woken { request: waiter.request, outcome })
        });
        waiting.collect()
    }

    /// The server stops. All streams end.
    pub fn end_streams(&mut self) -> Vec<RequestId> {
        self.open_streams.leave();
        self.table.iter().flat_map(|(_, channel)| channel.streams.values()).collect()
    }

    pub fn streams_of(&self, name: &ChannelName) -> Vec<RequestId> {
        self.table.named(name).map_or_else(Vec::new, |id| self.table.channel(id).streams.values().collect())
    }

    // Publishing.

    /// One effect is for all requests whose answer the message is, and one for all streams. A request stays on the channel until it has been woken.
    pub fn publish(
        &mut self,
        cx: &mut Context,
        name: &ChannelName,
        message: MessageId,
        bytes: usize,
    ) -> Result<Publication, ChannelsFull> {
        cx.counts.published += 1;
        self.table.messages_mut().hold(message);
        let id = self.table.open(cx.now, name).inspect_err(|ChannelsFull| {
            cx.counts.unpublished += 1;
            cx.effects.push(Effect::Server(ServerEffect::NotPublished { message }));
            self.table.messages_mut().release(message);
        })?;
        self.table.append(cx.now, id, message, bytes);
        let channel = self.table.channel(id);
        let (cursor, streams) = (channel.cursor(), channel.streams.values().collect::<Vec<_>>());
        let publication = Publication { message, cursor, waiters: channel.nexts.values().collect() };
        self.table.bound(cx.now, id);
        if !streams.is_empty() {
            cx.counts.delivered += streams.len() as u64;
            cx.effects.push(Effect::Http(HttpEffect::Feed { message, cursor, requests: streams }));
        }
        for gap in [false, true] {
            let alike = publication.waiters.iter().filter(|waiter| waiter.is_answer && waiter.gap == gap);
            let requests: Vec<RequestId> = alike.map(|waiter| waiter.request).collect();
            if !requests.is_empty() {
                cx.effects.push(Effect::Http(HttpEffect::Deliver { message, cursor, gap, requests }));
            }
        }
        Ok(publication)
    }

    /// Messages may have been missed. Streams get the gap at once; a request that waits for the next message gets it with that.
    pub fn lose(&mut self, cx: &mut Context, name: &ChannelName) {
        let Some(id) = self.table.named(name) else { return };
        self.table.restart(id);
        let channel = self.table.channel_mut(id);
        channel.nexts.for_each_mut(|waiter| waiter.gap = true);
        let (cursor, requests) = (channel.cursor(), channel.streams.values().collect::<Vec<_>>());
        self.table.settle(cx.now, id);
        cx.counts.gaps += requests.len() as u64;
        if !requests.is_empty() {
            cx.effects.push(Effect::Http(HttpEffect::FeedGap { cursor, requests }));
        }
    }

    // Upkeep.

    pub fn configure(&mut self, now: Moment, pattern: &str, limits: HistoryLimits) {
        self.table.configure(now, pattern, limits);
    }

    pub fn sweep(&mut self, now: Moment) {
        self.table.sweep(now);
    }

    pub fn sweep_due(&self) -> Option<Moment> {
        self.table.sweep_due()
    }

    /// A call needs the message that woke it.
    pub fn hold_message(&mut self, message: MessageId) {
        self.table.messages_mut().hold(message);
    }

    pub fn release_message(&mut self, message: MessageId) {
        self.table.messages_mut().release(message);
    }

    pub fn hold_history(&mut self, history: HistoryId) {
        self.snapshots.hold(history);
    }

    pub fn release_history(&mut self, history: HistoryId) {
        self.snapshots.release(history);
    }

    /// At the end of an event: drops messages and snapshots that no history and no request needs.
    pub fn drop_messages(&mut self, cx: &mut Context) {
        let effects = &mut cx.effects;
        let drop = |message| effects.push(Effect::Server(ServerEffect::DropMessage { message }));
        self.table.messages_mut().drop_unheld(drop);
        self.snapshots.drop_unheld(cx);
    }

    // What can be seen.

    pub fn count(&self) -> usize {
        self.table.count()
    }

    pub fn history_bytes(&self) -> usize {
        self.table.history_bytes()
    }

    pub fn messages_count(&self) -> usize {
        self.table.messages().count()
    }

    /// Where a channel stands; `None` when nobody waits on it and it holds nothing.
    pub fn cursor(&self, name: &ChannelName) -> Option<Cursor> {
        self.table.named(name).map(|id| self.table.channel(id).cursor())
    }

    /// At most `count` channels, those with most waiters first, each with the first request that waits on it.
    pub fn statuses(&self, count: usize) -> impl Iterator<Item = (ChannelStatus, Option<RequestId>)> {
        self.table.busiest(count).map(|channel| (channel.status(), channel.first_waiter()))
    }
}
