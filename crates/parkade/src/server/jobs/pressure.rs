//! Workers that enqueue faster than the store commits. The link of such a one is not read for a while: the pipe fills, and writing holds up its
//! code, not us. Before the pause there are some commits' worth, so that the store never waits for the next.

use std::collections::HashMap;

use parkade_core::{Event, WorkerId};

use crate::server::Server;

/// Enqueues of one worker that the store has not answered: some four commits. Then: its link is not read until half of them are answered.
/// What one turn reads of it (`READ_BYTES_PER_TURN`) comes on top.
const WAITING_COUNT_MAX: usize = 4_096;
/// Their arguments. Then: the same.
const WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What the store has not answered, by who enqueued it.
#[derive(Debug, Default)]
pub struct Pressure {
    workers: HashMap<WorkerId, Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    count: usize,
    bytes: usize,
    held_up: Option<HeldUp>,
}

#[derive(Debug)]
struct HeldUp {
    /// The store has answered something of it since it was looked at last.
    moves: bool,
}

impl Pressure {
    /// Whether the worker is to be held up from now on.
    pub fn enqueued(&mut self, worker: WorkerId, bytes: usize) -> bool {
        let waiting = self.workers.entry(worker).or_default();
        waiting.count += 1;
        waiting.bytes += bytes;
        let is_over = waiting.count > WAITING_COUNT_MAX || waiting.bytes > WAITING_BYTES_MAX;
        let holds_up = is_over && waiting.held_up.is_none();
        if holds_up {
            waiting.held_up = Some(HeldUp { moves: true });
        }
        holds_up
    }

    pub fn holds_up(&self, worker: WorkerId) -> bool {
        self.workers.get(&worker).is_some_and(|waiting| waiting.held_up.is_some())
    }

    /// Whether the worker may go on from now on.
    pub fn answered(&mut self, worker: WorkerId, bytes: usize) -> bool {
        let Some(waiting) = self.workers.get_mut(&worker) else { return false };
        waiting.count = waiting.count.saturating_sub(1);
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
        let goes_on = waiting.count <= WAITING_COUNT_MAX / 2 && waiting.bytes <= WAITING_BYTES_MAX / 2;
        let lets_on = match &mut waiting.held_up {
            Some(_) if goes_on => waiting.held_up.take().is_some(),
            Some(held_up) => {
                held_up.moves = true;
                false
            }
            None => false,
        };
        if waiting.count == 0 {
            self.workers.remove(&worker);
        }
        lets_on
    }

    /// Those of which the store has answered nothing since it was asked last: they may go on, until they enqueue again.
    pub fn that_stand_still(&mut self) -> Vec<WorkerId> {
        let mut still = Vec::new();
        for (worker, waiting) in &mut self.workers {
            let Some(held_up) = &mut waiting.held_up else { continue };
            if !std::mem::take(&mut held_up.moves) {
                waiting.held_up = None;
                still.push(*worker);
            }
        }
        still
    }
}

impl Server {
    pub(super) fn note_enqueued_by(&mut self, worker: WorkerId, bytes: usize) {
        if self.jobs.pressure.enqueued(worker, bytes) {
            self.workers.hold_up(worker);
            self.tell(Event::HeldUp { worker });
        }
    }

    pub(super) fn note_answered_to(&mut self, worker: WorkerId, bytes: usize) {
        if self.jobs.pressure.answered(worker, bytes) {
            self.let_on(worker);
        }
    }

    /// A store that says nothing for a second, or for long, must not silence workers that have more to say than jobs: each second a part of that is
    /// heard, until as much waits for the store as may.
    pub(super) fn hear_those_that_stand_still(&mut self) {
        for worker in self.jobs.pressure.that_stand_still() {
            self.let_on(worker);
        }
    }

    /// The worker is heard again, unless something else holds it up.
    pub(in crate::server) fn let_on(&mut self, worker: WorkerId) {
        if self.jobs.pressure.holds_up(worker) || self.held_back.has(worker) {
            return;
        }
        self.workers.let_on(worker);
        self.tell(Event::LetOn { worker });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKER: WorkerId = WorkerId(1);
    const OTHER: WorkerId = WorkerId(2);

    fn enqueue(pressure: &mut Pressure, count: usize, bytes: usize) -> usize {
        (0..count).filter(|_| pressure.enqueued(WORKER, bytes)).count()
    }

    fn answer(pressure: &mut Pressure, count: usize, bytes: usize) -> usize {
        (0..count).filter(|_| pressure.answered(WORKER, bytes)).count()
    }

    #[test]
    fn one_more_than_may_wait_holds_its_worker_up_until_half_are_answered() {
        let mut pressure = Pressure::default();
        assert_eq!(enqueue(&mut pressure, WAITING_COUNT_MAX, 1), 0);
        assert!(pressure.enqueued(WORKER, 1), "one too many");
        assert_eq!(enqueue(&mut pressure, 100, 1), 0, "it is held up already");
        assert!(!pressure.enqueued(OTHER, 1), "another has nothing to do with it");
        assert_eq!(answer(&mut pressure, WAITING_COUNT_MAX / 2 + 100, 1), 0);
        assert!(pressure.answered(WORKER, 1));
        assert_eq!(answer(&mut pressure, WAITING_COUNT_MAX / 2, 1), 0, "it goes on already");
        assert_eq!(pressure.workers.len(), 1, "nothing is kept of a worker of which nothing waits");
    }

    #[test]
    fn few_with_large_arguments_hold_it_up_too() {
        let mut pressure = Pressure::default();
        let large = WAITING_BYTES_MAX / 16;
        assert_eq!(enqueue(&mut pressure, 16, large), 0);
        assert!(pressure.enqueued(WORKER, large));
        assert_eq!(answer(&mut pressure, 8, large), 0);
        assert!(pressure.answered(WORKER, large));
    }

    #[test]
    fn a_store_that_stands_still_lets_a_part_through_at_each_look() {
        let mut pressure = Pressure::default();
        enqueue(&mut pressure, WAITING_COUNT_MAX + 1, 1);
        assert_eq!(pressure.that_stand_still(), [], "it was held up since the last look");
        assert_eq!(answer(&mut pressure, 1, 1), 0);
        assert_eq!(pressure.that_stand_still(), [], "something was answered since");
        assert_eq!(pressure.that_stand_still(), [WORKER]);
        assert_eq!(pressure.that_stand_still(), [], "it goes on already");
        assert_eq!(enqueue(&mut pressure, 2, 1), 1, "and is held up by the next");
    }
}
