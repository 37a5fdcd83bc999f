//! Reads the application that `READY` describes.

use super::park::{headers, kind, response, then, wait, wait_then};
use super::read::Reader;
use super::registered::{jobs, queue, recurring};
use crate::application::{Application, ChannelOptions, CorsPolicy, RequestBody, Route, RouteKind, RouteOrigin};
use crate::error::PayloadFault;
use crate::exchange::{Headers, Response};
use crate::limits::{THREADS_MAX, WATCHED_BYTES_MAX, WATCHED_COUNT_MAX};
use crate::wait::{CallKind, ThenRequest, WaitRequest};

pub(super) fn application(reader: &mut Reader) -> Result<Application, PayloadFault> {
    let (mut interface, mut fallback_kind) = (None, CallKind::Async);
    let (mut concurrent, mut threads, mut fallback) = (false, 1, false);
    let (mut streams, mut websocket) = (false, false);
    let (mut routes, mut channels) = (Vec::new(), Vec::new());
    let (mut told, mut queues, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    let (mut added, mut cors, mut unmatched_cors) = (Headers::default(), Vec::new(), None);
    let mut watch = Vec::new();
    reader.map(|reader, key| {
        match key {
            "interface" => interface = Some(reader.text("interface is text")?.to_owned()),
            "concurrent" => concurrent = reader.boolean("concurrent is a boolean")?,
            "threads" => threads = self::threads(reader)?,
            "fallback" => fallback = reader.boolean("fallback is a boolean")?,
            "fallback_kind" => fallback_kind = kind(reader)?,
            "stream" => streams = reader.boolean("stream is a boolean")?,
            "websocket" => websocket = reader.boolean("websocket is a boolean")?,
            "routes" => routes = reader.list(route)?,
            "channels" => channels = reader.list(channel)?,
            "jobs" => told = jobs(reader)?,
            "queues" => queues = reader.list(queue)?,
            "recurring" => repeated = recurring(reader)?,
            "headers" => added = headers(reader)?,
            "cors" => cors = reader.list(policy)?,
            "unmatched_cors" => unmatched_cors = reader.optional(policy_number)?,
            "watch" => watch = watched(reader)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let interface = interface.ok_or(PayloadFault::payload("interface is missing"))?;
    if threads > 1 && !concurrent {
        return Err(PayloadFault::payload("more than one thread is a concurrent worker's"));
    }
    let named = routes.iter().map(|route: &Route| route.cors).chain([unmatched_cors]).flatten();
    if named.max().is_some_and(|most| most as usize >= cors.len()) {
        return Err(PayloadFault::payload("there is no such policy"));
    }
    Ok(Application {
        interface,
        concurrent,
        threads,
        fallback,
        fallback_kind,
        fallback_body: if streams { RequestBody::Streamed { bytes_max: None } } else { RequestBody::Collected },
        websocket,
        routes,
        channels,
        jobs: told,
        queues,
        recurring: repeated,
        headers: added,
        cors,
        unmatched_cors,
        watch,
    })
}

/// Paths, of which there may be none.
pub(super) fn watched(reader: &mut Reader) -> Result<Vec<String>, PayloadFault> {
    let mut count = 0;
    reader.list(|reader| {
        count += 1;
        let path = reader.text("watch consists of texts")?;
        if count > WATCHED_COUNT_MAX {
            return Err(PayloadFault::payload("watch has at most 200 paths"));
        }
        if path.len() > WATCHED_BYTES_MAX {
            return Err(PayloadFault::payload("a path of watch has at most 4,096 bytes"));
        }
        Ok(path.to_owned())
    })
}

fn policy_number(reader: &mut Reader) -> Result<u32, PayloadFault> {
    reader.unsigned("a policy is named by its number")
}

fn policy(reader: &mut Reader) -> Result<CorsPolicy, PayloadFault> {
    let mut policy = CorsPolicy::default();
    reader.map(|reader, key| {
        match key {
            "origins" => policy.origins = texts(reader)?,
            "methods" => policy.methods = reader.optional(texts)?,
            "headers" => policy.headers = reader.optional(texts)?,
            "expose" => policy.expose = texts(reader)?,
            "credentials" => policy.credentials = reader.boolean("credentials is a boolean")?,
            "max_age" => policy.max_age = reader.optional(|reader| reader.unsigned("max_age is an integer"))?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if policy.credentials && policy.origins.iter().any(|origin| origin == "*") {
        return Err(PayloadFault::payload("credentials are not for any origin"));
    }
    Ok(policy)
}

fn texts(reader: &mut Reader) -> Result<Vec<String>, PayloadFault> {
    reader.list(|reader| reader.text("a policy consists of texts").map(str::to_owned))
}

fn threads(reader: &mut Reader) -> Result<u32, PayloadFault> {
    let threads = u32::try_from(reader.integer("threads is an integer")?).ok();
    threads.filter(|threads| (1..=THREADS_MAX).contains(threads)).ok_or(PayloadFault::payload("threads is 1 to 1,024"))
}

/// `[pattern, options]`
fn channel(reader: &mut Reader) -> Result<(String, ChannelOptions), PayloadFault> {
    reader.array(2, |reader| {
        let pattern = reader.text("a channel's pattern is text")?.to_owned();
        let mut options = ChannelOptions::default();
        reader.map(|reader, key| {
            match key {
                "count" => options.count = reader.optional(|r| r.unsigned("count is an integer"))?,
                "bytes" => options.bytes = reader.optional(|r| r.unsigned("bytes is an integer"))?,
                "age" => options.age = reader.optional(Reader::seconds)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok((pattern, options))
    })
}

/// The entries of a route's map, which come in any order.
#[derive(Default)]
struct Said {
    methods: Option<Vec<String>>,
    path: Option<String>,
    kind: Option<String>,
    deadline: Option<f64>,
    cors: Option<u32>,
    streams: bool,
    body_bytes_max: Option<u64>,
    websocket: bool,
    answer: Option<Response>,
    wait: Option<WaitRequest>,
    then: Option<ThenRequest>,
    origin: RouteOrigin,
}

fn route(reader: &mut Reader) -> Result<Route, PayloadFault> {
    let mut said = Said::default();
    reader.map(|reader, key| {
        match key {
            "methods" => said.methods = Some(reader.list(|r| r.text("a method is text").map(str::to_owned))?),
            "path" => said.path = Some(reader.text("path is text")?.to_owned()),
            "kind" => said.kind = Some(reader.text("kind is text")?.to_owned()),
            "deadline" => said.deadline = reader.optional(Reader::seconds)?,
            "cors" => said.cors = reader.optional(policy_number)?,
            "stream" => said.streams = reader.boolean("stream is a boolean")?,
            "body_limit" => {
                said.body_bytes_max = reader.optional(|r| r.unsigned("body_limit is an integer"))?;
            }
            "websocket" => said.websocket = reader.boolean("websocket is a boolean")?,
            "answer" => said.answer = reader.optional(response)?,
            "wait" => said.wait = reader.optional(wait)?,
            "then" => said.then = reader.optional(then)?,
            "name" => said.origin.name = reader.optional(|r| r.text("name is text").map(str::to_owned))?,
            "handler" => said.origin.handler = reader.optional(|r| r.text("handler is text").map(str::to_owned))?,
            "source" => said.origin.source = reader.optional(|r| r.text("source is text").map(str::to_owned))?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    said.route()
}

impl Said {
    fn route(self) -> Result<Route, PayloadFault> {
        let kind = self.kind.ok_or(PayloadFault::payload("kind is missing"))?;
        Ok(Route {
            methods: self.methods.ok_or(PayloadFault::payload("methods is missing"))?,
            path: self.path.ok_or(PayloadFault::payload("path is missing"))?,
            deadline: self.deadline,
            cors: self.cors,
            body: if self.streams {
                RequestBody::Streamed { bytes_max: self.body_bytes_max }
            } else {
                RequestBody::Collected
            },
            websocket: self.websocket,
            origin: self.origin,
            kind: match kind.as_str() {
                "sync" => RouteKind::Sync,
                "async" => RouteKind::Async,
                "wait" => parked(self.wait, self.then)?,
                "constant" => RouteKind::Constant(self.answer.ok_or(PayloadFault::payload("answer is missing"))?),
                "job" => RouteKind::Job,
                _ => return Err(PayloadFault::payload("kind is sync, async, wait, constant or job")),
            },
        })
    }
}

fn parked(wait: Option<WaitRequest>, then: Option<ThenRequest>) -> Result<RouteKind, PayloadFault> {
    let wait = wait.ok_or(PayloadFault::payload("wait is missing"))?;
    let then = then.ok_or(PayloadFault::payload("then is missing"))?;
    match wait_then(wait, then)? {
        (_, ThenRequest::Await | ThenRequest::Branch { .. }) => {
            Err(PayloadFault::payload("then of a route is answer or call"))
        }
        (wait, then) => Ok(RouteKind::Wait { wait, then }),
    }
}
