//! Requests that wait: parked, woken, cancelled. What they wait for is known to `waits` alone.

use crate::core::Core;
use crate::effect::{Effect, HttpEffect, Outcome, StatementSource, WorkerEffect};
use crate::event::Publisher;
use crate::life::happening::Happening;
use crate::life::journey::Journey;
use crate::life::reply::Reply;
use crate::life::{Bell, Life, Parked, Routed, Running, Sequel, State, Work};
use crate::moment::Moment;
use crate::moves::ending::refusal_of;
use crate::queries::fate_unknown;
use crate::routes::RouteId;
use crate::structures::timers::Alarm;
use crate::waits::{self, Begun, Continuation, NewWait, WaitAnswer, WaitChange, Watch};
use parkade_model::{PayloadId, QueryId, Reason, Refusal, RequestId, Then, Wait, WorkerId};

/// A request that is about to wait: its journey has no alarm, nobody watches for it yet.
pub(crate) struct Parking {
    request: RequestId,
    journey: Journey,
    sequel: Sequel,
}

impl Parking {
    fn park(self, watch: Watch, alarm: Option<Alarm>) -> Parked {
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
        if waits::brings_something(&wait, then) {
            self.cx.effects.push(Effect::Http(HttpEffect::Keep { request, payload }));
        }
        let sequel = self.sequel(then, worker, request);
        self.park(Parking { request, journey, sequel }, wait, StatementSource::Payload(payload))
    }

