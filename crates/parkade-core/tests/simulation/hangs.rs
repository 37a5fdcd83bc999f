//! What hangs: a whole process, or one plain function beside a loop that turns. Promise 6: it is killed in time, and takes nobody else along.

use parkade_core::{KillReason, Moment, WorkerId};

use crate::model::Model;
use crate::process::{Phase, Process, Stream, Temper};
use crate::world::World;

impl World {
    /// The code of this one begins, and may never end. All else in its worker goes on.
    pub(crate) fn may_hang(&mut self, process: &Process, stream: Stream) -> bool {
        let one_of = if stream.queue.is_some() { 4 } else { 30 };
        !self.has_transactions && process.concurrent && !stream.coroutine && self.random.below(one_of) == 0
    }
}

impl Process {
    /// Something hangs in it, while its loop turns.
    pub fn hangs(&self) -> bool {
        self.streams.iter().any(|stream| stream.hangs.is_some())
    }
}

impl Stream {
    /// When it is to be killed, if it still runs then: the deadline and the time since it began are both to be over by the grace.
    fn kill_due(&self, world: &World) -> Option<Moment> {
        let began = self.hangs?;
        Some(self.deadline_at?.max(began) + world.core.config().kill_grace)
    }
}

impl Model {
    /// What is seen when a worker is killed for a deadline.
    pub(crate) fn note_kill(&mut self, worker: WorkerId, why: KillReason) {
        let process = &self.processes[&worker];
        if why != KillReason::Deadline || !process.hangs() || process.ping.is_some() || process.temper == Temper::Stuck
        {
            return;
        }
        self.seen.insert("killed beside a loop that turns");
        if process.streams.iter().any(|stream| !stream.told && !stream.ghost) {
            self.seen.insert("behind one that hangs");
        }
    }
}

pub fn check(world: &World) {
    for process in world.model.processes.values() {
        a_stuck_one_is_killed(world, process);
        what_hangs_beside_a_loop_is_killed_in_time(world, process);
    }
}

/// Whatever else its worker does meanwhile.
fn what_hangs_beside_a_loop_is_killed_in_time(world: &World, process: &Process) {
    if process.phase != Phase::Ready {
        return;
    }
    let due = process.streams.iter().filter_map(|stream| stream.kill_due(world)).min();
    assert!(due.is_none_or(|due| world.now < due), "it hangs, and lives: {process:?}");
}

/// Promise 6: whoever hangs is killed at the deadline, at the latest after half a minute of silence.
fn a_stuck_one_is_killed(world: &World, process: &Process) {
    if process.phase != Phase::Ready || process.temper != Temper::Stuck {
        return;
    }
    let config = world.core.config();
    let late = |since| world.now - since > config.kill_grace * 3;
    if let Some(front) = process.streams.front().filter(|_| !process.concurrent)
        && let Some(deadline_at) = front.deadline_at
    {
        assert!(!late(deadline_at.max(process.front_since)), "stuck past its deadline: {process:?}");
    }
    // Whatever else it holds.
    for stream in process.streams.iter().filter(|_| process.concurrent && process.held_up.is_none()) {
        if let Some(deadline_at) = stream.deadline_at {
            assert!(!late(deadline_at.max(stream.since).max(process.stuck_since)), "it hangs, and lives: {process:?}");
        }
    }
    if let Some((_, sent)) = process.ping {
        assert!(world.now - sent < parkade_core::limits::STUCK_MAX * 2, "silent for ever: {process:?}");
    }
}
