//! The routes of applications: where requests go, and which responses need no worker.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parkade_core::{Core, Destination, RouteId};
use parkade_model::{Errand, JobId, TableId, Then, Wait};
use parkade_wire::{Application, Response, Route, RouteKind, ThenRequest};

use super::{called, check, waits};
use crate::databases::Databases;
use crate::http::answer;
use crate::queries::WorkRequest;
use crate::routing::{self, HeldRoute, RouteError, RouteMatch, RouteSpec};
use crate::seconds::duration;
use crate::statistics::{RouteName, RouteNames, RouteNumber};

/// The response of a route that needs no worker.
#[derive(Debug)]
pub enum StaticRoute {
    /// None: the route has a handler.
    None,
    Answer(Response),
    /// The route is the address of jobs.
    Job,
    Function {
        name: Box<str>,
        state: Bytes,
    },
}

/// What is prepared for a route: its response, and its query.
#[derive(Debug)]
struct Ready {
    standing: StaticRoute,
    asked: Option<WorkRequest>,
    /// For each method, in the statistics.
    numbers: Vec<(Box<str>, RouteNumber)>,
}

/// The route tables of the applications that serve, or that a parked request still refers to.
#[derive(Debug, Default)]
pub struct Routes {
    tables: routing::RouteTables<Ready>,
    names: RouteNames,
}

/// The application declares something invalid. The text is for the operator's log.
#[derive(Debug, thiserror::Error)]
pub enum BadApplication {
    #[error("{0}")]
    Routes(#[from] RouteError),
    #[error("the response of the route {path:?} cannot be sent: {fault}")]
    Answer { path: String, fault: answer::BadAnswer },
    #[error("invalid wait in the route {path:?}: {why}")]
    Wait { path: String, why: String },
}

impl Routes {
    /// Stores the routes of an application, before the core hears that its worker is ready. Drops tables that neither
    /// the core nor a request still needs.
    pub fn learn(
        &mut self,
        core: &Core,
        application: Application,
        databases: &Databases,
    ) -> Result<TableId, BadApplication> {
        let routes: Result<Vec<_>, _> =
            application.routes.into_iter().map(|route| route_spec(route, databases, &mut self.names)).collect();
        Ok(self.tables.learn(application.fallback, routes?, |table| core.uses_table(table))?)
    }

    /// Where a new request goes.
    pub fn find(&self, core: &Core, method: &str, path: &str) -> RouteMatch {
        self.find_in(core.table(), core, method, path)
    }

    /// Where a request goes according to one table.
    pub fn find_in(&self, table: Option<TableId>, core: &Core, method: &str, path: &str) -> RouteMatch {
        self.tables.find(table, method, path, core.config().deadline)
    }

    /// The route in the statistics.
    pub fn number(&self, destination: &Destination, method: &str) -> RouteNumber {
        let route = match destination {
            Destination::Handler { route, .. } | Destination::Wait { route, .. } | Destination::Constant { route } => {
                *route
            }
            Destination::Fallback { .. }
            | Destination::NotFound
            | Destination::MethodNotAllowed
            | Destination::Unknown => return RouteNumber::UNMATCHED,
        };
        let numbers = self.tables.ready(route).map_or(&[][..], |ready| &ready.numbers);
        numbers.iter().find(|(known, _)| **known == *method).map_or(RouteNumber::OTHER, |(_, number)| *number)
    }

    /// The names of routes in the statistics, by their numbers.
    pub fn names(&self) -> Arc<Vec<RouteName>> {
        self.names.all()
    }

    /// Keeps a route for a request that needs it until it ends.
    pub fn hold(&self, route: RouteId) -> Option<HeldRoute> {
        self.tables.hold(route)
    }

    pub fn standing(&self, route: RouteId) -> &StaticRoute {
        self.tables.ready(route).map_or(&StaticRoute::None, |ready| &ready.standing)
    }

    /// Whether the route is the address of jobs.
    pub fn is_for_jobs(&self, route: RouteId) -> bool {
        matches!(self.standing(route), StaticRoute::Job)
    }

    /// The query of a wait route.
    pub fn asked(&self, route: RouteId) -> Option<&WorkRequest> {
        self.tables.ready(route)?.asked.as_ref()
    }
}

fn route_spec(
    route: Route,
    databases: &Databases,
    names: &mut RouteNames,
) -> Result<(RouteSpec, Ready), BadApplication> {
    let path = route.path;
    let mut asked = None;
    let (kind, standing) = match route.kind {
        RouteKind::Sync => (routing::RouteWork::Sync, StaticRoute::None),
        RouteKind::Async => (routing::RouteWork::Async, StaticRoute::None),
        RouteKind::Constant(response) => {
            (routing::RouteWork::Constant, StaticRoute::Answer(sendable(&path, response)?))
        }
        RouteKind::Job => {
            // The job and the timeout depend on each request.
            let wait = Wait::Visit { job: JobId::new(0), errand: Errand::Result { timeout: Some(Duration::ZERO) } };
            (routing::RouteWork::Wait { wait, then: Then::Answer }, StaticRoute::Job)
        }
        RouteKind::Wait { wait: told, then } => {
            let (wait, asks) =
                waits::wait(told, databases).map_err(|why| BadApplication::Wait { path: path.clone(), why })?;
            if let Some(WorkRequest::NoDatabase(why)) = &asks {
                return Err(BadApplication::Wait { path, why: (**why).to_owned() });
            }
            asked = asks;
            let (then, standing) = match then {
                ThenRequest::Answer(Some(response)) => (Then::Answer, StaticRoute::Answer(sendable(&path, response)?)),
                ThenRequest::Answer(None) => (Then::Answer, StaticRoute::None),
                ThenRequest::Call { function, state, kind } => {
                    (called(kind), StaticRoute::Function { name: function.into(), state })
                }
                ThenRequest::Await => (Then::Await, StaticRoute::None),
            };
            (routing::RouteWork::Wait { wait, then }, standing)
        }
    };
    let deadline = route.deadline.map(|seconds| (seconds > 0.0).then(|| duration(seconds)));
    let numbers = numbers(&route.methods, &path, names);
    Ok((RouteSpec { methods: route.methods, path, kind, deadline }, Ready { standing, asked, numbers }))
}

/// A route for `GET` also answers `HEAD`.
fn numbers(methods: &[String], path: &str, names: &mut RouteNames) -> Vec<(Box<str>, RouteNumber)> {
    let has = |wanted: &str| methods.iter().any(|method| method == wanted);
    let head = (has("GET") && !has("HEAD")).then_some("HEAD");
    methods.iter().map(String::as_str).chain(head).map(|method| (method.into(), names.number(method, path))).collect()
}

fn sendable(path: &str, response: Response) -> Result<Response, BadApplication> {
    match check(&response, true) {
        Ok(()) => Ok(response),
        Err(fault) => Err(BadApplication::Answer { path: path.to_owned(), fault }),
    }
}
