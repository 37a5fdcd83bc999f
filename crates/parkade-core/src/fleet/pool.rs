//! All workers: what they say about themselves, what they hold, and which of them a request goes to.

use crate::context::Context;
use crate::effect::{Effect, WorkerEffect};
use crate::fleet::abandoned::Abandonment;
use crate::fleet::judgement;
use crate::fleet::queue_rate::Servers;
use crate::fleet::worker::{Generation, Worker};
use crate::limits::JOBS_IN_A_LOOP_COUNT_MAX;
use crate::moment::Moment;
use crate::refused::Refused;
use crate::requests::Work;
use crate::structures::chain::Place;
use parkade_model::{AppId, DeclaredJobs, Reason, RequestId, Role, WorkerId};

#[derive(Debug, Default)]
pub struct WorkerPool {
    /// Apart from the workers, so that looking one up touches one line of memory.
    ids: Vec<WorkerId>,
    workers: Vec<Worker>,
    minted: u32,
    needs_review: bool,
}

/// A worker holds a unit of work from now on.
#[derive(Debug, Clone, Copy)]
pub struct Assignment {
    pub place: Place,
    /// Its code begins at once.
    pub has_begun: bool,
}

/// What a queued request asks of a worker.
#[derive(Debug, Clone, Copy)]
pub struct DueWork<'a> {
    pub work: &'a Work,
    /// It was found in the routes of one worker, and looked up again in those of another.
    pub was_rerouted: bool,
}

/// How well a worker suits: the least value is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Suitability {
    /// The request would have to be routed again, and has been already.
    strays: bool,
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

/// What workers say about themselves.
impl WorkerPool {
    /// `CREDIT`. Something that the worker holds may [begin](Self::begin_next) by that.
    pub fn credit(&mut self, cx: &mut Context, worker: WorkerId, delta: i64) {
        match self.find_mut(worker) {
            Some(worker) if worker.readiness.is_some() => worker.streams.grant(delta),
            Some(_) | None => cx.counts.refused_events.add(Refused::OutOfTurn),
        }
    }

    /// `BEGAN`. For a cancelled request it means that the code may hang. `place`: where it stands, unless it is over. Whether the time of a run begins
    /// now.
    pub fn begin(&mut self, cx: &mut Context, worker: WorkerId, (request, place): (RequestId, Option<Place>)) -> bool {
        let begun = self.find_mut(worker).and_then(|worker| {
            let place = place.or_else(|| worker.streams.abandoned(request))?;
            Some(worker.streams.begin(cx.now, place) && worker.role == Role::Jobs)
        });
        if begun.is_none() {
            cx.counts.refused_events.add(Refused::NotHeld);
        }
        begun.unwrap_or_default()
    }

    /// `PONG`.
    pub fn pong(&mut self, cx: &mut Context, worker: WorkerId, token: u64) {
        let next = cx.now + cx.config.ping_interval;
        if self.find_mut(worker).is_some_and(|worker| worker.liveness.pong(token, next)) {
            self.needs_review = true;
        } else {
            cx.counts.refused_events.add(Refused::OutOfTurn);
        }
    }

    /// How much memory its process has.
    pub fn measure(&mut self, cx: &mut Context, worker: WorkerId, resident_bytes: u64) {
        let Some(worker) = self.find_mut(worker) else {
            return cx.counts.refused_events.add(Refused::Unknown);
        };
        worker.resident_bytes = Some(resident_bytes);
        if worker.is_ready() && worker.is_to_be_recycled(cx.now) {
            self.needs_review = true;
        }
    }

    /// Its link is not read for a while, so its silence is not its fault. Returns whether the worker is still there: the store answers what a worker has
    /// enqueued even after its exit.
    pub fn pause_reading(&mut self, now: Moment, worker: WorkerId) -> bool {
        let paused = self.find_mut(worker).map(|worker| worker.liveness.pause(now)).is_some();
        self.needs_review |= paused;
        paused
    }

