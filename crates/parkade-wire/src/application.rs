//! What a worker tells about its application in `READY`.

use crate::exchange::Response;
use crate::wait::{Then, Wait};

/// The application, as told in `READY`.
#[derive(Debug, Clone, PartialEq)]
pub struct Application {
    /// `native`, `asgi`, `wsgi`, `psgi`: for people; the core treats all alike.
    pub interface: String,
    /// The worker holds many requests at once; else it runs them one by one, in the order of arrival.
    pub concurrent: bool,
    /// Requests that match no route are given to the worker all the same, with route nil.
    pub fallback: bool,
    /// Numbered by their place.
    pub routes: Vec<Route>,
    /// Histories by channel name, or by prefix with a `*` at its end; the longest match wins.
    pub channels: Vec<(String, ChannelOptions)>,
}

/// One route.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Upper case.
    pub methods: Vec<String>,
    /// The pattern as written; its syntax has not been looked at.
    pub path: String,
    /// Seconds a request may be queued or running at a time; 0 is none, `None` the server's default.
    pub deadline: Option<f64>,
    pub kind: RouteKind,
}

/// Who does the work for a route.
#[derive(Debug, Clone, PartialEq)]
pub enum RouteKind {
    /// A function that occupies the worker until the stream closes.
    Sync,
    /// A coroutine.
    Async,
    /// The core parks the request itself; `then` is never `Await`.
    Wait { wait: Wait, then: Then },
    /// The core answers itself.
    Constant(Response),
}

/// How much history a channel keeps; `None` is the server's default.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ChannelOptions {
    /// Messages.
    pub count: Option<u64>,
    pub bytes: Option<u64>,
    /// Seconds.
    pub age: Option<f64>,
}
