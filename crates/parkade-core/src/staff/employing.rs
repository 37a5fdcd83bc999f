//! What workers say about themselves, and that they have ended.

use crate::core::Core;
use crate::effect::{Effect, KillReason, WorkerEffect};
use crate::event::Manner;
use crate::life::Refused;
use crate::limits::{CREDIT_MAX, HOOKS_MAX};
use crate::staff::{Service, Starts};
use crate::workers::worker::{Ready, Stage, Wear};
use parkade_model::{DeclaredJobs, RequestId, Role, TableId, WorkerId};

impl Core {
    pub(crate) fn worker_ready(
        &mut self,
        worker: WorkerId,
        table: TableId,
        credit: i64,
        manner: Manner,
        jobs: DeclaredJobs,
    ) {
        let worn = self.wear();
        let next = self.cx.now + self.cx.config.ping_interval;
        let starting = self.roster.find_mut(worker).filter(|worker| matches!(worker.stage, Stage::Starting { .. }));
        let Some(starting) = starting else { return self.cx.counts.refused_events.add(Refused::OutOfTurn) };
        starting.stage = Stage::Ready;
        starting.ready = Some(Ready { at: self.cx.now, table, manner, granted: 0 });
        starting.credit = credit.clamp(0, CREDIT_MAX);
        starting.worn = worn;
        starting.ping.next = next;
        self.staff.attention = true;
        let generation = starting.generation;
        if let Some(reload) = self.staff.reload.as_mut().filter(|reload| reload.generation == generation) {
            reload.declared = reload.declared.or(jobs);
        }
        if generation != self.staff.serving {
            return;
        }
        self.staff.declared = self.staff.declared.or(jobs);
        self.staff.starts = Starts::Works;
        self.queue_rates.staffed(self.cx.now);
        if self.staff.make_current(table) {
            self.reroute(table);
        }
        if let Service::Draining { until, .. } = self.staff.service {
            self.cx.effects.push(Effect::Worker(WorkerEffect::DrainWorker { worker, within: until - self.cx.now }));
        }
    }

    /// The generation of the code that serves, if this worker, which declares these jobs, serves by it or lets the others do so as soon as it is
    /// ready; else what it tells of its application is not in force.
    #[must_use]
    pub fn generation_served_with(&self, worker: WorkerId, jobs: DeclaredJobs) -> Option<u32> {
        let starting = self.roster.find(worker).filter(|worker| matches!(worker.stage, Stage::Starting { .. }))?;
        let is_served = starting.generation == self.staff.serving || self.is_the_last_awaited(starting, jobs);
        is_served.then_some(starting.generation)
    }

    /// What a worker is for.
    #[must_use]
    pub fn role(&self, worker: WorkerId) -> Option<Role> {
        self.roster.find(worker).map(|worker| worker.role)
    }

    pub(crate) fn worker_failed(&mut self, worker: WorkerId) {
        let starting = self.roster.find_mut(worker).filter(|worker| matches!(worker.stage, Stage::Starting { .. }));
        let Some(starting) = starting else { return self.cx.counts.refused_events.add(Refused::OutOfTurn) };
        starting.stage = Stage::Leaving { until: self.cx.now + HOOKS_MAX };
        self.note_death(worker);
    }

    pub(crate) fn worker_exited(&mut self, worker: WorkerId) {
        let Some(stage) = self.roster.find(worker).map(|worker| worker.stage) else {
            return self.cx.counts.refused_events.add(Refused::Unknown);
        };
        match stage {
            Stage::Starting { .. } | Stage::Ready | Stage::Draining { .. } => self.note_death(worker),
            Stage::Leaving { .. } | Stage::Killed(_) => {}
        }
        self.bury(worker);
        self.roster.remove(worker);
        self.staff.attention = true;
    }

    /// Its link is closed: nothing more comes from it.
    pub(crate) fn worker_violated(&mut self, worker: WorkerId) {
        let Some(stage) = self.roster.find(worker).map(|worker| worker.stage) else {
            return self.cx.counts.refused_events.add(Refused::Unknown);
        };
        if !matches!(stage, Stage::Killed(_) | Stage::Leaving { .. }) {
            self.note_death(worker);
        }
        self.kill(worker, KillReason::Violation);
        self.bury(worker);
    }

