//! How long something is put off, because workers keep dying early.

use std::time::Duration;

use crate::limits::{BACK_OFF_MAX, BACK_OFF_READY_MIN, BACK_OFF_START_MIN, EARLY_DEATH};
use crate::moment::Moment;

/// Of the next start of workers, or of the jobs that they die of.
#[derive(Debug, Default)]
pub(crate) struct BackOff {
    ready_streak: u32,
    start_streak: u32,
    last_death: Option<Moment>,
    until: Option<Moment>,
}

impl BackOff {
    pub(crate) fn until(&self) -> Option<Moment> {
        self.until
    }

    /// The same, unless it is over.
    pub(crate) fn holds_until(&self, now: Moment) -> Option<Moment> {
        self.until.filter(|until| *until > now)
    }

    /// Whether a worker that started then has to do with the present streak.
    pub(crate) fn is_after_the_last_death(&self, started: Moment) -> bool {
        self.last_death.is_some_and(|death| death <= started)
    }

    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// A worker died early that had been ready: the first time costs nothing, it may have been one bad request.
    pub(crate) fn died_early(&mut self, now: Moment, started: Moment) {
        if self.is_one_with_the_last_death(started) {
            return;
        }
        self.ready_streak += 1;
        let pause =
            if self.ready_streak == 1 { Duration::ZERO } else { doubled(BACK_OFF_READY_MIN, self.ready_streak - 2) };
        self.pause(now, pause);
    }

    /// A worker died of its jobs. That none died of them for long counts only from when there were some again.
    pub(crate) fn died_of_jobs(&mut self, now: Moment, started: Moment, ready_at: Moment) {
        let since = self.until.map_or(ready_at, |until| until.max(ready_at));
        if now - since >= EARLY_DEATH {
            self.reset();
        } else {
            self.died_early(now, started);
        }
    }

    /// A worker never said ready: it would not the next moment either.
    pub(crate) fn failed_to_start(&mut self, now: Moment, started: Moment) {
        if self.is_one_with_the_last_death(started) {
            return;
        }
        self.start_streak += 1;
        self.pause(now, doubled(BACK_OFF_START_MIN, self.start_streak - 1));
    }

    /// Workers that fail together count as one failure: this one was running already when the last one died.
    fn is_one_with_the_last_death(&self, started: Moment) -> bool {
        self.last_death.is_some_and(|death| started < death)
    }

    fn pause(&mut self, now: Moment, pause: Duration) {
        self.last_death = Some(now);
        self.until = self.until.max(Some(now + pause));
    }
}

fn doubled(least: Duration, times: u32) -> Duration {
    least.saturating_mul(1 << times.min(16)).min(BACK_OFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_doubles_up_to_half_a_minute() {
        let mut back_off = BackOff::default();
        let mut pauses = |fail: fn(&mut BackOff, Moment, Moment), times: u64, begin: u64| {
            let at = |second| Moment::from_nanos(second * 1_000_000_000);
            let paused = (0..times).map(|nth| {
                fail(&mut back_off, at(begin + nth * 100), at(begin + nth * 100));
                (back_off.until().unwrap() - at(begin + nth * 100)).as_millis()
            });
            paused.collect::<Vec<u128>>()
        };
        assert_eq!(pauses(BackOff::died_early, 9, 0), [0, 250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000]);
        assert_eq!(pauses(BackOff::failed_to_start, 7, 1000), [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    }

    /// A worker to which no job is given lives as long as the pause: that says nothing of jobs.
    #[test]
    fn a_worker_that_lived_through_a_pause_did_not_live_long_with_jobs() {
        let (mut back_off, mut now) = (BackOff::default(), Moment::default());
        let pauses: Vec<u128> = (0..10)
            .map(|_| {
                let ready_at = now;
                now = back_off.until().unwrap_or(now) + Duration::from_secs(1);
                back_off.died_of_jobs(now, ready_at, ready_at);
                (back_off.until().unwrap() - now).as_millis()
            })
            .collect();
        assert_eq!(pauses, [0, 250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
        now = back_off.until().unwrap() + EARLY_DEATH;
        back_off.died_of_jobs(now, now, Moment::default());
        assert_eq!(back_off.until(), None);
    }
}
