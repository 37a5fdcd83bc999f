//! How many jobs are claimed, and when: as many as workers can begin at once, and a few ahead where workers are quick.

use std::time::Duration;

use super::Allowance;
use crate::limits::JOBS_AHEAD_COUNT_MAX;
use crate::moment::Moment;
use crate::staff::back_off::BackOff;
use crate::structures::timers::Alarm;

#[derive(Debug, Default)]
pub(crate) struct Pull {
    /// What the claim that is on its way was allowed. The store is asked once at a time.
    pub(crate) asked: Option<Vec<Allowance>>,
    /// There may be jobs that are ready.
    pub(crate) is_hinted: bool,
    /// When there may be some again.
    pub(crate) alarm: Option<Alarm>,
    /// Workers die of jobs: so long none is begun, and requests find workers meanwhile.
    pub(crate) back_off: BackOff,
    /// How many are claimed ahead of quick workers.
    ahead: u32,
}

/// Jobs that waited so long for a worker were claimed too early.
pub(crate) const WAITED_TOO_LONG: Duration = Duration::from_millis(20);

impl Pull {
    pub(crate) fn hint(&mut self) {
        self.is_hinted = true;
    }

    pub(crate) fn may_ask(&self, now: Moment) -> bool {
        self.is_hinted && self.asked.is_none() && !self.are_put_off(now)
    }

    /// Whether no job is begun now.
    pub(crate) fn are_put_off(&self, now: Moment) -> bool {
        self.back_off.holds_until(now).is_some()
    }

    pub(crate) fn ahead(&self) -> u32 {
        self.ahead.max(1)
    }

    /// The workers had nothing left to do when the claim came back.
    pub(crate) fn was_late(&mut self) {
        self.ahead = (self.ahead() * 2).min(JOBS_AHEAD_COUNT_MAX);
    }

    pub(crate) fn was_early(&mut self) {
        self.ahead = self.ahead() / 2;
    }
}
