//! Requests that have just ended: what a worker logged about one may come after its end.

use parkade_model::RequestId;

use crate::statistics::RouteNumber;

/// More than end in the time between a response and the record before it. Then: a record does not name its route.
const COUNT: usize = 1_024;

#[derive(Debug, Default)]
pub struct RecentlyEnded {
    requests: Vec<(RequestId, RouteNumber)>,
    next: usize,
}

impl RecentlyEnded {
    pub fn note(&mut self, request: RequestId, route: RouteNumber) {
        if self.requests.len() < COUNT {
            self.requests.push((request, route));
        } else {
            self.requests[self.next] = (request, route);
            self.next = (self.next + 1) % COUNT;
        }
    }

    pub fn route(&self, request: RequestId) -> Option<RouteNumber> {
        self.requests.iter().find(|(ended, _)| *ended == request).map(|(_, route)| *route)
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
            recent.note(request(slot), RouteNumber::OTHER);
        }
        assert_eq!(recent.route(request(0)), None);
        assert_eq!(recent.route(request(2)), Some(RouteNumber::OTHER));
        assert_eq!(recent.route(request(COUNT + 1)), Some(RouteNumber::OTHER));
    }
}
