//! From the queue to a worker.

use crate::core::Core;
use crate::effect::{Effect, WorkerEffect};
use crate::life::happening::Happening;
use crate::life::{Bell, Life, Routed, Running, State, Turn, Work};
use crate::moment::Moment;
use crate::structures::chain::Chain;
use parkade_model::{Reason, RequestId, Role, WorkerId};

impl Core {
    /// Gives workers of requests what is queued, and workers of jobs what runs go on with, then the jobs that wait, each in their order, as long as
    /// there is a worker for the first.
    pub(crate) fn dispatch(&mut self) {
        while self.dispatch_first(Role::Requests, self.queue.firsts()) {}
        if !(self.jobs.resuming.is_empty() && self.jobs.waiting.is_empty()) {
            self.dispatch_runs();
        }
    }

    fn dispatch_runs(&mut self) {
        if !self.fleet.runs_jobs(&self.cx.config) {
            self.hand_back_resuming();
            return self.hand_back_waiting();
        }
        if self.jobs_put_off(self.cx.now).is_some() {
            // Others may begin them meanwhile, and have their places in queues.
            return self.hand_back_waiting();
        }
        while self.dispatch_first(Role::Jobs, self.jobs.resuming.firsts())
            || self.dispatch_first(Role::Jobs, self.jobs.waiting.firsts())
        {}
    }

    /// Whether one of them left its queue: the one that has waited longer, if there is a worker for it.
    fn dispatch_first(&mut self, role: Role, firsts: [Option<RequestId>; 2]) -> bool {
        let [one, other] = self.in_order(firsts);
        self.dispatch_one(role, one) || self.dispatch_one(role, other)
    }

    fn in_order(&self, firsts: [Option<RequestId>; 2]) -> [Option<RequestId>; 2] {
        match firsts {
            [Some(one), Some(other)] if self.queued_since(other) < self.queued_since(one) => [Some(other), Some(one)],
            _ => firsts,
        }
    }

    pub(crate) fn queued_since(&self, request: RequestId) -> Option<Moment> {
        match self.lives.life(request) {
            Some(Life::Routed(life)) => Some(life.journey.since()),
            _ => None,
        }
    }

    fn dispatch_one(&mut self, role: Role, request: Option<RequestId>) -> bool {
        let Some(request) = request.filter(|_| self.may_run_another(role)) else { return false };
        let Some(Life::Routed(life)) = self.lives.life(request) else { return false };
        let table = life.work.table();
        let Some(candidate) = self.fleet.pick(self.cx.now, role, &life.work) else { return false };
        let happening = match candidate.table {
            Some(other) if table.is_some_and(|table| table != other) => {
                Happening::Unrouted { table: other, turn: Turn::Next }
            }
            Some(_) | None => Happening::Given(candidate.worker),
        };
        self.turn(request, happening);
        true
    }

    /// The bound holds for requests and for runs of jobs apart. They are told apart only when both together have reached it.
    fn may_run_another(&self, role: Role) -> bool {
        let (running, most) = (self.lives.count_of(State::Running), self.cx.config.running_count_max);
        if running < most {
            return true;
        }
        let is_running = |request: &&RequestId| self.lives.state(**request) == Some(State::Running);
        let runs = self.jobs.runs.keys().filter(is_running).count();
        match role {
            Role::Requests => running - runs < most,
            Role::Jobs => runs < most,
        }
    }

    /// Runs of jobs queue apart, for workers of their own; one that has begun goes before one that has not.
    pub(crate) fn queue_of(&mut self, request: RequestId, work: &Work) -> &mut Chain<RequestId> {
        match work {
            Work::Job { .. } => self.jobs.waiting.line(work.is_coroutine()),
            Work::Call { .. } if self.jobs.is_run(request) => self.jobs.resuming.line(work.is_coroutine()),
            Work::Handler { .. } | Work::Fallback { .. } | Work::Call { .. } | Work::Coroutine => {
                self.queue.line(work.is_coroutine())
            }
        }
    }

    pub(crate) fn leave_queue(&mut self, request: RequestId, life: &Routed) {
        self.queue_of(request, &life.work).remove(life.place);
    }

    pub(crate) fn give(&mut self, request: RequestId, mut life: Routed, worker: WorkerId) -> Life {
        self.leave_queue(request, &life);
        let is_run = self.jobs.is_run(request);
        if !is_run {
            self.fleet.note_start(self.cx.now, life.work.is_coroutine());
        }
        self.cx.effects.push(match &life.work {
            Work::Call { outcome, .. } => Effect::Worker(WorkerEffect::Call { request, worker, outcome: **outcome }),
            Work::Job { .. } => Effect::Worker(WorkerEffect::RunJob { request, worker }),
            work @ (Work::Handler { .. } | Work::Fallback { .. } | Work::Coroutine) => {
                Effect::Worker(WorkerEffect::Assign { request, worker, route: work.route() })
            }
        });
        let assignment = self.fleet.assign(self.cx.now, worker, request, &life.work);
        if is_run && assignment.has_begun {
            self.start_spell(request, &mut life.journey);
        }
        Life::Running(life.give(worker, assignment.place, self.cx.now))
    }

    /// Whatever this worker may begin by now has begun.
    pub(crate) fn begin_next(&mut self, worker: WorkerId) {
        while let Some(run) = self.fleet.begin_next(self.cx.now, worker) {
            self.run_began(run);
        }
    }

    /// The time of a run begins with its code, after a wait, too: for how long it queued, or was sent ahead, is not its fault.
    pub(crate) fn run_began(&mut self, request: RequestId) {
        let Some(Life::Running(Running { journey, .. })) = self.lives.life(request) else { return };
        if let (None, Some(patience)) = (journey.alarm, journey.patience().duration()) {
            let alarm = self.cx.timers.set(self.cx.now + patience, Bell::Life(request));
            self.lives.running_mut(request).expect("it runs").journey.alarm = Some(alarm);
        }
    }

    /// Its worker is gone and had not touched it: it is the next again, for another worker. A job whose server stops is another server's.
    pub(crate) fn take_back(&mut self, request: RequestId, life: Running) -> Life {
        if matches!(life.work, Work::Job { .. }) && !self.fleet.is_open() {
            return self.cancelled(request, life.close(self.cx.now).0, Reason::Stopping);
        }
        let place = self.queue_of(request, &life.work).push_front(request);
        Life::Routed(life.return_to(place, self.cx.now))
    }
}
