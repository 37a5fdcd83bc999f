//! How requests end: done, or on the one path for everything else, cancelled for a reason.

use crate::core::Core;
use crate::effect::{Effect, ServerEffect, WorkerEffect};
use crate::fleet::Abandonment;
use crate::life::journey::Journey;
use crate::life::{Accepted, Cancelled, Done, Life, Routed, Running};
use parkade_model::{Ending, Reason, Refusal, RequestId};

impl Core {
    pub(crate) fn done(&mut self, request: RequestId, journey: Journey) -> Life {
        if !self.jobs.is_run(request) {
            self.cx.counts.answered += 1;
        }
        self.forget(request, journey, Ending::Done);
        Life::Done(Done)
    }

    pub(crate) fn cancelled(&mut self, request: RequestId, journey: Journey, reason: Reason) -> Life {
        if !self.jobs.is_run(request) {
            self.cx.counts.cancelled.add(reason);
        }
        self.forget(request, journey, Ending::Cancelled(reason));
        Life::Cancelled(Cancelled)
    }

    fn forget(&mut self, request: RequestId, journey: Journey, ending: Ending) {
        let (times, alarm) = journey.end();
        if let Some(alarm) = alarm {
            self.cx.timers.clear(alarm);
        }
        self.waits.forget(&mut self.cx, request);
        if let Some(run) = self.jobs.end_run(request) {
            self.end_run(request, &run, ending);
        }
        // The last one ends a drain.
        self.fleet.note_end();
        self.cx.effects.push(Effect::Server(ServerEffect::Forget { request, ending, times }));
    }

    pub(crate) fn refuse_accepted(&mut self, request: RequestId, life: Accepted, refusal: Refusal) -> Life {
        let journey = self.leave_unrouted(life);
        self.refuse(request, refusal);
        self.done(request, journey)
    }

    pub(crate) fn refuse_routed(&mut self, request: RequestId, life: Routed, refusal: Refusal) -> Life {
        self.leave_queue(request, &life);
        self.let_go(life.work);
        self.refuse(request, refusal);
        self.done(request, life.journey)
    }

    pub(crate) fn accepted_too_long(&mut self, request: RequestId, mut life: Accepted) -> Life {
        life.journey.alarm = None;
        self.cancel_accepted(request, life, Reason::Deadline)
    }

    pub(crate) fn cancel_accepted(&mut self, request: RequestId, life: Accepted, reason: Reason) -> Life {
        let journey = self.leave_unrouted(life).queued(self.cx.now);
        self.tell_client(request, reason, Refusal::QueuedTooLong);
        self.cancelled(request, journey, reason)
    }

    pub(crate) fn queued_too_long(&mut self, request: RequestId, mut life: Routed) -> Life {
        life.journey.alarm = None;
        self.cancel_routed(request, life, Reason::Deadline)
    }

    pub(crate) fn cancel_routed(&mut self, request: RequestId, life: Routed, reason: Reason) -> Life {
        self.leave_queue(request, &life);
        self.let_go(life.work);
        self.tell_client(request, reason, Refusal::QueuedTooLong);
        self.cancelled(request, life.journey.queued(self.cx.now), reason)
    }

    pub(crate) fn ran_too_long(&mut self, request: RequestId, mut life: Running) -> Life {
        life.journey.alarm = None;
        self.cancel_running(request, life, Reason::Deadline)
    }

    /// The client is told; the worker is told and holds the stream until its closing frame, unless it is gone.
    pub(crate) fn cancel_running(&mut self, request: RequestId, mut life: Running, reason: Reason) -> Life {
        // It may have gone on a moment ago, in this very event: that must be told first.
        self.tell_resumed();
        if let Some(refusal) = refusal_of(reason, Refusal::DeadlinePassed) {
            self.break_off(request, life.reply, refusal);
        }
        if reason != Reason::WorkerDied {
            self.cx.effects.push(Effect::Worker(WorkerEffect::Cancel { request, worker: life.worker, reason }));
            self.abandon(request, &mut life, reason);
        }
        self.let_go(life.work);
        self.cancelled(request, life.journey.ran(self.cx.now), reason)
    }

    /// Nobody waits any more for what the worker holds: its deadline holds on there, and its place in a queue.
    pub(crate) fn abandon(&mut self, request: RequestId, life: &mut Running, reason: Reason) {
        let queue = self.jobs.keep_place(request);
        let (alarm, patience) = (life.journey.alarm.take(), life.journey.patience().duration());
        let left = Abandonment { reason, alarm, patience, queue };
        self.fleet.abandon(&mut self.cx, life.worker, life.place, &left);
    }

    fn tell_client(&mut self, request: RequestId, reason: Reason, late: Refusal) {
        if let Some(refusal) = refusal_of(reason, late) {
            self.refuse(request, refusal);
        }
    }
}

/// What the client is told, if it is there.
pub(crate) fn refusal_of(reason: Reason, late: Refusal) -> Option<Refusal> {
    match reason {
        Reason::ClientLeft => None,
        Reason::Deadline => Some(late),
        Reason::Operator => Some(Refusal::CancelledByOperator),
        Reason::Stopping => Some(Refusal::Stopping),
        Reason::WorkerDied => Some(Refusal::WorkerDied),
    }
}
