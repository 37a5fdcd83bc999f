//! All workers, and which of them a request goes to.

use crate::life::Work;
use crate::limits::JOBS_IN_A_LOOP_COUNT_MAX;
use crate::moment::Moment;
use crate::workers::queue_rate::Servers;
use crate::workers::worker::{Stage, Worker};
use parkade_model::{DeclaredJobs, Role, WorkerId};

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
    trouble: Trouble,
    load: usize,
    /// The request would have to be routed again.
    other_table: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    None,
    /// What it answers is heard late.
    HeldUp,
    /// What it is at should have ended: it may be killed, and take along what it holds.
    Overdue,
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

    /// Who takes from that line. A worker without a loop is at one request; a loop at as many plain functions as it has threads, and at all the
    /// coroutines that it holds. One that does not turn is as good as at one: what keeps it from turning.
    pub(crate) fn servers(&self, now: Moment, generation: u32, concurrent: bool) -> Servers {
        let of = |worker: &Worker| match concurrent && worker.is_concurrent() {
            true if worker.is_silent() => 1,
            true => (worker.held.count() as u64).saturating_sub(worker.occupying).max(1),
            false => worker.threads(),
        };
        Servers {
            count: self.ready(generation, Role::Requests).map(of).sum(),
            all_hang: self.ready(generation, Role::Requests).all(|worker| worker.hangs(now)),
        }
    }

    /// The worker of this generation and role for a unit of work: an idle one, else the least loaded; one
    /// that is busy only when there is no other, and it answers requests quickly.
    pub(crate) fn pick(&self, now: Moment, generation: u32, role: Role, work: &Work) -> Option<&Worker> {
        let suited = self.ready(generation, role).filter_map(|worker| Some((suits(worker, now, work)?, worker)));
        suited.min_by_key(|(suits, _)| *suits).map(|(_, worker)| worker)
    }

    /// How many jobs workers could take now; `None` when no worker of jobs is ready. For a loop that has jobs of both kinds it is as many as it
    /// takes coroutines: of what kind the next are nobody knows.
    pub(crate) fn room_for_jobs(&self, now: Moment, generation: u32, declared: DeclaredJobs) -> Option<u32> {
        let rooms = self.ready(generation, Role::Jobs).map(|worker| {
            let most = if worker.is_concurrent() && declared.coroutines {
                JOBS_IN_A_LOOP_COUNT_MAX.into()
            } else {
                worker.depth(now).saturating_sub(worker.busy())
            };
            let room = if worker.is_silent() { 0 } else { worker.credit.max(0).unsigned_abs().min(most) };
            u32::try_from(room).unwrap_or(u32::MAX)
        });
        rooms.reduce(u32::saturating_add)
    }

    fn ready(&self, generation: u32, role: Role) -> impl Iterator<Item = &Worker> {
        let is_meant = move |worker: &&Worker| {
            worker.stage == Stage::Ready && worker.generation == generation && worker.role == role
        };
        self.workers.iter().filter(is_meant)
    }

    fn index(&self, worker: WorkerId) -> Option<usize> {
        self.ids.iter().position(|&known| known == worker)
    }
}

fn suits(worker: &Worker, now: Moment, work: &Work) -> Option<Suits> {
    let ahead = worker.is_occupied_by(work) && worker.busy() >= worker.threads();
    if worker.credit <= 0 || worker.is_silent() || ahead && worker.busy() >= worker.depth(now) {
        return None;
    }
    let table = work.table();
    Some(Suits {
        ahead,
        trouble: trouble(worker),
        load: worker.held.count(),
        other_table: table.is_some_and(|table| worker.table() != Some(table)),
    })
}

fn trouble(worker: &Worker) -> Trouble {
    if worker.overdue > 0 {
        Trouble::Overdue
    } else if worker.held_up.is_some() {
        Trouble::HeldUp
    } else {
        Trouble::None
    }
}
