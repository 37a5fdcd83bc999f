//! How requests end: done, or on the one path for everything else, cancelled for a reason.

use std::time::Duration;

use crate::chain::Place;
use crate::core::Core;
use crate::effect::{Effect, Ending, KillReason, Reason, Refusal};
use crate::id::{RequestId, WorkerId};
use crate::journey::Journey;
use crate::life::{Accepted, Bell, Cancelled, Done, Life, Parked, Routed, Running, Sequel, Watch};
use crate::limits::GRACES_COUNT_MAX;
use crate::moment::Moment;
use crate::timers::Alarm;
use crate::worker::{Ghost, Stage, Worker};

impl Core {
    pub(crate) fn done(&mut self, request: RequestId, journey: Journey) -> Life {
        self.counts.answered += 1;
        self.forget(request, journey, Ending::Done);
        Life::Done(Done)
    }

    fn cancelled(&mut self, request: RequestId, journey: Journey, reason: Reason) -> Life {
        self.counts.cancelled.add(reason);
        self.forget(request, journey, Ending::Cancelled(reason));
        Life::Cancelled(Cancelled)
    }

    fn forget(&mut self, request: RequestId, journey: Journey, ending: Ending) {
        if let Some(alarm) = journey.alarm {
            self.timers.clear(alarm);
        }
        self.effects.push(Effect::Forget { request, ending, times: journey.times() });
    }

    pub(crate) fn refuse_accepted(&mut self, request: RequestId, life: Accepted, refusal: Refusal) -> Life {
        let journey = self.leave_unrouted(life);
        self.refuse(request, refusal);
        self.done(request, journey)
    }

    pub(crate) fn refuse_routed(&mut self, request: RequestId, life: Routed, refusal: Refusal) -> Life {
        self.queue.remove(life.place);
        self.let_go(life.work);
        self.refuse(request, refusal);
        self.done(request, life.journey)
    }

    pub(crate) fn accepted_too_long(&mut self, request: RequestId, mut life: Accepted) -> Life {
        life.journey.alarm = None;
        self.cancel_accepted(request, life, Reason::Deadline)
    }

    pub(crate) fn cancel_accepted(&mut self, request: RequestId, life: Accepted, reason: Reason) -> Life {
        let journey = self.leave_unrouted(life).queued(self.now);
        self.tell_client(request, reason, Refusal::QueuedTooLong);
        self.cancelled(request, journey, reason)
    }

    pub(crate) fn queued_too_long(&mut self, request: RequestId, mut life: Routed) -> Life {
        life.journey.alarm = None;
        self.cancel_routed(request, life, Reason::Deadline)
    }

    pub(crate) fn cancel_routed(&mut self, request: RequestId, life: Routed, reason: Reason) -> Life {
        self.queue.remove(life.place);
        self.let_go(life.work);
        self.tell_client(request, reason, Refusal::QueuedTooLong);
        self.cancelled(request, life.journey.queued(self.now), reason)
    }

    pub(crate) fn ran_too_long(&mut self, request: RequestId, mut life: Running) -> Life {
        life.journey.alarm = None;
        self.cancel_running(request, life, Reason::Deadline)
    }

    /// The client is told; the worker is told and holds a ghost until its closing frame, unless it is gone.
    pub(crate) fn cancel_running(&mut self, request: RequestId, mut life: Running, reason: Reason) -> Life {
        if let Some(refusal) = refusal_of(reason, Refusal::DeadlinePassed) {
            self.break_off(request, life.reply, refusal);
        }
        if reason != Reason::WorkerDied {
            self.effects.push(Effect::Cancel { request, worker: life.worker, reason });
            self.haunt(&mut life, reason);
        }
        self.let_go(life.work);
        self.cancelled(request, life.journey.ran(self.now), reason)
    }

    /// Ends the wait. A stream of messages that an operator or the server ends is ended politely: its client comes back elsewhere.
    pub(crate) fn cancel_parked(&mut self, request: RequestId, life: Parked, reason: Reason) -> Life {
        self.unwatch(&life);
        match (life.watch, reason) {
            (Watch::Stream { .. }, Reason::ClientLeft) => {}
            (Watch::Stream { .. }, Reason::Operator | Reason::Stopping | Reason::Deadline | Reason::WorkerDied) => {
                self.effects.push(Effect::EndStream { request });
            }
            (Watch::Timer | Watch::Next { .. }, _) => {
                self.tell_client(request, reason, Refusal::DeadlinePassed);
            }
        }
        if let Sequel::Await { worker, .. } = life.sequel
            && reason != Reason::WorkerDied
        {
            self.effects.push(Effect::Cancel { request, worker, reason });
        }
        let (journey, _) = life.wake(self.now);
        self.cancelled(request, journey, reason)
    }

