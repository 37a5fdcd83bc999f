//! Back-pressure: workers that enqueue faster than the store commits, or publish faster than clients take it. The pipe of such a worker is not
//! read for a while. It fills, and writing holds up the worker's code, not the server.
//!
//! Before the pause there are some commits' worth, so that the store never waits for the next.

use std::collections::BTreeMap;

use crate::limits::{STORE_SILENT_MAX, UNSTORED_BYTES_MAX, UNSTORED_COUNT_MAX};
use crate::moment::Moment;
use parkade_model::WorkerId;

/// What slows a worker down, or no longer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PressureEvent {
    /// A job of the worker was given to the store; `bytes` is the size of its arguments.
    WriteBegan { worker: WorkerId, bytes: usize },
    /// The store has answered it, whatever it said.
    WriteEnded { worker: WorkerId, bytes: usize },
    /// What the worker publishes goes to more clients than can be told of it at once.
    ClientsBehind { worker: WorkerId },
    /// Most of them have been told.
    ClientsCaughtUp { worker: WorkerId },
}

/// Whether a worker is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    Paused(WorkerId),
    Resumed(WorkerId),
}

/// Whose pipes are not read, and why.
#[derive(Debug, Default)]
pub struct Pressure {
    workers: BTreeMap<WorkerId, Load>,
    /// When the workers that wait for the store are looked at.
    look_at: Option<Moment>,
}

#[derive(Debug, Default)]
struct Load {
    count: usize,
    bytes: usize,
    /// The store has not yet stored what it has enqueued.
    store: Option<StoreBehind>,
    clients_behind: bool,
}

#[derive(Debug)]
struct StoreBehind {
    /// The store has answered some of it since the last look.
    moves: bool,
}

impl Load {
    fn is_paused(&self) -> bool {
        self.store.is_some() || self.clients_behind
    }

    fn is_nothing(&self) -> bool {
        self.count == 0 && !self.is_paused()
    }
}

impl Pressure {
    pub fn next_due(&self) -> Option<Moment> {
        self.look_at
    }

    pub fn handle(&mut self, now: Moment, event: PressureEvent) -> Option<Reading> {
        match event {
            PressureEvent::WriteBegan { worker, bytes } => {
                let reading = self.change(worker, |load| load.write_began(bytes));
                if self.look_at.is_none() && self.is_behind(worker) {
                    self.look_at = Some(now + STORE_SILENT_MAX);
                }
                reading
            }
            PressureEvent::WriteEnded { worker, bytes } => self.change(worker, |load| load.write_ended(bytes)),
            PressureEvent::ClientsBehind { worker } => self.change(worker, |load| load.clients_behind = true),
            PressureEvent::ClientsCaughtUp { worker } => self.change(worker, |load| load.clients_behind = false),
        }
    }

    /// A store that says nothing for a second, or for long, must not silence workers that have more to say than jobs: each second a part of that is
    /// heard, until as much waits for the store as may.
    pub fn look(&mut self, now: Moment) -> Vec<Reading> {
        if self.look_at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        let mut resumed = Vec::new();
        for (worker, load) in &mut self.workers {
            let Some(behind) = &mut load.store else { continue };
            if !std::mem::take(&mut behind.moves) {
                load.store = None;
                resumed.extend((!load.clients_behind).then_some(Reading::Resumed(*worker)));
            }
        }
        let is_any_behind = self.workers.values().any(|load| load.store.is_some());
        self.look_at = is_any_behind.then(|| now + STORE_SILENT_MAX);
        resumed
    }

    fn is_behind(&self, worker: WorkerId) -> bool {
        self.workers.get(&worker).is_some_and(|load| load.store.is_some())
    }

    fn change(&mut self, worker: WorkerId, change: impl FnOnce(&mut Load)) -> Option<Reading> {
        let load = self.workers.entry(worker).or_default();
        let was_paused = load.is_paused();
        change(load);
        let is_paused = load.is_paused();
        if load.is_nothing() {
            self.workers.remove(&worker);
        }
        match (was_paused, is_paused) {
            (false, true) => Some(Reading::Paused(worker)),
            (true, false) => Some(Reading::Resumed(worker)),
            (false, false) | (true, true) => None,
        }
    }
}

impl Load {
    fn write_began(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes += bytes;
        let is_over = self.count > UNSTORED_COUNT_MAX || self.bytes > UNSTORED_BYTES_MAX;
        if is_over && self.store.is_none() {
            self.store = Some(StoreBehind { moves: true });
        }
    }

