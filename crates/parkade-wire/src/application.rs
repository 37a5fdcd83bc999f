//! The description of an application in `READY`.

use bytes::Bytes;
use parkade_model::Missed;

use crate::exchange::{Headers, Response};
use crate::wait::{CallKind, ThenRequest, WaitRequest};

/// The application, as described in `READY`.
#[derive(Debug, Clone, PartialEq)]
pub struct Application {
    /// `native`, `asgi`, `wsgi`, `psgi`: for people; the core treats all the same.
    pub interface: String,
    /// The worker holds many requests at once. Otherwise it runs them one by one, in the order of arrival.
    pub concurrent: bool,
    /// Plain functions that a concurrent worker runs at a time, in addition to its loop: 1 to [`THREADS_MAX`](crate::limits::THREADS_MAX).
    pub threads: u32,
    /// Requests that match no route go to the worker nevertheless, with route nil.
    pub fallback: bool,
    /// Who answers these in a concurrent worker.
    pub fallback_kind: CallKind,
    /// How these get their bodies.
    pub fallback_body: RequestBody,
    /// Requests for a WebSocket that match no route go to the worker as such.
    pub websocket: bool,
    /// Numbered by their place.
    pub routes: Vec<Route>,
    /// Histories by channel name, or by prefix with a `*` at its end; the longest match wins.
    pub channels: Vec<(String, ChannelOptions)>,
    /// Each name once.
    pub jobs: Vec<JobSpec>,
    /// The limits of queues; each name once.
    pub queues: Vec<(String, QueueOptions)>,
    /// Recurring jobs; each name once.
    pub recurring: Vec<RecurringSpec>,
    /// Added to each response that has no header of that name.
    pub headers: Headers,
    /// Numbered by their place.
    pub cors: Vec<CorsPolicy>,
    /// The policy for requests that match no route. Checked: there is such a policy.
    pub unmatched_cors: Option<u32>,
    /// Folders and files from which the code was loaded, for `parkade dev`.
    pub watch: Vec<String>,
}

impl Application {
    /// It was not written for Parkade: every request goes to it, and it decides itself what its paths are.
    pub fn is_hosted(&self) -> bool {
        self.interface != "native"
    }
}

/// Which requests of other origins browsers are told to permit. Neither origins nor names are checked here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CorsPolicy {
    /// `*` alone is any; `https://*.example.com` is any host under that.
    pub origins: Vec<String>,
    /// `None`: whatever the client asks for.
    pub methods: Option<Vec<String>>,
    /// `None`: whatever the client asks for.
    pub headers: Option<Vec<String>>,
    pub expose: Vec<String>,
    /// Cookies may be sent. Checked: the origins are not any.
    pub credentials: bool,
    /// Seconds.
    pub max_age: Option<u64>,
}

/// One route.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Upper case.
    pub methods: Vec<String>,
    /// The pattern as written; its syntax has not been checked.
    pub path: String,
    /// Seconds a request may be queued or running at a time; 0 is none, `None` the server's default.
    pub deadline: Option<f64>,
    /// The number of its policy for other origins. Checked: there is such a policy.
    pub cors: Option<u32>,
    pub kind: RouteKind,
    pub body: RequestBody,
    /// Requests for a WebSocket go to the worker as such.
    pub websocket: bool,
    pub origin: RouteOrigin,
}

/// How a worker gets the body of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RequestBody {
    /// Whole: the core collects it first.
    #[default]
    Collected,
    /// As it arrives, unless it is small. `bytes_max`: its limit; `None` is the operator's.
    Streamed { bytes_max: Option<u64> },
}

/// What people are told about a route; nothing depends on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteOrigin {
    /// The name by which the application links to it.
    pub name: Option<String>,
    /// The function, as `module:name`.
    pub handler: Option<String>,
    /// Where it was written, as `file:line`.
    pub source: Option<String>,
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
    /// Maximum number of retries.
    pub retries: u32,
    /// Seconds for one attempt; 0 is none, `None` the server's default.
    pub deadline: Option<f64>,
    /// −1,000 to 1,000; the higher goes first.
    pub priority: i16,
    pub access: JobAccess,
    /// Where it was written, as `file:line`: for people.
    pub source: Option<String>,
}

/// Whether clients find a job at its address. If not, the address answers as if there were no such job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobAccess {
    #[default]
    Public,
    Private,
    /// The application decides for each request, by a function of this kind.
    Asked(CallKind),
}

/// The limits of a queue; `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct QueueOptions {
    /// How many of its jobs may run at a time; 1 or more.
    pub concurrency: Option<u32>,
    /// Jobs begun per second, above 0.
    pub rate: Option<f64>,
}

/// A recurring job.
#[derive(Debug, Clone, PartialEq)]
pub struct RecurringSpec {
    /// 1 to 200 bytes: the installation remembers the recurring job by it.
    pub name: String,
    /// The name of the job, which the application need not have.
    pub job: String,
    pub arguments: Bytes,
    pub when: When,
    pub missed: Missed,
    /// As in `ENQUEUE`: no other job is enqueued while one with this key is unfinished.
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
