//! How fast a line of the queue moves: when a request that arrives now would be given to a worker, at the soonest.
//!
//! The estimate is never later than it would be if all requests took equally long: each worker may begin its next request this very moment, and is
//! counted as if it did. So a request that would have started in time at the measured rate is never refused. One that is admitted and starts too
//! late is ended by its deadline. There are four rules:
//!
//! * There is no estimate until a request has been queued for a second: a stampede has a second to arrive.
//! * A pause of less than a second says nothing, because a worker may be busy: the estimate is that of the last start. In a longer pause, the
//!   requests ahead are expected to take the mean of the last 64 that each worker has answered and of those that it runs now: a worker that was
//!   quick may run a slow one, and is not trusted for ever. The past counts for nothing once all workers hang: they do not answer, or their
//!   deadlines have passed.
//! * Of all times up to now in which each worker has begun four requests, the best counts, because requests after a pause begin as quickly as
//!   those before it. The measurement goes back three seconds, or further if so many starts take longer.
//! * A worker that becomes ready starts the measurement anew, because the line moved at another rate before. How long requests take depends on the
//!   code, so a reload forgets it.

use std::collections::VecDeque;
use std::time::Duration;

use crate::limits::{
    QUEUE_KNOWN_COUNT_MAX, QUEUE_LOOK_BACK, QUEUE_SEEN_MIN, QUEUE_SPELL_MIN, QUEUE_SPELLS_COUNT_MAX,
    QUEUE_STARTS_SEEN_MIN,
};
use crate::moment::Moment;

/// One for each line: how long plain functions wait says nothing about coroutines.
#[derive(Debug, Default)]
pub struct QueueRates {
    plain: QueueRate,
    coroutines: QueueRate,
}

/// The workers that take requests from a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Servers {
    /// How many requests may end this very moment.
    pub count: u64,
    /// Each of them is known to hang.
    pub all_hang: bool,
}

#[derive(Debug, Default)]
pub struct QueueRate {
    /// Since when requests have been queued in it for the present workers. `None`: it is empty.
    since: Option<Moment>,
    /// The starts since then, the newest last.
    windows: VecDeque<RateWindow>,
    /// When the last of them was given to a worker.
    last: Moment,
    answers: Answers,
}

/// How long the last ones took, in the mean.
#[derive(Debug, Clone, Copy, Default)]
struct Answers {
    count: u64,
    mean_nanos: f64,
}

/// A short time, and how many were given to workers in it.
#[derive(Debug, Clone, Copy)]
struct RateWindow {
    began: Moment,
    starts: u64,
}

impl QueueRates {
    pub fn of(&self, concurrent: bool) -> &QueueRate {
        if concurrent { &self.coroutines } else { &self.plain }
    }

    pub fn of_mut(&mut self, concurrent: bool) -> &mut QueueRate {
        if concurrent { &mut self.coroutines } else { &mut self.plain }
    }

    /// Another worker has become ready.
    pub fn staffed(&mut self, now: Moment) {
        self.plain.staffed(now);
        self.coroutines.staffed(now);
    }

