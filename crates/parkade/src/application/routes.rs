//! The routes of applications: where requests go, and which responses need no worker.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parkade_core::{Core, Destination, RouteId};
use parkade_model::{AppId, Errand, JobId, TableId, Then, Wait};
use parkade_wire::{Application, CallKind, Response, Route, RouteKind, RouteOrigin, ThenRequest};

use super::surroundings::{self, BadSurroundings, Declared, Surroundings};
use super::{called, check, waits};
use crate::clients::added::{AddedHeaders, OwnedHeader};
use crate::databases::Databases;
use crate::files::Source;
use crate::http::{Head, answer};
use crate::queries::WorkRequest;
use crate::routing::mounts::{Mounts, seen};
use crate::routing::{self, BodyWay, Fallback, HeldRoute, RouteBodies, RouteError, RouteMatch, RouteSpec, TableOwner};
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

/// What is prepared for a route: its response, its query, and what it adds to the response of a wait.
#[derive(Debug)]
struct Ready {
    standing: StaticRoute,
    query: Option<WorkRequest>,
    /// The file that is its answer.
    file: Option<Source>,
    /// For each method, in the statistics.
    numbers: Vec<(Box<str>, RouteNumber)>,
    added: Option<RouteAdded>,
}

/// What a route adds to the response that the core gives after its wait.
#[derive(Debug)]
struct RouteAdded {
    status: Option<u16>,
    fields: Vec<OwnedHeader>,
}

/// The route tables of the applications that serve, or that a parked request still refers to.
#[derive(Debug, Default)]
pub struct Routes {
    mounts: Mounts,
    tables: routing::RouteTables<Ready>,
    names: RouteNames,
    /// Of the applications that add something to their responses.
    surroundings: Vec<Surroundings>,
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
    #[error(transparent)]
    Surroundings(#[from] BadSurroundings),
}

impl Routes {
    pub fn new(mounts: Mounts) -> Self {
        Self { mounts, ..Self::default() }
    }

    /// Where the applications are mounted.
    pub fn mounts(&self) -> &Mounts {
        &self.mounts
    }

    /// Stores the routes of an application, before the core hears that its worker is ready. Drops tables that neither
    /// the core nor a request still needs.
    pub fn learn(
        &mut self,
        core: &Core,
        app: AppId,
        application: Application,
        databases: &Databases,
    ) -> Result<TableId, BadApplication> {
        let is_hosted = application.is_hosted();
        let owner = TableOwner { app, is_hosted, resolves_dots: is_hosted && self.mounts.is_alone() };
        let prefix = self.mounts.prefix(app);
        let of_routes = application.routes.iter().map(|route| route.cors).collect();
        let (headers, unmatched) = (application.headers, application.unmatched_cors);
        let declared = Declared { headers, policies: application.cors, of_routes, unmatched }.checked()?;
        let routes: Result<Vec<_>, _> =
            application.routes.into_iter().map(|route| route_spec(route, prefix, databases, &mut self.names)).collect();
        let concurrent = application.concurrent && application.fallback_kind == CallKind::Async;
        let body = application.fallback_body;
        let fallback = Fallback { body: BodyWay { body, concurrent }, websocket: application.websocket && concurrent };
        let fallback = application.fallback.then_some(fallback);
        let table = self.tables.learn(owner, fallback, routes?, |table| core.uses_table(table))?;
        self.surroundings.retain(|known| known.table() != table && self.tables.knows(known.table()));
        self.surroundings.extend(declared.map(|declared| declared(table)));
        Ok(table)
    }

    /// What is added to the response of a request that goes there; `None`: nothing.
    pub fn added(&self, table: Option<TableId>, destination: &Destination, head: &Head) -> Option<Rc<AddedHeaders>> {
        let usual = self.surroundings(table).map(|around| match destination {
            Destination::Preflight => Rc::clone(around.usual()),
            _ => around.added(destination, head),
        });
        let Destination::Wait { route, .. } = destination else { return usual };
        let Some(RouteAdded { status, fields }) = self.tables.ready(*route).and_then(|ready| ready.added.as_ref())
        else {
            return usual;
        };
        Some(Rc::new(usual.as_deref().unwrap_or(&AddedHeaders::default()).with(*status, fields.clone())))
    }

    /// The fields that answer this request, if it is a preflight and the application has a policy for what it asks.
    pub fn preflight(&self, table: Option<TableId>, core: &Core, head: &Head) -> Option<Vec<OwnedHeader>> {
        let around = self.surroundings(table)?;
        let method = around.asked_method(head)?;
        around.preflight(&self.find_in(table, core, method, head.path()).0.destination, head)
    }

    fn surroundings(&self, table: Option<TableId>) -> Option<&Surroundings> {
        self.surroundings.iter().find(|known| Some(known.table()) == table)
    }

