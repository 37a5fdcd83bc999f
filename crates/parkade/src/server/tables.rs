//! What routes answer without a worker, and how an application is told to the core.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use parkade_core::{
    ChannelName, Core, Cursor, Errand, HistoryLimits, QueryWork, RouteId, RouteSpec, TableId, Then, Wait,
};
use parkade_model::JobId;
use parkade_wire::{Application, CallKind, Response, Route, RouteKind, Then as WireThen, Wait as WireWait};

use super::exchange::Kept;
use super::queries::asked::{self, Asked, Names};
use super::seconds::duration;
use crate::http::answer;

/// What goes with a route that needs no worker.
#[derive(Debug)]
pub enum Standing {
    /// The route has a handler: nothing stands ready.
    None,
    Answer(Response),
    /// The route is where clients find jobs.
    Job,
    Function {
        name: Box<str>,
        state: Bytes,
    },
}

/// What a route has ready: what it answers, and what it asks of a database.
#[derive(Debug)]
struct Ready {
    standing: Standing,
    asked: Option<Asked>,
}

/// For each route table, what its routes answer, by their number.
#[derive(Debug, Default)]
pub struct Tables {
    ready: HashMap<TableId, Vec<Ready>>,
}

/// The application told something that cannot be served. The text is for the operator's log.
#[derive(Debug, thiserror::Error)]
pub enum BadApplication {
    #[error("{0}")]
    Routes(#[from] parkade_core::RouteError),
    #[error("the answer of the route {path:?} cannot be sent: {fault}")]
    Answer { path: String, fault: answer::BadAnswer },
    #[error("the route {path:?} cannot wait for that: {why}")]
    Wait { path: String, why: String },
}

impl Tables {
    /// Tells the core the routes of an application. Tables that are equal have one id; what they answer is what was told last.
    pub fn learn(
        &mut self,
        core: &mut Core,
        application: Application,
        names: &impl Names,
    ) -> Result<TableId, BadApplication> {
        let mut specs = Vec::with_capacity(application.routes.len());
        let mut ready = Vec::with_capacity(application.routes.len());
        for route in application.routes {
            let (spec, stands) = route_spec(route, names)?;
            specs.push(spec);
            ready.push(stands);
        }
        let table = core.learn_routes(application.fallback, specs)?;
        self.ready.insert(table, ready);
        // Old tables stay for requests that were routed by them; a handful is kept.
        if self.ready.len() > TABLES_KEPT {
            let oldest = self.ready.keys().min().copied();
            oldest.map(|oldest| self.ready.remove(&oldest));
        }
        Ok(table)
    }

    pub fn standing(&self, route: RouteId) -> &Standing {
        self.of(route).map_or(&Standing::None, |ready| &ready.standing)
    }

    /// Whether that is where clients find jobs.
    pub fn is_for_jobs(&self, route: RouteId) -> bool {
        matches!(self.standing(route), Standing::Job)
    }

    /// What a wait route asks of a database.
    pub fn asked(&self, route: RouteId) -> Option<&Asked> {
        self.of(route)?.asked.as_ref()
    }