    /// Other code serves.
    pub fn renewed(&mut self, now: Moment) {
        self.staffed(now);
        self.plain.answers = Answers::default();
        self.coroutines.answers = Answers::default();
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate: fifteen digits are more than it has")]
impl QueueRate {
    /// One that was queued has been given to a worker.
    pub fn started(&mut self, now: Moment) {
        let Some(since) = &mut self.since else { return };
        self.last = now;
        match self.windows.back_mut() {
            Some(window) if now - window.began < QUEUE_SPELL_MIN => window.starts += 1,
            Some(_) | None => self.windows.push_back(RateWindow { began: now, starts: 1 }),
        }
        if self.windows.len() > QUEUE_SPELLS_COUNT_MAX {
            self.windows.pop_front();
            *since = self.windows[0].began;
        }
    }

    /// A worker has closed a request, which it ran for this time.
    pub fn answered(&mut self, took: Duration) {
        let Answers { count, mean_nanos } = &mut self.answers;
        *count = count.saturating_add(1);
        *mean_nanos += (took.as_nanos() as f64 - *mean_nanos) / (*count).min(QUEUE_KNOWN_COUNT_MAX) as f64;
    }

    /// All requests that workers could take have been given to them.
    pub fn settled(&mut self, now: Moment, is_empty: bool) {
        if is_empty {
            self.since = None;
            self.windows.clear();
        } else {
            self.since.get_or_insert(now);
        }
    }

    fn staffed(&mut self, now: Moment) {
        self.since = self.since.map(|_| now);
        self.windows.clear();
    }

    /// Whether requests are queued in it.
    pub fn has_line(&self) -> bool {
        self.since.is_some()
    }

    /// The shortest wait of a request that has `ahead` others before it. `None` when it cannot be estimated.
    pub fn soonest(&self, now: Moment, ahead: usize, servers: Servers) -> Option<Duration> {
        let nanos = self.estimates(now, ahead, servers)?.reduce(f64::min)?;
        Some(Duration::try_from_secs_f64(nanos / 1e9).unwrap_or(Duration::MAX))
    }

    /// Whether that is longer than `patience`. Every request asks: as a rule the first estimate is short enough, and the others are not made.
    pub fn exceeds(&self, patience: Duration, now: Moment, ahead: usize, servers: Servers) -> bool {
        let most = patience.as_nanos() as f64;
        self.estimates(now, ahead, servers).is_some_and(|estimates| {
            let mut estimates = estimates.peekable();
            estimates.peek().is_some() && estimates.all(|nanos| nanos > most)
        })
    }

    /// Nanoseconds that a request with `ahead` others before it waits, at the soonest: the least of them counts.
    fn estimates(&self, now: Moment, ahead: usize, servers: Servers) -> Option<impl Iterator<Item = f64>> {
        let since = self.since?;
        if servers.count == 0 || now - since < QUEUE_SEEN_MIN {
            return None;
        }
        let pause = now - self.last.max(since);
        let is_moving = pause < QUEUE_SEEN_MIN;
        let moving = is_moving.then(|| self.paces(servers.count).map(move |nanos| nanos * ahead as f64));
        let rounds = ahead as u64 / servers.count;
        let standing = (!is_moving).then(|| self.mean(pause, servers) * rounds as f64);
        Some(moving.into_iter().flatten().chain(standing))
    }

    /// Nanoseconds between two starts, in each of the times.
    fn paces(&self, servers: u64) -> impl Iterator<Item = f64> {
        let times = self.times(self.last, servers.saturating_mul(QUEUE_STARTS_SEEN_MIN));
        times.map(move |(seen, starts)| seen.as_nanos() as f64 / (starts + servers) as f64)
    }

    /// Nanoseconds that a request takes: the mean of those answered and of those that run now, which have taken the whole pause at least.
    fn mean(&self, pause: Duration, servers: Servers) -> f64 {
        let most = if servers.all_hang { 0 } else { servers.count.saturating_mul(QUEUE_KNOWN_COUNT_MAX) };
        let (known, at) = (self.answers.count.min(most) as f64, servers.count as f64);
        (pause.as_nanos() as f64 * at + self.answers.mean_nanos * known) / (at + known)
    }

    /// The times up to `end` with enough starts, the shortest first.
    fn times(&self, end: Moment, enough: u64) -> impl Iterator<Item = (Duration, u64)> {
        let mut starts = 0;
        let mut is_over = false;
        let times = self.windows.iter().rev().map(move |window| {
            starts += window.starts;
            (end - window.began, starts)
        });
        let times = times.skip_while(move |(_, starts)| *starts < enough);
        times.take_while(move |(seen, _)| !std::mem::replace(&mut is_over, *seen >= QUEUE_LOOK_BACK))
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
                self.rate.answered(self.takes);
                self.queued -= 1;
                self.rate.started(self.now);
            }
        }

        fn arrive(&mut self) {
            let servers = of(self.servers.len() as u64);
            let soonest = self.rate.soonest(self.now, self.queued, servers);
            let is_refused = self.rate.exceeds(DEADLINE, self.now, self.queued, servers);
            assert_eq!(is_refused, soonest.is_some_and(|soonest| soonest > DEADLINE), "{soonest:?}");
            let really = self.really();
            if is_refused {
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

    fn of(count: u64) -> Servers {
        Servers { count, all_hang: false }
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
            // Requests that are queued already are ended by their deadlines; here they would only grow old.
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
        assert_eq!(rate.soonest(at(0), 19_000, of(1)), None);
        rate.settled(at(10), false);
        assert_eq!(rate.soonest(at(1_009), 19_000, of(1)), None);
        assert_eq!(rate.soonest(at(1_010), 19_000, of(1)), Some(Duration::from_secs(19_000)));
        assert_eq!(rate.soonest(at(1_010), 19_000, of(0)), None, "no worker is ready");
        assert_eq!(rate.soonest(at(1_010), 0, of(1)), Some(Duration::ZERO));
        rate.settled(at(1_010), true);
        rate.settled(at(1_011), false);
        assert_eq!(rate.soonest(at(2_000), 19_000, of(1)), None, "the queue was empty");
    }

    #[test]
    fn a_worker_that_was_fast_is_not_taken_for_fast_a_second_after_it_stopped() {
        let mut rate = QueueRate::default();
        rate.settled(at(0), false);
        for millis in 0..10_000 {
            (0..30).for_each(|_| rate.started(at(millis)));
        }
        assert!(rate.soonest(at(10_000), 19_000, of(1)).unwrap() < Duration::from_secs(1));
        assert!(rate.soonest(at(10_900), 19_000, of(1)).unwrap() < Duration::from_secs(10), "it may be a long request");
        assert!(rate.soonest(at(11_000), 19_000, of(1)).unwrap() > DEADLINE, "a second without a start");
    }

    #[test]
    fn a_worker_that_was_quick_has_time_for_a_slow_one_unless_it_hangs() {
        let mut rate = QueueRate::default();
        (0..300).for_each(|_| rate.answered(Duration::from_millis(1)));
        rate.settled(at(0), false);
        assert!(rate.soonest(at(6_000), 150, of(1)).unwrap() < DEADLINE);
        assert!(rate.soonest(at(1_000), 1_950, of(1)).unwrap() > DEADLINE, "a crowd is not kept for it");
        let hung = Servers { count: 1, all_hang: true };
        assert!(rate.soonest(at(1_000), 31, hung).unwrap() > DEADLINE);
        rate.settled(at(6_000), true);
        rate.settled(at(6_000), false);
        assert!(rate.soonest(at(12_000), 150, of(1)).unwrap() < DEADLINE, "it is known still");
    }

    #[test]
    fn a_worker_that_becomes_ready_is_not_judged_by_others() {
        let mut rate = QueueRate::default();
        rate.settled(at(0), false);
        assert!(rate.soonest(at(30_000), 1_000, of(1)).unwrap() > DEADLINE);
        rate.staffed(at(30_000));
        assert_eq!(rate.soonest(at(30_001), 1_000, of(1)), None);
        (30_000..31_000).for_each(|millis| rate.started(at(millis)));
        assert!(rate.soonest(at(31_000), 1_000, of(1)).unwrap() <= Duration::from_secs(1));
    }

    #[test]
    fn what_it_remembers_is_bounded() {
        let mut rate = QueueRate::default();
        rate.settled(at(0), false);
        (0..1_000_000).for_each(|millis| rate.started(at(millis)));
        assert!(rate.windows.len() <= QUEUE_SPELLS_COUNT_MAX);
        assert!(rate.soonest(at(1_000_000), 1_000, of(1)).unwrap() <= Duration::from_millis(1_100));
    }
}
