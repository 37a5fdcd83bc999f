//! Times in fine buckets, from which percentiles are read: the width of each is an eighth of a power of two.

use std::time::Duration;

/// Times up to here share the first bucket.
const FIRST_MICROS: u64 = 1 << FIRST_LOG;
const FIRST_LOG: u32 = 6;
/// Buckets for each power of two.
const STEPS: usize = 8;
const STEPS_LOG: u32 = STEPS.ilog2();
/// Up to 2^30 µs, which are 18 minutes. Longer ones are in the last bucket.
const BUCKETS_COUNT: usize = (30 - FIRST_LOG as usize) * STEPS + 1;

/// How many times were in each bucket. Counters wrap: only their differences are read.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyCounts([u32; BUCKETS_COUNT]);

impl Default for LatencyCounts {
    fn default() -> Self {
        Self([0; BUCKETS_COUNT])
    }
}

impl LatencyCounts {
    pub fn observe(&mut self, time: Duration) {
        let count = &mut self.0[bucket(time)];
        *count = count.wrapping_add(1);
    }

    /// The times below which these shares of all are that came after `before`. `None` if there were none.
    pub fn percentiles<const N: usize>(&self, before: &Self, shares: [f64; N]) -> Option<[Duration; N]> {
        let count = |bucket: usize| u64::from(self.0[bucket].wrapping_sub(before.0[bucket]));
        let all: u64 = (0..BUCKETS_COUNT).map(count).sum();
        if all == 0 {
            return None;
        }
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counts of a minute; a share is between 0 and 1"
        )]
        let found = shares.map(|share| {
            let rank = ((all as f64 * share).ceil() as u64).clamp(1, all);
            let mut below = 0;
            for bucket in 0..BUCKETS_COUNT {
                let here = count(bucket);
                if below + here >= rank {
                    let (from, to) = bounds(bucket);
                    let part = (rank - below) as f64 / here as f64;
                    return Duration::from_micros(from + ((to - from) as f64 * part) as u64);
                }
                below += here;
            }
            Duration::ZERO
        });
        Some(found)
    }
}

fn bucket(time: Duration) -> usize {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    if micros < FIRST_MICROS {
        return 0;
    }
    let log = micros.ilog2();
    #[expect(clippy::cast_possible_truncation, reason = "masked to a few bits")]
    let step = (micros >> (log - STEPS_LOG)) as usize & (STEPS - 1);
    ((log - FIRST_LOG) as usize * STEPS + step + 1).min(BUCKETS_COUNT - 1)
}

/// From which time to which a bucket is, in microseconds.
fn bounds(bucket: usize) -> (u64, u64) {
    let Some(place) = bucket.checked_sub(1) else { return (0, FIRST_MICROS) };
    let base = FIRST_MICROS << (place / STEPS);
    let width = base >> STEPS_LOG;
    let from = base + width * (place % STEPS) as u64;
    (from, from + width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_within_the_bounds_of_its_bucket() {
        for micros in [0, 1, 63, 64, 65, 71, 72, 1_000, 12_345, 1_000_000, 59_999_999, 1 << 29, (1 << 30) - 1] {
            let (from, to) = bounds(bucket(Duration::from_micros(micros)));
            assert!((from..to).contains(&micros), "{micros} in {from}..{to}");
        }
        for bucket in 1..BUCKETS_COUNT {
            assert_eq!(bounds(bucket - 1).1, bounds(bucket).0);
        }
        assert_eq!(bucket(Duration::MAX), BUCKETS_COUNT - 1);
    }

    #[test]
    fn percentiles_are_those_of_what_came_since() {
        let mut counts = LatencyCounts::default();
        counts.observe(Duration::from_secs(60));
        let before = counts.clone();
        assert_eq!(counts.percentiles(&before, [0.5]), None);
        for _ in 0..98 {
            counts.observe(Duration::from_millis(10));
        }
        counts.observe(Duration::from_secs(2));
        counts.observe(Duration::from_secs(2));
        let [half, most] = counts.percentiles(&before, [0.5, 0.99]).unwrap();
        assert!((9..=11).contains(&half.as_millis()), "{half:?}");
        assert!((1_800..=2_100).contains(&most.as_millis()), "{most:?}");
    }
}
