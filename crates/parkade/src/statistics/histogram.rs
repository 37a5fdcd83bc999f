//! Times in the buckets of a Prometheus histogram.

use std::time::Duration;

/// Upper bounds of the buckets, in seconds: from a constant to a long poll.
pub const BUCKETS: [f64; 17] =
    [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// How many times were in each bucket.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram {
    /// The last is for everything beyond all bounds.
    counts: [u64; BUCKETS.len() + 1],
    sum: Duration,
}

impl Histogram {
    pub fn observe(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = BUCKETS.iter().position(|bound| seconds <= *bound).unwrap_or(BUCKETS.len());
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
    }
}
