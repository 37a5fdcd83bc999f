//! From the queue to a worker.

use crate::core::Core;
use crate::effect::Effect;
use crate::id::{RequestId, WorkerId};
use crate::life::machine::Happening;
use crate::life::{Life, Routed, Running, State, Turn, Work};
use crate::structures::chain::Place;

impl Core {
    /// Gives the queued requests to workers, in their order, as long as there is a worker for the first.
    pub(crate) fn dispatch(&mut self) {
        while let Some(request) = self.queue.first() {
            if self.lives.count_of(State::Running) >= self.config.running_count_max {
                return;
            }
            let Some(Life::Routed(life)) = self.lives.life(request) else { return };
            let table = life.work.table();
            let Some(worker) = self.roster.pick(self.now, self.staff.serving, table) else { return };
            let happening = match worker.table() {
                Some(other) if table.is_some_and(|table| table != other) => {
                    Happening::Unrouted { table: other, turn: Turn::Next }
                }
                Some(_) | None => Happening::Given(worker.id),
            };
            self.turn(request, happening);
        }
    }

    pub(crate) fn give(&mut self, request: RequestId, life: Routed, worker: WorkerId) -> Life {
        self.queue.remove(life.place);
        self.effects.push(match &life.work {
            Work::Call { outcome } => Effect::Call { request, worker, outcome: **outcome },
            work @ (Work::Handler { .. } | Work::Fallback { .. } | Work::Coroutine) => {
                Effect::Assign { request, worker, route: work.route() }
            }
        });
        let place = self.entrust(worker, request, &life.work);
        Life::Running(life.give(worker, place, self.now))
    }

    /// The worker holds it from now on.
    pub(crate) fn entrust(&mut self, worker: WorkerId, request: RequestId, work: &Work) -> Place {
        let now = self.now;
        let holder = self.holder(worker);
        let occupies = work.occupies(holder.is_concurrent());
        holder.hold(now, request, occupies)
    }

    /// Its worker is gone and had not touched it: it is the next again, for another worker.
    pub(crate) fn take_back(&mut self, request: RequestId, life: Running) -> Life {
        Life::Routed(life.return_to(self.queue.push_front(request), self.now))
    }
}
