//! Rates and latencies of the last minute, and graphs of the last five: the counters are looked at once a second, so that
//! a request costs nothing more.

use std::collections::VecDeque;
use std::time::Duration;

use parkade_core::Moment;
use serde::{Deserialize, Serialize};

use super::limits::{POINTS_COUNT_MAX, RATE_SAMPLES};
use super::{EndedRequests, LatencyCounts};

/// The counters at one moment.
#[derive(Debug)]
struct Sample {
    at: Moment,
    requests: u64,
    errors: u64,
    latency: LatencyCounts,
    work: LatencyCounts,
}

/// What the server has been doing lately.
#[derive(Debug, Default)]
pub struct Recent {
    /// The oldest first.
    samples: VecDeque<Box<Sample>>,
    points: VecDeque<Point>,
}

/// Requests that have not ended, at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenRequests {
    pub queued: usize,
    pub running: usize,
    pub parked: usize,
}

/// Of the last minute, or since the start if that is less.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// The time that was looked at.
    pub seconds: f64,
    /// Requests that ended, per second.
    pub requests: f64,
    /// Of these, those that were answered with 5xx.
    pub errors: f64,
    /// From arrival to end; null if no request ended.
    pub latency: Option<Percentiles>,
    /// The part of it that was not a wait: in the queue, and in workers.
    pub work: Option<Percentiles>,
}

/// In seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    pub p50: f64,
    pub p99: f64,
}

/// One second in the graphs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Point {
    requests: f64,
    errors: f64,
    latency: Option<Percentiles>,
    load: OpenRequests,
}

/// The last minutes, a number for each second, the oldest first. A second without requests has no latency.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Graph {
    pub requests: Vec<f64>,
    pub errors: Vec<f64>,
    pub p50: Vec<Option<f64>>,
    pub p99: Vec<Option<f64>>,
    pub queued: Vec<usize>,
    pub running: Vec<usize>,
    pub parked: Vec<usize>,
}

impl Recent {
    /// Looks at the counters; once a second.
    pub fn sample(&mut self, now: Moment, ended: &EndedRequests, load: OpenRequests) {
        let (latency, work) = (ended.latency.clone(), ended.work.clone());
        let sample = Sample { at: now, requests: ended.count(), errors: ended.errors(), latency, work };
        if let Some(last) = self.samples.back() {
            let rates = sample.since(last);
            if self.points.len() == POINTS_COUNT_MAX {
                self.points.pop_front();
            }
            let Rates { requests, errors, latency, .. } = rates;
            self.points.push_back(Point { requests, errors, latency, load });
        }
        if self.samples.len() > RATE_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Box::new(sample));
    }

    pub fn rates(&self) -> Rates {
        match (self.samples.front(), self.samples.back()) {
            (Some(first), Some(last)) => last.since(first),
            _ => Rates::default(),
        }
    }

    pub fn graph(&self) -> Graph {
        let points = &self.points;
        let latency = |of: fn(Percentiles) -> f64| points.iter().map(|point| point.latency.map(of)).collect();
        let load = |of: fn(OpenRequests) -> usize| points.iter().map(|point| of(point.load)).collect();
        Graph {
            requests: points.iter().map(|point| point.requests).collect(),
            errors: points.iter().map(|point| point.errors).collect(),
            p50: latency(|latency| latency.p50),
            p99: latency(|latency| latency.p99),
            queued: load(|load| load.queued),
            running: load(|load| load.running),
            parked: load(|load| load.parked),
        }
    }
}

impl Sample {
    fn since(&self, before: &Self) -> Rates {
        let seconds = self.at.since(before.at).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "counts of a minute")]
        let rate = |count: u64| if seconds > 0.0 { round(count as f64 / seconds) } else { 0.0 };
        let percentiles = |counts: &LatencyCounts, before: &LatencyCounts| {
            let [p50, p99] = counts.percentiles(before, [0.5, 0.99])?.map(|time: Duration| time.as_secs_f64());
            Some(Percentiles { p50, p99 })
        };
        Rates {
            seconds: round(seconds),
            requests: rate(self.requests - before.requests),
            errors: rate(self.errors - before.errors),
            latency: percentiles(&self.latency, &before.latency),
            work: percentiles(&self.work, &before.work),
        }
    }
}

/// To thousandths: more is noise.
fn round(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::super::RouteNumber;
    use super::*;
    use parkade_core::Times;

    #[test]
    fn rates_are_those_of_the_last_minute() {
        let at = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let (mut recent, mut ended) = (Recent::default(), EndedRequests::default());
        assert_eq!(recent.rates(), Rates::default());
        let mut slow = Times::default();
        slow.add_parked(Duration::from_secs(3));
        for _ in 0..500 {
            ended.record(RouteNumber::default(), 503, slow);
        }
        recent.sample(at(0), &ended, OpenRequests::default());
        for second in 1..=400 {
            for _ in 0..9 {
                ended.record(RouteNumber::default(), 200, Times::default());
            }
            ended.record(RouteNumber::default(), 500, slow);
            recent.sample(at(second), &ended, OpenRequests { parked: 7, ..OpenRequests::default() });
        }
        let rates = recent.rates();
        assert_eq!((rates.seconds, rates.requests, rates.errors), (60.0, 10.0, 1.0));
        let latency = rates.latency.unwrap();
        assert!(latency.p50 < 0.001 && (2.8..3.4).contains(&latency.p99), "{latency:?}");
        assert!(rates.work.unwrap().p99 < 0.001, "a wait is no work");
        let graph = recent.graph();
        assert_eq!((graph.requests.len(), graph.requests[0], graph.parked[0]), (POINTS_COUNT_MAX, 10.0, 7));
        assert!(graph.p99[0].is_some_and(|p99| p99 > 2.8));
    }
}
