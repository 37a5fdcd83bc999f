//! Requests that have just ended: what a worker logged about one may come after its end.

use parkade_model::{RequestId, RequestIdText};

use crate::statistics::RouteNumber;

/// More than end in the time between a response and the record before it. Then: a record does not name its route.
const COUNT: usize = 1_024;

#[derive(Debug, Default)]
pub struct RecentlyEnded {
    requests: Vec<Ended>,
    next: usize,
}

#[derive(Debug)]
pub struct Ended {
    pub request: RequestId,
    pub route: RouteNumber,
    /// The id that it brought along, or that of the request that enqueued the job of this run.
    pub given_id: Option<RequestIdText>,
}

impl RecentlyEnded {
    pub fn note(&mut self, ended: Ended) {
        if self.requests.len() < COUNT {
            self.requests.push(ended);
        } else {
            self.requests[self.next] = ended;
            self.next = (self.next + 1) % COUNT;
        }
    }

    pub fn find(&self, request: RequestId) -> Option<&Ended> {
        self.requests.iter().find(|ended| ended.request == request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_known() {
        let mut recent = RecentlyEnded::default();
        let request = |slot: usize| RequestId { slot: u32::try_from(slot).unwrap(), generation: 1 };
        for slot in 0..COUNT + 2 {
            recent.note(Ended { request: request(slot), route: RouteNumber::OTHER, given_id: None });
        }
        assert!(recent.find(request(0)).is_none());
        assert!(recent.find(request(2)).is_some() && recent.find(request(COUNT + 1)).is_some());
    }
}
