//! Route tables: where a request goes, by its method and path.
//!
//! Workers of one application tell the same table, so it is kept once. After a reload there are two for a while: queued requests were routed
//! by one, and go to workers that know the other; they are routed again then.

mod decode;
mod pattern;
mod table;
mod tree;

use std::time::Duration;

use parkade_model::{TableId, Then, Wait};
use table::Table;

/// One route, as a worker tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteSpec {
    /// Upper case.
    pub methods: Vec<String>,
    pub path: String,
    pub kind: RouteKind,
    /// `None`: the server's default. `Some(None)`: no deadline.
    pub deadline: Option<Option<Duration>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RouteKind {
    Sync,
    Async,
    Wait { wait: Wait, then: Then },
    Constant,
}

/// A route by its place in its table.
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
    /// No route matches, and the application takes those.
    Fallback {
        table: TableId,
    },
    /// The core parks the request itself. The shell puts the request's own cursor into `wait` where that has none.
    Wait {
        route: RouteId,
        wait: Wait,
        then: Then,
        deadline: Option<Duration>,
    },
    Constant {
        route: RouteId,
    },
    NotFound,
    MethodNotAllowed,
    /// No worker has told its routes yet.
    Unknown,
}

/// The outcome of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub destination: Destination,
    /// The path parameters, decoded, in the order of the pattern.
    pub parameters: Vec<String>,
    /// For [`Destination::MethodNotAllowed`]: the value of `Allow`.
    pub allow: Option<String>,
}

/// The application is at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    #[error("the path of a route is malformed: {0:?}")]
    Path(String),
    #[error("the wait of the route {0:?} cannot be had by a route")]
    Wait(String),
    #[error("the application has more than {max} routes", max = crate::limits::ROUTES_COUNT_MAX)]
    TooMany,
}

#[derive(Debug, Default)]
pub(crate) struct Routes {
    tables: Vec<Table>,
    minted: u32,
    current: Option<TableId>,
}

impl Routes {
    pub(crate) fn current(&self) -> Option<TableId> {
        self.current
    }

    /// Whether that is another one than before.
    pub(crate) fn make_current(&mut self, table: TableId) -> bool {
        self.current.replace(table) != Some(table)
    }

    /// Equal tables have one id.
    pub(crate) fn learn(&mut self, fallback: bool, routes: Vec<RouteSpec>) -> Result<TableId, RouteError> {
        if let Some(known) = self.tables.iter().find(|known| known.fallback == fallback && known.routes == routes) {
            return Ok(known.id);
        }
        let id = TableId(self.minted + 1);
        self.tables.push(Table::new(id, fallback, routes)?);
        self.minted = id.0;
        Ok(id)
    }

    /// Forgets the tables that nobody uses: neither is current, nor learned last (its worker is about to say ready), nor `used`.
    pub(crate) fn forget_unused(&mut self, used: impl Fn(TableId) -> bool) {
        let (current, last) = (self.current, TableId(self.minted));
        self.tables.retain(|table| Some(table.id) == current || table.id == last || used(table.id));
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = TableId> {
        self.tables.iter().map(|table| table.id)
    }

    pub(crate) fn find(&self, table: TableId, method: &str, path: &str, deadline: Option<Duration>) -> Found {
        match self.tables.iter().find(|known| known.id == table) {
            Some(table) => table.find(method, path, deadline),
            None => Found { destination: Destination::Unknown, parameters: Vec::new(), allow: None },
        }
    }
}
