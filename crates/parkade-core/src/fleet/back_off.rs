//! How long the next start of a worker is delayed because workers keep dying early.

use std::time::Duration;

use crate::limits::{BACK_OFF_MAX, BACK_OFF_READY_MIN, BACK_OFF_START_MIN};
use crate::moment::Moment;

#[derive(Debug, Default)]
pub struct StartBackOff {
    ready_streak: u32,
    start_streak: u32,
    last_death: Option<Moment>,
    until: Option<Moment>,
}

impl StartBackOff {
    /// The end of the pause, if it is not over.
    pub fn holds_until(&self, now: Moment) -> Option<Moment> {
        self.until.filter(|until| *until > now)
    }

    /// Whether a worker that started at this time can end the present streak.
    pub fn is_after_the_last_death(&self, started: Moment) -> bool {
        self.last_death.is_some_and(|death| death <= started)
    }

    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// A worker that had been ready died early. The first time costs nothing: one bad request may be the cause.
    pub fn died_early(&mut self, now: Moment, started: Moment) {
        if self.is_one_with_the_last_death(started) {
            return;
        }
        self.ready_streak += 1;
        let pause =
            if self.ready_streak == 1 { Duration::ZERO } else { doubled(BACK_OFF_READY_MIN, self.ready_streak - 2) };
        self.pause(now, pause);
    }

    /// A worker survived the kind of work that others died of, so not all of that work is deadly. Failed starts are another matter.
    /// Returns whether that ends a pause.
    pub fn survived(&mut self) -> bool {
        let ends = self.start_streak == 0 && self.until.is_some();
        if ends {
            self.reset();
        }
        ends
    }

    /// A worker never became ready. Another one started at once would fail as well.
    pub fn failed_to_start(&mut self, now: Moment, started: Moment) {
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
        let mut back_off = StartBackOff::default();
        let mut pauses = |fail: fn(&mut StartBackOff, Moment, Moment), times: u64, begin: u64| {
            let at = |second| Moment::from_nanos(second * 1_000_000_000);
            let paused = (0..times).map(|nth| {
                fail(&mut back_off, at(begin + nth * 100), at(begin + nth * 100));
                back_off.until.map_or(0, |until| (until - at(begin + nth * 100)).as_millis())
            });
            paused.collect::<Vec<u128>>()
        };
        assert_eq!(pauses(StartBackOff::died_early, 9, 0), [0, 250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000]);
        assert_eq!(pauses(StartBackOff::failed_to_start, 7, 1000), [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    }

    #[test]
    fn who_survives_ends_the_pause_unless_starts_fail() {
        let at = |second: u64| Moment::from_nanos(second * 1_000_000_000);
        let mut back_off = StartBackOff::default();
        (1..5).for_each(|second| back_off.died_early(at(second), at(second)));
        assert!(back_off.holds_until(at(4)).is_some());
        back_off.survived();
        assert_eq!(back_off.holds_until(at(4)), None);
        back_off.failed_to_start(at(5), at(5));
        back_off.survived();
        assert_eq!(back_off.holds_until(at(5)), Some(at(6)));
    }
}
