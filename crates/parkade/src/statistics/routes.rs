//! Requests by route: a pattern that an application declares, with one method.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parkade_core::Times;
use parkade_wire::RouteOrigin;

use super::Histogram;
use super::limits::ROUTES_COUNT_MAX;

/// The first digits of a status: 1 to 5, and 0 without a response.
pub const CLASSES_COUNT: usize = 6;

/// A route in the statistics. It stays the same when another generation of code declares the route again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RouteNumber(u16);

/// Requests of one route that have ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RouteCounts {
    /// By the first digit of the status; the first counts those without a response.
    pub by_class: [u64; CLASSES_COUNT],
    /// From arrival to end.
    pub seconds: Histogram,
    pub queued: Duration,
    pub running: Duration,
    pub parked: Duration,
}

/// Counts of all routes, by their numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RouteStatistics {
    counts: Vec<RouteCounts>,
}

/// The names of all routes that were ever declared, by their numbers.
#[derive(Debug, Clone)]
pub struct RouteNames {
    names: Arc<Vec<RouteName>>,
    numbers: HashMap<(Arc<str>, Arc<str>), RouteNumber>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteName {
    pub method: Arc<str>,
    pub pattern: Arc<str>,
    /// The function and where it is written, as the newest code says: for people.
    pub handler: Option<Arc<str>>,
    pub source: Option<Arc<str>>,
}

/// The label of what has no name of its own, whatever clients send.
const OTHER: &str = "other";
const UNMATCHED: &str = "unmatched";

impl RouteNumber {
    pub fn name(self, names: &[RouteName]) -> Option<&RouteName> {
        names.get(usize::from(self.0))
    }

    /// No route: 404, 405, a malformed request, an application that routes by itself.
    pub const UNMATCHED: Self = Self(0);
    /// One of the routes beyond the bound.
    pub const OTHER: Self = Self(1);
    /// Not a request but a run of a job, which has statistics of its own.
    pub const JOB: Self = Self(u16::MAX);
}

const _: () = assert!(ROUTES_COUNT_MAX < RouteNumber::JOB.0 as usize);

/// The names of routes, by their numbers.
pub trait NamedRoutes {
    /// Method and pattern; `None` for what is not a route.
    fn name(&self, number: RouteNumber) -> Option<String>;
    /// The pattern only; `None` also for routes beyond the bound.
    fn pattern(&self, number: RouteNumber) -> Option<&str>;
}

impl NamedRoutes for [RouteName] {
    fn name(&self, number: RouteNumber) -> Option<String> {
        if number == RouteNumber::UNMATCHED {
            return None;
        }
        self.get(usize::from(number.0)).map(|RouteName { method, pattern, .. }| format!("{method} {pattern}"))
    }

    fn pattern(&self, number: RouteNumber) -> Option<&str> {
        let is_route = ![RouteNumber::UNMATCHED, RouteNumber::OTHER].contains(&number);
        self.get(usize::from(number.0)).filter(|_| is_route).map(|name| &*name.pattern)
    }
}

impl Default for RouteNames {
    fn default() -> Self {
        let name =
            |pattern: &str| RouteName { method: OTHER.into(), pattern: pattern.into(), handler: None, source: None };
        Self { names: Arc::new(vec![name(UNMATCHED), name(OTHER)]), numbers: HashMap::new() }
    }
}

impl RouteNames {
    /// The number of a route, which is new if it was never declared before.
    pub fn number(&mut self, method: &str, pattern: &str, origin: &RouteOrigin) -> RouteNumber {
        let key: (Arc<str>, Arc<str>) = (method.into(), pattern.into());
        let [handler, source] = [&origin.handler, &origin.source].map(|text| text.as_deref().map(Arc::from));
        let name = RouteName { method: Arc::clone(&key.0), pattern: Arc::clone(&key.1), handler, source };
        if let Some(&number) = self.numbers.get(&key) {
            let place = usize::from(number.0);
            if self.names[place] != name {
                Arc::make_mut(&mut self.names)[place] = name;
            }
            return number;
        }
        let Some(number) = u16::try_from(self.names.len()).ok().filter(|_| self.names.len() < ROUTES_COUNT_MAX) else {
            return RouteNumber::OTHER;
        };
        Arc::make_mut(&mut self.names).push(name);
        self.numbers.insert(key, RouteNumber(number));
        RouteNumber(number)
    }

