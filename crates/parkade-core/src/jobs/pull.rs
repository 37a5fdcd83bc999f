//! How many jobs are claimed, and when: as many as workers can begin at once, and some ahead as long as workers turn out to wait for the store.

use crate::limits::JOBS_AHEAD_COUNT_MAX;
use crate::structures::timers::Alarm;
use parkade_model::{Allowance, QueueId};

#[derive(Debug, Default)]
pub(crate) struct Pull {
    /// What the claim that is on its way was allowed. The store is asked once at a time.
    pub(crate) asked: Option<Vec<Allowance<QueueId>>>,
    /// There may be jobs that are ready.
    pub(crate) is_hinted: bool,
    /// When there may be some again.
    pub(crate) alarm: Option<Alarm>,
    /// When the first of those that wait here has waited too long.
    pub(crate) in_vain: Option<Alarm>,
    /// How many are claimed before a worker is free for them.
    ahead: u32,
}

impl Pull {
    pub(crate) fn hint(&mut self) {
        self.is_hinted = true;
    }

    pub(crate) fn may_ask(&self) -> bool {
        self.is_hinted && self.asked.is_none()
    }

    pub(crate) fn ahead(&self) -> u32 {
        self.ahead
    }

    /// The workers had nothing left to do when the claim came back.
    pub(crate) fn was_late(&mut self) {
        self.ahead = (self.ahead * 2).clamp(1, JOBS_AHEAD_COUNT_MAX);
    }

    pub(crate) fn was_early(&mut self) {
        self.ahead /= 2;
    }

    /// A job goes back to the store.
    pub(crate) fn was_in_vain(&mut self) {
        self.ahead = 0;
    }
}
