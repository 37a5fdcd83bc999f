//! What is counted of requests and runs of jobs that have ended, for `/metrics`, `/status` and the admin page.
//!
//! Counting a request is a few additions at places that are known by number: the number of its route is looked up with
//! the route, and kept with the request.

mod histogram;
mod latency;
mod limits;
mod recent;
mod requests;
mod routes;
mod runs;

pub use histogram::{BUCKETS, Histogram};
pub use latency::LatencyCounts;
pub use recent::{Graph, OpenRequests, Percentiles, Rates, Recent};
pub use requests::EndedRequests;
pub use routes::{NamedRoutes, RouteCounts, RouteName, RouteNames, RouteNumber};
pub use runs::{RunOutcome, RunStatistics};