    pub(crate) fn credit(&mut self, worker: WorkerId, delta: i64) {
        match self.roster.find_mut(worker) {
            Some(worker) if worker.ready.is_some() => {
                worker.grant(delta);
                let worker = worker.id;
                self.next_begin(worker);
            }
            Some(_) | None => self.cx.counts.refused_events.add(Refused::OutOfTurn),
        }
    }

    /// `BEGAN`. Of one that is cancelled it says that it may hang.
    pub(crate) fn unit_began(&mut self, worker: WorkerId, request: RequestId) {
        let now = self.cx.now;
        let holder = self.roster.find_mut(worker);
        let Some((holder, place)) = holder.and_then(|holder| holder.place_of(request).map(|place| (holder, place)))
        else {
            return self.cx.counts.refused_events.add(Refused::NotHeld);
        };
        if holder.begin(now, place) {
            self.note_begun(request);
        }
    }

    pub(crate) fn pong(&mut self, worker: WorkerId, token: u64) {
        let next = self.cx.now + self.cx.config.ping_interval;
        let pinged = self.roster.find_mut(worker).map(|worker| &mut worker.ping);
        let Some(ping) = pinged.filter(|ping| ping.sent.is_some() && ping.token == token) else {
            return self.cx.counts.refused_events.add(Refused::OutOfTurn);
        };
        ping.sent = None;
        ping.dumped = false;
        ping.next = next;
        self.staff.attention = true;
    }

    /// Nobody hears it for a while, so its silence is not its own.
    pub(crate) fn held_up(&mut self, worker: WorkerId) {
        // It may be gone: what it enqueued is answered all the same.
        let Some(worker) = self.roster.find_mut(worker) else { return };
        worker.held_up.get_or_insert(self.cx.now);
        self.staff.attention = true;
    }

    /// It is heard again. A ping that is not answered is as old as before.
    pub(crate) fn let_on(&mut self, worker: WorkerId) {
        let now = self.cx.now;
        // It may be gone: what it enqueued is answered all the same.
        let Some(worker) = self.roster.find_mut(worker) else { return };
        if let Some(since) = worker.held_up.take() {
            worker.ping.sent = worker.ping.sent.map(|sent| sent + (now - since.max(sent)));
        }
        self.staff.attention = true;
    }

    pub(crate) fn measured(&mut self, worker: WorkerId, resident_bytes: u64) {
        let Some(worker) = self.roster.find_mut(worker) else {
            return self.cx.counts.refused_events.add(Refused::Unknown);
        };
        worker.resident_bytes = Some(resident_bytes);
        self.staff.attention |= worker.stage == Stage::Ready && worker.is_worn(self.cx.now);
    }

    /// Ends a process. What it held is resolved when its link is read to the end: an answer may still be in there.
    pub(crate) fn kill(&mut self, worker: WorkerId, why: KillReason) {
        let Some(victim) = self.roster.find_mut(worker) else { return };
        let stage = std::mem::replace(&mut victim.stage, Stage::Killed(why));
        if matches!(stage, Stage::Killed(_)) {
            return;
        }
        self.cx.counts.workers_killed.add(why);
        self.cx.effects.push(Effect::Worker(WorkerEffect::KillWorker { worker, why }));
        if why == KillReason::StartedTooSlowly {
            self.note_death(worker);
        }
        self.staff.attention = true;
    }

    /// Somebody asks for a sign of life.
    pub(crate) fn ping(&mut self, worker: WorkerId) {
        let Some(pinged) =
            self.roster.find_mut(worker).filter(|worker| worker.is_at_work() && worker.ping.sent.is_none())
        else {
            return;
        };
        pinged.ping.sent = Some(self.cx.now);
        pinged.ping.token += 1;
        self.cx.effects.push(Effect::Worker(WorkerEffect::Ping { worker, token: pinged.ping.token }));
        self.staff.attention = true;
    }

    fn wear(&mut self) -> Wear {
        let recycle = self.cx.config.recycle;
        let percent = recycle.jitter_percent.min(100);
        let requests = recycle.requests.map(|requests| self.cx.random.jitter(requests, percent).max(1));
        let age = recycle.age.map(|age| u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
        let at = age.map(|age| self.cx.now + std::time::Duration::from_nanos(self.cx.random.jitter(age, percent)));
        Wear { requests, at, resident_bytes: recycle.resident_bytes }
    }
}
