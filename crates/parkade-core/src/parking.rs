//! Waits: how a request begins one, and how it goes on afterwards.

use crate::channels::{Began, ChannelName, Cursor};
use crate::core::Core;
use crate::effect::{Effect, Outcome, Reason, Refusal};
use crate::event::{Then, Wait};
use crate::id::{RequestId, WorkerId};
use crate::journey::Journey;
use crate::life::{Bell, Life, Parked, Routed, Running, Sequel, Watch, Work};
use crate::reply::Reply;

impl Core {
    /// `PARK`. Behind a head it makes no sense: the client's connection is broken off.
    pub(crate) fn park_running(&mut self, request: RequestId, life: Running, wait: Wait, then: Then) -> Life {
        if life.reply != Reply::Awaited {
            self.break_off(request, life.reply, Refusal::BadAnswer);
            return self.finish(request, life);
        }
        let worker = life.worker;
        self.release(worker, life.place);
        let (mut journey, work) = life.close(self.now);
        if let Some(alarm) = journey.alarm.take() {
            self.timers.clear(alarm);
        }
        self.let_go(work);
        if then == Then::Call || then == Then::Answer && matches!(wait, Wait::Timer { .. }) {
            self.effects.push(Effect::Keep { request });
        }
        self.park(request, journey, wait, then, Some(worker))
    }

    /// `worker`: whose coroutine it is, if any. The journey has no alarm.
    pub(crate) fn park(
        &mut self,
        request: RequestId,
        mut journey: Journey,
        wait: Wait,
        then: Then,
        worker: Option<WorkerId>,
    ) -> Life {
        let sequel = match (then, worker) {
            (Then::Answer, _) => Sequel::Answer,
            (Then::Call, _) => Sequel::Call,
            (Then::Await, Some(worker)) => {
                Sequel::Await { worker, place: self.holder(worker).awaiting.push_back(request) }
            }
            (Then::Await, None) => return self.wait_refused(request, journey, Sequel::Answer, Refusal::BadAnswer),
        };
        if self.lives.count_of(crate::State::Parked) >= self.config.parked_count_max {
            return self.wait_refused(request, journey, sequel, Refusal::ParkedFull);
        }
        self.counts.parked += 1;
        match wait {
            Wait::Timer { after } => {
                journey.alarm = Some(self.timers.set(self.now + after, Bell::Life(request)));
                Life::Parked(Parked { journey, watch: Watch::Timer, sequel })
            }
            Wait::Next { channel, timeout, since } => {
                let began = self.channels.wait(self.now, request, &channel, since, &mut self.dropped);
                match began {
                    Err(_) => self.wait_refused(request, journey, sequel, Refusal::ChannelsFull),
                    Ok(Began::Missed { message, cursor, gap }) => {
                        if matches!(sequel, Sequel::Answer) {
                            self.effects.push(Effect::Deliver { message, cursor, gap, requests: vec![request] });
                        }
                        self.go_on(request, journey, sequel, Outcome::Message { message, cursor, gap })
                    }
                    Ok(Began::Waiting { channel, place }) => {
                        journey.alarm = timeout.map(|timeout| self.timers.set(self.now + timeout, Bell::Life(request)));
                        let parked = Parked { journey, watch: Watch::Next { channel, place }, sequel };
                        if self.staff.is_open() {
                            return Life::Parked(parked);
                        }
                        let cursor = self.channels.cursor(channel);
                        self.wake(request, parked, Outcome::TimedOut { cursor })
                    }
                }
            }
            Wait::Stream { channel, since } => self.park_stream(request, journey, sequel, &channel, since),
        }
    }

