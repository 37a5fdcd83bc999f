//! A message, to all that wait for it.

use crate::channels::Waiter;
use crate::core::Core;
use crate::effect::{Effect, HttpEffect, Outcome, ServerEffect};
use crate::event::Publisher;
use crate::life::machine::Happening;
use crate::life::{Life, Parked, Sequel};
use parkade_model::{ChannelName, MessageId, Refusal, RequestId};

impl Core {
    /// One effect for all whose answer it is, one for all streams; the others go on with it.
    pub(crate) fn publish(&mut self, channel: &ChannelName, message: MessageId, bytes: usize, by: Option<Publisher>) {
        self.cx.counts.published += 1;
        self.messages.hold(message);
        let Ok(publication) = self.channels.publish(self.cx.now, channel, message, bytes, &mut self.dropped) else {
            self.cx.counts.unpublished += 1;
            self.cx.effects.push(Effect::Server(ServerEffect::NotPublished { message }));
            self.dropped.push(message);
            if let Some(by) = by {
                self.hold_against(by, Refusal::NotPublished);
            }
            return;
        };
        let cursor = publication.cursor;
        if !publication.streams.is_empty() {
            self.cx.counts.delivered += publication.streams.len() as u64;
            self.cx.effects.push(Effect::Http(HttpEffect::Feed { message, cursor, requests: publication.streams }));
        }
        for gap in [false, true] {
            let requests = self.answered_by_it(&publication.nexts, gap);
            if !requests.is_empty() {
                self.cx.effects.push(Effect::Http(HttpEffect::Deliver { message, cursor, gap, requests }));
            }
        }
        // Their alarms were mostly set in the order of arrival: from the last one back each is at the bottom of the heap, where it is
        // taken out in one step instead of fifteen.
        for waiter in publication.nexts.iter().rev() {
            self.silence_parked(waiter.request);
        }
        for Waiter { request, gap } in publication.nexts {
            self.turn(request, Happening::Woken(Outcome::Message { message, cursor, gap }));
        }
    }

    /// Whoever gets the answer of this request would believe that its message is in the channel.
    pub(crate) fn hold_against(&mut self, by: Publisher, refusal: Refusal) {
        let answers = match self.lives.life(by.request) {
            Some(Life::Running(life)) => life.worker == by.worker,
            Some(Life::Parked(Parked { sequel: Sequel::Await { worker, .. }, .. })) => *worker == by.worker,
            Some(Life::Accepted(_) | Life::Routed(_) | Life::Parked(_) | Life::Done(_) | Life::Cancelled(_)) | None => {
                false
            }
        };
        if answers {
            self.unpublished.entry(by.request).or_insert(refusal);
        }
    }

    /// Why the answer of this request may not say that all is well: a message of it was not published, or a job not stored.
    pub(crate) fn unkept(&self, request: RequestId) -> Option<Refusal> {
        let unpublished = if self.unpublished.is_empty() { None } else { self.unpublished.get(&request).copied() };
        unpublished.or_else(|| self.store_fault(request).map(Refusal::from))
    }

    /// What was published meanwhile is unknown: who waits for the next message is told with it, streams at once.
    pub(crate) fn lose_messages(&mut self, channel: &ChannelName) {
        if let Some((cursor, requests)) = self.channels.lose(self.cx.now, channel, &mut self.dropped) {
            self.cx.counts.gaps += requests.len() as u64;
            if !requests.is_empty() {
                self.cx.effects.push(Effect::Http(HttpEffect::FeedGap { cursor, requests }));
            }
        }
    }

    /// They have had all that there is.
    pub(crate) fn end_streams(&mut self, channel: &ChannelName) {
        for request in self.channels.streams_of(channel) {
            self.turn(request, Happening::Woken(Outcome::Elapsed));
        }
    }

    pub(crate) fn end_stream(&mut self, request: RequestId, life: Parked) -> Life {
        self.unwatch(request, &life);
        self.cx.effects.push(Effect::Http(HttpEffect::EndStream { request }));
        let (journey, _) = life.wake(self.cx.now);
        self.done(request, journey)
    }

    fn answered_by_it(&self, waiters: &[Waiter], gap: bool) -> Vec<RequestId> {
        let alike = waiters.iter().filter(|waiter| waiter.gap == gap).map(|waiter| waiter.request);
        let answer = |request: &RequestId| {
            matches!(self.lives.life(*request), Some(Life::Parked(Parked { sequel: Sequel::Answer, .. })))
        };
        alike.filter(answer).collect()
    }
}
