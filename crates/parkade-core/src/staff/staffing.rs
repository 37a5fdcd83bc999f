//! As many workers as there should be: fresh ones for the dead, for the worn, and for new code.

use crate::core::Core;
use crate::effect::{Effect, KillReason, Refusal, ReloadOutcome};
use crate::id::{RequestId, WorkerId};
use crate::life::machine::Happening;
use crate::limits::RECYCLE_GRACE;
use crate::moment::Moment;
use crate::staff::{Fate, Reload};
use crate::workers::worker::{Role, Stage, Worker};

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
        self.staff.reload = Some(Reload { generation: self.staff.minted, fate: Fate::Open, again: false });
    }

    /// One worker of the new code first, as a probe; then the others; when all are ready, the old ones drain.
    pub(crate) fn tend_reload(&mut self) {
        let Some(reload) = self.staff.reload else { return };
        let ready = self.ready_of(reload.generation);
        let starting = self.count(|worker| worker.generation == reload.generation && is_starting(worker));
        let wanted = self.workers_wanted();
        if reload.fate == Fate::Failed {
            self.give_up(reload);
        } else if ready >= wanted {
            self.switch(reload);
        } else if ready > 0 {
            (ready + starting..wanted).for_each(|_| self.start_worker(reload.generation));
        } else if starting == 0 {
            self.start_worker(reload.generation);
        }
    }

    /// Whether the new code serves as soon as this worker of it is ready.
    pub(crate) fn is_the_last_awaited(&self, starting: &Worker) -> bool {
        let of_it = |reload: &Reload| reload.generation == starting.generation && reload.fate == Fate::Open;
        self.staff.is_open()
            && self.staff.reload.as_ref().is_some_and(of_it)
            && self.ready_of(starting.generation) + 1 >= self.workers_wanted()
    }

    fn ready_of(&self, generation: u32) -> usize {
        self.count(|worker| worker.generation == generation && worker.stage == Stage::Ready)
    }

    fn switch(&mut self, reload: Reload) {
        self.staff.serving = reload.generation;
        self.queue_rate.staffed(self.now);
        self.staff.starts = crate::staff::Starts::Works;
        self.staff.recycling = None;
        self.staff.back_off.reset();
        self.staff.back_off_of_job_workers.reset();
        self.jobs.pull.back_off.reset();
        self.counts.reloads_done += 1;
        self.reloaded(reload, ReloadOutcome::Done);
        for old in self.ids_of(|worker| worker.generation != reload.generation) {
            match self.holder(old).stage {
                Stage::Starting { .. } => self.kill(old, KillReason::NotNeeded),
                Stage::Ready => self.drain_worker(old, self.config.reload_grace),
                Stage::Draining { .. } | Stage::Leaving { .. } | Stage::Killed(_) => {}
            }
        }
        let fresh =
            self.roster.iter().find(|worker| worker.generation == reload.generation && worker.stage == Stage::Ready);
        let table = fresh.and_then(Worker::table).expect("a reload is done when its workers are ready");
        if self.routes.make_current(table) {
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
        self.counts.reloads_given_up += 1;
        self.reloaded(reload, ReloadOutcome::GivenUp);
    }

    fn reloaded(&mut self, reload: Reload, outcome: ReloadOutcome) {
        self.effects.push(Effect::Reloaded { outcome });
        self.staff.reload = None;
        self.staff.last_reload = Some(outcome);
        if reload.again {
            self.reload();
        }
    }

    /// One worn worker at a time: it works on until there are enough without it, then it drains.
    pub(crate) fn tend_recycling(&mut self) {
        let serving = self.staff.serving;
        let here = |old: &WorkerId| self.roster.find(*old).is_some_and(|worker| worker.generation == serving);
        self.staff.recycling = self.staff.recycling.filter(here);
        if self.staff.recycling.is_none() && self.staff.reload.is_none() {
            let worn = |worker: &&Worker| {
                worker.generation == serving && worker.stage == Stage::Ready && worker.is_worn(self.now)
            };
            self.staff.recycling = self.roster.iter().find(worn).map(|worker| worker.id);
        }
        let Some(old) = self.staff.recycling else { return };
        let others =
            self.count(|worker| worker.generation == serving && worker.stage == Stage::Ready && worker.id != old);
        if self.holder(old).stage == Stage::Ready && others >= self.workers_wanted() {
            self.counts.workers_recycled += 1;
            self.drain_worker(old, RECYCLE_GRACE);
        }
    }

    /// When the worker will be worn by age, unless another one is being replaced: its end brings the next look.
    pub(crate) fn recycling_due(&self, worker: &Worker) -> Option<Moment> {
        worker.worn.at.filter(|_| self.staff.is_open() && self.staff.recycling.is_none() && self.staff.reload.is_none())
    }

    /// Starts what is missing, unless workers keep dying.
    pub(crate) fn fill(&mut self) {
        (0..self.startable()).for_each(|_| self.start_worker(self.staff.serving));
    }

    /// How many may be started now. One that starts becomes a worker of requests while those are too few.
    fn startable(&self) -> usize {
        if self.staff.back_off.holds_until(self.now).is_some() {
            return 0;
        }
        let missing = self.workers_wanted().saturating_sub(self.present(|_| true));
        if self.staff.back_off_of_job_workers.holds_until(self.now).is_none() {
            return missing;
        }
        let for_requests = self.present(|worker| worker.role() != Some(Role::Jobs));
        missing.min((self.config.workers as usize).saturating_sub(for_requests))
    }

    pub(crate) fn fill_due(&self) -> Option<Moment> {
        let is_missing = self.present(|_| true) < self.workers_wanted() && self.fills();
        let back_offs = [&self.staff.back_off, &self.staff.back_off_of_job_workers];
        let dues = back_offs.into_iter().filter_map(|back_off| back_off.holds_until(self.now));
        dues.filter(|_| is_missing).min()
    }

    /// While the server drains, a fresh worker is wanted only when somebody is queued and no other is there.
    pub(crate) fn fills(&self) -> bool {
        let nobody_is_queued = self.queue.is_empty() && self.unrouted.is_empty() && self.jobs.resuming.is_empty();
        self.staff.is_open() || self.present(|_| true) == 0 && !nobody_is_queued
    }

    /// Workers of the serving code that are there or coming, without the one that is being replaced.
    fn present(&self, is_meant: impl Fn(&Worker) -> bool) -> usize {
        let here = |worker: &Worker| worker.stage == Stage::Ready || is_starting(worker);
        let counts =
            |worker: &Worker| worker.generation == self.staff.serving && Some(worker.id) != self.staff.recycling;
        self.count(|worker| counts(worker) && here(worker) && is_meant(worker))
    }

    pub(crate) fn lacks_an_application(&self) -> bool {
        let comes = |worker: &Worker| {
            worker.generation == self.staff.serving && (worker.stage == Stage::Ready || is_starting(worker))
        };
        self.staff.starts.has_failed() && !self.roster.iter().any(comes)
    }

    /// Nobody will take what is queued: better told at once than at the deadline.
    pub(crate) fn refuse_without_application(&mut self) {
        if !self.lacks_an_application() {
            return;
        }
        let queues = self.unrouted.values().chain(self.queue.values()).chain(self.jobs.resuming.values());
        let waiting: Vec<RequestId> = queues.collect();
        for request in waiting {
            self.turn(request, Happening::Refused(Refusal::NoApplication));
        }
        self.hand_back_waiting();
    }

    fn workers_wanted(&self) -> usize {
        self.config.workers as usize + self.config.job_workers as usize
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
