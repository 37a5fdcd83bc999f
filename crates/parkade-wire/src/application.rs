//! The description of an application in `READY`.

use bytes::Bytes;
use parkade_model::Missed;

use crate::exchange::Response;
use crate::wait::{CallKind, ThenRequest, WaitRequest};

/// The application, as described in `READY`.
#[derive(Debug, Clone, PartialEq)]
pub struct Application {
    /// `native`, `asgi`, `wsgi`, `psgi`: for people; the core treats all alike.
    pub interface: String,
    /// The worker holds many requests at once. Otherwise it runs them one by one, in the order of arrival.
    pub concurrent: bool,
    /// Plain functions that a concurrent worker runs at a time, in addition to its loop: 1 to [`THREADS_MAX`](crate::limits::THREADS_MAX).
    pub threads: u32,
    /// Requests that match no route are given to the worker all the same, with route nil.
    pub fallback: bool,
    /// Numbered by their place.
    pub routes: Vec<Route>,
    /// Histories by channel name, or by prefix with a `*` at its end; the longest match wins.
    pub channels: Vec<(String, ChannelOptions)>,
    /// Each name once.
    pub jobs: Vec<JobSpec>,
    /// Queues that are bounded, by name.
    pub queues: Vec<(String, QueueOptions)>,
    /// Each name once.
    pub recurring: Vec<RecurringSpec>,
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

/// What does the work for a route.
#[derive(Debug, Clone, PartialEq)]
pub enum RouteKind {
    /// A function that occupies the worker until the stream closes.
    Sync,
    /// A coroutine.
    Async,
    /// The core parks the request itself; `then` is never `Await`.
    Wait { wait: WaitRequest, then: ThenRequest },
    /// The core answers itself.
    Constant(Response),
    /// The core answers for the job whose id is the first path parameter; that parameter is not checked here.
    Job,
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

/// A job that the application can run.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSpec {
    /// 1 to 200 bytes, none of them a control character.
    pub name: String,
    /// A coroutine. Otherwise it occupies the worker until the stream closes.
    pub concurrent: bool,
    /// 1 to 200 bytes.
    pub queue: String,
    /// How often it is tried again.
    pub retries: u32,
    /// Seconds for one attempt; 0 is none, `None` the server's default.
    pub deadline: Option<f64>,
    /// −1,000 to 1,000; the higher goes first.
    pub priority: i16,
    pub access: JobAccess,
}

/// Whether clients find a job at its address; where they do not, it is as if there were no such job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobAccess {
    #[default]
    Public,
    Private,
    /// The application decides for each request, by a function of this kind.
    Asked(CallKind),
}

/// The bounds of a queue; `None` is no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct QueueOptions {
    /// How many of its jobs may run at a time; 1 or more.
    pub concurrency: Option<u32>,
    /// Jobs begun a second, above 0.
    pub rate: Option<f64>,
}

/// A job that is enqueued again and again.
#[derive(Debug, Clone, PartialEq)]
pub struct RecurringSpec {
    /// 1 to 200 bytes: how the installation remembers it.
    pub name: String,
    /// The name of the job, which the application need not have.
    pub job: String,
    pub arguments: Bytes,
    pub when: When,
    pub missed: Missed,
    /// As that of an enqueue: while one with it has not ended, another is not enqueued.
    pub key: Option<String>,
}

/// When a recurring job is due.
#[derive(Debug, Clone, PartialEq)]
pub enum When {
    /// Seconds, above 0.
    Every(f64),
    /// Neither the fields nor the zone are checked here.
    Cron { fields: String, timezone: String },
}
