//! All workers, and which of them a request goes to.

use crate::context::Context;
use crate::effect::{Effect, WorkerEffect};
use crate::fleet::queue_rate::Servers;
use crate::fleet::worker::Worker;
use crate::limits::JOBS_IN_A_LOOP_COUNT_MAX;
use crate::moment::Moment;
use crate::requests::Work;
use parkade_model::{DeclaredJobs, Role, WorkerId};

#[derive(Debug, Default)]
pub struct WorkerPool {
    /// Apart from the workers, so that looking one up touches one line of memory.
    ids: Vec<WorkerId>,
    workers: Vec<Worker>,
    minted: u32,
}

/// How well a worker suits: the least value is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Suitability {
    /// The request would be sent ahead: the worker works on another one first.
    ahead: bool,
    trouble: Trouble,
    load: usize,
    /// The request would have to be routed again.
    other_table: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    None,
    /// Its link is not read, so its answers arrive late.
    Paused,
    /// Its present work should have ended. It may be killed, together with everything it holds.
    Overdue,
}

impl WorkerPool {
    pub fn start(&mut self, cx: &mut Context, generation: u32, role: Role) {
        self.minted += 1;
        let worker = WorkerId(self.minted);
        self.ids.push(worker);
        self.workers.push(Worker::new(worker, generation, role, cx.now, cx.now + cx.config.start_timeout));
        cx.counts.workers_started += 1;
        cx.effects.push(Effect::Worker(WorkerEffect::StartWorker { worker }));
    }

    pub fn remove(&mut self, worker: WorkerId) -> Option<Worker> {
        let index = self.index(worker)?;
        self.ids.remove(index);
        Some(self.workers.remove(index))
    }

    pub fn find(&self, worker: WorkerId) -> Option<&Worker> {
        self.index(worker).map(|index| &self.workers[index])
    }

    pub fn find_mut(&mut self, worker: WorkerId) -> Option<&mut Worker> {
        self.index(worker).map(|index| &mut self.workers[index])
    }

    /// The worker that holds a request.
    pub fn holder(&mut self, worker: WorkerId) -> &mut Worker {
        self.find_mut(worker).expect("a worker that holds a request is in the pool until that is resolved")
    }

    pub fn iter(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Worker> {
        self.workers.iter_mut()
    }

    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    pub fn count_of(&self, is_meant: impl Fn(&Worker) -> bool) -> usize {
        self.workers.iter().filter(|worker| is_meant(worker)).count()
    }

    pub fn count_of_ready(&self, generation: u32, role: Role) -> usize {
        self.ready(generation, role).count()
    }

    /// The workers that take from that line. A worker without a loop runs one request. A loop runs as many plain functions as it has threads, and all
    /// the coroutines that it holds. A loop that does not turn counts as running one: the one that keeps it from turning.
    pub fn servers(&self, now: Moment, generation: u32, concurrent: bool) -> Servers {
        let of = |worker: &Worker| match concurrent && worker.streams.is_concurrent() {
            true if worker.liveness.is_silent() => 1,
            true => worker.streams.coroutines_count().max(1),
            false => worker.streams.threads(),
        };
        Servers {
            count: self.ready(generation, Role::Requests).map(of).sum(),
            all_hang: self.ready(generation, Role::Requests).all(|worker| worker.hangs(now)),
        }
    }

    /// The worker of this generation and role for a unit of work: an idle one, else the least loaded. A busy one is chosen only if there is no other
    /// and it answers quickly.
    pub fn pick(&self, now: Moment, generation: u32, role: Role, work: &Work) -> Option<&Worker> {
        let suited = self.ready(generation, role).filter_map(|worker| Some((suits(worker, now, work)?, worker)));
        suited.min_by_key(|(suits, _)| *suits).map(|(_, worker)| worker)
    }

    /// How many jobs workers could take now; `None` when no worker of jobs is ready. A loop with jobs of both kinds counts as if all of them were
    /// coroutines, because the kind of the next jobs is not known.
    pub fn room_for_jobs(&self, now: Moment, generation: u32, declared: DeclaredJobs) -> Option<u32> {
        let rooms = self.ready(generation, Role::Jobs).map(|worker| {
            let streams = &worker.streams;
            let most = if streams.is_concurrent() && declared.coroutines {
                JOBS_IN_A_LOOP_COUNT_MAX.into()
            } else {
                streams.depth(now).saturating_sub(streams.busy())
            };
            let is_silent = worker.liveness.is_silent();
            let room = if is_silent { 0 } else { streams.credit().max(0).unsigned_abs().min(most) };
            u32::try_from(room).unwrap_or(u32::MAX)
        });
        rooms.reduce(u32::saturating_add)
    }

    fn ready(&self, generation: u32, role: Role) -> impl Iterator<Item = &Worker> {
        self.workers.iter().filter(move |worker| worker.is_ready() && worker.is_of(generation, role))
    }

    fn index(&self, worker: WorkerId) -> Option<usize> {
        self.ids.iter().position(|&known| known == worker)
    }
}

fn suits(worker: &Worker, now: Moment, work: &Work) -> Option<Suitability> {
    let streams = &worker.streams;
    let ahead = streams.is_occupied_by(work) && streams.busy() >= streams.threads();
    if streams.credit() <= 0 || worker.liveness.is_silent() || ahead && streams.busy() >= streams.depth(now) {
        return None;
    }
    let table = work.table();
    Some(Suitability {
        ahead,
        trouble: trouble(worker),
        load: streams.count(),
        other_table: table.is_some_and(|table| worker.table() != Some(table)),
    })
}

fn trouble(worker: &Worker) -> Trouble {
    if worker.streams.has_overdue() {
        Trouble::Overdue
    } else if worker.liveness.is_paused() {
        Trouble::Paused
    } else {
        Trouble::None
    }
}
