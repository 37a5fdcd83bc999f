//! Where a request goes. The server looks that up, in the routes that the workers declare; here a route is a number.

use std::time::Duration;

use parkade_model::{TableId, Then, Wait};

/// A route: its index in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId {
    pub table: TableId,
    pub index: u32,
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq)]
pub enum Destination {
    /// `concurrent`: the route is a coroutine. `deadline`: what holds for this route, the default included.
    Handler {
        route: RouteId,
        concurrent: bool,
        deadline: Option<Duration>,
    },
    /// No route matches, and the application takes those requests. `concurrent`: with a coroutine.
    Fallback {
        table: TableId,
        concurrent: bool,
    },
    /// The core parks the request itself. The server puts the request's own cursor into `wait` where that has none.
    Wait {
        route: RouteId,
        wait: Wait,
        then: Then,
        deadline: Option<Duration>,
    },
    Constant {
        route: RouteId,
    },
    /// A browser asks which requests of other origins the application permits, and the server knows.
    Preflight,
    NotFound,
    MethodNotAllowed,
    /// The path would lead elsewhere if it were resolved, so it goes nowhere.
    DotSegment,
    /// No worker has declared its routes yet.
    Unknown,
}