    /// The head, what was missed, then whatever comes.
    fn park_stream(
        &mut self,
        request: RequestId,
        journey: Journey,
        sequel: Sequel,
        channel: &ChannelName,
        since: Option<Cursor>,
    ) -> Life {
        if !matches!(sequel, Sequel::Answer) {
            return self.wait_refused(request, journey, sequel, Refusal::BadAnswer);
        }
        let Ok(began) = self.channels.stream(self.now, request, channel, since, &mut self.dropped) else {
            return self.wait_refused(request, journey, sequel, Refusal::ChannelsFull);
        };
        self.effects.push(Effect::OpenStream { request, cursor: began.cursor, gap: began.gap });
        self.counts.gaps += u64::from(began.gap);
        self.counts.delivered += began.missed.len() as u64;
        let feed = |(cursor, message)| Effect::Feed { message, cursor, requests: vec![request] };
        self.effects.extend(began.missed.into_iter().map(feed));
        let watch = Watch::Stream { channel: began.channel, place: began.place };
        let parked = Parked { journey, watch, sequel };
        if self.staff.is_open() {
            return Life::Parked(parked);
        }
        self.cancel_parked(request, parked, Reason::Stopping)
    }

    /// The alarm of a wait rang.
    pub(crate) fn wait_over(&mut self, request: RequestId, mut life: Parked) -> Life {
        life.journey.alarm = None;
        let outcome = match life.watch {
            Watch::Timer => Outcome::Elapsed,
            Watch::Next { channel, .. } | Watch::Stream { channel, .. } => {
                Outcome::TimedOut { cursor: self.channels.cursor(channel) }
            }
        };
        self.wake(request, life, outcome)
    }

    pub(crate) fn wake(&mut self, request: RequestId, life: Parked, outcome: Outcome) -> Life {
        self.unwatch(&life);
        let (mut journey, sequel) = life.wake(self.now);
        if let Some(alarm) = journey.alarm.take() {
            self.timers.clear(alarm);
        }
        self.follow(request, journey, sequel, outcome)
    }

    /// Nobody watches for it any more. Its alarm is cleared by whoever ends the wait.
    pub(crate) fn unwatch(&mut self, life: &Parked) {
        match life.watch {
            Watch::Timer => {}
            Watch::Next { channel, place } => self.channels.leave_next(self.now, channel, place),
            Watch::Stream { channel, place } => self.channels.leave_stream(self.now, channel, place),
        }
        self.leave_coroutine(life.sequel);
    }

    fn leave_coroutine(&mut self, sequel: Sequel) {
        if let Sequel::Await { worker, place } = sequel {
            self.holder(worker).awaiting.remove(place);
            self.staff.attention |= self.holder(worker).stage != crate::worker::Stage::Ready;
        }
    }

    /// The wait is over before it began.
    fn go_on(&mut self, request: RequestId, journey: Journey, sequel: Sequel, outcome: Outcome) -> Life {
        self.leave_coroutine(sequel);
        self.follow(request, journey, sequel, outcome)
    }

    fn wait_refused(&mut self, request: RequestId, journey: Journey, sequel: Sequel, refusal: Refusal) -> Life {
        if matches!(sequel, Sequel::Await { .. }) {
            return self.go_on(request, journey, sequel, Outcome::Refused { refusal });
        }
        self.refuse(request, refusal);
        self.done(request, journey)
    }

    /// What comes after the wait. A message that is the answer has been told by whoever published it.
    fn follow(&mut self, request: RequestId, mut journey: Journey, sequel: Sequel, outcome: Outcome) -> Life {
        if let Outcome::Message { gap, .. } = outcome {
            self.counts.delivered += 1;
            self.counts.gaps += u64::from(gap);
        }
        match sequel {
            Sequel::Answer => {
                match outcome {
                    Outcome::Elapsed => self.effects.push(Effect::Release { request }),
                    Outcome::TimedOut { cursor } => self.effects.push(Effect::Empty { request, cursor }),
                    Outcome::Refused { refusal } => self.refuse(request, refusal),
                    Outcome::Message { .. } => {}
                }
                self.done(request, journey)
            }
            Sequel::Call => {
                if let Outcome::Message { message, .. } = outcome {
                    self.messages.hold(message);
                }
                self.start_spell(request, &mut journey);
                let work = Work::Call { outcome: Box::new(outcome) };
                Life::Routed(Routed { journey, place: self.queue.push_back(request), work })
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
    fn start_spell(&mut self, request: RequestId, journey: &mut Journey) {
        let patience = journey.patience().duration();
        journey.alarm = patience.map(|patience| self.timers.set(self.now + patience, Bell::Life(request)));
    }
}
