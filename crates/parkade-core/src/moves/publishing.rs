//! A message, to all that wait for it.

use crate::core::Core;
use crate::effect::{Effect, HttpEffect, Outcome};
use crate::event::Publisher;
use crate::life::machine::Happening;
use crate::life::{Life, Parked, Sequel};
use parkade_model::{ChannelName, MessageId, Refusal, RequestId};

impl Core {
    pub(crate) fn publish(&mut self, channel: &ChannelName, message: MessageId, bytes: usize, by: Option<Publisher>) {
        let Ok(publication) = self.channels.publish(&mut self.cx, channel, message, bytes) else {
            if let Some(by) = by {
                self.hold_against(by, Refusal::NotPublished);
            }
            return;
        };
        // Their alarms were mostly set in the order of arrival: from the last one back each is at the bottom of the heap, where it is
        // taken out in one step instead of fifteen.
        for (request, _) in publication.waiters().rev() {
            self.silence_parked(request);
        }
        for (request, outcome) in publication.waiters() {
            self.turn(request, Happening::Woken(outcome));
        }
    }

    /// A client that gets the answer of this request would believe that its message is in the channel.
    pub(crate) fn hold_against(&mut self, by: Publisher, refusal: Refusal) {
        let answers = match self.lives.life(by.request) {
            Some(Life::Running(life)) => life.worker == by.worker,
            Some(Life::Parked(Parked { sequel: Sequel::Await { worker, .. }, .. })) => *worker == by.worker,
            Some(Life::Accepted(_) | Life::Routed(_) | Life::Parked(_) | Life::Done(_) | Life::Cancelled(_)) | None => {
                false
            }
        };
        if answers {
            self.channels.hold_against(by.request, refusal);
        }
    }

    /// Why the answer of this request may not say that all is well: a message of it was not published, or a job not stored.
    pub(crate) fn unkept(&self, request: RequestId) -> Option<Refusal> {
        self.channels.held_against(request).or_else(|| self.store_fault(request).map(Refusal::from))
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
}
