//! Workers that die: who has to wait because of that, and what becomes of what they held.

use crate::core::Core;
use crate::effect::ExitReason;
use crate::life::machine::Happening;
use crate::limits::EARLY_DEATH;
use crate::moment::Moment;
use crate::staff::{Fate, Service, Starts};
use crate::workers::worker::{Ghost, Ready, Stage, Worker};
use parkade_model::{Reason, RequestId, Role, WorkerId};

impl Core {
    /// A worker is no more, and nobody wanted that.
    pub(crate) fn note_death(&mut self, worker: WorkerId) {
        self.cx.counts.workers_died += 1;
        self.staff.attention = true;
        let Some(dead) = self.roster.find(worker) else { return };
        let (generation, role, started, ready) = (dead.generation, dead.role, dead.started, dead.ready);
        let drained = matches!(dead.stage, Stage::Draining { .. });
        if let Some(reload) = self.staff.reload.as_mut().filter(|reload| reload.generation == generation) {
            reload.fate = Fate::Failed;
            return;
        }
        if drained || generation != self.staff.serving {
            return;
        }
        match ready {
            None => self.start_failed(role, started),
            Some(ready) => self.back_off(role, started, ready),
        }
    }

    /// At the very first start there is nobody to be served meanwhile: the operator is told by the exit. Workers of jobs start when there is
    /// an application.
    fn start_failed(&mut self, role: Role, started: Moment) {
        self.staff.crew_mut(role).back_off.failed_to_start(self.cx.now, started);
        if role == Role::Jobs {
            return;
        }
        let first = matches!(self.staff.starts, Starts::Untried | Starts::NeverWorked);
        self.staff.starts = self.staff.starts.failed();
        if first && self.cx.config.exit_when_the_first_start_fails && self.staff.is_open() {
            self.staff.service = Service::Draining { since: self.cx.now, until: self.cx.now };
            self.staff.verdict = Some(ExitReason::ApplicationFailed);
        }
    }

    /// A streak ends with a worker that was steady: the dead one itself, or one of its role that started after the last death.
    fn back_off(&mut self, role: Role, started: Moment, ready: Ready) {
        let steady = |ready_at: Moment| self.cx.now - ready_at >= EARLY_DEATH;
        let back_off = &mut self.staff.crew_mut(role).back_off;
        let another = self.roster.iter().any(|other| {
            other.role == role
                && back_off.is_after_the_last_death(other.started)
                && other.ready.is_some_and(|ready| steady(ready.at))
        });
        if another || steady(ready.at) {
            back_off.reset();
        }
        if !steady(ready.at) {
            back_off.died_early(self.cx.now, started);
        }
    }

    /// Resolves what a worker leaves behind: what it may have begun is lost, what it did not touch goes to another one.
    pub(crate) fn bury(&mut self, worker: WorkerId) {
        let Some(dead) = self.roster.find(worker) else { return };
        let (lost, untouched) = legacy(dead);
        let ghosts: Vec<Ghost> = dead.held.values().filter_map(|held| held.ghost).collect();
        for ghost in ghosts {
            self.lay(ghost);
        }
        for request in lost {
            self.turn(request, Happening::Cancelled(Reason::WorkerDied));
        }
        for request in untouched.into_iter().rev() {
            self.turn(request, Happening::Returned);
        }
        let dead = self.holder(worker);
        dead.held = crate::structures::chain::Chain::default();
        dead.occupying = 0;
    }
}

/// The requests that are lost with a worker, and those that it had not begun, in their order. Ghosts are neither.
fn legacy(worker: &Worker) -> (Vec<RequestId>, Vec<RequestId>) {
    let (mut lost, mut untouched) = (Vec::new(), Vec::new());
    for held in worker.held.values().filter(|held| held.ghost.is_none()) {
        if held.begun.is_some() { lost.push(held.request) } else { untouched.push(held.request) }
    }
    lost.extend(worker.awaiting.values());
    (lost, untouched)
}
