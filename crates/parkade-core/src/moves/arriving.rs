//! From the head of a request to its place in the queue.

use std::time::Duration;

use crate::core::Core;
use crate::effect::{Effect, HttpEffect, ServerEffect};
use crate::life::Times;
use crate::life::happening::Happening;
use crate::life::journey::{Journey, Patience};
use crate::life::{Accepted, Bell, Life, Routed, Turn, Work};
use crate::moment::Moment;
use crate::routes::Destination;
use parkade_model::{Ending, Reason, Refusal, RequestId, TableId};

impl Core {
    pub(crate) fn arrive(&mut self, request: RequestId, destination: Destination) {
        if let Err(refused) = self.lives.vacant(request) {
            self.cx.counts.refused_events.add(refused);
            if self.lives.state(request).is_none() {
                self.refuse(request, Refusal::QueueFull);
                self.cx.effects.push(Effect::Server(ServerEffect::Forget {
                    request,
                    ending: Ending::Done,
                    times: Times::default(),
                }));
            }
            return;
        }
        self.cx.counts.accepted += 1;
        let place = self.unrouted.push_back(request);
        let journey = Journey::new(self.cx.now, self.cx.config.deadline.into(), None);
        self.lives.begin(request, Life::Accepted(Accepted { journey, place, turn: Turn::Last }));
        let happening = match self.inadmissible(&destination) {
            Some(Refusal::Stopping) => Happening::Cancelled(Reason::Stopping),
            Some(refusal) => Happening::Refused(refusal),
            None => Happening::Routed(destination),
        };
        self.turn(request, happening);
    }

    /// Why this request cannot be had now. What needs no worker is not bounded by the queue.
    fn inadmissible(&self, destination: &Destination) -> Option<Refusal> {
        if let Some(refusal) = self.fleet.refusal() {
            return Some(refusal);
        }
        // The request itself stands among the unrouted already.
        let queued_before = self.queue.count() + self.unrouted.count() - 1;
        match destination {
            Destination::Handler { route, concurrent, deadline } => {
                let work = Work::Handler { route: *route, concurrent: *concurrent };
                self.no_room(queued_before, &work, *deadline)
            }
            Destination::Fallback { table } => {
                self.no_room(queued_before, &Work::Fallback { table: *table }, self.cx.config.deadline)
            }
            Destination::Unknown => self.no_place(queued_before),
            Destination::Wait { .. }
            | Destination::Constant { .. }
            | Destination::NotFound
            | Destination::MethodNotAllowed => None,
        }
    }

    /// Why a worker cannot have another request now.
    pub(crate) fn no_room(&self, queued_before: usize, work: &Work, deadline: Option<Duration>) -> Option<Refusal> {
        let too_late = || self.would_start_too_late(work.is_coroutine(), deadline).then_some(Refusal::QueueTooSlow);
        self.no_place(queued_before).or_else(too_late)
    }

    /// Why nobody can be queued now, whatever for.
    fn no_place(&self, queued_before: usize) -> Option<Refusal> {
        if self.fleet.lacks_application() {
            Some(Refusal::NoApplication)
        } else if queued_before >= self.cx.config.queued_count_max.max(1) {
            Some(Refusal::QueueFull)
        } else {
            None
        }
    }

    fn would_start_too_late(&self, concurrent: bool, deadline: Option<Duration>) -> bool {
        let deadline = Patience::from(deadline).duration();
        deadline.is_some_and(|deadline| self.soonest(self.cx.now, concurrent).is_some_and(|soonest| soonest > deadline))
    }

    /// When one that joins this line now would start. Nobody stands in a line whose first a worker would take, so whoever would be taken now
    /// has nobody ahead.
    pub(crate) fn soonest(&self, now: Moment, concurrent: bool) -> Option<Duration> {
        self.fleet.soonest(now, concurrent, self.queue.count_of(concurrent))
    }

