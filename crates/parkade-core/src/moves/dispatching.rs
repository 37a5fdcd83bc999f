//! From the queue to a worker.

use crate::core::Core;
use crate::effect::{Effect, Reason};
use crate::id::{RequestId, WorkerId};
use crate::life::machine::Happening;
use crate::life::{Life, Routed, Running, State, Turn, Work};
use crate::moment::Moment;
use crate::structures::chain::{Chain, Place};

impl Core {
    /// Gives workers the queued requests and what runs of jobs go on with, then the jobs that wait, each in their order, as long as there is a
    /// worker for the first.
    pub(crate) fn dispatch(&mut self) {
        while self.lives.count_of(State::Running) < self.config.running_count_max {
            let [one, other] = self.heads();
            if !(self.dispatch_queued(one) || self.dispatch_queued(other)) {
                break;
            }
        }
        self.dispatch_jobs();
    }

    /// The first request and the first run that goes on, the one that has waited longer before the other, so that neither starves. Each may
    /// find a worker that takes none of the other's kind.
    fn heads(&self) -> [Option<RequestId>; 2] {
        let heads = [self.queue.first(), self.jobs.resuming.first()];
        match heads.map(|head| self.queued_since(head)) {
            [Some(request), Some(run)] if run <= request => [heads[1], heads[0]],
            _ => heads,
        }
    }

    fn queued_since(&self, request: Option<RequestId>) -> Option<Moment> {
        match self.lives.life(request?) {
            Some(Life::Routed(life)) => Some(life.journey.since()),
            _ => None,
        }
    }

    /// Whether it left its queue.
    fn dispatch_queued(&mut self, request: Option<RequestId>) -> bool {
        let Some(request) = request else { return false };
        let Some(Life::Routed(life)) = self.lives.life(request) else { return false };
        let table = life.work.table();
        let is_run = self.jobs.is_run(request);
        let Some(worker) = self.roster.pick(self.now, self.staff.serving, table, is_run) else { return false };
        let happening = match worker.table() {
            Some(other) if table.is_some_and(|table| table != other) => {
                Happening::Unrouted { table: other, turn: Turn::Next }
            }
            Some(_) | None => Happening::Given(worker.id),
        };
        self.turn(request, happening);
        true
    }

    fn dispatch_jobs(&mut self) {
        if self.jobs.pull.are_put_off(self.now) {
            // Others may begin them meanwhile, and have their places in queues.
            return self.hand_back_waiting();
        }
        while let Some(request) = self.jobs.waiting.first() {
            if self.lives.count_of(State::Running) >= self.config.running_count_max {
                return;
            }
            let Some(Life::Routed(Routed { work: Work::Job { concurrent }, .. })) = self.lives.life(request) else {
                return;
            };
            let picked =
                self.roster.pick_for_a_job(self.now, self.staff.serving, *concurrent, self.jobs.pace.is_quick());
            let Some(worker) = picked else { return };
            let happening = Happening::Given(worker.id);
            self.turn(request, happening);
        }
    }

    /// Runs of jobs queue apart: workers of jobs take no requests, and a run that has begun goes before one that has not.
    pub(crate) fn queue_of(&mut self, request: RequestId, work: &Work) -> &mut Chain<RequestId> {
        match work {
            Work::Job { .. } => &mut self.jobs.waiting,
            Work::Call { .. } if self.jobs.is_run(request) => &mut self.jobs.resuming,
            Work::Handler { .. } | Work::Fallback { .. } | Work::Call { .. } | Work::Coroutine => &mut self.queue,
        }
    }

    pub(crate) fn leave_queue(&mut self, request: RequestId, life: &Routed) {
        self.queue_of(request, &life.work).remove(life.place);
    }

    pub(crate) fn give(&mut self, request: RequestId, mut life: Routed, worker: WorkerId) -> Life {
        self.leave_queue(request, &life);
        if !self.jobs.is_run(request) {
            self.queue_rate.started(self.now);
        }
        if matches!(life.work, Work::Job { .. }) {
            // Its time begins now: that it was claimed early is not its fault.
            self.start_spell(request, &mut life.journey);
        }
        self.effects.push(match &life.work {
            Work::Call { outcome } => Effect::Call { request, worker, outcome: **outcome },
            Work::Job { .. } => Effect::RunJob { request, worker },
            work @ (Work::Handler { .. } | Work::Fallback { .. } | Work::Coroutine) => {
                Effect::Assign { request, worker, route: work.route() }
            }
        });
        let place = self.entrust(worker, request, &life.work);
        Life::Running(life.give(worker, place, self.now))
    }

    /// The worker holds it from now on.
    pub(crate) fn entrust(&mut self, worker: WorkerId, request: RequestId, work: &Work) -> Place {
        let (now, is_job) = (self.now, self.jobs.is_run(request));
        self.holder(worker).hold(now, request, work, is_job)
    }

    /// Its worker is gone and had not touched it: it is the next again, for another worker. A job whose server stops is another server's.
    pub(crate) fn take_back(&mut self, request: RequestId, mut life: Running) -> Life {
        if matches!(life.work, Work::Job { .. }) {
            self.silence(&mut life.journey);
            if !self.staff.is_open() {
                return self.cancelled(request, life.close(self.now).0, Reason::Stopping);
            }
        }
        let place = self.queue_of(request, &life.work).push_front(request);
        Life::Routed(life.return_to(place, self.now))
    }
}
