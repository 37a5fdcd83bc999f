//! A share of a turn: how long one part of it may take before it is the next part's turn.

use std::time::{Duration, Instant};

/// Steps between two readings of the clock. A reading costs about a hundredth of a request, and a step rarely takes a
/// millisecond.
const STEPS_UNSEEN: u32 = 4;

/// It begins with the first reading, so a part of fewer steps never reads the clock.
#[derive(Debug)]
pub struct Share {
    /// `None`: unlimited, where nothing else is waiting.
    time: Option<Duration>,
    end: Option<Instant>,
    steps: u32,
}

impl Share {
    pub const fn of(time: Duration) -> Self {
        Self { time: Some(time), end: None, steps: 0 }
    }

    pub const fn endless() -> Self {
        Self { time: None, end: None, steps: 0 }
    }

    /// To be called after each step.
    pub fn is_over(&mut self) -> bool {
        self.steps += 1;
        let Some(time) = self.time.filter(|_| self.steps.is_multiple_of(STEPS_UNSEEN)) else { return false };
        let now = Instant::now();
        now >= *self.end.get_or_insert(now + time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_few_steps_has_no_end() {
        let mut share = Share::of(Duration::ZERO);
        assert!((1..STEPS_UNSEEN).all(|_| !share.is_over()));
        assert!(share.is_over(), "no time was left for this one");
    }

    #[test]
    fn an_endless_one_is_never_over() {
        let mut share = Share::endless();
        assert!((0..1_000).all(|_| !share.is_over()));
    }

    #[test]
    fn it_is_over_when_its_time_is() {
        let mut share = Share::of(Duration::from_millis(1));
        let began = Instant::now();
        while !share.is_over() {
            std::hint::spin_loop();
        }
        assert!(began.elapsed() >= Duration::from_millis(1));
    }
}
