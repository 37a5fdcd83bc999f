//! What jobs use of the server while they handle an input.

use parkade_core::{Core, Event, Moment, RequestId};

use crate::clients::{Clients, Messages};
use crate::clock::Clock;
use crate::traces::Traces;

pub struct JobContext<'a> {
    pub core: &'a Core,
    pub clients: &'a mut Clients,
    pub messages: &'a mut Messages,
    pub traces: &'a mut Traces,
    pub clock: Clock,
    /// When the current batch of inputs was read.
    pub now: Moment,
    /// What the core is to be told, in this order.
    pub events: &'a mut Vec<Event>,
}

impl JobContext<'_> {
    pub fn tell(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Refuses a request with an error of the server's own.
    pub fn refuse(&mut self, request: RequestId, refusal: parkade_core::Refusal) {
        let (core, now) = (self.core, self.now);
        self.clients.response(request).refuse(refusal, None, || core.queue_wait(now, core.app_of(request)));
    }
}
