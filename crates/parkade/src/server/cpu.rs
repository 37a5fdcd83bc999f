//! How much of a long turn this thread was working: for the rest of the time other processes had the CPU, or the turn
//! waited in the kernel.

use std::time::Duration;

use parkade_core::Moment;
use rustix::time::{ClockId, clock_gettime};

use super::limits::CPU_MARK_INTERVAL;

/// Reading the thread's CPU time is a system call (0.2 µs), which most turns do without: it is read again only if the
/// last reading is old. So the result includes the turns since that reading, at most a millisecond of them.
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

    /// The CPU time of the turn that began with the last call of [`Self::mark`] and took this long.
    pub fn of_turn(&self, took: Duration) -> Duration {
        self.marked.map_or(took, |(_, then)| cpu_time().saturating_sub(then).min(took))
    }
}

/// Of the calling thread.
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
