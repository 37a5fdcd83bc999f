//! Looking over the workers, one by one: whatever is due for them.
//!
//! Nothing here remembers steps. It looks at what is there and does what is missing, as often as it is called.

use std::time::Duration;

use crate::core::Core;
use crate::effect::{Effect, KillReason, WorkerEffect};
use crate::limits::{GRACES_COUNT_MAX, HOOKS_MAX, PAUSE_MAX, STUCK_MAX};
use crate::moment::Moment;
use crate::staff::Service;
use crate::workers::worker::{ROLES, Stage, Worker};
use parkade_model::{Role, WorkerId};

impl Core {
    pub(crate) fn tend(&mut self) {
        self.staff.attention = false;
        self.forgive_a_pause();
        for worker in self.roster.ids() {
            self.tend_worker(worker);
        }
        match self.staff.service {
            Service::Open => {
                self.tend_reload();
                for role in ROLES {
                    self.tend_recycling(role);
                    self.fill(role);
                }
                self.refuse_without_application();
            }
            Service::Draining { .. } | Service::Ending(_) | Service::Ended => self.tend_the_end(),
        }
        self.staff.due = self.staff_due();
    }

    fn tend_worker(&mut self, id: WorkerId) {
        let (now, haunting) = (self.cx.now, self.haunting());
        let worker = self.holder(id);
        match worker.stage {
            Stage::Starting { until } if until <= now => self.kill(id, KillReason::StartedTooSlowly),
            Stage::Draining { since, .. } if may_go(worker, now, since, haunting) => self.dismiss(id),
            Stage::Draining { until, .. } if until <= now => self.drained_for_too_long(id),
            Stage::Leaving { until } if until <= now => self.kill(id, KillReason::GraceOver),
            Stage::Ready | Stage::Draining { .. } if worker.is_concurrent() => self.tend_pings(id),
            Stage::Starting { .. }
            | Stage::Ready
            | Stage::Draining { .. }
            | Stage::Leaving { .. }
            | Stage::Killed(_) => {}
        }
    }

    fn tend_pings(&mut self, id: WorkerId) {
        let (now, stuck_after) = (self.cx.now, self.cx.config.stuck_after);
        let worker = self.holder(id);
        let Some(sent) = worker.ping.sent else {
            if worker.ping.next <= now {
                self.ping(id);
            }
            return;
        };
        if worker.held_up.is_some() {
            return;
        }
        let ping = &mut worker.ping;
        if now - sent >= stuck_after && !ping.dumped {
            ping.dumped = true;
            self.cx.effects.push(Effect::Worker(WorkerEffect::DumpStack { worker: id, why: KillReason::Stuck }));
        }
        if now - sent >= STUCK_MAX.max(stuck_after) {
            self.kill(id, KillReason::Stuck);
        }
    }

    pub(crate) fn dismiss(&mut self, id: WorkerId) {
        self.holder(id).stage = Stage::Leaving { until: self.cx.now + HOOKS_MAX };
        self.cx.effects.push(Effect::Worker(WorkerEffect::DismissWorker { worker: id }));
    }

    pub(crate) fn start_worker(&mut self, generation: u32, role: Role) {
        let worker = self.roster.mint();
        self.roster.add(Worker::new(worker, generation, role, self.cx.now, self.cx.now + self.cx.config.start_timeout));
        self.cx.counts.workers_started += 1;
        self.cx.effects.push(Effect::Worker(WorkerEffect::StartWorker { worker }));
    }

    pub(crate) fn drain_worker(&mut self, id: WorkerId, within: Duration) {
        self.holder(id).stage = Stage::Draining { since: self.cx.now, until: self.cx.now + within };
        self.cx.effects.push(Effect::Worker(WorkerEffect::DrainWorker { worker: id, within }));
        self.staff.attention = true;
    }

    /// The core itself did not run for a while (`SIGSTOP`, suspend): what came meanwhile is unread, so nobody was silent or slow.
    fn forgive_a_pause(&mut self) {
        if self.staff.due.is_none_or(|due| self.cx.now - due < PAUSE_MAX) {
            return;
        }
        for worker in self.roster.iter_mut() {
            worker.ping.sent = worker.ping.sent.map(|_| self.cx.now);
            if let Stage::Starting { until } = &mut worker.stage {
                *until = (*until).max(self.cx.now + PAUSE_MAX);
            }
        }
    }

    /// So long a draining worker that holds nothing but ghosts waits for them.
    pub(crate) fn haunting(&self) -> Duration {
        self.cx.config.kill_grace * GRACES_COUNT_MAX
    }

    fn staff_due(&self) -> Option<Moment> {
        let workers = self.roster.iter().filter_map(|worker| self.worker_due(worker));
        let service = match self.staff.service {
            Service::Open => self.fill_due(),
            Service::Draining { until, .. } => Some(self.fill_due().map_or(until, |due| due.min(until))),
            Service::Ending(_) => self.waits.queries.end_due(self.cx.now),
            Service::Ended => None,
        };
        workers.chain(service).chain(self.haunted_end_due()).min()
    }

    fn worker_due(&self, worker: &Worker) -> Option<Moment> {
        let ping = || self.ping_due(worker).filter(|_| worker.is_concurrent());
        match worker.stage {
            Stage::Starting { until } | Stage::Leaving { until } => Some(until),
            Stage::Ready => [ping(), self.recycling_due(worker)].into_iter().flatten().min(),
            Stage::Draining { since, until } => {
                let ghosts_over = (!worker.is_empty() && worker.is_haunted_only()).then(|| since + self.haunting());
                [ping(), ghosts_over, Some(until)].into_iter().flatten().min()
            }
            Stage::Killed(_) => None,
        }
    }

    fn ping_due(&self, worker: &Worker) -> Option<Moment> {
        match worker.ping.sent {
            None => Some(worker.ping.next),
            Some(_) if worker.held_up.is_some() => None,
            Some(sent) if !worker.ping.dumped => Some(sent + self.cx.config.stuck_after),
            Some(sent) => Some(sent + STUCK_MAX.max(self.cx.config.stuck_after)),
        }
    }
}

/// Whether a worker that drains has nothing left to do, or nothing but what nobody waits for.
pub(crate) fn may_go(worker: &Worker, now: Moment, since: Moment, haunting: Duration) -> bool {
    worker.is_empty() || now - since >= haunting && worker.is_haunted_only()
}
