//! How fast the queue moves: when somebody who arrives now would be given to a worker, at the soonest.
//!
//! It never says later than what follows from requests that all take equally long: each worker may begin its next this very moment, and is
//! counted as if it did. So nobody is refused who would have started in time at the rate that was seen; whoever is admitted and starts too
//! late all the same is ended by the deadline. Four rules make it so:
//!
//! * It says nothing before somebody has been queued for a second: a stampede has a second to arrive.
//! * A pause of less than a second says nothing, for a worker may be busy: then it is as if it were the moment of the last start. A longer one
//!   says that the workers have stopped, whatever was before: of that no more counts than four starts of each.
//! * Of all times up to now in which each worker has begun four requests the best counts, since those behind a pause are begun as quickly as
//!   those before it. It looks back for three seconds, or further when so many starts take longer.
//! * A worker that becomes ready begins it anew: what was seen before is not its rate.

use std::collections::VecDeque;
use std::time::Duration;

use crate::limits::{QUEUE_LOOK_BACK, QUEUE_SEEN_MIN, QUEUE_SPELL_MIN, QUEUE_SPELLS_COUNT_MAX, QUEUE_STARTS_SEEN_MIN};
use crate::moment::Moment;

#[derive(Debug, Default)]
pub(crate) struct QueueRate {
    /// Since when somebody has been queued for the workers that there are. `None`: nobody is.
    since: Option<Moment>,
    /// Since then, the newest last.
    spells: VecDeque<Spell>,
    /// When the last of them was given to a worker.
    last: Moment,
}

/// A short time, and how many were given to workers in it.
#[derive(Debug, Clone, Copy)]
struct Spell {
    began: Moment,
    starts: u64,
}

#[expect(clippy::cast_precision_loss, reason = "an estimate: fifteen digits are more than it has")]
impl QueueRate {
    /// One that was queued has been given to a worker.
    pub(crate) fn started(&mut self, now: Moment) {
        let Some(since) = &mut self.since else { return };
        self.last = now;
        match self.spells.back_mut() {
            Some(spell) if now - spell.began < QUEUE_SPELL_MIN => spell.starts += 1,
            Some(_) | None => self.spells.push_back(Spell { began: now, starts: 1 }),
        }
        if self.spells.len() > QUEUE_SPELLS_COUNT_MAX {
            self.spells.pop_front();
            *since = self.spells[0].began;
        }
    }

    /// Everybody who could be given to a worker has been.
    pub(crate) fn settled(&mut self, now: Moment, is_empty: bool) {
        if is_empty {
            self.since = None;
            self.spells.clear();
        } else {
            self.since.get_or_insert(now);
        }
    }

    /// There is another worker.
    pub(crate) fn staffed(&mut self, now: Moment) {
        self.since = self.since.map(|_| now);
        self.spells.clear();
    }

    /// How long somebody waits at least who has `ahead` others before him, of whom `servers` may be begun at a time. `None` when that cannot
    /// be said.
    pub(crate) fn soonest(&self, now: Moment, ahead: usize, servers: u64) -> Option<Duration> {
        let since = self.since?;
        if servers == 0 || now - since < QUEUE_SEEN_MIN {
            return None;
        }
        let enough = servers.saturating_mul(QUEUE_STARTS_SEEN_MIN);
        let each = |(seen, starts): (Duration, u64)| seen.as_nanos() as f64 / (starts + servers) as f64;
        let nanos = if now - self.last.max(since) < QUEUE_SEEN_MIN {
            self.times(self.last, enough).map(each).reduce(f64::min)?
        } else {
            let (seen, starts) = self.times(now, enough).next().unwrap_or((now - since, self.starts()));
            each((seen, starts.min(enough)))
        };
        Some(Duration::try_from_secs_f64(nanos * ahead as f64 / 1e9).unwrap_or(Duration::MAX))
    }

    /// The times up to `end` with enough starts, the shortest first.
    fn times(&self, end: Moment, enough: u64) -> impl Iterator<Item = (Duration, u64)> {
        let mut starts = 0;
        let mut is_over = false;
        let times = self.spells.iter().rev().map(move |spell| {
            starts += spell.starts;
            (end - spell.began, starts)
        });
        let times = times.skip_while(move |(_, starts)| *starts < enough);
        times.take_while(move |(seen, _)| !std::mem::replace(&mut is_over, *seen >= QUEUE_LOOK_BACK))
    }

