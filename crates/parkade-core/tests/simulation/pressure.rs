//! Back-pressure: workers whose pipes are not read while the store, or clients, are behind.

use std::time::Duration;

use parkade_core::limits::{STORE_SILENT_MAX, UNSTORED_BYTES_MAX};
use parkade_core::{Effect, Event, Moment, PressureEvent, WorkerEffect, WorkerId};

use crate::model::Model;
use crate::process::Phase;
use crate::world::World;

const MIB: u64 = 1 << 20;

/// Who has enqueued a job, and how large it is.
#[derive(Debug, Clone, Copy)]
pub struct Enqueuer {
    /// None if it is a script.
    worker: Option<WorkerId>,
    bytes: usize,
}

/// What a worker has enqueued and the store has not answered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Load {
    bytes: usize,
    answered_at: Moment,
    /// Too much waited when it enqueued last, and the store has neither caught up nor been silent since.
    is_behind: bool,
    /// Since when the store may be what its pipe waits for.
    behind_since: Moment,
    /// It was let on though too much waits, and has enqueued nothing since.
    is_let_on: bool,
}

impl Enqueuer {
    pub fn bytes(self) -> usize {
        self.bytes
    }

    pub fn paid_by(self, worker: Option<WorkerId>) -> Self {
        Self { worker, ..self }
    }
}

impl Load {
    fn is_over(self) -> bool {
        self.bytes > UNSTORED_BYTES_MAX
    }

    fn is_busy(self) -> bool {
        self.bytes > UNSTORED_BYTES_MAX / 2
    }
}

impl Model {
    fn load(&self, worker: WorkerId) -> Load {
        self.loads.get(&worker).copied().unwrap_or_default()
    }

    pub(crate) fn apply_of_pressure(&mut self, effect: &Effect) {
        match effect {
            Effect::Worker(WorkerEffect::PauseReading { worker }) => self.pauses(*worker),
            Effect::Worker(WorkerEffect::ResumeReading { worker }) => self.resumes(*worker),
            _ => panic!("no back-pressure: {effect:?}"),
        }
    }

    fn pauses(&mut self, worker: WorkerId) {
        let (now, is_over) = (self.now, self.load(worker).is_over());
        let process = self.process(worker);
        assert!(process.held_up.replace(now).is_none(), "paused twice");
        assert!(process.clients_behind || is_over, "paused for nothing");
        let is_for_the_store = !process.clients_behind;
        self.seen.insert(if is_for_the_store { "paused until the store has caught up" } else { "held up" });
    }

    fn resumes(&mut self, worker: WorkerId) {
        let (now, load) = (self.now, self.load(worker));
        let process = self.process(worker);
        assert!(process.held_up.take().is_some(), "resumed, and was heard");
        assert!(!process.clients_behind, "resumed while clients are behind");
        if load.is_busy() {
            let is_silent = load.answered_at + STORE_SILENT_MAX <= now;
            assert!(is_silent || !load.is_behind, "resumed while the store catches up");
            let load = self.loads.entry(worker).or_default();
            (load.is_behind, load.is_let_on) = (false, true);
            self.seen.extend(is_silent.then_some("resumed beside a store that stands still"));
        } else if load.answered_at == now {
            self.seen.insert("resumed when the store had caught up");
        }
    }
}

impl World {
    pub(crate) fn enqueuer(&mut self, worker: Option<WorkerId>) -> Enqueuer {
        let bytes = if self.random.below(3) == 0 { self.random.below(9 * MIB) } else { self.random.below(1_000) };
        Enqueuer { worker, bytes: usize::try_from(bytes).unwrap() }
    }

    pub(crate) fn write_began(&mut self, Enqueuer { worker, bytes }: Enqueuer) {
        let Some(worker) = worker else { return };
        let clients_behind = self.model.processes.get(&worker).is_some_and(|process| process.clients_behind);
        let load = self.model.loads.entry(worker).or_default();
        load.bytes += bytes;
        load.is_let_on = false;
        // While clients hold it up, nobody sees that the core no longer counts it as waiting for a silent store. Then its next job begins a new wait.
        if load.is_over() && (!load.is_behind || clients_behind) {
            load.behind_since = self.now;
        }
        load.is_behind |= load.is_over();
        self.tell(Event::Pressure(PressureEvent::WriteBegan { worker, bytes }));
    }

    pub(crate) fn write_ended(&mut self, Enqueuer { worker, bytes }: Enqueuer) {
        let Some(worker) = worker else { return };
        let load = self.model.loads.entry(worker).or_default();
        load.bytes -= bytes;
        load.is_behind &= load.is_busy() && self.now < load.answered_at + STORE_SILENT_MAX;
        load.answered_at = self.now;
        self.tell(Event::Pressure(PressureEvent::WriteEnded { worker, bytes }));
    }

    /// Now and then, for as long as some seconds.
    pub(crate) fn store_stands_still(&mut self) -> bool {
        let (is_calm, now) = (self.model.jobs.store.is_calm || self.model.jobs.settles, self.now);
        if !is_calm && self.random.below(300) == 0 {
            let until = now + Duration::from_millis(self.random.below(6_000));
            self.model.jobs.store.stands_still = Some(until);
            self.model.seen.insert("store stands still");
        }
        !is_calm && self.model.jobs.store.stands_still.is_some_and(|until| now < until)
    }
}

/// A worker is not heard while too much of what it has enqueued waits for the store, or for clients, and is heard otherwise.
pub fn pipes_are_read_or_not(world: &World) {
    for process in world.model.processes.values().filter(|process| process.phase == Phase::Ready) {
        let load = world.model.load(process.id);
        if process.held_up.is_some() {
            assert!(process.clients_behind || load.is_busy(), "paused for nothing: {process:?}");
        } else {
            assert!(!process.clients_behind, "heard while clients are behind: {process:?}");
            assert!(!load.is_over() || load.is_let_on, "heard while the store is behind: {process:?}");
        }
    }
}

/// A store that stands still silences nobody. A worker that clients held up before waits for the store only since its job was one too many: what it
/// had awaited before that says nothing of the store.
pub fn nobody_is_paused_for_ever(world: &World) {
    let is_ready = |process: &&crate::process::Process| process.phase == Phase::Ready && !process.clients_behind;
    for process in world.model.processes.values().filter(is_ready) {
        let Some(since) = process.held_up.filter(|_| world.now > world.lenient_until) else { continue };
        let Load { answered_at, behind_since, .. } = world.model.load(process.id);
        let since = since.max(answered_at).max(behind_since);
        assert!(world.now <= since + 2 * STORE_SILENT_MAX, "silenced by a store that stands still: {process:?}");
    }
}
