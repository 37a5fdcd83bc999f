//! Requests, and runs of jobs, from their arrival to their end.
//!
//! A request is in one of a few states, and each state is a type. A move is a function that consumes a state and returns the next one. One match,
//! in `machine`, says which happening leads to which move. The diagram in `ARCHITECTURE.md` is printed from it by a test.
//!
//! | question | where |
//! |---|---|
//! | what can happen, and which state answers it how | `happening`, `machine` |
//! | all requests, and their states | `lives`, `life` |
//! | the moves that leave each state | `accepted`, `routed`, `running`, `parked` |
//! | what a move may use; how a request ends | `step` |
//! | what a worker is asked to do, and how far its answer got | `work`, `reply` |
//! | what follows a wait | `sequel` |
//! | deadlines and times | `journey`, `times` |
//! | who is taken in | `admission` |
//! | what waits for a worker, and who is next | `queue`, `dispatch` |
//! | coroutines that go on | `resumed` |
//! | several waits of one coroutine | `branching`, `branch_end` |
//! | what clients of WebSockets say | `hearing` |
//! | a frame that comes too late: its worker no longer holds the request | `Requests::frame` |
//! | scripts: programs that are no workers, and have transactions | `scripts` |
//! | what waits, workers and jobs mean for requests | `waking`, `supervision`, `runs` |
//! | what can be seen | `status` |

mod accepted;
mod admission;
mod branch_end;
pub mod branching;
mod dispatch;
mod happening;
pub mod hearing;
mod journey;
mod life;
mod lives;
mod machine;
mod parked;
mod queue;
mod reply;
mod resumed;
mod routed;
mod running;
pub mod runs;
pub mod scripts;
mod sequel;
pub mod socket_end;
mod status;
mod step;
pub mod supervision;
mod times;
pub mod waking;
mod work;

use std::time::Duration;

use crate::barrier::Output;
use crate::context::Context;
use crate::effect::{Effect, Outcome, ServerEffect};
use crate::fleet::{Fleet, QueueLine};
use crate::jobs::Jobs;
use crate::moment::Moment;
use crate::refused::Refused;
use crate::routes::Destination;
use crate::structures::chain::Place;
use crate::waits::Waits;
use crate::woken::Woken;
use journey::Journey;
use life::{Accepted, Life};
use lives::Lives;
use parkade_model::{AppId, Ending, JobPolicy, Reason, Refusal, RequestId, TableId, WorkerId};
use queue::{Lane, Queue, Turn};
use resumed::Resumed;
use step::Step;

pub use dispatch::dispatch;
pub use happening::Happening;
pub use journey::Patience;
pub use life::State;
pub use status::{RequestsStatus, oldest, status};
pub use times::Times;
pub use work::Work;

#[derive(Debug)]
pub struct Requests {
    lives: Lives,
    queue: Queue,
    resumed: Resumed,
    /// How many have begun to arrive.
    arriving: usize,
}

/// What moves of requests may use besides the requests.
pub struct Components<'a> {
    pub cx: &'a mut Context,
    pub waits: &'a mut Waits,
    pub jobs: &'a mut Jobs,
    pub fleet: &'a mut Fleet,
}

/// What happens to requests.
impl Requests {
    pub fn new(apps_count: usize) -> Self {
        Self { lives: Lives::new(apps_count), queue: Queue::new(apps_count), resumed: Resumed::default(), arriving: 0 }
    }

    pub fn arrive(&mut self, with: &mut Components<'_>, request: RequestId, app: AppId, destination: Destination) {
        if let Err(refused) = self.lives.vacant(request) {
            with.cx.counts.refused_events.add(refused);
            if self.lives.state(request).is_none() {
                self.step(with, request).refuse(Refusal::QueueFull);
                let (ending, times) = (Ending::Done, Times::default());
                with.cx.effects.push(Effect::Server(ServerEffect::Forget { request, ending, times }));
            }
            return;
        }
        with.cx.counts.accepted += 1;
        let place = self.queue.enter_unrouted(app, request);
        let journey = Journey::new(with.cx.now, with.cx.config.deadline.into());
        self.lives.open(request, app);
        self.lives.put(request, Life::Accepted(Accepted { journey, place, turn: Turn::Last }));
        let happening = match admission::refusal(with.cx, (&self.queue, with.fleet), app, &destination) {
            Some(Refusal::Stopping) => Happening::Cancelled(Reason::Stopping),
            Some(refusal) => Happening::Refused(refusal),
            None => Happening::Routed(destination),
        };
        self.turn(with, request, happening);
    }

