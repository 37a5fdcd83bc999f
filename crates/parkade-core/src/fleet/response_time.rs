//! How fast a worker answers, and so whether it may be sent requests ahead.
//!
//! This concerns workers that run one request at a time. A request that waits there for a slow one cannot be taken back, so the rule is strict:
//! the worker is quick on average and not slow right now, and it never has more than about a millisecond of work.

use std::time::Duration;

use crate::limits::{AHEAD_MICROS, QUICK_MICROS};
use crate::moment::Moment;

#[derive(Debug, Clone, Copy, Default)]
pub struct ResponseTime {
    /// Nanoseconds, a moving average of about 16 answers. `None` before the first.
    average: Option<u64>,
    /// When it began its present work.
    since: Moment,
}

impl ResponseTime {
    pub fn begin(&mut self, now: Moment) {
        self.since = now;
    }

    /// It has answered, and begins the next request if it has one.
    pub fn answer(&mut self, now: Moment) {
        let took = u64::try_from((now - self.since).as_nanos()).unwrap_or(u64::MAX / 16);
        self.average = Some(self.average.map_or(took, |average| average - average / 16 + took / 16));
        self.since = now;
    }

    pub fn since(&self) -> Moment {
        self.since
    }

    /// How many requests it may hold now, including the present one.
    pub fn depth(&self, now: Moment) -> u64 {
        let is_slow_now = now - self.since >= Duration::from_micros(QUICK_MICROS);
        match self.average {
            Some(average) if average < QUICK_MICROS * 1000 && !is_slow_now => AHEAD_MICROS * 1000 / average.max(1000),
            Some(_) | None => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(answers: &[u64]) -> (ResponseTime, u64) {
        let (mut pace, mut micros) = (ResponseTime::default(), 0);
        for took in answers {
            micros += took;
            pace.answer(Moment::from_nanos(micros * 1000));
        }
        (pace, micros)
    }

    #[test]
    fn only_a_quick_worker_is_sent_requests_ahead() {
        let depth = |answers: &[u64], later: u64| {
            let (pace, micros) = after(answers);
            pace.depth(Moment::from_nanos((micros + later) * 1000))
        };
        assert_eq!(depth(&[], 0), 1);
        assert_eq!(depth(&[100; 50], 0), 10);
        assert_eq!(depth(&[100; 50], 499), 10);
        assert_eq!(depth(&[100; 50], 500), 1, "the one it works on is slow");
        assert_eq!(depth(&[600; 50], 0), 1);
        assert_eq!(depth(&[100, 100, 1_000_000], 0), 1);
        assert!(depth(&[400; 50], 0) == 2 && depth(&[0; 50], 0) == 1000);
    }
}
