//! What a run found, as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::clock::Nanos;

/// How many requests ended badly, by reason: `status 503`, `reset`, `unanswered`.
pub type Failures = BTreeMap<String, u64>;

#[derive(Serialize)]
pub struct Report {
    pub mode: &'static str,
    pub connections: usize,
    pub answered: usize,
    pub failed: u64,
    pub failures: Failures,
    /// From the reference moment (first request, or publish) to the first and last answer.
    pub first_ms: f64,
    pub last_ms: f64,
    pub answers_per_second: f64,
    /// From each request to its answer.
    pub latency_ms: Latency,
}

#[derive(Serialize, Deserialize, Default)]
pub struct Latency {
    pub min: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

impl Latency {
    pub fn of(mut durations: Vec<Nanos>) -> Self {
        durations.sort_unstable();
        let at = |share: f64| ms(percentile(&durations, share));
        Self { min: at(0.0), p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: at(1.0) }
    }
}

/// Nearest rank; 0 when there is nothing.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank in a vector"
)]
fn percentile(sorted: &[Nanos], share: f64) -> Nanos {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// Milliseconds with three places.
#[allow(clippy::cast_precision_loss, reason = "durations of a run are far below 2^53 ns")]
pub fn ms(nanos: Nanos) -> f64 {
    (nanos as f64 / 1e3).round() / 1e3
}

pub fn add(failures: &mut Failures, reason: impl Into<String>, count: u64) {
    *failures.entry(reason.into()).or_default() += count;
}

pub fn print(report: &impl Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(report)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_nearest_rank() {
        let hundred: Vec<Nanos> = (1..=100).collect();
        for (share, expected) in [(0.0, 1), (0.5, 50), (0.99, 99), (0.999, 100), (1.0, 100)] {
            assert_eq!(percentile(&hundred, share), expected);
        }
        assert_eq!(percentile(&[], 0.5), 0);
    }
}