    /// Leaves a ghost with the worker: its deadline holds on, or nobody would ever end what runs for nobody.
    fn haunt(&mut self, life: &mut Running, reason: Reason) {
        let bell = Bell::Ghost(life.worker, life.place);
        let mut ghost = Ghost { alarm: None, overdue: None };
        if let Some(alarm) = life.journey.alarm.take() {
            let due = self.timers.due(alarm);
            self.timers.clear(alarm);
            ghost.alarm = Some(self.timers.set(due, bell));
        }
        if reason == Reason::Deadline {
            ghost = self.overdue(life.worker, life.place);
        }
        self.holder(life.worker).held.value_mut(life.place).ghost = Some(ghost);
        self.staff.attention |= self.holder(life.worker).stage != Stage::Ready;
    }

    /// The deadline of what a worker holds has passed: from self.now it has the grace.
    fn overdue(&mut self, worker: WorkerId, place: Place) -> Ghost {
        let alarm = self.timers.set(self.now + self.config.kill_grace, Bell::Ghost(worker, place));
        let holder = self.holder(worker);
        if holder.is_concurrent() {
            self.ping(worker);
        } else if holder.touches(place) {
            self.effects.push(Effect::DumpStack { worker, why: KillReason::Deadline });
        }
        Ghost { alarm: Some(alarm), overdue: Some(self.now) }
    }

    /// The alarm of a ghost rang.
    pub(crate) fn ghost_due(&mut self, worker: WorkerId, place: Place) {
        let holder = self.holder(worker);
        let ghost = holder.held.value(place).ghost.expect("only ghosts have such alarms");
        let ghost = match ghost.overdue {
            None => self.overdue(worker, place),
            Some(since) => Ghost { alarm: self.judge(worker, place, since), ..ghost },
        };
        self.holder(worker).held.value_mut(place).ghost = Some(ghost);
    }

    /// Its grace is over as well. What stands in the way of others is killed; what only cleans up slowly beside them is not, for they would die with it:
    /// after ten graces its worker is replaced as one that is worn. Returns the alarm for the next look.
    fn judge(&mut self, worker: WorkerId, place: Place, since: Moment) -> Option<Alarm> {
        let (now, grace) = (self.now, self.config.kill_grace);
        let holder = self.holder(worker);
        let verdict = if holder.is_concurrent() {
            judge_loop(holder, now, since, grace)
        } else {
            judge_turn(holder, now, place, grace)
        };
        match verdict {
            Verdict::LookAgain(due) => return Some(self.timers.set(due, Bell::Ghost(worker, place))),
            Verdict::Worn => {
                holder.worn.at = Some(now);
                self.staff.attention = true;
            }
            Verdict::Stuck => self.kill(worker, KillReason::Deadline),
        }
        None
    }

    fn tell_client(&mut self, request: RequestId, reason: Reason, late: Refusal) {
        if let Some(refusal) = refusal_of(reason, late) {
            self.refuse(request, refusal);
        }
    }
}

/// What the client is told, if it is there.
fn refusal_of(reason: Reason, late: Refusal) -> Option<Refusal> {
    match reason {
        Reason::ClientLeft => None,
        Reason::Deadline => Some(late),
        Reason::Operator => Some(Refusal::CancelledByOperator),
        Reason::Stopping => Some(Refusal::Stopping),
        Reason::WorkerDied => Some(Refusal::WorkerDied),
    }
}

/// What is to be done about a worker that holds a cancelled request for too long.
enum Verdict {
    LookAgain(Moment),
    Worn,
    Stuck,
}

/// An event loop is stuck when it does not answer; a coroutine in it may take its time, within bounds.
fn judge_loop(worker: &Worker, now: Moment, since: Moment, grace: Duration) -> Verdict {
    if worker.ping.sent.is_some_and(|sent| now - sent >= grace) {
        Verdict::Stuck
    } else if now - since >= grace * GRACES_COUNT_MAX {
        Verdict::Worn
    } else {
        Verdict::LookAgain(now + grace)
    }
}

/// A worker that runs one at a time is stuck when this one has had its turn for the whole grace. Before its turn it is not to blame.
fn judge_turn(worker: &Worker, now: Moment, place: Place, grace: Duration) -> Verdict {
    if !worker.touches(place) {
        return Verdict::LookAgain(now + grace);
    }
    let over = worker.pace.since() + grace;
    if over > now { Verdict::LookAgain(over) } else { Verdict::Stuck }
}
