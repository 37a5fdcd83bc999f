//! The routes of applications: where requests go, and which responses need no worker.

use std::time::Duration;

use bytes::Bytes;
use parkade_core::{Core, RouteId};
use parkade_model::{Errand, JobId, TableId, Then, Wait};
use parkade_wire::{Application, Response, Route, RouteKind, ThenRequest};

use super::{called, check, waits};
use crate::databases::Databases;
use crate::http::answer;
use crate::queries::WorkRequest;
use crate::routing::{self, HeldRoute, RouteError, RouteMatch, RouteSpec};
use crate::seconds::duration;

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
}

/// The route tables of the applications that serve, or that a parked request still refers to.
#[derive(Debug, Default)]
pub struct Routes {
    tables: routing::RouteTables<Ready>,
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
            application.routes.into_iter().map(|route| route_spec(route, databases)).collect();
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

fn route_spec(route: Route, databases: &Databases) -> Result<(RouteSpec, Ready), BadApplication> {
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
    Ok((RouteSpec { methods: route.methods, path, kind, deadline }, Ready { standing, asked }))
}

fn sendable(path: &str, response: Response) -> Result<Response, BadApplication> {
    match check(&response, true) {
        Ok(()) => Ok(response),
        Err(fault) => Err(BadApplication::Answer { path: path.to_owned(), fault }),
    }
}
