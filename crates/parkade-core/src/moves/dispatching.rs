//! From the queue to a worker.

use crate::core::Core;
use crate::effect::{Effect, Reason};
use crate::id::{RequestId, WorkerId};
use crate::life::machine::Happening;
use crate::life::{Life, Routed, Running, State, Turn, Work};
use crate::structures::chain::Place;

impl Core {
    /// Gives the queued requests to workers, then the jobs that wait, each in their order, as long as there is a worker for the first.
    pub(crate) fn dispatch(&mut self) {
        self.dispatch_requests();
        self.dispatch_jobs();
    }

    fn dispatch_requests(&mut self) {
        while let Some(request) = self.queue.first() {
            if self.lives.count_of(State::Running) >= self.config.running_count_max {
                return;
            }
            let Some(Life::Routed(life)) = self.lives.life(request) else { return };
            let table = life.work.table();
            let is_run = self.jobs.is_run(request);
            let Some(worker) = self.roster.pick(self.now, self.staff.serving, table, is_run) else { return };
            let happening = match worker.table() {
                Some(other) if table.is_some_and(|table| table != other) => {
                    Happening::Unrouted { table: other, turn: Turn::Next }
                }
                Some(_) | None => Happening::Given(worker.id),
            };
            self.turn(request, happening);
        }
    }

    fn dispatch_jobs(&mut self) {
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

    /// Leaves the queue that it stands in: runs of jobs have one of their own.
    pub(crate) fn leave_queue(&mut self, life: &Routed) {
        match life.work {
            Work::Job { .. } => self.jobs.waiting.remove(life.place),
            Work::Handler { .. } | Work::Fallback { .. } | Work::Call { .. } | Work::Coroutine => {
                self.queue.remove(life.place)
            }
        };
    }

    pub(crate) fn give(&mut self, request: RequestId, mut life: Routed, worker: WorkerId) -> Life {
        self.leave_queue(&life);
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
        let holder = self.holder(worker);
        let occupies = work.occupies(holder.is_concurrent());
        holder.hold(now, request, occupies, is_job)
    }

    /// Its worker is gone and had not touched it: it is the next again, for another worker. A job whose server stops is another server's.
    pub(crate) fn take_back(&mut self, request: RequestId, mut life: Running) -> Life {
        let place = if matches!(life.work, Work::Job { .. }) {
            self.silence(&mut life.journey);
            if !self.staff.is_open() {
                return self.cancelled(request, life.close(self.now).0, Reason::Stopping);
            }
            self.jobs.waiting.push_front(request)
        } else {
            self.queue.push_front(request)
        };
        Life::Routed(life.return_to(place, self.now))
    }
}
