//! As many workers as there should be: fresh ones for the dead, for the worn, and for new code.

use crate::core::Core;
use crate::effect::{Effect, KillReason, ReloadOutcome, ServerEffect};
use crate::life::machine::Happening;
use crate::limits::RECYCLE_GRACE;
use crate::moment::Moment;
use crate::staff::{Crew, Fate, Reload};
use crate::workers::worker::{ROLES, Stage, Worker};
use parkade_model::{DeclaredJobs, Refusal, RequestId, Role, WorkerId};

impl Core {
    /// SIGHUP. One that comes during another is remembered: what changed meanwhile is to be loaded too.
    pub(crate) fn reload(&mut self) {
        if !self.staff.is_open() {
            return;
        }
        self.staff.attention = true;
        if let Some(reload) = &mut self.staff.reload {
            reload.again = true;
            return;
        }
        self.staff.minted += 1;
        let (generation, declared) = (self.staff.minted, DeclaredJobs::default());
        self.staff.reload = Some(Reload { generation, fate: Fate::Open, declared, again: false });
    }

    /// One worker of the new code first, as a probe, which tells whether there are jobs; then the others; when all are ready, the old ones drain.
    pub(crate) fn tend_reload(&mut self) {
        let Some(reload) = self.staff.reload else { return };
        let ready = ROLES.map(|role| self.ready_of(reload.generation, role));
        let wanted = ROLES.map(|role| self.workers_wanted(role, reload.declared));
        let is_starting = |role| {
            self.count(|worker| worker.generation == reload.generation && worker.role == role && is_starting(worker))
        };
        let starting = ROLES.map(is_starting);
        if reload.fate == Fate::Failed {
            self.give_up(reload);
        } else if ready[0] == 0 {
            (starting[0]..1).for_each(|_| self.start_worker(reload.generation, Role::Requests));
        } else if ready.iter().zip(wanted).all(|(ready, wanted)| *ready >= wanted) {
            self.switch(reload);
        } else {
            for (nth, role) in ROLES.into_iter().enumerate() {
                (ready[nth] + starting[nth]..wanted[nth]).for_each(|_| self.start_worker(reload.generation, role));
            }
        }
    }

    /// Whether the new code serves as soon as this worker of it, which declares these jobs, is ready.
    pub(crate) fn is_the_last_awaited(&self, starting: &Worker, declared: DeclaredJobs) -> bool {
        let generation = starting.generation;
        let of_it = |reload: &&Reload| reload.generation == generation && reload.fate == Fate::Open;
        let Some(reload) = self.staff.reload.as_ref().filter(of_it) else { return false };
        let has_all = |role| {
            let ready = self.ready_of(generation, role) + usize::from(starting.role == role);
            ready >= self.workers_wanted(role, reload.declared.or(declared))
        };
        self.staff.is_open() && ROLES.into_iter().all(has_all)
    }

    fn ready_of(&self, generation: u32, role: Role) -> usize {
        self.count(|worker| worker.generation == generation && worker.role == role && worker.stage == Stage::Ready)
    }

    fn switch(&mut self, reload: Reload) {
        self.staff.serving = reload.generation;
        self.queue_rates.renewed(self.cx.now);
        self.staff.starts = crate::staff::Starts::Works;
        self.staff.declared = reload.declared;
        for role in ROLES {
            *self.staff.crew_mut(role) = Crew::default();
        }
        self.cx.counts.reloads_done += 1;
        self.reloaded(reload, ReloadOutcome::Done);
        for old in self.ids_of(|worker| worker.generation != reload.generation) {
            match self.holder(old).stage {
                Stage::Starting { .. } => self.kill(old, KillReason::NotNeeded),
                Stage::Ready => self.drain_worker(old, self.cx.config.reload_grace),
                Stage::Draining { .. } | Stage::Leaving { .. } | Stage::Killed(_) => {}
            }
        }
        let fresh =
            self.roster.iter().find(|worker| worker.generation == reload.generation && worker.stage == Stage::Ready);
        let table = fresh.and_then(Worker::table).expect("a reload is done when its workers are ready");
        if self.staff.make_current(table) {
            self.reroute(table);
        }
    }

    fn give_up(&mut self, reload: Reload) {
        for new in self.ids_of(|worker| worker.generation == reload.generation) {
            match self.holder(new).stage {
                Stage::Starting { .. } | Stage::Ready => self.kill(new, KillReason::NotNeeded),
                Stage::Draining { .. } | Stage::Leaving { .. } | Stage::Killed(_) => {}
            }
        }
        self.cx.counts.reloads_given_up += 1;
        self.reloaded(reload, ReloadOutcome::GivenUp);
    }

