//! Route tables: where a request goes, by its method and path.
//!
//! This is a pure look-up, independent of the core's state, of workers and of bytes. Workers of one application declare
//! the same table, which is stored once. After a reload there are two for a while. A request that was looked up in one
//! table and is given to a worker with the other is looked up again. Several applications have different tables, and
//! [`mounts`] says whose a path is.

mod decode;
mod dot_segments;
mod limits;
pub mod mounts;
mod pattern;
mod table;
#[cfg(test)]
mod tests;
mod tree;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use parkade_core::{Destination, RouteId};
use parkade_model::{AppId, TableId, Then, Wait};
use parkade_wire::RequestBody;

use limits::ROUTES_COUNT_MAX;
use table::RouteTable;

/// One route, as a worker declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteSpec {
    /// Upper case.
    pub methods: Vec<String>,
    pub path: String,
    pub kind: RouteWork,
    /// `None`: the server's default. `Some(None)`: no deadline.
    #[allow(clippy::option_option, reason = "nothing said, no deadline and a deadline are three cases")]
    pub deadline: Option<Option<Duration>>,
    pub body: RequestBody,
    /// Those of its requests that ask for a WebSocket may become one.
    pub websocket: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RouteWork {
    Sync,
    Async,
    Wait { wait: Wait, then: Then },
    Constant,
}

/// The outcome of a look-up.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteMatch {
    pub destination: Destination,
    /// The path parameters, decoded, in the order of the pattern.
    pub parameters: Vec<String>,
    /// For [`Destination::MethodNotAllowed`]: the value of `Allow`.
    pub allow: Option<String>,
    /// The request may become a WebSocket, if it asks for one.
    pub websocket: bool,
}

impl RouteMatch {
    /// No application is mounted at the path.
    pub const fn nowhere() -> Self {
        Self { destination: Destination::NotFound, parameters: Vec::new(), allow: None, websocket: false }
    }
}

/// What else tells the table of an application from that of another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableOwner {
    pub app: AppId,
    /// It decides its paths itself, and gets them with the prefix of its mount.
    pub is_hosted: bool,
    /// It is the only one, and gets paths with segments `.` and `..`, too.
    pub resolves_dots: bool,
}

/// The application is at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    #[error("the path of a route is malformed: {0:?}")]
    Path(String),
    #[error("route {0:?}: this kind of wait cannot be used as a route")]
    Wait(String),
    #[error("the application has more than {ROUTES_COUNT_MAX} routes")]
    TooMany,
}

/// All tables that may still be needed. `R` is the data prepared for each route.
#[derive(Debug)]
pub struct RouteTables<R> {
    known: Vec<KnownTable<R>>,
    minted: u32,
}

#[derive(Debug)]
struct KnownTable<R> {
    table: Arc<RouteTable>,
    /// By the index of the route.
    ready: Vec<R>,
    /// By the index of the route. Each has an additional reference for each request that needs the route.
    held: Vec<Rc<RouteId>>,
}

/// What becomes of requests that match no route.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fallback {
    pub body: BodyWay,
    /// Those that ask for a WebSocket may become one.
    pub websocket: bool,
}

/// How the code that answers a request gets its body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BodyWay {
    pub body: RequestBody,
    /// It does not occupy its worker while it waits.
    pub concurrent: bool,
}

/// How the requests of an application get their bodies.
#[derive(Debug, Clone)]
pub struct RouteBodies(Arc<RouteTable>);

impl RouteBodies {
    pub fn of(&self, method: &str, path: &str) -> BodyWay {
        self.0.body(method, path)
    }
}

/// A route that a request needs until it ends. Its table is kept as long.
#[derive(Debug)]
pub struct HeldRoute(Rc<RouteId>);

impl HeldRoute {
    pub fn id(&self) -> RouteId {
        *self.0
    }
}

impl<R> KnownTable<R> {
    fn is_held(&self) -> bool {
        self.held.iter().any(|route| Rc::strong_count(route) > 1)
    }
}

impl<R> Default for RouteTables<R> {
    fn default() -> Self {
        Self { known: Vec::new(), minted: 0 }
    }
}

impl<R> RouteTables<R> {
    /// Equal tables share an id; their prepared data is that of the latest declaration. Drops tables that are no longer
    /// needed: `is_used` says that no request can be looked up in them, and no request holds one of their routes.
    pub fn learn(
        &mut self,
        owner: TableOwner,
        fallback: Option<Fallback>,
        routes: Vec<(RouteSpec, R)>,
        is_used: impl Fn(TableId) -> bool,
    ) -> Result<TableId, RouteError> {
        let (routes, ready): (Vec<RouteSpec>, Vec<R>) = routes.into_iter().unzip();
        if let Some(known) = self.known.iter_mut().find(|known| known.table.declares(owner, fallback, &routes)) {
            known.ready = ready;
            return Ok(known.table.id());
        }
        let id = TableId(self.minted + 1);
        let table = RouteTable::new((id, owner), fallback, routes)?;
        self.minted = id.0;
        self.known.retain(|known| is_used(known.table.id()) || known.is_held());
        let held = (0..).take(ready.len()).map(|index| Rc::new(RouteId { table: id, index })).collect();
        self.known.push(KnownTable { table: Arc::new(table), ready, held });
        Ok(id)
    }

    /// Where a request goes according to one table. `deadline`: for routes without their own.
    pub fn find(&self, table: Option<TableId>, method: &str, path: &str, deadline: Option<Duration>) -> RouteMatch {
        match table.and_then(|table| self.known(table)) {
            Some(known) => known.table.find(method, path, deadline),
            None => {
                RouteMatch { destination: Destination::Unknown, parameters: Vec::new(), allow: None, websocket: false }
            }
        }
    }

    /// Whose table it is; `None` if it has been dropped.
    pub fn owner(&self, table: TableId) -> Option<TableOwner> {
        Some(self.known(table)?.table.owner())
    }

    /// How requests get their bodies according to one table, for code without access to the others. `None`: all of them
    /// whole.
    pub fn bodies(&self, table: TableId) -> Option<RouteBodies> {
        let table = &self.known(table)?.table;
        table.streams_any().then(|| RouteBodies(Arc::clone(table)))
    }

    /// Whether any request of this application may become a WebSocket.
    pub fn takes_sockets(&self, table: TableId) -> bool {
        self.known(table).is_some_and(|known| known.table.takes_sockets())
    }

    /// Whether the table has not been dropped.
    pub fn knows(&self, table: TableId) -> bool {
        self.known(table).is_some()
    }

    /// The data prepared for a route; `None` if its table has been dropped.
    pub fn ready(&self, route: RouteId) -> Option<&R> {
        self.known(route.table)?.ready.get(route.index as usize)
    }

    /// Keeps the table of this route until the returned value is dropped.
    pub fn hold(&self, route: RouteId) -> Option<HeldRoute> {
        Some(HeldRoute(Rc::clone(self.known(route.table)?.held.get(route.index as usize)?)))
    }

    fn known(&self, table: TableId) -> Option<&KnownTable<R>> {
        self.known.iter().find(|known| known.table.id() == table)
    }
}
