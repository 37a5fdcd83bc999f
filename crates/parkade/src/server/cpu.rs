//! How much of a long turn this thread has worked for: the rest of the time the machine gave to others, or the turn waited in the kernel.

use std::time::Duration;

use parkade_core::Moment;
use rustix::time::{ClockId, clock_gettime};

use super::limits::CPU_MARK_INTERVAL;

/// The clock of the thread's CPU time is a call of the kernel (0.2 µs), which most turns do without: it is read when the last reading is old.
/// So what it says includes the turns since that reading, a millisecond of them at most.
#[derive(Debug, Default)]
pub struct Cpu {
    marked: Option<(Moment, Duration)>,
}

impl Cpu {
    /// A turn begins.
    pub fn mark(&mut self, now: Moment) {
        if self.marked.is_none_or(|(at, _)| now.since(at) >= CPU_MARK_INTERVAL) {
            self.marked = Some((now, cpu_time()));
        }
    }

    /// What the turn has cost that began with the last call of [`Self::mark`] and took so long.
    pub fn of_turn(&self, took: Duration) -> Duration {
        self.marked.map_or(took, |(_, then)| cpu_time().saturating_sub(then).min(took))
    }
}

/// Of the thread that asks.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_is_slept_is_not_worked() {
        let mut cpu = Cpu::default();
        cpu.mark(Moment::default());
        std::thread::sleep(Duration::from_millis(20));
        assert!(cpu.of_turn(Duration::from_secs(60)) < Duration::from_millis(20));
    }

    #[test]
    fn a_turn_costs_no_more_than_it_takes() {
        let mut cpu = Cpu::default();
        cpu.mark(Moment::default());
        let until = cpu_time() + Duration::from_millis(5);
        while cpu_time() < until {}
        assert!(cpu.of_turn(Duration::from_secs(60)) >= Duration::from_millis(5));
        assert_eq!(cpu.of_turn(Duration::from_millis(2)), Duration::from_millis(2));
    }
}
