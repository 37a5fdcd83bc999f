//! The only place that reads the clock for the core.

use std::time::{Duration, Instant};

use parkade_core::Moment;

const YEAR: Duration = Duration::from_secs(86_400 * 365);

/// The monotonic clock, as moments since the server began. Changes of the wall clock do not affect it.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: Instant,
}

impl Clock {
    pub fn start() -> Self {
        Self { began: Instant::now() }
    }

    pub fn now(&self) -> Moment {
        Moment::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// The instant of a moment, which may be in the far future.
    pub fn at(&self, moment: Moment) -> Instant {
        // Centuries do not fit into the clocks of some systems; a year is far enough in the future.
        let since = Duration::from_nanos(moment.as_nanos());
        self.began.checked_add(since).unwrap_or_else(|| self.began + YEAR)
    }

    pub fn instant(&self, moment: Moment) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.at(moment))
    }
}
