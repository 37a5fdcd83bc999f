//! Pauses between failed attempts: longer each time, and randomised, so that many clients do not try at the same time.

use std::time::{Duration, Instant};

use crate::limits::{BACK_OFF_FLOOR, BACK_OFF_MAX, BACK_OFF_MIN};

#[derive(Debug, Default)]
pub(crate) struct BackOff {
    failures: u32,
    /// `None`: at once.
    pub(crate) until: Option<Instant>,
}

impl BackOff {
    pub(crate) fn failed(&mut self, now: Instant, random: &mut fastrand::Rng) {
        let most = BACK_OFF_MIN.saturating_mul(1 << self.failures.min(16)).min(BACK_OFF_MAX);
        self.failures += 1;
        let pause = most.mul_f64(random.f64()).max(BACK_OFF_FLOOR);
        self.until = Some(now + pause);
    }

    pub(crate) fn wait(&mut self, now: Instant, pause: Duration) {
        self.until = Some(now + pause);
    }

    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until <= now)
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.failures > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_most_and_stay() {
        let (now, mut random) = (Instant::now(), fastrand::Rng::with_seed(1));
        let mut back_off = BackOff::default();
        let pauses: Vec<_> = (0..2000)
            .map(|_| {
                back_off.failed(now, &mut random);
                back_off.until.unwrap() - now
            })
            .collect();
        assert!(
            pauses[0] <= BACK_OFF_MIN && pauses.iter().all(|pause| (BACK_OFF_FLOOR..=BACK_OFF_MAX).contains(pause))
        );
        assert!(pauses.iter().any(|pause| *pause > BACK_OFF_MAX * 9 / 10));
    }
}
