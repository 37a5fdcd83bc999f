//! A share of a turn: how long one part of it may take before it is the next part's turn.

use std::time::{Duration, Instant};

/// Steps between two readings of the clock, at first and after steps that took long. A reading costs about a hundredth of
/// a request, and a step rarely takes a millisecond.
const STEPS_UNSEEN: u32 = 4;
/// The same after quick steps: these many more at most are taken before a slow one is noticed.
const QUICK_STEPS_UNSEEN: u32 = 16;
/// Steps up to this time are quick.
const QUICK_STEP: Duration = Duration::from_micros(20);

/// It begins with the first reading, so a part of fewer steps never reads the clock.
#[derive(Debug)]
pub struct Share {
    /// `None`: unlimited, where nothing else is waiting.
    time: Option<Duration>,
    end: Option<Instant>,
    /// The last reading.
    seen: Option<Instant>,
    /// Steps since then, and from there to the next reading.
    steps: u32,
    steps_unseen: u32,
}

impl Share {
    pub const fn of(time: Duration) -> Self {
        Self { time: Some(time), ..Self::endless() }
    }

    pub const fn endless() -> Self {
        Self { time: None, end: None, seen: None, steps: 0, steps_unseen: STEPS_UNSEEN }
    }

    /// To be called after each step.
    pub fn is_over(&mut self) -> bool {
        self.steps += 1;
        let Some(time) = self.time.filter(|_| self.steps >= self.steps_unseen) else { return false };
        let now = Instant::now();
        let took = self.seen.replace(now).map(|before| now - before);
        let is_quick = took.is_some_and(|took| took <= QUICK_STEP * self.steps);
        self.steps_unseen = if is_quick { QUICK_STEPS_UNSEEN } else { STEPS_UNSEEN };
        self.steps = 0;
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
    fn a_slow_step_is_noticed_after_quick_ones() {
        let mut share = Share::of(Duration::from_millis(1));
        assert!((0..2 * STEPS_UNSEEN).all(|_| !share.is_over()), "nothing has taken any time");
        std::thread::sleep(Duration::from_millis(2));
        assert!((0..QUICK_STEPS_UNSEEN).any(|_| share.is_over()));
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
