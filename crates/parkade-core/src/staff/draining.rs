//! The end of the server: politely within its grace, then at once.

use std::time::Duration;

use crate::core::Core;
use crate::effect::{Effect, ExitReason, KillReason, ServerEffect, WorkerEffect};
use crate::life::State;
use crate::life::machine::Happening;
use crate::moment::Moment;
use crate::staff::Service;
use crate::staff::tending::may_go;
use crate::workers::worker::{ROLES, Stage, Worker};
use parkade_model::{Reason, RequestId, Role, WorkerId};

impl Core {
    /// SIGTERM. Workers hear of it before anybody else does; a second one can only shorten the grace.
    pub(crate) fn drain(&mut self, grace: Duration) {
        self.staff.attention = true;
        match &mut self.staff.service {
            Service::Open => {}
            Service::Draining { since, until } => {
                *until = (*until).min(self.cx.now + grace);
                *since = (*since).max(*until - grace);
                return;
            }
            Service::Ending(_) if grace.is_zero() => {
                self.ids_of(|_| true).into_iter().for_each(|worker| self.kill(worker, KillReason::GraceOver));
                return;
            }
            Service::Ending(_) | Service::Ended => return,
        }
        self.staff.service = Service::Draining { since: self.cx.now, until: self.cx.now + grace };
        self.cx.effects.push(Effect::Server(ServerEffect::StopAccepting));
        self.stop_reloading();
        for worker in self.ids_of(Worker::is_at_work) {
            self.cx.effects.push(Effect::Worker(WorkerEffect::DrainWorker { worker, within: grace }));
        }
        self.drain_waits();
        self.hand_back_waiting();
        let over = self.cx.now + grace.min(self.cx.config.query_grace);
        self.waits.queries.stop_at(&mut self.cx, over);
    }

    /// New code is not wanted any more.
    fn stop_reloading(&mut self) {
        let Some(reload) = self.staff.reload.take() else { return };
        for new in self.ids_of(|worker| worker.generation == reload.generation) {
            self.kill(new, KillReason::NotNeeded);
        }
    }

    pub(crate) fn tend_the_end(&mut self) {
        if let Service::Draining { since, until } = self.staff.service {
            if until <= self.cx.now {
                self.end_by_force(self.cx.config.kill_grace.min(until - since));
            } else {
                for role in ROLES {
                    self.dismiss_the_idle(role, since);
                    self.fill_for_the_queue(role);
                }
            }
        }
        if self.roster.is_empty() && self.lives.count() == 0 && self.waits.queries.have_ended(self.cx.now) {
            self.exit();
        }
    }

    /// Those that nobody will need: so their hooks run, whatever is still at work elsewhere.
    fn dismiss_the_idle(&mut self, role: Role, since: Moment) {
        let (now, haunting, mut needed) = (self.cx.now, self.haunting(), self.outside_of_workers(role));
        for id in self.ids_of(|worker| worker.role == role) {
            let worker = self.holder(id);
            match worker.stage {
                Stage::Starting { .. } if needed == 0 => self.kill(id, KillReason::NotNeeded),
                Stage::Ready if may_go(worker, now, since, haunting) && needed == 0 => self.dismiss(id),
                Stage::Ready if may_go(worker, now, since, haunting) => needed -= 1,
                Stage::Starting { .. }
                | Stage::Ready
                | Stage::Draining { .. }
                | Stage::Leaving { .. }
                | Stage::Killed(_) => {}
            }
        }
    }

    /// How many at most may come to a worker of this role, now or when their waits are over: what runs is in its worker, and nothing new is
    /// taken in.
    fn outside_of_workers(&self, role: Role) -> usize {
        let (all, runs) = (self.lives.count(), self.jobs.runs.len());
        let of_role = match role {
            Role::Requests => all.saturating_sub(runs),
            Role::Jobs => runs,
        };
        of_role.min(all - self.lives.count_of(State::Running))
    }

