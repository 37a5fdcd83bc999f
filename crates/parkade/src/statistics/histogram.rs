//! Times in the buckets of a Prometheus histogram.

use std::time::Duration;

/// Upper bounds of the buckets, in seconds: from a constant to a long poll.
pub const BUCKETS: [f64; 17] =
    [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// The same in nanoseconds: whole numbers are compared for every request that ends.
const BUCKET_NANOS: [u64; BUCKETS.len()] = {
    let (mut nanos, mut bucket) = ([0; BUCKETS.len()], 0);
    while bucket < BUCKETS.len() {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded, and far below 2^63")]
        let bound = (BUCKETS[bucket] * 1e9 + 0.5) as u64;
        nanos[bucket] = bound;
        bucket += 1;
    }
    nanos
};

/// How many times were in each bucket.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram {
    /// The last is for everything beyond all bounds.
    counts: [u64; BUCKETS.len() + 1],
    sum: Duration,
}

impl Histogram {
    pub fn observe(&mut self, time: Duration) {
        let nanos = time.as_secs().saturating_mul(1_000_000_000).saturating_add(time.subsec_nanos().into());
        let bucket = BUCKET_NANOS.partition_point(|bound| *bound < nanos);
        self.counts[bucket] += 1;
        self.sum = self.sum.saturating_add(time);
    }

    /// How many were at or below each bound; the last are all.
    #[must_use]
    pub fn cumulative(&self) -> [u64; BUCKETS.len() + 1] {
        let mut counts = self.counts;
        for bucket in 1..counts.len() {
            counts[bucket] += counts[bucket - 1];
        }
        counts
    }

    /// The time below which this share of all is, as far as the buckets tell. `None` if there are none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let all: u64 = self.counts.iter().sum();
        if all == 0 {
            return None;
        }
        let rank = all as f64 * share;
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            let (Some(to), true) = (BUCKETS.get(bucket), *count > 0) else { continue };
            if (below + count) as f64 >= rank {
                let from = if bucket == 0 { 0.0 } else { BUCKETS[bucket - 1] };
                return Some(from + (to - from) * (rank - below as f64) / *count as f64);
            }
            below += count;
        }
        BUCKETS.last().copied()
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    #[must_use]
    pub fn sum(&self) -> Duration {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_in_its_bucket_and_all_above() {
        assert_eq!(BUCKET_NANOS[..4], [100_000, 500_000, 1_000_000, 2_500_000]);
        assert_eq!(BUCKET_NANOS[16], 60_000_000_000);
        let mut histogram = Histogram::default();
        for milliseconds in [0, 1, 2_000, 100_000] {
            histogram.observe(Duration::from_millis(milliseconds));
        }
        let cumulative = histogram.cumulative();
        assert_eq!(cumulative[0], 1);
        assert_eq!(cumulative[2], 2, "a bound belongs to its bucket");
        assert_eq!(cumulative[12], 3);
        assert_eq!(cumulative[BUCKETS.len() - 1..], [3, 4]);
        assert_eq!(histogram.sum(), Duration::from_millis(102_001));
        assert_eq!(histogram.quantile(0.5), Some(0.001));
        assert_eq!(histogram.quantile(0.75), Some(2.5));
        assert_eq!(histogram.quantile(0.99), Some(60.0), "the last bound at most");
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
