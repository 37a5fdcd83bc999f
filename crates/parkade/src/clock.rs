//! The only place that reads the clock for the core.

use std::time::Instant;

use parkade_core::Moment;

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

    /// The instant of a moment in the past.
    pub fn at(&self, moment: Moment) -> Instant {
        self.began + std::time::Duration::from_nanos(moment.as_nanos())
    }

    pub fn instant(&self, moment: Moment) -> tokio::time::Instant {
        // A moment beyond the range of the clock is far enough in the future.
        let far = std::time::Duration::from_secs(86_400 * 365);
        tokio::time::Instant::from_std(
            self.began + std::time::Duration::from_nanos(moment.as_nanos()).min(far + self.began.elapsed()),
        )
    }
}