    fn of(&self, route: RouteId) -> Option<&Ready> {
        self.ready.get(&route.table)?.get(route.index as usize)
    }
}

/// Reloads during which a parked request may still be answered by the route that parked it.
const TABLES_KEPT: usize = 64;

fn route_spec(route: Route, names: &impl Names) -> Result<(RouteSpec, Ready), BadApplication> {
    let path = route.path;
    let mut asked = None;
    let (kind, standing) = match route.kind {
        RouteKind::Sync => (parkade_core::RouteKind::Sync, Standing::None),
        RouteKind::Async => (parkade_core::RouteKind::Async, Standing::None),
        RouteKind::Constant(response) => {
            (parkade_core::RouteKind::Constant, Standing::Answer(sendable(&path, response)?))
        }
        RouteKind::Job => {
            // Which job, and how long, is found out from each request.
            let wait = Wait::Visit { job: JobId(0), errand: Errand::Result { timeout: Some(Duration::ZERO) } };
            (parkade_core::RouteKind::Wait { wait, then: Then::Answer }, Standing::Job)
        }
        RouteKind::Wait { wait: told, then } => {
            let (wait, asks) = wait(told, names).map_err(|why| BadApplication::Wait { path: path.clone(), why })?;
            if let Some(Asked::Nowhere(why)) = &asks {
                return Err(BadApplication::Wait { path, why: (**why).to_owned() });
            }
            asked = asks;
            let (then, standing) = match then {
                WireThen::Answer(Some(response)) => (Then::Answer, Standing::Answer(sendable(&path, response)?)),
                WireThen::Answer(None) => (Then::Answer, Standing::None),
                WireThen::Call { function, state, kind } => {
                    (called(kind), Standing::Function { name: function.into(), state })
                }
                WireThen::Await => (Then::Await, Standing::None),
            };
            (parkade_core::RouteKind::Wait { wait, then }, standing)
        }
    };
    let deadline = route.deadline.map(|seconds| (seconds > 0.0).then(|| duration(seconds)));
    Ok((RouteSpec { methods: route.methods, path, kind, deadline }, Ready { standing, asked }))
}

fn sendable(path: &str, response: Response) -> Result<Response, BadApplication> {
    match check(&response, true) {
        Ok(()) => Ok(response),
        Err(fault) => Err(BadApplication::Answer { path: path.to_owned(), fault }),
    }
}

/// Whether an answer can be sent. `is_whole`: its body is all there, else it is the beginning.
pub fn check(response: &Response, is_whole: bool) -> Result<(), answer::BadAnswer> {
    let Some(announced) = answer::check(response.status, response.headers.iter())? else { return Ok(()) };
    let bytes = response.body.len() as u64;
    // The answer to HEAD announces a body that it does not have.
    let fits = if is_whole { bytes == announced || bytes == 0 } else { bytes <= announced };
    if fits { Ok(()) } else { Err(answer::BadAnswer::Length) }
}

/// A wait as the core understands it, and what it asks of a database; else why not.
pub fn wait(told: WireWait, names: &impl Names) -> Result<(Wait, Option<Asked>), String> {
    let channel = |name: &str| ChannelName::parse(name).map_err(|error| error.to_string());
    let cursor = |text: Option<String>| text.and_then(|text| Cursor::told(&text));
    match told {
        WireWait::Timer { seconds } => Ok((Wait::Timer { after: duration(seconds) }, None)),
        WireWait::Next { channel: name, timeout, since } => {
            let timeout = timeout.map(duration);
            Ok((Wait::Next { channel: channel(&name)?, timeout, since: cursor(since) }, None))
        }
        WireWait::Stream { channel: name, since } => {
            Ok((Wait::Stream { channel: channel(&name)?, since: cursor(since) }, None))
        }
        WireWait::Query(query) => Ok(asks(asked::query(*query, names))),
        WireWait::Begin(begin) => Ok(asks(asked::begin(&begin, names))),
        WireWait::Commit => Ok(asks(asked::end(QueryWork::Commit))),
        WireWait::Rollback => Ok(asks(asked::end(QueryWork::Rollback))),
        WireWait::Stored => Ok((Wait::Stored, None)),
        WireWait::Result { job, timeout } => {
            Ok((Wait::Job { job: JobId(u128::from_be_bytes(job)), timeout: timeout.map(duration) }, None))
        }
        WireWait::Access { .. } => Err("\"access\": nobody asks for a job here".to_owned()),
        WireWait::Unaccepted { name, why } => Err(format!("{name:?}: {why}")),
    }
}

fn asks((wait, asked): (Wait, Asked)) -> (Wait, Option<Asked>) {
    (wait, Some(asked))
}

/// The history limits of a channel: what the application does not say is the server's.
pub fn history(options: parkade_wire::ChannelOptions, standard: HistoryLimits) -> HistoryLimits {
    let size =
        |told: Option<u64>, standard: usize| told.map_or(standard, |told| usize::try_from(told).unwrap_or(usize::MAX));
    HistoryLimits {
        count: size(options.count, standard.count),
        bytes: size(options.bytes, standard.bytes),
        age: options.age.map_or(standard.age, duration),
    }
}

fn called(kind: CallKind) -> Then {
    Then::Call { concurrent: kind == CallKind::Async }
}

/// What is kept with a request that parks, in memory of its own: the buffer it was read into holds many frames more.
pub fn kept(then: WireThen) -> (Then, Option<Kept>) {
    match then {
        WireThen::Answer(response) => (Then::Answer, response.map(|response| Kept::Response(response.detached()))),
        WireThen::Call { function, state, kind } => {
            (called(kind), Some(Kept::Function { name: function.into(), state: Bytes::copy_from_slice(&state) }))
        }
        WireThen::Await => (Then::Await, None),
    }
}