    fn write_ended(&mut self, bytes: usize) {
        self.count = self.count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        let goes_on = self.count <= UNSTORED_COUNT_MAX / 2 && self.bytes <= UNSTORED_BYTES_MAX / 2;
        if goes_on {
            self.store = None;
        } else if let Some(behind) = &mut self.store {
            behind.moves = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const WORKER: WorkerId = WorkerId(1);
    const OTHER: WorkerId = WorkerId(2);
    const PAUSED: Option<Reading> = Some(Reading::Paused(WORKER));
    const RESUMED: Option<Reading> = Some(Reading::Resumed(WORKER));

    fn began(pressure: &mut Pressure, worker: WorkerId, bytes: usize) -> Option<Reading> {
        pressure.handle(Moment::default(), PressureEvent::WriteBegan { worker, bytes })
    }

    fn ended(pressure: &mut Pressure, bytes: usize) -> Option<Reading> {
        pressure.handle(Moment::default(), PressureEvent::WriteEnded { worker: WORKER, bytes })
    }

    /// How often the worker is paused by so many.
    fn begin(pressure: &mut Pressure, count: usize, bytes: usize) -> usize {
        (0..count).filter(|_| began(pressure, WORKER, bytes).is_some()).count()
    }

    fn end(pressure: &mut Pressure, count: usize, bytes: usize) -> usize {
        (0..count).filter(|_| ended(pressure, bytes).is_some()).count()
    }

    fn second(nth: u64) -> Moment {
        Moment::default() + Duration::from_secs(nth)
    }

    #[test]
    fn one_more_than_may_wait_pauses_its_worker_until_half_are_answered() {
        let mut pressure = Pressure::default();
        assert_eq!(begin(&mut pressure, UNSTORED_COUNT_MAX, 1), 0);
        assert_eq!(began(&mut pressure, WORKER, 1), PAUSED, "one too many");
        assert_eq!(begin(&mut pressure, 100, 1), 0, "it is paused already");
        assert_eq!(began(&mut pressure, OTHER, 1), None, "another has nothing to do with it");
        assert_eq!(end(&mut pressure, UNSTORED_COUNT_MAX / 2 + 100, 1), 0);
        assert_eq!(ended(&mut pressure, 1), RESUMED);
        assert_eq!(end(&mut pressure, UNSTORED_COUNT_MAX / 2, 1), 0, "it goes on already");
        assert_eq!(pressure.workers.len(), 1, "nothing is kept of a worker of which nothing waits");
    }

    #[test]
    fn few_with_large_arguments_pause_it_too() {
        let mut pressure = Pressure::default();
        let large = UNSTORED_BYTES_MAX / 16;
        assert_eq!(begin(&mut pressure, 16, large), 0);
        assert_eq!(began(&mut pressure, WORKER, large), PAUSED);
        assert_eq!(end(&mut pressure, 8, large), 0);
        assert_eq!(ended(&mut pressure, large), RESUMED);
    }

    #[test]
    fn a_store_that_stands_still_lets_a_part_through_at_each_look() {
        let mut pressure = Pressure::default();
        begin(&mut pressure, UNSTORED_COUNT_MAX + 1, 1);
        assert_eq!(pressure.next_due(), Some(second(1)));
        assert_eq!(pressure.look(second(1)), [], "it was paused since the last look");
        assert_eq!(end(&mut pressure, 1, 1), 0);
        assert_eq!(pressure.look(second(2)), [], "something was answered since");
        assert_eq!(pressure.look(second(3)), [Reading::Resumed(WORKER)]);
        assert_eq!(pressure.next_due(), None, "nobody is paused");
        assert_eq!(begin(&mut pressure, 2, 1), 1, "it is paused by the next");
    }

    #[test]
    fn a_worker_with_two_reasons_is_paused_until_both_are_gone() {
        let mut pressure = Pressure::default();
        let mut clients = |event| pressure.handle(Moment::default(), event);
        assert_eq!(clients(PressureEvent::ClientsBehind { worker: WORKER }), PAUSED);
        begin(&mut pressure, UNSTORED_COUNT_MAX + 1, 1);
        let mut clients = |event| pressure.handle(Moment::default(), event);
        assert_eq!(clients(PressureEvent::ClientsCaughtUp { worker: WORKER }), None);
        assert_eq!(clients(PressureEvent::ClientsBehind { worker: WORKER }), None);
        assert_eq!(end(&mut pressure, UNSTORED_COUNT_MAX + 1, 1), 0);
        let mut clients = |event| pressure.handle(Moment::default(), event);
        assert_eq!(clients(PressureEvent::ClientsCaughtUp { worker: WORKER }), RESUMED);
        assert!(pressure.workers.is_empty());
    }
}
