//! From the queue to a worker.

use crate::core::Core;
use crate::effect::{Effect, Reason};
use crate::id::{RequestId, WorkerId};
use crate::life::machine::Happening;
use crate::life::{Life, Routed, Running, State, Turn, Work};
use crate::structures::chain::{Chain, Place};
use crate::workers::worker::Role;

impl Core {
    /// Gives workers of requests what is queued, and workers of jobs what runs go on with, then the jobs that wait, each in their order, as long as
    /// there is a worker for the first.
    pub(crate) fn dispatch(&mut self) {
        while let Some(request) = self.queue.first()
            && self.dispatch_first(Role::Requests, request)
        {}
        if !(self.jobs.resuming.is_empty() && self.jobs.waiting.is_empty()) {
            self.dispatch_runs();
        }
    }

    fn dispatch_runs(&mut self) {
        if self.workers_wanted(Role::Jobs, self.staff.declared) == 0 {
            self.hand_back_resuming();
            return self.hand_back_waiting();
        }
        if self.jobs_put_off(self.now).is_some() {
            // Others may begin them meanwhile, and have their places in queues.
            return self.hand_back_waiting();
        }
        while let Some(run) = self.jobs.resuming.first().or_else(|| self.jobs.waiting.first())
            && self.dispatch_first(Role::Jobs, run)
        {}
    }

    /// Whether it left its queue.
    fn dispatch_first(&mut self, role: Role, request: RequestId) -> bool {
        if !self.may_run_another(role) {
            return false;
        }
        let Some(Life::Routed(life)) = self.lives.life(request) else { return false };
        let table = life.work.table();
        let Some(worker) = self.roster.pick(self.now, self.staff.serving, role, table) else { return false };
        let happening = match worker.table() {
            Some(other) if table.is_some_and(|table| table != other) => {
                Happening::Unrouted { table: other, turn: Turn::Next }
            }
            Some(_) | None => Happening::Given(worker.id),
        };
        self.turn(request, happening);
        true
    }

    /// The bound holds for requests and for runs of jobs apart. They are told apart only when both together have reached it.
    fn may_run_another(&self, role: Role) -> bool {
        let (running, most) = (self.lives.count_of(State::Running), self.config.running_count_max);
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