    /// How requests of an application get their bodies; `None`: all of them whole.
    pub fn bodies(&self, table: TableId) -> Option<RouteBodies> {
        self.tables.bodies(table)
    }

    /// Whether any request of an application may become a WebSocket.
    pub fn takes_sockets(&self, table: TableId) -> bool {
        self.tables.takes_sockets(table)
    }

    /// Where a new request goes, and the part of its path that the application sees begins. `None`: no application is
    /// mounted there.
    pub fn find(&self, core: &Core, method: &str, path: &str) -> Option<(AppId, RouteMatch, usize)> {
        let app = self.mounts.find(path)?;
        let (found, seen_from) = self.find_in(core.table(app), core, method, path);
        Some((app, found, seen_from))
    }

    /// Where a request goes according to one table, and the part of its path begins that this application sees.
    pub fn find_in(&self, table: Option<TableId>, core: &Core, method: &str, path: &str) -> (RouteMatch, usize) {
        let owner = table.and_then(|table| self.tables.owner(table)).unwrap_or_default();
        let start = self.mounts.start_below(owner.app, path);
        let found = self.tables.find(table, method, seen(&path[start..]), core.config().deadline);
        (found, if owner.is_hosted { 0 } else { start })
    }

    /// The path with a slash more or less at its end, if that has a route for the same method.
    pub fn with_other_slash(&self, core: &Core, head: &Head) -> Option<String> {
        let path = head.path();
        let other = path.strip_suffix('/').map_or_else(|| format!("{path}/"), str::to_owned);
        let found = self.find(core, head.method(), &other)?.1.destination;
        let is_route =
            matches!(found, Destination::Handler { .. } | Destination::Wait { .. } | Destination::Constant { .. });
        is_route.then_some(other)
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
            | Destination::DotSegment
            | Destination::Preflight
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

    /// The file of a wait route.
    pub fn file(&self, route: RouteId) -> Option<&Source> {
        self.tables.ready(route)?.file.as_ref()
    }

    /// The query of a wait route.
    pub fn query(&self, route: RouteId) -> Option<&WorkRequest> {
        self.tables.ready(route)?.query.as_ref()
    }
}

/// `prefix`: of the mount, for the statistics.
fn route_spec(
    route: Route,
    prefix: &str,
    databases: &Databases,
    names: &mut RouteNames,
) -> Result<(RouteSpec, Ready), BadApplication> {
    let path = route.path;
    let (mut query, mut adds, mut file) = (None, None, None);
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
            let (wait, needed) =
                waits::wait(told, databases).map_err(|why| BadApplication::Wait { path: path.clone(), why })?;
            (query, file) = needed.parts();
            if let Some(WorkRequest::NoDatabase(why)) = &query {
                return Err(BadApplication::Wait { path, why: (**why).to_owned() });
            }
            let (then, standing) = match then {
                ThenRequest::Answer { response, added } => {
                    adds = added.map(|added| route_added(&path, &added)).transpose()?;
                    let response = response.map(|response| sendable(&path, response)).transpose()?;
                    (Then::Answer, response.map_or(StaticRoute::None, StaticRoute::Answer))
                }
                ThenRequest::Call { function, state, kind } => {
                    (called(kind), StaticRoute::Function { name: function.into(), state })
                }
                ThenRequest::Await | ThenRequest::Branch { .. } => (Then::Await, StaticRoute::None),
            };
            (routing::RouteWork::Wait { wait, then }, standing)
        }
    };
    let deadline = route.deadline.map(|seconds| (seconds > 0.0).then(|| duration(seconds)));
    let numbers = numbers(&route.methods, &format!("{prefix}{path}"), &route.origin, names);
    Ok((
        RouteSpec { methods: route.methods, path, kind, deadline, body: route.body, websocket: route.websocket },
        Ready { standing, query, file, numbers, added: adds },
    ))
}

/// A route for `GET` also answers `HEAD`.
fn numbers(
    methods: &[String],
    path: &str,
    origin: &RouteOrigin,
    names: &mut RouteNames,
) -> Vec<(Box<str>, RouteNumber)> {
    let has = |wanted: &str| methods.iter().any(|method| method == wanted);
    let head = (has("GET") && !has("HEAD")).then_some("HEAD");
    let methods = methods.iter().map(String::as_str).chain(head);
    methods.map(|method| (method.into(), names.number(method, path, origin))).collect()
}

fn route_added(path: &str, added: &parkade_wire::Added) -> Result<RouteAdded, BadApplication> {
    match surroundings::fields(&added.headers) {
        Ok(fields) => Ok(RouteAdded { status: added.status, fields }),
        Err(fault) => Err(BadApplication::Answer { path: path.to_owned(), fault }),
    }
}

fn sendable(path: &str, response: Response) -> Result<Response, BadApplication> {
    match check(&response, true) {
        Ok(()) => Ok(response),
        Err(fault) => Err(BadApplication::Answer { path: path.to_owned(), fault }),
    }
}