    /// Its link is read again. Returns whether the worker is still there.
    pub fn resume_reading(&mut self, now: Moment, worker: WorkerId) -> bool {
        let resumed = self.find_mut(worker).map(|worker| worker.liveness.resume(now)).is_some();
        self.needs_review |= resumed;
        resumed
    }
}

/// What workers hold.
impl WorkerPool {
    /// The worker holds it from now on.
    pub fn assign(&mut self, now: Moment, worker: WorkerId, request: RequestId, work: &Work) -> Assignment {
        let worker = self.holder(worker);
        let place = worker.streams.hold(now, request, work, worker.role);
        Assignment { place, has_begun: worker.streams.at(place).begun.is_some() }
    }

    /// A run of a job in this worker whose code begins now, as long as there is one. Requests that begin by that are only noted.
    pub fn begin_next(&mut self, now: Moment, worker: WorkerId) -> Option<RequestId> {
        let worker = self.find_mut(worker)?;
        loop {
            let next = worker.streams.begin_next(now)?;
            if worker.role == Role::Jobs {
                return Some(next);
            }
        }
    }

    /// A coroutine waits in the worker, which holds no stream of it meanwhile.
    pub fn park(&mut self, worker: WorkerId, request: RequestId) -> Place {
        self.holder(worker).streams.park(request)
    }

    /// A coroutine waits no more. Its worker may be gone.
    pub fn leave(&mut self, worker: WorkerId, place: Place) {
        if let Some(worker) = self.find_mut(worker) {
            worker.streams.leave(place);
            if !worker.is_ready() {
                self.needs_review = true;
            }
        }
    }

    /// What the worker holds has become a WebSocket.
    pub fn open_socket(&mut self, worker: WorkerId, place: Place) {
        let holder = self.holder(worker);
        holder.streams.open_socket(place);
        // It may be one that was asked for before.
        self.needs_review = true;
    }

    /// That WebSocket is closed; its code goes on.
    pub fn close_socket(&mut self, worker: WorkerId, place: Place) {
        self.holder(worker).streams.close_socket(place);
    }

    /// The request is over, and the worker still holds it: its deadline still counts.
    pub fn abandon(&mut self, cx: &mut Context, worker: WorkerId, place: Place, left: &Abandonment) {
        judgement::abandon(self.holder(worker), cx, place, left);
        if !self.holder(worker).is_ready() || left.reason == Reason::Deadline {
            self.needs_review = true;
        }
    }

    /// Where the worker holds a request that is over.
    pub fn abandoned(&self, worker: WorkerId, request: RequestId) -> Option<Place> {
        self.find(worker)?.streams.abandoned(request)
    }

    /// The alarm of an abandoned stream rang.
    pub fn abandoned_due(&mut self, cx: &mut Context, worker: WorkerId, place: Place) {
        judgement::ring(self.holder(worker), cx, place);
        self.needs_review = true;
    }
}

/// Questions.
impl WorkerPool {
    /// What a worker is for.
    pub fn role(&self, worker: WorkerId) -> Option<Role> {
        self.find(worker).map(|worker| worker.role)
    }

    /// Whose code it runs.
    pub fn app(&self, worker: WorkerId) -> Option<AppId> {
        self.find(worker).map(|worker| worker.generation.app)
    }

    /// How many requests, or runs of jobs, workers of the application hold and have not abandoned.
    pub fn running_count(&self, app: AppId, role: Role) -> usize {
        let workers = self.workers.iter().filter(|worker| worker.role == role && worker.generation.app == app);
        workers.map(|worker| worker.streams.running_count()).sum()
    }

    /// Whether it has an event loop.
    pub fn is_concurrent(&self, worker: WorkerId) -> bool {
        self.find(worker).is_some_and(|worker| worker.streams.is_concurrent())
    }

    /// Whether no worker holds a stream, abandoned ones included.
    pub fn is_idle(&self) -> bool {
        self.workers.iter().all(|worker| worker.streams.count() == 0)
    }

    /// Whether something has happened to a worker that may change how many there should be.
    pub(super) fn needs_review(&self) -> bool {
        self.needs_review
    }

    pub(super) fn begin_review(&mut self) {
        self.needs_review = false;
    }
}

