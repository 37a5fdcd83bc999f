//! All workers, and which of them a request goes to.

use crate::id::{TableId, WorkerId};
use crate::limits::{JOBS_AHEAD_COUNT_MAX, JOBS_IN_A_LOOP_COUNT_MAX};
use crate::moment::Moment;
use crate::workers::worker::{Role, Stage, Worker};

#[derive(Debug, Default)]
pub(crate) struct Roster {
    /// Beside the workers, so that looking one up touches one line of memory.
    ids: Vec<WorkerId>,
    workers: Vec<Worker>,
    minted: u32,
}

/// How well a worker suits: the least is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Suits {
    /// Sent ahead: it works on another one first.
    ahead: bool,
    /// What it answers is heard late.
    held_up: bool,
    load: usize,
    /// The request would have to be routed again.
    other_table: bool,
}

impl Roster {
    pub(crate) fn mint(&mut self) -> WorkerId {
        self.minted += 1;
        WorkerId(self.minted)
    }

    pub(crate) fn add(&mut self, worker: Worker) {
        self.ids.push(worker.id);
        self.workers.push(worker);
    }

    pub(crate) fn remove(&mut self, worker: WorkerId) -> Option<Worker> {
        let index = self.index(worker)?;
        self.ids.remove(index);
        Some(self.workers.remove(index))
    }

    pub(crate) fn find(&self, worker: WorkerId) -> Option<&Worker> {
        self.index(worker).map(|index| &self.workers[index])
    }

    pub(crate) fn find_mut(&mut self, worker: WorkerId) -> Option<&mut Worker> {
        self.index(worker).map(|index| &mut self.workers[index])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Worker> {
        self.workers.iter_mut()
    }

    pub(crate) fn ids(&self) -> Vec<WorkerId> {
        self.ids.clone()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// The worker of this generation for a request routed by `table`: an idle one, else the least loaded; one that is busy with a request of
    /// its own only when there is no other, and it is quick. What a run of a job goes on with is for the workers of jobs, if they can.
    pub(crate) fn pick(&self, now: Moment, generation: u32, table: Option<TableId>, is_run: bool) -> Option<&Worker> {
        let suited = self
            .ready(generation)
            .filter(|worker| is_run || worker.role() != Some(Role::Jobs))
            .filter_map(|worker| Some((suits(worker, now, table)?, worker)));
        let is_for_others = |worker: &Worker| is_run && worker.role() != Some(Role::Jobs);
        suited
            .min_by_key(|(suits, worker)| (suits.ahead, suits.held_up, is_for_others(worker), *suits))
            .map(|(_, worker)| worker)
    }

    /// How many requests may be at their end this very moment: a plain worker is at one, a loop at all that it holds. One whose loop does not
    /// turn is as good as at one: what keeps it from turning.
    pub(crate) fn servers(&self, generation: u32) -> u64 {
        let of = |worker: &Worker| {
            if worker.is_concurrent() && worker.ping.sent.is_none() { worker.held.count().max(1) as u64 } else { 1 }
        };
        self.ready(generation).filter(|worker| worker.role() != Some(Role::Jobs)).map(of).sum()
    }

    /// The worker for a run of a job. Where workers do both, the last one that no job takes up is left to requests, unless it is the only one,
    /// or quick: a job may take minutes. A coroutine takes no loop up.
    pub(crate) fn pick_for_a_job(
        &self,
        now: Moment,
        generation: u32,
        concurrent: bool,
        are_quick: bool,
    ) -> Option<&Worker> {
        let is_last = self.for_jobs(generation).filter(|worker| worker.occupying_jobs == 0).count() <= 1;
        let suited = self.for_jobs(generation).filter(|worker| {
            // Behind a slow one another would wait although it could be had back from the store.
            let may_go_ahead = are_quick || worker.is_concurrent() || worker.busy() == 0;
            let may_take_up = !is_last
                || concurrent && worker.is_concurrent()
                || !self.is_left_to_requests(worker, now, generation, are_quick);
            may_go_ahead && may_take_up
        });
        let suited = suited.filter_map(|worker| Some((suits(worker, now, None)?, worker)));
        suited.min_by_key(|(suits, _)| *suits).map(|(_, worker)| worker)
    }

    /// How many jobs workers could begin now, and whether some of them are so quick that more should stand ready.
    pub(crate) fn room_for_jobs(&self, now: Moment, generation: u32, are_quick: bool) -> (u32, bool) {
        let (mut room, mut spare, mut quick) = (0, 0, false);
        for worker in self.for_jobs(generation).filter(|worker| suits(worker, now, None).is_some()) {
            let depth = if are_quick { worker.pace.depth(now) } else { 1 };
            quick |= depth > 1;
            let most = if worker.is_concurrent() {
                JOBS_IN_A_LOOP_COUNT_MAX.into()
            } else {
                depth.saturating_sub(worker.busy())
            };
            let free = worker.credit.unsigned_abs().min(most);
            let free = u32::try_from(free).unwrap_or(u32::MAX).min(JOBS_AHEAD_COUNT_MAX);
            if !worker.is_concurrent() && self.is_left_to_requests(worker, now, generation, are_quick) {
                spare += free;
            } else {
                room += free;
            }
        }
        let untaken = self.for_jobs(generation).filter(|worker| worker.occupying_jobs == 0).count();
        (room + spare.min(u32::try_from(untaken.saturating_sub(1)).unwrap_or(u32::MAX)), quick)
    }

    /// Whether no job may take this worker up if all others are. That it answers requests quickly says nothing of jobs: they have a pace of
    /// their own, and none of them may be slow right now.
    fn is_left_to_requests(&self, worker: &Worker, now: Moment, generation: u32, are_quick: bool) -> bool {
        let is_slow = |other: &Worker| other.occupying_jobs > 0 && other.pace.is_slow_now(now);
        worker.role() == Some(Role::Both)
            && worker.occupying_jobs == 0
            && (!are_quick || self.for_jobs(generation).any(is_slow))
            && self.for_jobs(generation).nth(1).is_some()
    }

    fn for_jobs(&self, generation: u32) -> impl Iterator<Item = &Worker> {
        self.ready(generation).filter(|worker| worker.role() != Some(Role::Requests))
    }

    fn ready(&self, generation: u32) -> impl Iterator<Item = &Worker> {
        self.workers.iter().filter(move |worker| worker.stage == Stage::Ready && worker.generation == generation)
    }

    fn index(&self, worker: WorkerId) -> Option<usize> {
        self.ids.iter().position(|&known| known == worker)
    }
}

fn suits(worker: &Worker, now: Moment, table: Option<TableId>) -> Option<Suits> {
    let ahead = worker.busy() > 0;
    if worker.credit <= 0 || ahead && worker.busy() >= worker.pace.depth(now) {
        return None;
    }
    Some(Suits {
        ahead,
        held_up: worker.held_up.is_some(),
        load: worker.held.count(),
        other_table: table.is_some_and(|table| worker.table() != Some(table)),
    })
}
