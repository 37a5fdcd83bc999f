//! How a wait ends, and how its request goes on.

use crate::core::Core;
use crate::effect::{Effect, HttpEffect, Outcome};
use crate::life::journey::Journey;
use crate::life::machine::Happening;
use crate::life::reply::Reply;
use crate::life::{Bell, Life, Parked, Routed, Running, Sequel, Watch, Work};
use crate::moves::parking::Parking;
use crate::queries::QueryAnswer;
use crate::workers::worker::Stage;
use parkade_model::{JobLookup, Reason, Refusal, RequestId, WorkerId};

impl Core {
    /// The alarm of a wait rang.
    pub(crate) fn wait_over(&mut self, request: RequestId, mut life: Parked) -> Life {
        life.journey.alarm = None;
        let outcome = match life.watch {
            Watch::Query(waiter) => {
                let given_up = self.queries.expire(&mut self.cx, waiter);
                return self.query_given_up(request, life, given_up);
            }
            Watch::Stored => return self.cancel_parked(request, life, Reason::Deadline),
            Watch::Job => return self.job_still_pending(request, life),
            Watch::Timer => Outcome::Elapsed,
            Watch::Next(subscription) | Watch::Stream(subscription) => self.channels.timed_out(subscription),
        };
        self.wake(request, life, outcome)
    }

    pub(crate) fn wake(&mut self, request: RequestId, life: Parked, outcome: Outcome) -> Life {
        let outcome = match (life.watch, outcome) {
            (Watch::Query(waiter), outcome) => match waiter.answer(&mut self.cx, request, outcome) {
                QueryAnswer::Outcome(outcome) => outcome,
                QueryAnswer::Sent => return self.sent(request, life),
            },
            (Watch::Stream(_), Outcome::Elapsed) => return self.end_stream(request, life),
            (Watch::Job, Outcome::Job { standing: JobLookup::Ended | JobLookup::Pending, .. })
                if self.jobs.watchers.follows(request) =>
            {
                return self.follow_job(request, life);
            }
            (Watch::Stored, Outcome::Stored) if matches!(life.sequel, Sequel::Await { .. }) => self.stored(request),
            (_, outcome) => outcome,
        };
        self.unwatch(request, &life);
        let (mut journey, sequel) = life.wake(self.cx.now);
        self.silence(&mut journey);
        self.follow(request, journey, sequel, outcome)
    }

    /// `UNPARK`. A request that no longer waits has been resumed, or cancelled: what says so is on its way to the worker.
    pub(crate) fn unparked(&mut self, worker: WorkerId, request: RequestId) {
        if let Some(Life::Parked(Parked { sequel: Sequel::Await { worker: owner, .. }, .. })) = self.lives.life(request)
            && *owner == worker
        {
            self.turn(request, Happening::Woken(Outcome::Unparked));
        }
    }

    pub(crate) fn silence_parked(&mut self, request: RequestId) {
        if let Some(alarm) = self.lives.parked_mut(request).and_then(|parked| parked.journey.alarm.take()) {
            self.cx.timers.clear(alarm);
        }
    }

    /// Nobody watches for it any more. Its alarm is cleared by whoever ends the wait.
    pub(crate) fn unwatch(&mut self, request: RequestId, life: &Parked) {
        match life.watch {
            Watch::Timer | Watch::Stored => {}
            Watch::Job => drop(self.jobs.watchers.remove(request)),
            Watch::Next(subscription) => self.channels.leave_next(self.cx.now, subscription),
            Watch::Stream(subscription) => self.channels.leave_stream(self.cx.now, subscription),
            Watch::Query(waiter) => self.queries.leave(&mut self.cx, waiter),
        }
        self.leave_coroutine(life.sequel);
    }

    fn leave_coroutine(&mut self, sequel: Sequel) {
        if let Sequel::Await { worker, place } = sequel {
            self.holder(worker).awaiting.remove(place);
            self.staff.attention |= self.holder(worker).stage != Stage::Ready;
        }
    }

    /// The wait is over before it began.
    pub(crate) fn go_on(&mut self, parking: Parking, outcome: Outcome) -> Life {
        self.leave_coroutine(parking.sequel);
        self.follow(parking.request, parking.journey, parking.sequel, outcome)
    }

    /// The wait cannot be had: a coroutine is told so, everybody else is refused.
    pub(crate) fn wait_refused(&mut self, parking: Parking, refusal: Refusal) -> Life {
        if matches!(parking.sequel, Sequel::Await { .. }) {
            return self.go_on(parking, Outcome::Refused { refusal });
        }
        self.refuse(parking.request, refusal);
        self.done(parking.request, parking.journey)
    }

    /// What comes after the wait. A message that is the answer has been told by whoever published it.
    fn follow(&mut self, request: RequestId, mut journey: Journey, sequel: Sequel, outcome: Outcome) -> Life {
        if let Outcome::Message { gap, .. } = outcome {
            self.cx.counts.delivered += 1;
            self.cx.counts.gaps += u64::from(gap);
        }
        if let (Outcome::Queried { query, completed, late }, Sequel::Answer | Sequel::Call { .. }) = (outcome, sequel)
            && (matches!(sequel, Sequel::Answer) || !completed || late.is_some())
        {
            return self.answer_query(request, journey, query, late);
        }
        if let (Outcome::Refused { refusal }, Sequel::Answer | Sequel::Call { .. }) = (outcome, sequel) {
            self.refuse(request, refusal);
            return self.done(request, journey);
        }
        match sequel {
            Sequel::Answer => {
                match outcome {
                    Outcome::Elapsed => self.cx.effects.push(Effect::Http(HttpEffect::Release { request })),
                    Outcome::TimedOut { cursor } => {
                        self.cx.effects.push(Effect::Http(HttpEffect::Empty { request, cursor }));
                    }
                    Outcome::Stored => self.release_held(request),
                    Outcome::Job { job, standing } => {
                        self.cx.effects.push(Effect::Http(HttpEffect::AnswerJob { request, job, standing }));
                    }
                    Outcome::Message { .. } | Outcome::Queried { .. } | Outcome::Unparked | Outcome::Refused { .. } => {
                    }
                }
                self.done(request, journey)
            }
            Sequel::Call { concurrent } => {
                if let Outcome::Message { message, .. } = outcome {
                    self.channels.hold_message(message);
                }
                if let Outcome::Queried { query, .. } = outcome {
                    self.queries.hold_result(query);
                }
                if let Outcome::Job { job, standing: JobLookup::Ended } = outcome {
                    self.jobs.results.hold(job);
                }
                // The time of a run begins with its code.
                if !self.jobs.is_run(request) {
                    self.start_spell(request, &mut journey);
                }
                let work = Work::Call { outcome: Box::new(outcome), concurrent };
                let place = self.queue_of(request, &work).push_back(request);
                Life::Routed(Routed { journey, place, work })
            }
            Sequel::Await { worker, .. } => {
                self.start_spell(request, &mut journey);
                self.resumed.push((worker, outcome, request));
                let place = self.entrust(worker, request, &Work::Coroutine);
                Life::Running(Running { journey, place, worker, work: Work::Coroutine, reply: Reply::Awaited })
            }
        }
    }

    /// The clock of the deadline starts again.
    pub(crate) fn start_spell(&mut self, request: RequestId, journey: &mut Journey) {
        let patience = journey.patience().duration();
        journey.alarm = patience.map(|patience| self.cx.timers.set(self.cx.now + patience, Bell::Life(request)));
    }
}
