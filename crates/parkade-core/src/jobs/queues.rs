//! Bounds of queues: how many of their jobs run at a time, how many begin in a second.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::moment::Moment;
use parkade_model::{Allowance, QueueBounds, QueueId, Rate};

#[derive(Debug, Default)]
pub struct Queues {
    /// Those that have bounds, or of which jobs run.
    queues: BTreeMap<QueueId, Queue>,
}

#[derive(Debug, Default, Clone)]
struct Queue {
    /// Claimed, whether or not a worker has them, and those that have ended and that a worker still has.
    running: u32,
    concurrency: Option<u32>,
    bucket: Option<Bucket>,
    /// The last claim took all that it might: there may be more.
    is_pressed: bool,
}

/// A bucket of tokens, one for each job that begins.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    rate: Rate,
    /// The moment from which it is full. At the start it is: the clock begins then.
    full_at: Moment,
}

impl Queues {
    /// Those that are not named have no bounds any more.
    pub fn configure(&mut self, bounds: &[QueueBounds]) {
        for (id, queue) in &mut self.queues {
            if !bounds.iter().any(|bounds| bounds.queue == *id) {
                queue.bound(None, None);
            }
        }
        for QueueBounds { queue, concurrency, rate } in bounds {
            self.of(*queue).bound(*concurrency, *rate);
        }
        self.queues.retain(|_, queue| queue.is_used());
    }

    /// Whether it has bounds, or jobs of it run.
    pub fn knows(&self, queue: QueueId) -> bool {
        self.queues.contains_key(&queue)
    }

    pub fn begin(&mut self, queue: QueueId) {
        self.of(queue).running += 1;
    }

    /// Whether the place that is free now may be wanted.
    pub fn end(&mut self, id: QueueId) -> bool {
        let queue = self.of(id);
        queue.running -= 1;
        let is_wanted = queue.is_pressed && queue.concurrency.is_some();
        if !queue.is_used() {
            self.queues.remove(&id);
        }
        is_wanted
    }

    /// For every queue that has a bound.
    pub fn allowances(&self, now: Moment) -> Vec<Allowance<QueueId>> {
        let bounded = self.queues.iter().filter(|(_, queue)| queue.is_bounded());
        bounded.map(|(id, queue)| queue.allowance(*id, now)).collect()
    }

    /// So many were claimed of what was allowed, and have begun. Answers when more may be of one that was pressed.
    pub fn claimed(
        &mut self,
        now: Moment,
        allowed: &[Allowance<QueueId>],
        claimed: impl Fn(QueueId) -> u32,
    ) -> Option<Moment> {
        let mut next = None;
        for allowance in allowed {
            let count = claimed(allowance.queue);
            // Its bounds, and all of its jobs, may have gone meanwhile.
            let Some(queue) = self.queues.get_mut(&allowance.queue) else { continue };
            queue.is_pressed = count >= allowance.count;
            if let Some(bucket) = &mut queue.bucket {
                bucket.take(now, count);
            }
            if queue.is_pressed {
                next = next.into_iter().chain(queue.next(now)).min();
            }
        }
        next
    }

    fn of(&mut self, queue: QueueId) -> &mut Queue {
        self.queues.entry(queue).or_default()
    }
}

/// A job a year is rare enough.
const PERIOD_MAX_SECONDS: f64 = 366.0 * 86_400.0;

impl Queue {
    fn bound(&mut self, concurrency: Option<u32>, rate: Option<f64>) {
        self.concurrency = concurrency.map(|most| most.max(1));
        self.bucket = rate.filter(|rate| *rate > 0.0 && rate.is_finite()).map(|rate| Bucket {
            rate: Rate {
                period: Duration::from_secs_f64((1.0 / rate).min(PERIOD_MAX_SECONDS)),
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
                capacity: (rate as u32).max(1),
            },
            full_at: self.bucket.map_or(Moment::default(), |bucket| bucket.full_at),
        });
    }

    fn is_used(&self) -> bool {
        self.running > 0 || self.is_bounded()
    }

    fn is_bounded(&self) -> bool {
        self.concurrency.is_some() || self.bucket.is_some()
    }

    fn allowance(&self, queue: QueueId, now: Moment) -> Allowance<QueueId> {
        let places = self.places();
        let tokens = self.bucket.map(|bucket| bucket.tokens(now));
        let count = places.into_iter().chain(tokens).min().unwrap_or(u32::MAX);
        Allowance { queue, count, places, rate: self.bucket.map(|bucket| bucket.rate) }
    }

