//! How a request begins to wait.
//!
//! Who waits for a channel is put on it and told what it missed in one step, so no message falls between the two.

use std::time::Duration;

use crate::channels::{ChannelsFull, NextBegan};
use crate::core::Core;
use crate::effect::{Effect, HttpEffect, StatementSource};
use crate::life::journey::Journey;
use crate::life::reply::Reply;
use crate::life::{Bell, Life, Parked, Running, Sequel, State, Watch};
use crate::routes::RouteId;
use crate::structures::timers::Alarm;
use parkade_model::{ChannelName, Cursor, JobCaller, PayloadId, Reason, Refusal, RequestId, Then, Wait, WorkerId};

/// A request that is about to wait: its journey has no alarm, nobody watches for it yet.
pub(crate) struct Parking {
    pub(crate) request: RequestId,
    pub(crate) journey: Journey,
    pub(crate) sequel: Sequel,
}

impl Parking {
    pub(crate) fn park(self, watch: Watch, alarm: Option<Alarm>) -> Parked {
        Parked { journey: self.journey.ending_with(alarm), watch, sequel: self.sequel }
    }
}

impl Core {
    /// `PARK`.
    pub(crate) fn park_running(
        &mut self,
        request: RequestId,
        life: Running,
        wait: Wait,
        then: Then,
        payload: PayloadId,
    ) -> Life {
        if let Some(refusal) = self.unparkable(request, &life, then) {
            self.break_off(request, life.reply, refusal);
            return self.finish(request, life);
        }
        let worker = life.worker;
        self.release(worker, life.place);
        let (mut journey, work) = life.close(self.cx.now);
        self.silence(&mut journey);
        self.let_go(work);
        if brings_something(&wait, then) {
            self.cx.effects.push(Effect::Http(HttpEffect::Keep { request, payload }));
        }
        let sequel = self.sequel(then, worker, request);
        self.park(Parking { request, journey, sequel }, wait, StatementSource::Payload(payload))
    }

    /// Behind a head it makes no sense: the client's connection is broken off. A run has no client whom a wait could answer. When a message
    /// was not published, or a job not stored, only a coroutine may still do something about that.
    fn unparkable(&self, request: RequestId, life: &Running, then: Then) -> Option<Refusal> {
        let unkept = self.unkept(request).filter(|_| then != Then::Await);
        let is_senseless = life.reply != Reply::Awaited || then == Then::Answer && self.jobs.is_run(request);
        if is_senseless { Some(Refusal::BadAnswer) } else { unkept }
    }

    /// A route that is only a wait: there is no worker and no coroutine.
    pub(crate) fn park_route(
        &mut self,
        request: RequestId,
        journey: Journey,
        route: RouteId,
        wait: Wait,
        then: Then,
    ) -> Life {
        let sequel = match then {
            Then::Answer => Sequel::Answer,
            Then::Call { concurrent } => Sequel::Call { concurrent },
            Then::Await => {
                self.refuse(request, Refusal::BadAnswer);
                return self.done(request, journey);
            }
        };
        self.park(Parking { request, journey, sequel }, wait, StatementSource::Route(route))
    }

    fn park(&mut self, parking: Parking, wait: Wait, source: StatementSource) -> Life {
        if self.lives.count_of(State::Parked) >= self.cx.config.parked_count_max {
            return self.wait_refused(parking, Refusal::ParkedFull);
        }
        self.cx.counts.parked += u64::from(!self.jobs.is_run(parking.request));
        match wait {
            Wait::Timer { after } => self.park_timer(parking, after),
            Wait::Next { channel, timeout, since } => self.park_next(parking, &channel, timeout, since),
            Wait::Stream { channel, since } => self.park_stream(parking, &channel, since),
            Wait::Query(wait) => self.park_query(parking, &wait, source),
            Wait::Stored => self.park_stored(parking),
            Wait::Job { job, timeout } => self.park_job(parking, job, JobCaller::Application, timeout),
            Wait::Visit { job, errand } => self.park_visit(parking, job, errand),
            Wait::Access { granted } => self.park_access(parking, granted),
        }
    }

    fn park_timer(&mut self, parking: Parking, after: Duration) -> Life {
        let alarm = self.cx.timers.set(self.cx.now + after, Bell::Life(parking.request));
        Life::Parked(parking.park(Watch::Timer, Some(alarm)))
    }

    fn park_next(
        &mut self,
        parking: Parking,
        channel: &ChannelName,
        timeout: Option<Duration>,
        since: Option<Cursor>,
    ) -> Life {
        let request = parking.request;
        match self.channels.next(&mut self.cx, (request, parking.sequel.then()), channel, since) {
            Err(ChannelsFull) => self.wait_refused(parking, Refusal::ChannelsFull),
            Ok(NextBegan::Missed(outcome)) => self.go_on(parking, outcome),
            Ok(NextBegan::Waits(subscription)) => {
                let alarm = timeout.map(|timeout| self.cx.timers.set(self.cx.now + timeout, Bell::Life(request)));
                let parked = parking.park(Watch::Next(subscription), alarm);
                if self.staff.is_open() {
                    return Life::Parked(parked);
                }
                self.wake(request, parked, self.channels.timed_out(subscription))
            }
        }
    }

    pub(crate) fn park_stream(&mut self, parking: Parking, channel: &ChannelName, since: Option<Cursor>) -> Life {
        let request = parking.request;
        if !matches!(parking.sequel, Sequel::Answer) {
            return self.wait_refused(parking, Refusal::BadAnswer);
        }
        let Ok(subscription) = self.channels.stream(&mut self.cx, request, channel, since) else {
            return self.wait_refused(parking, Refusal::ChannelsFull);
        };
        let parked = parking.park(Watch::Stream(subscription), None);
        if self.staff.is_open() {
            return Life::Parked(parked);
        }
        self.cancel_parked(request, parked, Reason::Stopping)
    }

    fn sequel(&mut self, then: Then, worker: WorkerId, request: RequestId) -> Sequel {
        match then {
            Then::Answer => Sequel::Answer,
            Then::Call { concurrent } => Sequel::Call { concurrent },
            Then::Await => Sequel::Await { worker, place: self.holder(worker).awaiting.push_back(request) },
        }
    }
}

/// Whether the `PARK` came with a response or a function, to be kept until the wait is over.
fn brings_something(wait: &Wait, then: Then) -> bool {
    match then {
        Then::Answer => matches!(wait, Wait::Timer { .. }),
        Then::Call { .. } => true,
        Then::Await => false,
    }
}