    pub fn all(&self) -> Arc<Vec<RouteName>> {
        Arc::clone(&self.names)
    }
}

impl RouteStatistics {
    pub fn record(&mut self, RouteNumber(number): RouteNumber, class: usize, times: Times) {
        let place = usize::from(number);
        if place >= self.counts.len() {
            // At the first request of a new route.
            self.counts.resize_with(place + 1, RouteCounts::default);
        }
        let counts = &mut self.counts[place];
        if let Some(count) = counts.by_class.get_mut(class) {
            *count += 1;
        }
        counts.seconds.observe(times.total());
        counts.queued += times.queued();
        counts.running += times.running();
        counts.parked += times.parked();
    }

    /// Those that had requests, with their names.
    pub fn named<'a>(
        &'a self,
        names: &'a [RouteName],
    ) -> impl Iterator<Item = (&'a RouteName, &'a RouteCounts)> + Clone {
        names.iter().zip(&self.counts).filter(|(_, counts)| counts.count() > 0)
    }
}

impl RouteCounts {
    pub fn count(&self) -> u64 {
        self.by_class.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(names: &mut RouteNames, method: &str, pattern: &str) -> RouteNumber {
        names.number(method, pattern, &RouteOrigin::default())
    }

    #[test]
    fn a_route_is_written_where_the_newest_code_says() {
        let mut names = RouteNames::default();
        let written = |line: u32| RouteOrigin {
            handler: Some("shop:show".into()),
            source: Some(format!("shop.py:{line}")),
            ..RouteOrigin::default()
        };
        let route = names.number("GET", "/", &written(3));
        assert_eq!(names.number("GET", "/", &written(12)), route);
        let name = route.name(&names.names).unwrap();
        assert_eq!((name.handler.as_deref(), name.source.as_deref()), (Some("shop:show"), Some("shop.py:12")));
    }

    #[test]
    fn a_route_keeps_its_number_and_what_is_beyond_the_bound_is_counted_together() {
        let mut names = RouteNames::default();
        let first = number(&mut names, "GET", "/");
        assert_eq!(number(&mut names, "GET", "/"), first);
        assert_ne!(number(&mut names, "POST", "/"), first);
        for place in 0..2 * ROUTES_COUNT_MAX {
            number(&mut names, "GET", &format!("/{place}"));
        }
        assert_eq!(number(&mut names, "GET", "/new"), RouteNumber::OTHER);
        assert_eq!(number(&mut names, "GET", "/"), first, "also when there is no room");
        assert_eq!(names.all().len(), ROUTES_COUNT_MAX);
    }

    #[test]
    fn requests_are_counted_under_the_name_of_their_route() {
        let mut names = RouteNames::default();
        number(&mut names, "GET", "/never");
        let route = number(&mut names, "GET", "/orders/{id}");
        let mut statistics = RouteStatistics::default();
        let mut times = Times::default();
        times.add_running(Duration::from_millis(3));
        times.add_parked(Duration::from_secs(2));
        statistics.record(route, 2, times);
        statistics.record(RouteNumber::UNMATCHED, 4, Times::default());
        let names = names.all();
        let found: Vec<_> = statistics.named(&names).map(|(name, counts)| (&*name.pattern, counts.by_class)).collect();
        assert_eq!(found, [("unmatched", [0, 0, 0, 0, 1, 0]), ("/orders/{id}", [0, 0, 1, 0, 0, 0])]);
        let (_, counts) = statistics.named(&names).nth(1).unwrap();
        assert_eq!(counts.seconds.sum(), Duration::from_millis(2_003));
        assert_eq!((counts.running, counts.parked), (Duration::from_millis(3), Duration::from_secs(2)));
    }
}