    /// After a head it makes no sense: the client's connection is broken off. A run has no client whom a wait could answer. When a message
    /// was not published, or a job not stored, only a coroutine may still do something about that.
    fn unparkable(&self, request: RequestId, life: &Running, then: Then) -> Option<Refusal> {
        let unkept = self.waits.fault_of(request).filter(|_| then != Then::Await);
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
            return self.go_on(parking, Outcome::Refused { refusal: Refusal::ParkedFull });
        }
        self.cx.counts.parked += u64::from(!self.jobs.is_run(parking.request));
        let new = self.new_wait(&parking);
        let begun = self.waits.begin(&mut self.cx, new, wait, source);
        self.begun(parking, begun)
    }

    fn new_wait(&self, parking: &Parking) -> NewWait {
        NewWait {
            request: parking.request,
            then: parking.sequel.then(),
            patience: parking.journey.patience(),
            is_open: self.fleet.is_open(),
        }
    }

    fn begun(&mut self, parking: Parking, begun: Begun) -> Life {
        let request = parking.request;
        match begun {
            Begun::Waits(watch, until) => {
                let alarm = until.map(|until| self.cx.timers.set(until, Bell::Life(request)));
                Life::Parked(parking.park(watch, alarm))
            }
            Begun::Over(outcome) => self.go_on(parking, outcome),
            Begun::Cancelled(watch, reason) => self.cancel_parked(request, parking.park(watch, None), reason),
        }
    }

    /// The wait is over before it began.
    fn go_on(&mut self, parking: Parking, outcome: Outcome) -> Life {
        self.leave_coroutine(parking.sequel);
        self.follow(parking.request, parking.journey, parking.sequel, outcome)
    }

    fn sequel(&mut self, then: Then, worker: WorkerId, request: RequestId) -> Sequel {
        match then {
            Then::Answer => Sequel::Answer,
            Then::Call { concurrent } => Sequel::Call { concurrent },
            Then::Await => Sequel::Await { worker, place: self.fleet.park(worker, request) },
        }
    }

    fn leave_coroutine(&mut self, sequel: Sequel) {
        if let Sequel::Await { worker, place } = sequel {
            self.fleet.leave(worker, place);
        }
    }

    /// `UNPARK`. A request that no longer waits has been resumed, or cancelled: what says so is on its way to the worker.
    pub(crate) fn unparked(&mut self, worker: WorkerId, request: RequestId) {
        if let Some(Life::Parked(Parked { sequel: Sequel::Await { worker: owner, .. }, .. })) = self.lives.life(request)
            && *owner == worker
        {
            self.turn(request, Happening::Woken(Outcome::Unparked));
        }
    }

    /// The first rows of its query have come.
    pub(crate) fn rows_began(&mut self, request: RequestId, life: Parked) -> Life {
        let watch = self.waits.rows_began(&mut self.cx, (request, life.sequel.then()), life.watch);
        Life::Parked(Parked { watch, ..life })
    }

    /// The alarm of a wait rang.
    pub(crate) fn wait_over(&mut self, request: RequestId, mut life: Parked) -> Life {
        life.journey.alarm = None;
        let change = self.waits.expire(&mut self.cx, request, life.watch);
        self.change(request, life, change)
    }

    /// What it waits for is given up.
    pub(crate) fn give_wait_up(&mut self, request: RequestId, life: Parked, reason: Reason) -> Life {
        let change = self.waits.give_up(&mut self.cx, life.watch, reason);
        self.change(request, life, change)
    }

    fn change(&mut self, request: RequestId, mut life: Parked, change: WaitChange) -> Life {
        match change {
            WaitChange::AsBefore => Life::Parked(life),
            WaitChange::Waits(watch, until) => {
                self.silence(&mut life.journey);
                life.journey.alarm = Some(self.cx.timers.set(until, Bell::Life(request)));
                Life::Parked(Parked { watch, ..life })
            }
            WaitChange::Over(outcome) => self.wake(request, life, outcome),
            WaitChange::Cancelled(reason) => self.cancel_parked(request, life, reason),
            WaitChange::QueryUnknown(reason) => {
                let is_told = matches!(life.sequel, Sequel::Await { .. }) || self.was_only_its_query(request, reason);
                if is_told {
                    return self.wake(request, life, Outcome::Refused { refusal: fate_unknown(reason) });
                }
                self.cancel_parked(request, life, reason)
            }
        }
    }

    /// Its wait is over. A message that is the answer has been sent already.
    pub(crate) fn wake(&mut self, request: RequestId, life: Parked, outcome: Outcome) -> Life {
        let continuation = self.waits.end(&mut self.cx, (request, life.sequel.then()), life.watch, outcome);
        let (journey, sequel) = self.unpark(life);
        match continuation {
            Continuation::Outcome(outcome) => self.follow(request, journey, sequel, outcome),
            Continuation::Sent => self.done(request, journey),
            Continuation::Follows(channel, since) => {
                let parking = Parking { request, journey, sequel };
                let new = self.new_wait(&parking);
                let begun = self.waits.stream(&mut self.cx, new, &channel, since);
                self.begun(parking, begun)
            }
        }
    }

    /// The wait is over, and watched for no longer.
    pub(crate) fn unpark(&mut self, life: Parked) -> (Journey, Sequel) {
        self.leave_coroutine(life.sequel);
        let (mut journey, sequel) = life.wake(self.cx.now);
        self.silence(&mut journey);
        (journey, sequel)
    }

    /// What comes after the wait.
    fn follow(&mut self, request: RequestId, journey: Journey, sequel: Sequel, outcome: Outcome) -> Life {
        if let Outcome::Message { gap, .. } = outcome {
            self.cx.counts.delivered += 1;
            self.cx.counts.gaps += u64::from(gap);
        }
        match sequel {
            Sequel::Await { worker, .. } => self.resume(request, journey, worker, outcome),
            Sequel::Call { concurrent } if !waits::is_failure(outcome) => {
                self.call(request, journey, concurrent, outcome)
            }
            Sequel::Call { .. } | Sequel::Answer => self.answer(request, journey, outcome),
        }
    }

    fn answer(&mut self, request: RequestId, journey: Journey, outcome: Outcome) -> Life {
        match waits::answer(request, outcome) {
            WaitAnswer::Query(query, late) => return self.answer_query(request, journey, query, late),
            WaitAnswer::Refused(refusal) => self.refuse(request, refusal),
            WaitAnswer::Held => self.release_held(request),
            WaitAnswer::Effect(effect) => self.cx.effects.push(Effect::Http(effect)),
            WaitAnswer::Sent => {}
        }
        self.done(request, journey)
    }

    fn answer_query(&mut self, request: RequestId, journey: Journey, query: QueryId, late: Option<Reason>) -> Life {
        self.run_failed(request);
        self.cx.effects.push(Effect::Http(HttpEffect::AnswerQuery { request, query, late }));
        match late {
            Some(reason) if !self.was_only_its_query(request, reason) => self.cancelled(request, journey, reason),
            Some(_) | None => self.done(request, journey),
        }
    }

    /// An operator who ends a query of a job does not end the job: that attempt has failed, as for a coroutine that is told of it.
    fn was_only_its_query(&self, request: RequestId, reason: Reason) -> bool {
        reason == Reason::Operator && self.jobs.is_run(request)
    }

    fn call(&mut self, request: RequestId, mut journey: Journey, concurrent: bool, outcome: Outcome) -> Life {
        self.waits.hold(outcome);
        // The time of a run begins with its code.
        if !self.jobs.is_run(request) {
            self.start_spell(request, &mut journey);
        }
        let work = Work::Call { outcome: Box::new(outcome), concurrent };
        let place = self.queue_of(request, &work).push_back(request);
        Life::Routed(Routed { journey, place, work })
    }

    fn resume(&mut self, request: RequestId, mut journey: Journey, worker: WorkerId, outcome: Outcome) -> Life {
        self.start_spell(request, &mut journey);
        self.resumed.push((worker, outcome, request));
        let place = self.fleet.assign(self.cx.now, worker, request, &Work::Coroutine).place;
        Life::Running(Running { journey, place, worker, work: Work::Coroutine, reply: Reply::Awaited })
    }

    /// The clock of the deadline starts again.
    pub(crate) fn start_spell(&mut self, request: RequestId, journey: &mut Journey) {
        let due = journey.patience().duration().map(|patience| self.cx.now + patience);
        journey.alarm = due.map(|due: Moment| self.cx.timers.set(due, Bell::Life(request)));
    }

    /// Ends the wait, and with it the request.
    pub(crate) fn cancel_parked(&mut self, request: RequestId, life: Parked, reason: Reason) -> Life {
        let usual = refusal_of(reason, Refusal::DeadlinePassed);
        let refusal = self.waits.cancel(&mut self.cx, request, life.watch, reason, usual);
        self.leave_coroutine(life.sequel);
        if let Some(refusal) = refusal {
            self.refuse(request, refusal);
        }
        if let Sequel::Await { worker, .. } = life.sequel
            && reason != Reason::WorkerDied
        {
            self.cx.effects.push(Effect::Worker(WorkerEffect::Cancel { request, worker, reason }));
        }
        let (journey, _) = life.wake(self.cx.now);
        self.cancelled(request, journey, reason)
    }

    pub(crate) fn silence_parked(&mut self, request: RequestId) {
        if let Some(alarm) = self.lives.parked_mut(request).and_then(|parked| parked.journey.alarm.take()) {
            self.cx.timers.clear(alarm);
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
            self.waits.channels.hold_against(by.request, refusal);
        }
    }
}
