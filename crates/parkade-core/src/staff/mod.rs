//! Which workers there should be: what is remembered about starts, deaths, reloads and the end of the server.

pub(crate) mod draining;
pub(crate) mod employing;
pub(crate) mod staffing;
pub(crate) mod tending;

use std::time::Duration;

use crate::effect::{ExitReason, ReloadOutcome};
use crate::id::WorkerId;
use crate::limits::{BACK_OFF_MAX, BACK_OFF_READY_MIN, BACK_OFF_START_MIN};
use crate::moment::Moment;

#[derive(Debug)]
pub(crate) struct Staff {
    /// The generation of code that serves.
    pub(crate) serving: u32,
    pub(crate) minted: u32,
    pub(crate) starts: Starts,
    pub(crate) reload: Option<Reload>,
    pub(crate) last_reload: Option<ReloadOutcome>,
    /// The worn worker that is being replaced: one at a time.
    pub(crate) recycling: Option<WorkerId>,
    pub(crate) back_off: BackOff,
    pub(crate) service: Service,
    /// Why the server ends, if not because it was asked to.
    pub(crate) verdict: Option<ExitReason>,
    /// Something has happened that the staff must be looked over for.
    pub(crate) attention: bool,
    /// When it must be looked over though nothing happens.
    pub(crate) due: Option<Moment>,
}

/// How starting went so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Starts {
    Untried,
    /// The first start has failed: nothing has ever worked.
    NeverWorked,
    Works,
    /// It had worked, but the last start failed.
    WorksNoMore,
}

/// New code is being started beside the old.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reload {
    pub(crate) generation: u32,
    pub(crate) fate: Fate,
    /// Asked for once more meanwhile.
    pub(crate) again: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Open,
    /// One of the new workers did not make it.
    Failed,
}

/// Whether the server serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Open,
    Draining {
        since: Moment,
        until: Moment,
    },
    /// Everything has been cancelled and killed: only the exits are awaited.
    Ending(ExitReason),
    Ended,
}

/// How long the next start is put off, because workers keep dying early.
#[derive(Debug, Default)]
pub(crate) struct BackOff {
    ready_streak: u32,
    start_streak: u32,
    last_death: Option<Moment>,
    until: Option<Moment>,
}

impl Staff {
    pub(crate) fn new() -> Self {
        Self {
            serving: 1,
            minted: 1,
            starts: Starts::Untried,
            reload: None,
            last_reload: None,
            recycling: None,
            back_off: BackOff::default(),
            service: Service::Open,
            verdict: None,
            attention: false,
            due: None,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.service == Service::Open
    }
}

impl Starts {
    pub(crate) fn failed(self) -> Self {
        match self {
            Self::Untried | Self::NeverWorked => Self::NeverWorked,
            Self::Works | Self::WorksNoMore => Self::WorksNoMore,
        }
    }

    pub(crate) fn has_failed(self) -> bool {
        matches!(self, Self::NeverWorked | Self::WorksNoMore)
    }
}

impl BackOff {
    pub(crate) fn until(&self) -> Option<Moment> {
        self.until
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
}