    fn places(&self) -> Option<u32> {
        self.concurrency.map(|most| most.saturating_sub(self.running))
    }

    /// When another may be claimed. One for which there is no place has to wait for the end of one that runs.
    fn next(&self, now: Moment) -> Option<Moment> {
        match (self.places(), self.bucket) {
            (Some(0), _) => None,
            (_, Some(bucket)) => Some(bucket.next(now)),
            (_, None) => Some(now),
        }
    }
}

impl Bucket {
    fn tokens(self, now: Moment) -> u32 {
        let Rate { period, capacity } = self.rate;
        let missing = (self.full_at - now).as_nanos().div_ceil(period.as_nanos().max(1));
        capacity.saturating_sub(u32::try_from(missing).unwrap_or(u32::MAX))
    }

    fn take(&mut self, now: Moment, count: u32) {
        self.full_at = self.full_at.max(now) + self.rate.period.saturating_mul(count);
    }

    /// When there is one again: the others of those that fill it come later.
    fn next(self, now: Moment) -> Moment {
        now.max(self.full_at - self.rate.period.saturating_mul(self.rate.capacity - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(1_000_000_000_000 + millis * 1_000_000)
    }

    fn bounds(concurrency: Option<u32>, rate: Option<f64>) -> QueueBounds {
        QueueBounds { queue: QueueId(0), concurrency, rate }
    }

    fn count(queues: &Queues, now: Moment) -> Option<u32> {
        queues.allowances(now).first().map(|allowance| allowance.count)
    }

    #[test]
    fn no_more_run_at_a_time_than_the_queue_allows() {
        let mut queues = Queues::default();
        assert_eq!(count(&queues, at(0)), None);
        queues.configure(&[bounds(Some(2), None)]);
        assert_eq!(count(&queues, at(0)), Some(2));
        let allowed = queues.allowances(at(0));
        queues.begin(QueueId(0));
        queues.begin(QueueId(0));
        assert_eq!(queues.claimed(at(0), &allowed, |_| 2), None);
        assert_eq!(count(&queues, at(0)), Some(0));
        assert!(queues.end(QueueId(0)), "another one may wait for this place");
        assert_eq!(count(&queues, at(0)), Some(1));
    }

    #[test]
    fn whoever_shares_a_queue_is_told_both_of_its_bounds_apart() {
        let mut queues = Queues::default();
        queues.configure(&[bounds(Some(9), Some(2.5))]);
        queues.begin(QueueId(0));
        let rate = Rate { period: Duration::from_millis(400), capacity: 2 };
        let told = Allowance { queue: QueueId(0), count: 2, places: Some(8), rate: Some(rate) };
        assert_eq!(queues.allowances(at(0)), [told]);
    }

    #[test]
    fn no_more_begin_in_a_second_than_the_rate_allows() {
        let mut queues = Queues::default();
        queues.configure(&[bounds(None, Some(4.0))]);
        let mut begun = 0;
        for millis in 0..10_000 {
            let allowed = queues.allowances(at(millis));
            let count = allowed[0].count;
            queues.claimed(at(millis), &allowed, |_| count);
            begun += count;
        }
        assert!((40..=44).contains(&begun), "{begun} in ten seconds, with a burst of 4 at first");
        let allowed = queues.allowances(at(10_000));
        let next = queues.claimed(at(10_000), &allowed, |_| allowed[0].count).unwrap();
        assert!(next > at(10_000) && next <= at(10_250));
        assert_eq!((count(&queues, next), count(&queues, next + Duration::from_secs(60))), (Some(1), Some(4)));
    }

    #[test]
    fn a_rare_job_begins_at_once_the_first_time() {
        let mut queues = Queues::default();
        queues.configure(&[bounds(None, Some(1.0 / 3600.0))]);
        let start = Moment::default();
        let allowed = queues.allowances(start);
        assert_eq!(allowed[0].count, 1);
        assert_eq!(queues.claimed(start, &allowed, |_| 1), Some(start + Duration::from_secs(3600)));
        assert_eq!(count(&queues, start + Duration::from_secs(3599)), Some(0));
        assert_eq!(count(&queues, start + Duration::from_secs(3600)), Some(1));
    }
}
