//! How long the turns of the event loop take, and what they spend the time on.
//!
//! One thread decides, so a slow step in a turn delays everything else. Each part of a turn has a share of the time;
//! what is left over waits for the next turn. A turn that takes long nevertheless is counted and logged.

use std::time::Duration;

use parkade_core::Moment;

use super::cpu::Cpu;
use super::limits::{TOLD_INTERVAL, TURN_LONG, TURN_TOO_LONG};

/// What a turn did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Inputs,
    Sockets,
    Requests,
    Links,
    Frames,
    Databases,
    Files,
    Jobs,
    Timers,
    Answers,
    Sweep,
    Sending,
}

/// The turns since the start.
#[derive(Debug, Default)]
pub struct Turns {
    /// Those that took longer than [`TURN_LONG`].
    pub long_count: u64,
    pub longest: Duration,
    /// Long turns in which this thread was working for that long: in the others it waited for the CPU or in the kernel.
    pub busy_count: u64,
    /// The most CPU time of one turn.
    pub busiest: Duration,
    cpu: Cpu,
    began: Moment,
    marked: Moment,
    /// The part of the current turn that took longest, its time, and how many items it handled.
    most: Option<(Part, Duration, usize)>,
    told: Option<Moment>,
    untold_count: u64,
}

impl Turns {
    pub fn begin(&mut self, now: Moment) {
        (self.began, self.marked, self.most) = (now, now, None);
        self.cpu.mark(now);
    }

    /// A part of the turn is done, and has handled this many items.
    pub fn did(&mut self, now: Moment, part: Part, count: usize) {
        let took = now.since(self.marked);
        self.marked = now;
        if self.most.is_none_or(|(_, most, _)| took > most) {
            self.most = Some((part, took, count));
        }
    }

    /// Ends the turn. Its last part is sending.
    pub fn end(&mut self, now: Moment) {
        self.did(now, Part::Sending, 1);
        let took = now.since(self.began);
        self.longest = self.longest.max(took);
        if took >= TURN_LONG {
            self.long_count += 1;
            self.untold_count += 1;
            let worked = self.cpu.of_turn(took);
            self.busiest = self.busiest.max(worked);
            self.busy_count += u64::from(worked >= TURN_LONG);
            if self.told.is_none_or(|told| now.since(told) >= TOLD_INTERVAL) {
                self.tell(took, worked);
                (self.told, self.untold_count) = (Some(now), 0);
            }
        }
    }

    fn tell(&self, took: Duration, worked: Duration) {
        let (part, most, count) = self.most.unwrap_or((Part::Inputs, took, 0));
        let [took, worked, most] = [took, worked, most].map(|time| time.as_millis());
        let cause = if 2 * worked < took { "; it mostly waited for the processor or the disk" } else { "" };
        let part = part.words();
        let words =
            format!("a turn of the core took {took} ms ({worked} ms of CPU), {most} ms of it for {part}{cause}");
        // Other long turns, which were not logged.
        let others_since_last = Some(self.untold_count - 1).filter(|others| *others > 0);
        if took >= TURN_TOO_LONG.as_millis() {
            tracing::warn!(items = count, others_since_last, "{words}; no other client was served meanwhile");
        } else {
            tracing::info!(items = count, others_since_last, "{words}");
        }
    }
}

impl Part {
    const fn words(self) -> &'static str {
        match self {
            Self::Inputs => "requests of operators",
            Self::Sockets => "reading from clients",
            Self::Requests => "requests of clients",
            Self::Links => "reading from workers",
            Self::Frames => "frames from workers",
            Self::Databases => "databases",
            Self::Files => "files",
            Self::Jobs => "jobs",
            Self::Timers => "timers",
            Self::Answers => "responses to many at once",
            Self::Sweep => "checking connections and workers",
            Self::Sending => "writing to workers",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_turn_is_counted_with_what_it_did_for_longest() {
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        let mut turns = Turns::default();
        turns.begin(at(0));
        turns.did(at(2), Part::Sockets, 7);
        turns.did(at(14), Part::Frames, 1_000);
        turns.end(at(14));
        assert_eq!((turns.long_count, turns.longest), (0, Duration::from_millis(14)));
        turns.begin(at(100));
        turns.did(at(102), Part::Sockets, 7);
        turns.did(at(114), Part::Frames, 1_000);
        turns.did(at(116), Part::Sending, 2);
        assert_eq!(turns.most, Some((Part::Frames, Duration::from_millis(12), 1_000)));
        turns.end(at(116));
        assert_eq!((turns.long_count, turns.longest), (1, Duration::from_millis(16)));
    }
}