    pub(crate) fn route(&mut self, request: RequestId, life: Accepted, destination: Destination) -> Life {
        match destination {
            Destination::Handler { route, concurrent, deadline } => {
                self.enqueue(request, life, Work::Handler { route, concurrent }, deadline)
            }
            Destination::Fallback { table } => {
                self.enqueue(request, life, Work::Fallback { table }, self.cx.config.deadline)
            }
            Destination::Wait { route, wait, then, deadline } => {
                let mut journey = self.leave_unrouted(life).queued(self.cx.now);
                journey.set_patience(deadline.into());
                self.silence(&mut journey);
                self.park_route(request, journey, route, wait, then)
            }
            Destination::Constant { route } => {
                let journey = self.leave_unrouted(life).queued(self.cx.now);
                self.cx.effects.push(Effect::Http(HttpEffect::Constant { request, route }));
                self.done(request, journey)
            }
            Destination::NotFound => self.refuse_accepted(request, life, Refusal::NotFound),
            Destination::MethodNotAllowed => self.refuse_accepted(request, life, Refusal::MethodNotAllowed),
            Destination::Unknown => self.await_routes(request, life),
        }
    }

    pub(crate) fn unroute(&mut self, request: RequestId, life: Routed, table: TableId, turn: Turn) -> Life {
        self.leave_queue(request, &life);
        // Whoever asks for a job begins again, by the routes and the jobs of the other code.
        self.waits.jobs.forget(request);
        self.cx.effects.push(Effect::Server(ServerEffect::LookUpRoute { request, table }));
        Life::Accepted(life.unroute(self.unrouted.push_back(request), turn))
    }

    /// The current routes are others than before: whoever is queued is routed again.
    pub(crate) fn reroute(&mut self, table: TableId) {
        let unrouted: Vec<RequestId> = self.unrouted.values().collect();
        let queued: Vec<RequestId> = self.queue.values().collect();
        self.cx
            .effects
            .extend(unrouted.into_iter().map(|request| Effect::Server(ServerEffect::LookUpRoute { request, table })));
        for request in queued {
            if matches!(self.lives.life(request), Some(Life::Routed(life)) if life.work.table().is_some_and(|known| known != table))
            {
                self.turn(request, Happening::Unrouted { table, turn: Turn::Last });
            }
        }
    }

    pub(crate) fn leave_unrouted(&mut self, life: Accepted) -> Journey {
        let (journey, place) = life.leave();
        self.unrouted.remove(place);
        journey
    }

    fn enqueue(&mut self, request: RequestId, mut life: Accepted, work: Work, deadline: Option<Duration>) -> Life {
        self.unrouted.remove(life.place);
        let patience = Patience::from(deadline);
        self.bound(request, &mut life.journey, patience);
        let place = match life.turn {
            Turn::Last => self.queue.line(work.is_coroutine()).push_back(request),
            Turn::Next => self.queue.line(work.is_coroutine()).push_front(request),
        };
        Life::Routed(life.route(work, place, patience))
    }

    /// No worker has said its routes: they are looked up when one does.
    fn await_routes(&mut self, request: RequestId, mut life: Accepted) -> Life {
        let patience = life.journey.patience();
        if life.journey.alarm.is_none() {
            self.bound(request, &mut life.journey, patience);
            self.cx
                .effects
                .extend(self.fleet.table().map(|table| Effect::Server(ServerEffect::LookUpRoute { request, table })));
        }
        Life::Accepted(life)
    }

    /// Sets the alarm for the deadline of this spell, unless it is set for it already. Another route may have another deadline: the spell began when it did.
    fn bound(&mut self, request: RequestId, journey: &mut Journey, patience: Patience) {
        let before = journey.patience();
        if journey.alarm.is_some() && patience == before {
            return;
        }
        let began = match (journey.alarm, before.duration()) {
            (Some(alarm), Some(before)) => self.cx.timers.due(alarm) - before,
            (Some(_) | None, _) => journey.since(),
        };
        self.silence(journey);
        journey.alarm = patience.duration().map(|patience| self.cx.timers.set(began + patience, Bell::Life(request)));
    }

    /// Clears the alarm, if one is set.
    pub(crate) fn silence(&mut self, journey: &mut Journey) {
        if let Some(alarm) = journey.alarm.take() {
            self.cx.timers.clear(alarm);
        }
    }
}