    fn reloaded(&mut self, reload: Reload, outcome: ReloadOutcome) {
        self.cx.effects.push(Effect::Server(ServerEffect::Reloaded { outcome }));
        self.staff.reload = None;
        self.staff.last_reload = Some(outcome);
        if reload.again {
            self.reload();
        }
    }

    /// One worn worker of a role at a time: it works on until there are enough without it, then it drains.
    pub(crate) fn tend_recycling(&mut self, role: Role) {
        let serving = self.staff.serving;
        let here = |old: &WorkerId| self.roster.find(*old).is_some_and(|worker| worker.generation == serving);
        let mut recycling = self.staff.crew(role).recycling.filter(here);
        let is_ready =
            |worker: &Worker| worker.generation == serving && worker.role == role && worker.stage == Stage::Ready;
        if recycling.is_none() && self.staff.reload.is_none() {
            let worn = |worker: &&Worker| is_ready(worker) && worker.is_worn(self.cx.now);
            recycling = self.roster.iter().find(worn).map(|worker| worker.id);
        }
        self.staff.crew_mut(role).recycling = recycling;
        let Some(old) = recycling else { return };
        let others = self.count(|worker| is_ready(worker) && worker.id != old);
        if self.holder(old).stage == Stage::Ready && others >= self.workers_wanted(role, self.staff.declared) {
            self.cx.counts.workers_recycled += 1;
            self.drain_worker(old, RECYCLE_GRACE);
        }
    }

    /// When the worker will be worn by age, unless another one is being replaced: its end brings the next look.
    pub(crate) fn recycling_due(&self, worker: &Worker) -> Option<Moment> {
        let is_replaced = self.staff.crew(worker.role).recycling.is_some() || self.staff.reload.is_some();
        worker.worn.at.filter(|_| self.staff.is_open() && !is_replaced)
    }

    /// Starts what is missing, unless workers keep dying.
    pub(crate) fn fill(&mut self, role: Role) {
        if self.staff.crew(role).back_off.holds_until(self.cx.now).is_none() {
            (0..self.missing(role)).for_each(|_| self.start_worker(self.staff.serving, role));
        }
    }

    pub(crate) fn fill_due(&self) -> Option<Moment> {
        let missing = ROLES.into_iter().filter(|role| self.missing(*role) > 0 && self.fills(*role));
        missing.filter_map(|role| self.staff.crew(role).back_off.holds_until(self.cx.now)).min()
    }

    fn missing(&self, role: Role) -> usize {
        self.workers_wanted(role, self.staff.declared).saturating_sub(self.present(role))
    }

    /// While the server drains, a fresh worker is wanted only when somebody is queued and no other is there.
    pub(crate) fn fills(&self, role: Role) -> bool {
        let nobody_is_queued = match role {
            Role::Requests => self.queue.is_empty() && self.unrouted.is_empty(),
            Role::Jobs => self.jobs.resuming.is_empty(),
        };
        self.staff.is_open() || self.present(role) == 0 && !nobody_is_queued
    }

    /// Workers of the serving code that are there or coming, without the one that is being replaced.
    fn present(&self, role: Role) -> usize {
        self.count(|worker| self.comes(worker, role) && Some(worker.id) != self.staff.crew(role).recycling)
    }

    /// Whether this is a worker of the serving code that is there or coming.
    pub(crate) fn comes(&self, worker: &Worker, role: Role) -> bool {
        let is_meant = worker.generation == self.staff.serving && worker.role == role;
        is_meant && (worker.stage == Stage::Ready || is_starting(worker))
    }

    pub(crate) fn lacks_an_application(&self) -> bool {
        self.staff.starts.has_failed() && !self.roster.iter().any(|worker| self.comes(worker, Role::Requests))
    }

    /// Nobody will take what is queued: better told at once than at the deadline.
    pub(crate) fn refuse_without_application(&mut self) {
        if !self.lacks_an_application() {
            return;
        }
        let waiting: Vec<RequestId> = self.unrouted.values().chain(self.queue.values()).collect();
        for request in waiting {
            self.turn(request, Happening::Refused(Refusal::NoApplication));
        }
    }

    pub(crate) fn workers_wanted(&self, role: Role, declared: DeclaredJobs) -> usize {
        match role {
            Role::Requests => self.cx.config.workers as usize,
            Role::Jobs if declared.any() => self.cx.config.job_workers as usize,
            Role::Jobs => 0,
        }
    }

    pub(crate) fn count(&self, counts: impl Fn(&Worker) -> bool) -> usize {
        self.roster.iter().filter(|worker| counts(worker)).count()
    }

    pub(crate) fn ids_of(&self, counts: impl Fn(&Worker) -> bool) -> Vec<WorkerId> {
        self.roster.iter().filter(|worker| counts(worker)).map(|worker| worker.id).collect()
    }
}

pub(crate) fn is_starting(worker: &Worker) -> bool {
    matches!(worker.stage, Stage::Starting { .. })
}