    /// Whether a run of a job can have this slot.
    pub fn is_vacant(&mut self, request: RequestId) -> bool {
        self.lives.vacant(request).is_ok()
    }

    /// A run of a job has been claimed, and its slot is vacant.
    pub fn begin_run(
        &mut self,
        with: &mut Components<'_>,
        request: RequestId,
        JobPolicy { app, concurrent, deadline, retries: _ }: JobPolicy,
    ) {
        let journey = Journey::new(with.cx.now, deadline.into());
        self.lives.open(request, app);
        let life = routed::enter(&mut self.step(with, request), journey, Work::Job { concurrent }, Turn::Last);
        self.lives.put(request, life);
        if !with.fleet.is_open() {
            self.turn(with, request, Happening::Cancelled(Reason::Stopping));
        }
    }

    /// Something happened to a request.
    pub fn turn(&mut self, with: &mut Components<'_>, request: RequestId, happening: Happening) {
        let life = match self.lives.take(request) {
            Ok(life) => life,
            Err(refused) => return with.cx.counts.refused_events.add(refused),
        };
        let life = machine::moved(&mut self.step(with, request), life, happening).unwrap_or_else(|unmoved| {
            with.cx.counts.refused_events.add(unmoved.refused);
            unmoved.life
        });
        self.lives.put(request, life);
    }

    /// Those whose waits are over go on.
    pub fn wake(&mut self, with: &mut Components<'_>, woken: impl IntoIterator<Item = Woken>) {
        for Woken { request, outcome } in woken {
            self.turn(with, request, Happening::Woken(outcome));
        }
    }

    /// A frame of `worker` about `request`: it counts only if the worker holds that.
    pub fn frame(&mut self, with: &mut Components<'_>, worker: WorkerId, request: RequestId, happening: Happening) {
        if self.place_in(worker, request).is_some() {
            self.turn(with, request, happening);
        } else {
            self.late_frame(with, worker, request, happening.closes_stream());
        }
    }
}

/// What happens to workers and jobs, and means something for requests.
impl Requests {
    /// Its code begins in a worker. The time of a run of a job counts from then on, after a wait too: how long it queued, or was sent ahead, is not
    /// its fault.
    pub fn begin_code(&mut self, cx: &mut Context, request: RequestId) {
        if let Some(life) = self.lives.running_mut(request) {
            life.journey.start_spell(cx, request);
        }
    }

    /// More of its body has arrived, as its code reads it. How slowly its client sends is not the code's fault, and has a
    /// limit of its own; code that does not read gets no more, so its deadline passes.
    pub fn feed(&mut self, cx: &mut Context, request: RequestId) {
        if let Some(life) = self.lives.running_mut(request) {
            life.journey.restart_spell(cx, request);
        }
    }

    /// Whatever this worker may begin by now has begun.
    pub fn begin_next(&mut self, cx: &mut Context, fleet: &mut Fleet, worker: WorkerId) {
        while let Some(run) = fleet.workers.begin_next(cx.now, worker) {
            self.begin_code(cx, run);
        }
    }

    /// `UNPARK`. A request that no longer waits has been resumed, or cancelled: what says so is on its way to the worker.
    pub fn unpark(&mut self, with: &mut Components<'_>, worker: WorkerId, request: RequestId) {
        if self.is_awaited_by(worker, request) {
            self.turn(with, request, Happening::Woken(Outcome::Unparked));
        }
    }

    /// Something is written on behalf of the request, which waits for it.
    pub fn write(&self, with: &mut Components<'_>, request: RequestId) {
        if self.is_open(request) {
            with.waits.barrier.begin_write(request);
        }
    }