    fn fill_for_the_queue(&mut self, role: Role) {
        if self.fills(role) && self.staff.crew(role).back_off.holds_until(self.cx.now).is_none() {
            self.start_worker(self.staff.serving, role);
        }
    }

    /// The grace of a drain is over: the jobs that the worker is at are handed back, their code is told, and has a moment to end.
    pub(crate) fn drained_for_too_long(&mut self, worker: WorkerId) {
        if !self.stop_runs(worker, self.cx.config.kill_grace) {
            self.kill(worker, KillReason::GraceOver);
        }
    }

    /// Whether there were any.
    fn stop_runs(&mut self, worker: WorkerId, moment: Duration) -> bool {
        let runs = self.runs_in(worker);
        if runs.is_empty() || moment.is_zero() {
            return false;
        }
        for request in runs {
            self.turn(request, Happening::Cancelled(Reason::Stopping));
        }
        self.holder(worker).stage = Stage::Draining { since: self.cx.now, until: self.cx.now + moment };
        self.staff.attention = true;
        true
    }

    fn runs_in(&self, worker: WorkerId) -> Vec<RequestId> {
        let Some(holder) = self.roster.find(worker) else { return Vec::new() };
        let held = holder.held.values().filter(|held| held.ghost.is_none()).map(|held| held.request);
        held.chain(holder.awaiting.values()).filter(|request| self.jobs.is_run(*request)).collect()
    }

    /// The grace is over. A stop at once gives nobody a moment.
    fn end_by_force(&mut self, moment: Duration) {
        let mut told = self.ids_of(Worker::is_at_work);
        told.retain(|worker| self.stop_runs(*worker, moment));
        let idle =
            if moment.is_zero() { Vec::new() } else { self.ids_of(|worker| worker.is_at_work() && worker.is_empty()) };
        let left: Vec<RequestId> = self.lives.iter().map(|(request, _)| request).collect();
        let reason = match self.staff.verdict {
            Some(verdict) => verdict,
            None if left.is_empty() && told.is_empty() => ExitReason::Drained,
            None => ExitReason::GraceOver,
        };
        for request in left {
            self.turn(request, Happening::Cancelled(Reason::Stopping));
        }
        let why = if self.staff.verdict.is_some() { KillReason::NotNeeded } else { KillReason::GraceOver };
        // Its end is bounded.
        let has_a_moment = self.staff.verdict.is_some() || !moment.is_zero();
        let goes_itself = |worker: &Worker| has_a_moment && matches!(worker.stage, Stage::Leaving { .. });
        for worker in self.ids_of(|worker| !told.contains(&worker.id) && !goes_itself(worker)) {
            if idle.contains(&worker) { self.dismiss(worker) } else { self.kill(worker, why) }
        }
        self.waits.queries.bound_the_end(self.cx.now);
        self.staff.service = Service::Ending(reason);
    }

    fn exit(&mut self) {
        let reason = match self.staff.service {
            Service::Open | Service::Ended => return,
            Service::Draining { .. } => self.staff.verdict.unwrap_or(ExitReason::Drained),
            Service::Ending(reason) => reason,
        };
        self.staff.service = Service::Ended;
        self.waits.queries.forget_all(&mut self.cx);
        self.expect_no_jobs();
        self.tell_dropped();
        self.cx.effects.push(Effect::Server(ServerEffect::Exit { reason }));
    }

    /// When ghosts have had their time.
    pub(crate) fn haunted_end_due(&self) -> Option<Moment> {
        let Service::Draining { since, .. } = self.staff.service else { return None };
        let is_haunted =
            |worker: &Worker| worker.stage == Stage::Ready && !worker.is_empty() && worker.is_haunted_only();
        let due = Some(since + self.haunting()).filter(|due| *due > self.cx.now);
        due.filter(|_| self.roster.iter().any(is_haunted))
    }
}