/// The workers one by one, and the choice between them: for the rest of this folder.
impl WorkerPool {
    pub(super) fn start(&mut self, cx: &mut Context, generation: Generation, role: Role) {
        self.minted += 1;
        let worker = WorkerId(self.minted);
        self.ids.push(worker);
        self.workers.push(Worker::new(worker, generation, role, cx.now, cx.now + cx.config.start_timeout));
        cx.counts.workers_started += 1;
        cx.effects.push(Effect::Worker(WorkerEffect::StartWorker { worker, app: generation.app }));
    }

    pub(super) fn remove(&mut self, worker: WorkerId) -> Option<Worker> {
        let index = self.index(worker)?;
        self.ids.remove(index);
        Some(self.workers.remove(index))
    }

    pub(super) fn find(&self, worker: WorkerId) -> Option<&Worker> {
        self.index(worker).map(|index| &self.workers[index])
    }

    pub(super) fn find_mut(&mut self, worker: WorkerId) -> Option<&mut Worker> {
        self.index(worker).map(|index| &mut self.workers[index])
    }

    /// The worker that holds a request.
    pub(super) fn holder(&mut self, worker: WorkerId) -> &mut Worker {
        self.find_mut(worker).expect("a worker that holds a request is in the pool until that is resolved")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Worker> {
        self.workers.iter_mut()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    pub(super) fn count_of(&self, is_meant: impl Fn(&Worker) -> bool) -> usize {
        self.workers.iter().filter(|worker| is_meant(worker)).count()
    }

    pub(super) fn count_of_ready(&self, generation: Generation, role: Role) -> usize {
        self.ready(generation, role).count()
    }

    /// The workers that take from that line. A worker without a loop runs one request. A loop runs as many plain functions as it has threads, and all
    /// the coroutines that it holds. A loop that does not turn counts as running one: the one that keeps it from turning.
    pub(super) fn servers(&self, now: Moment, generation: Generation, concurrent: bool) -> Servers {
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

    /// The worker of this generation and role for a queued request: an idle one, else the least loaded. A busy one is chosen only if there is no
    /// other and it answers quickly. For a request that has been looked up again, one with other routes is chosen only if none with the same can take
    /// it. A worker that takes a plain function takes a coroutine, too, so a request is routed again twice at most.
    pub(super) fn pick(&self, now: Moment, generation: Generation, role: Role, queued: DueWork<'_>) -> Option<&Worker> {
        let suited = self.ready(generation, role).filter_map(|worker| Some((suits(worker, now, queued)?, worker)));
        suited.min_by_key(|(suits, _)| *suits).map(|(_, worker)| worker)
    }

    /// How many jobs workers could take now; `None` when no worker of jobs is ready. A loop with jobs of both kinds counts as if all of them were
    /// coroutines, because the kind of the next jobs is not known.
    pub(super) fn room_for_jobs(&self, now: Moment, generation: Generation, declared: DeclaredJobs) -> Option<u32> {
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

    fn ready(&self, generation: Generation, role: Role) -> impl Iterator<Item = &Worker> {
        self.workers.iter().filter(move |worker| worker.is_ready() && worker.is_of(generation, role))
    }

    fn index(&self, worker: WorkerId) -> Option<usize> {
        self.ids.iter().position(|&known| known == worker)
    }
}

fn suits(worker: &Worker, now: Moment, queued: DueWork<'_>) -> Option<Suitability> {
    let (work, streams) = (queued.work, &worker.streams);
    let ahead = streams.is_occupied_by(work) && streams.busy() >= streams.threads();
    if streams.credit() <= 0 || worker.liveness.is_silent() || ahead && streams.busy() >= streams.depth(now) {
        return None;
    }
    let other_table = work.table().is_some_and(|table| worker.table() != Some(table));
    Some(Suitability {
        // One that is looked up anew may be another kind of work, for which another worker is the best. It would go back and forth without end if the
        // routes that it was found in came second this time, too.
        strays: queued.was_rerouted && other_table,
        ahead,
        trouble: trouble(worker),
        load: streams.count(),
        other_table,
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