    /// What the worker says of the request is not heard before its writes are durable.
    pub fn hold_output(&self, with: &mut Components<'_>, worker: WorkerId, request: RequestId, output: Output) {
        if self.place_in(worker, request).is_some() {
            with.waits.barrier.hold(worker, request, output);
        }
    }

    /// A write of the request is durable, or lost.
    pub fn written(&mut self, with: &mut Components<'_>, request: RequestId, fault: Option<Refusal>) {
        let Some(settled) = with.waits.barrier.end_write(request, fault) else { return };
        match self.lives.life(request) {
            Some(Life::Parked(life)) => {
                let outcome = life.watch.stored();
                self.wake(with, outcome.map(|outcome| Woken { request, outcome }));
            }
            Some(Life::Running(_)) if settled.holds_output => {
                with.cx.effects.push(Effect::Server(ServerEffect::ReleaseOutput { request }));
            }
            Some(Life::Running(_) | Life::Accepted(_) | Life::Routed(_) | Life::Done | Life::Cancelled) | None => {}
        }
    }

    /// The routes of the application are others from now on: requests that are queued for it are looked up again.
    pub fn reroute(&mut self, with: &mut Components<'_>, app: AppId, table: TableId) {
        let look_up = |request| Effect::Server(ServerEffect::LookUpRoute { request, table });
        with.cx.effects.extend(self.queue.unrouted(app).map(look_up));
        let queued: Vec<RequestId> = self.queue.lane(app, Lane::Requests).values().collect();
        for request in queued {
            if matches!(self.lives.life(request), Some(Life::Routed(life)) if life.work.table().is_some_and(|known| known != table))
            {
                self.turn(with, request, Happening::Unrouted { table, turn: Turn::Last });
            }
        }
    }

    /// No worker will take what is queued for the application: requests are told now rather than at their deadlines.
    pub fn refuse_queued(&mut self, with: &mut Components<'_>, app: AppId) {
        let routed = self.queue.lane(app, Lane::Requests).values();
        let queued: Vec<RequestId> = self.queue.unrouted(app).chain(routed).collect();
        for request in queued {
            self.turn(with, request, Happening::Refused(Refusal::NoApplication));
        }
    }

    /// No run that waits will begin here, or not soon: another start, or another server, takes it.
    pub fn hand_back_waiting(&mut self, with: &mut Components<'_>) {
        for app in with.fleet.apps() {
            self.hand_back(with, app, Lane::Waiting);
        }
    }

    /// An operator ends the request, or the one that this is a branch of.
    pub fn cancel_by_operator(&mut self, with: &mut Components<'_>, request: RequestId) {
        let request = with.waits.branches.owner_of(request);
        self.turn(with, request, Happening::Cancelled(Reason::Operator));
    }

    /// Cancels these. Branches among them are left out: they end with their requests. Returns whether there were any others.
    pub fn cancel_each(&mut self, with: &mut Components<'_>, mut requests: Vec<RequestId>, reason: Reason) -> bool {
        // All before the first: the branches of a request that has ended are known no longer.
        requests.retain(|request| !with.waits.branches.contains(*request));
        for request in &requests {
            self.turn(with, *request, Happening::Cancelled(reason));
        }
        !requests.is_empty()
    }

    /// Cancels all requests that have not ended. Returns whether there were any.
    pub fn cancel_all(&mut self, with: &mut Components<'_>, reason: Reason) -> bool {
        // What clients of WebSockets have said ends with those.
        let is_call = |request: &RequestId| with.waits.sockets.is_call(*request);
        let left = self.lives.iter().map(|(request, _)| request).filter(|request| !is_call(request)).collect();
        self.cancel_each(with, left, reason)
    }

    /// A message is about to wake the request.
    pub fn silence(&mut self, cx: &mut Context, request: RequestId) {
        if let Some(life) = self.lives.parked_mut(request) {
            life.journey.silence(cx);
        }
    }

    /// At the end of an event: workers are told which coroutines go on.
    pub fn tell_resumed(&mut self, cx: &mut Context) {
        self.resumed.tell(cx);
    }