    fn starts(&self) -> u64 {
        self.spells.iter().map(|spell| spell.starts).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(30);

    /// A queue in front of workers that all take equally long, all begun at the same time or one after the other.
    struct Line {
        rate: QueueRate,
        now: Moment,
        queued: usize,
        servers: Vec<Moment>,
        takes: Duration,
        refused: usize,
        late: usize,
    }

    impl Line {
        fn new(servers: usize, takes: Duration, staggered: bool) -> Self {
            let free = |nth: usize| {
                let share = u32::try_from(nth).unwrap() * takes / u32::try_from(servers).unwrap();
                at(0) + if staggered { share } else { Duration::ZERO }
            };
            let servers = (0..servers).map(free).collect();
            Self { rate: QueueRate::default(), now: at(0), queued: 0, servers, takes, refused: 0, late: 0 }
        }

        /// Until `end`, with arrivals at even distances.
        fn run(&mut self, end: Moment, arrivals_a_second: u32) {
            let step = Duration::from_secs(1) / arrivals_a_second;
            while self.now < end {
                self.now = self.now + step;
                self.work();
                self.arrive();
                self.rate.settled(self.now, self.queued == 0);
            }
        }

        fn work(&mut self) {
            while self.queued > 0 {
                let next = self.servers.iter_mut().min().unwrap();
                if *next > self.now {
                    break;
                }
                *next = self.now.max(*next) + self.takes;
                self.queued -= 1;
                self.rate.started(self.now);
            }
        }

        fn arrive(&mut self) {
            let soonest = self.rate.soonest(self.now, self.queued, self.servers.len() as u64);
            let really = self.really();
            if soonest.is_some_and(|soonest| soonest > DEADLINE) {
                assert!(really > DEADLINE, "refused at {:?} though it would start in {really:?}", self.now);
                self.refused += 1;
            } else {
                self.late += usize::from(really > DEADLINE);
                self.queued += 1;
            }
        }

        /// When one that arrives now starts.
        fn really(&self) -> Duration {
            let mut servers = self.servers.clone();
            servers.sort();
            let rounds = u32::try_from(self.queued / servers.len()).unwrap();
            (servers[self.queued % servers.len()].max(self.now) + self.takes * rounds) - self.now
        }
    }

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn nobody_is_refused_who_would_have_started_in_time() {
        for servers in [1, 2, 8, 64] {
            for takes in [3, 70, 500, 1_000, 1_999, 2_000, 7_000, 20_000] {
                for staggered in [false, true] {
                    let mut line = Line::new(servers, Duration::from_millis(takes), staggered);
                    line.run(at(60_000), 100);
                }
            }
        }
    }

    #[test]
    fn whoever_has_no_chance_is_refused_from_the_fourth_round_on() {
        for (servers, takes) in [(1, 2_000), (4, 5_000), (8, 1_000)] {
            let mut line = Line::new(servers, Duration::from_millis(takes), true);
            line.run(at(takes * 5), 100);
            (line.late, line.refused) = (0, 0);
            // Those who stand in the queue already are let go by their deadlines: here they would only grow old.
            line.queued = line.queued.min(servers);
            line.run(at(takes * 5 + 60_000), 100);
            assert!(
                line.refused > 1_000 && line.late * 3 < line.refused,
                "{} late, {} refused",
                line.late,
                line.refused
            );
        }
    }

    #[test]
    fn nothing_is_said_before_a_second_has_passed() {
        let mut rate = QueueRate::default();
        assert_eq!(rate.soonest(at(0), 19_000, 1), None);
        rate.settled(at(10), false);
        assert_eq!(rate.soonest(at(1_009), 19_000, 1), None);
        assert_eq!(rate.soonest(at(1_010), 19_000, 1), Some(Duration::from_secs(19_000)));
        assert_eq!(rate.soonest(at(1_010), 19_000, 0), None, "no worker is ready");
        assert_eq!(rate.soonest(at(1_010), 0, 1), Some(Duration::ZERO));
        rate.settled(at(1_010), true);
        rate.settled(at(1_011), false);
        assert_eq!(rate.soonest(at(2_000), 19_000, 1), None, "the queue was empty");
    }

    #[test]
    fn a_worker_that_was_fast_is_not_taken_for_fast_a_second_after_it_stopped() {
        let mut rate = QueueRate::default();
        rate.settled(at(0), false);
        for millis in 0..10_000 {
            (0..30).for_each(|_| rate.started(at(millis)));
        }
        assert!(rate.soonest(at(10_000), 19_000, 1).unwrap() < Duration::from_secs(1));
        assert!(rate.soonest(at(10_900), 19_000, 1).unwrap() < Duration::from_secs(10), "it may be a long request");
        assert!(rate.soonest(at(11_000), 19_000, 1).unwrap() > DEADLINE, "a second without a start");
    }

    #[test]
    fn a_worker_that_becomes_ready_is_not_judged_by_others() {
        let mut rate = QueueRate::default();
        rate.settled(at(0), false);
        assert!(rate.soonest(at(30_000), 1_000, 1).unwrap() > DEADLINE);
        rate.staffed(at(30_000));
        assert_eq!(rate.soonest(at(30_001), 1_000, 1), None);
        (30_000..31_000).for_each(|millis| rate.started(at(millis)));
        assert!(rate.soonest(at(31_000), 1_000, 1).unwrap() <= Duration::from_secs(1));
    }

    #[test]
    fn what_it_remembers_is_bounded() {
        let mut rate = QueueRate::default();
        rate.settled(at(0), false);
        (0..1_000_000).for_each(|millis| rate.started(at(millis)));
        assert!(rate.spells.len() <= QUEUE_SPELLS_COUNT_MAX);
        assert!(rate.soonest(at(1_000_000), 1_000, 1).unwrap() <= Duration::from_millis(1_100));
    }
}
