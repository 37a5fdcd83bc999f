//! Ghosts: cancelled requests that a worker still holds, and what happens when it does not let go.

use std::time::Duration;

use crate::core::Core;
use crate::effect::{Effect, KillReason, WorkerEffect};
use crate::life::{Bell, Running};
use crate::limits::GRACES_COUNT_MAX;
use crate::moment::Moment;
use crate::structures::chain::Place;
use crate::structures::timers::Alarm;
use crate::workers::worker::{Ghost, Held, Stage, Worker};
use parkade_model::{Reason, RequestId, WorkerId};

impl Core {
    /// Leaves a ghost with the worker: its deadline holds on, or nobody would ever end what runs for nobody.
    pub(crate) fn haunt(&mut self, request: RequestId, life: &mut Running, reason: Reason) {
        let bell = Bell::Ghost(life.worker, life.place);
        let mut ghost = Ghost { alarm: None, overdue: None, is_unshown: false, queue: self.jobs.keep_place(request) };
        let alarm = life.journey.alarm.take();
        let due = match alarm {
            Some(alarm) => Some(self.cx.timers.due(alarm)),
            None if reason == Reason::Deadline || self.holder(life.worker).has_begun(life.place) => None,
            // A run that has not begun has no alarm yet.
            None => life.journey.patience().duration().map(|patience| self.cx.now + patience),
        };
        if let Some(alarm) = alarm {
            self.cx.timers.clear(alarm);
        }
        ghost.alarm = due.map(|due| self.cx.timers.set(due, bell));
        if reason == Reason::Deadline {
            ghost = self.overdue(life.worker, life.place, ghost);
        }
        self.holder(life.worker).held.value_mut(life.place).ghost = Some(ghost);
        self.staff.attention |= self.holder(life.worker).stage != Stage::Ready;
    }

    /// The deadline of what a worker holds has passed: from now on it has the grace.
    fn overdue(&mut self, worker: WorkerId, place: Place, ghost: Ghost) -> Ghost {
        let (now, grace) = (self.cx.now, self.cx.config.kill_grace);
        // It may be one whose client does not read, and the worker at nothing, or at another: it lets go of such a one as soon as it is told.
        let is_doubtful = self.holder(worker).has_put_aside();
        if !is_doubtful {
            self.show(worker, place);
        }
        if self.holder(worker).is_concurrent() {
            self.ping(worker);
        }
        self.staff.attention = true;
        let due = if is_doubtful { now + grace / 2 } else { now + grace };
        let alarm = Some(self.cx.timers.set(due, Bell::Ghost(worker, place)));
        Ghost { alarm, overdue: Some(now), is_unshown: is_doubtful, ..ghost }
    }

    /// It is in the way: where its code stands.
    fn show(&mut self, worker: WorkerId, place: Place) {
        let holder = self.holder(worker);
        holder.overdue += u64::from(holder.held.value(place).occupies);
        // Many coroutines may pass their deadlines together: their one stack is shown once, until the loop turns again.
        let is_shown = holder.is_concurrent() && std::mem::replace(&mut holder.ping.dumped, true);
        if holder.is_at_work() && holder.has_begun(place) && !is_shown {
            self.cx.effects.push(Effect::Worker(WorkerEffect::DumpStack { worker, why: KillReason::Deadline }));
        }
    }

    /// The alarm of a ghost rang.
    pub(crate) fn ghost_due(&mut self, worker: WorkerId, place: Place) {
        let holder = self.holder(worker);
        let ghost = holder.held.value(place).ghost.expect("only ghosts have such alarms");
        let ghost = match ghost.overdue {
            None => self.overdue(worker, place, ghost),
            Some(since) if ghost.is_unshown => {
                self.show(worker, place);
                let alarm = self.cx.timers.set(since + self.cx.config.kill_grace, Bell::Ghost(worker, place));
                Ghost { alarm: Some(alarm), is_unshown: false, ..ghost }
            }
            Some(since) => Ghost { alarm: self.judge(worker, place, since), ..ghost },
        };
        self.holder(worker).held.value_mut(place).ghost = Some(ghost);
    }

    /// Its worker has let go of it, or is gone.
    pub(crate) fn lay(&mut self, ghost: Ghost) {
        if let Some(alarm) = ghost.alarm {
            self.cx.timers.clear(alarm);
        }
        if let Some(queue) = ghost.queue {
            self.jobs.leave(queue);
        }
    }

    /// Its grace is over as well. What stands in the way of others is killed; what only cleans up slowly beside them is not, for they would die with it:
    /// after ten graces its worker is replaced as one that is worn. It is judged by itself, whatever queues behind it. Returns the alarm for
    /// the next look.
    fn judge(&mut self, worker: WorkerId, place: Place, since: Moment) -> Option<Alarm> {
        let (now, grace) = (self.cx.now, self.cx.config.kill_grace);
        let holder = self.holder(worker);
        let Held { occupies, begun, .. } = *holder.held.value(place);
        let verdict = match begun {
            Some(began) if occupies => judge_turn(holder, now, began, grace),
            Some(_) => judge_loop(holder, now, since, grace),
            // Before its turn it is not to blame. A loop lets go of it at once, if it turns.
            None if holder.is_concurrent() => judge_loop(holder, now, since, grace),
            None => Verdict::LookAgain(now + grace),
        };
        let due = match verdict {
            Verdict::LookAgain(due) => due,
            Verdict::Worn => {
                holder.worn.at = Some(now);
                self.staff.attention = true;
                // Its loop may stand still after that as well.
                now + grace
            }
            Verdict::Stuck => {
                self.kill(worker, KillReason::Deadline);
                return None;
            }
        };
        Some(self.cx.timers.set(due, Bell::Ghost(worker, place)))
    }
}

/// What is to be done about a worker that holds a cancelled request for too long.
enum Verdict {
    LookAgain(Moment),
    Worn,
    Stuck,
}

/// An event loop is stuck when it does not answer, and somebody listens; a coroutine in it may take its time, within bounds.
fn judge_loop(worker: &Worker, now: Moment, since: Moment, grace: Duration) -> Verdict {
    if worker.held_up.is_none() && worker.ping.sent.is_some_and(|sent| now - sent >= grace) {
        Verdict::Stuck
    } else if now - since >= grace * GRACES_COUNT_MAX {
        Verdict::Worn
    } else {
        Verdict::LookAgain(now + grace)
    }
}

/// A worker, or the thread that a plain function has, is stuck when this one has had its turn for the whole grace.
fn judge_turn(worker: &Worker, now: Moment, began: Moment, grace: Duration) -> Verdict {
    // One that was put aside has had its turn only since another one ended.
    let turn = if worker.is_concurrent() { began } else { began.max(worker.pace.since()) };
    let over = turn + grace;
    if over > now { Verdict::LookAgain(over) } else { Verdict::Stuck }
}