    fn hand_back(&mut self, with: &mut Components<'_>, app: AppId, lane: Lane) {
        let runs = self.queue.lane(app, lane).values().collect();
        self.cancel_each(with, runs, Reason::Stopping);
    }

    /// A frame about a request that the worker does not hold, or that is cancelled.
    fn late_frame(&mut self, with: &mut Components<'_>, worker: WorkerId, request: RequestId, closes: bool) {
        let Some(place) = with.fleet.workers.abandoned(worker, request) else {
            return with.cx.counts.refused_events.add(Refused::NotHeld);
        };
        with.cx.counts.late_frames += 1;
        if closes {
            self.release(with.cx, with.jobs, with.fleet, worker, place);
            with.waits.end_stream(request);
        }
    }

    /// Takes a stream from its worker, whose credit it was.
    fn release(&mut self, cx: &mut Context, jobs: &mut Jobs, fleet: &mut Fleet, worker: WorkerId, place: Place) {
        if let Some(queue) = fleet.release(cx, worker, place) {
            jobs.leave(queue);
        }
        self.begin_next(cx, fleet, worker);
    }

    fn step<'a>(&'a mut self, with: &'a mut Components<'_>, request: RequestId) -> Step<'a> {
        Step { request, requests: self, cx: with.cx, waits: with.waits, jobs: with.jobs, fleet: with.fleet }
    }
}

/// Questions.
impl Requests {
    /// Its application.
    pub fn app(&self, request: RequestId) -> AppId {
        self.lives.app(request)
    }

    pub fn state(&self, request: RequestId) -> Option<State> {
        self.lives.state(request)
    }

    /// How many have not ended, runs of jobs and branches included.
    pub fn count(&self) -> usize {
        self.lives.count()
    }

    /// How many of this application have not ended.
    pub fn count_of_app(&self, app: AppId) -> usize {
        self.lives.count_of_app(app)
    }

    /// How many of these workers hold.
    pub fn running_count(&self) -> usize {
        self.lives.count_of(State::Running)
    }

    /// Whether the request has not ended.
    pub fn is_open(&self, request: RequestId) -> bool {
        !matches!(self.lives.state(request), None | Some(State::Done | State::Cancelled))
    }

    /// Where the request stands in this worker, if it runs there.
    pub fn place_in(&self, worker: WorkerId, request: RequestId) -> Option<Place> {
        match self.lives.life(request) {
            Some(Life::Running(life)) if life.worker == worker => Some(life.place),
            Some(_) | None => None,
        }
    }

    /// Whether the coroutine of the request waits in the worker.
    pub fn is_awaited_by(&self, worker: WorkerId, request: RequestId) -> bool {
        matches!(self.lives.life(request), Some(Life::Parked(life)) if life.sequel.awaiting_worker() == Some(worker))
    }

    /// Whether the worker holds the request, or the request's coroutine waits in it.
    pub fn is_with(&self, worker: WorkerId, request: RequestId) -> bool {
        self.place_in(worker, request).is_some() || self.is_awaited_by(worker, request)
    }

    /// Since when the request waits for something.
    pub fn parked_since(&self, request: RequestId) -> Option<Moment> {
        match self.lives.life(request) {
            Some(Life::Parked(life)) => Some(life.journey.since()),
            Some(Life::Accepted(_) | Life::Routed(_) | Life::Running(_) | Life::Done | Life::Cancelled) | None => None,
        }
    }

    /// What waits for workers.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// How long a request that joins this line now waits, at the soonest.
    pub fn soonest(&self, fleet: &Fleet, now: Moment, line: QueueLine) -> Option<Duration> {
        admission::soonest((&self.queue, fleet), now, line)
    }

    /// The first run of each line of the application that waits to begin, and since when.
    pub fn first_waiting_runs(&self, app: AppId) -> impl Iterator<Item = (RequestId, Moment)> {
        let firsts = self.queue.waiting(app).firsts().into_iter().flatten();
        firsts.filter_map(|first| Some((first, self.lives.queued_since(first)?)))
    }
}
