//! Sums over ended requests. The server records each one; the metrics show the sums.

use parkade_core::Times;

use super::routes::{CLASSES_COUNT, RouteNumber, RouteStatistics};
use super::{Histogram, LatencyCounts};

/// Sums over all requests that have ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EndedRequests {
    pub queue: Histogram,
    pub run: Histogram,
    pub park: Histogram,
    /// By the first digit of the status; the first counts those without a response.
    pub by_class: [u64; CLASSES_COUNT],
    /// From arrival to end.
    pub latency: LatencyCounts,
    /// The part of it that was not a wait: in the queue, and in workers.
    pub work: LatencyCounts,
    pub routes: RouteStatistics,
}

impl EndedRequests {
    /// Counts one request. `status` is 0 if it got no response.
    pub fn record(&mut self, route: RouteNumber, status: u16, times: Times) {
        self.queue.observe(times.queued());
        self.run.observe(times.running());
        self.park.observe(times.parked());
        self.latency.observe(times.total());
        self.work.observe(times.queued() + times.running());
        let class = usize::from(status / 100);
        if let Some(count) = self.by_class.get_mut(class) {
            *count += 1;
        }
        self.routes.record(route, class, times);
    }

    pub fn count(&self) -> u64 {
        self.by_class.iter().sum()
    }

    /// Those that were answered with 5xx.
    pub fn errors(&self) -> u64 {
        self.by_class[5]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_by_the_class_of_its_status() {
        let mut ended = EndedRequests::default();
        for status in [0, 200, 204, 503, 999] {
            ended.record(RouteNumber::default(), status, Times::default());
        }
        assert_eq!(ended.by_class, [1, 0, 2, 0, 0, 1]);
        assert_eq!((ended.count(), ended.errors()), (4, 1));
        assert_eq!(ended.queue.cumulative()[0], 5);
    }
}
