//! Route tables for tests. The server matches patterns; here a path is one of a list, and `GET` is the only method.

#![allow(dead_code, reason = "no test uses all of it")]

use std::time::Duration;

use parkade_core::{AppId, Destination, RouteId, TableId, Then, Wait};

#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    pub path: &'static str,
    pub kind: Kind,
    /// `None`: the server's default. `Some(None)`: no deadline.
    #[allow(clippy::option_option, reason = "nothing said, no deadline and a deadline are three cases")]
    pub deadline: Option<Option<Duration>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Sync,
    Async,
    Wait { wait: Wait, then: Then },
    Constant,
    Preflight,
}

pub fn route(path: &'static str, kind: Kind) -> Route {
    Route { path, kind, deadline: None }
}

/// Of which application; whether what matches no route goes to it, to a coroutine or not; and the routes.
type Table = (AppId, Option<bool>, Vec<Route>);

#[derive(Debug, Default)]
pub struct Tables {
    known: Vec<Table>,
}

impl Tables {
    /// Equal tables of an application have one id.
    pub fn learn(&mut self, app: AppId, fallback: Option<bool>, routes: Vec<Route>) -> TableId {
        let table = (app, fallback, routes);
        let index = self.known.iter().position(|known| *known == table).unwrap_or_else(|| {
            self.known.push(table);
            self.known.len() - 1
        });
        TableId(u32::try_from(index + 1).unwrap())
    }

    /// Where a request goes by this table. `default`: the deadline of routes that have none of their own.
    pub fn find(&self, table: Option<TableId>, path: &str, default: Option<Duration>) -> Destination {
        let Some(table) = table else { return Destination::Unknown };
        let (_, fallback, routes) = &self.known[table.0 as usize - 1];
        let Some((index, found)) = (0..).zip(routes).find(|(_, route)| route.path == path) else {
            return match *fallback {
                Some(concurrent) => Destination::Fallback { table, concurrent },
                None => Destination::NotFound,
            };
        };
        let (route, deadline) = (RouteId { table, index }, found.deadline.unwrap_or(default));
        match &found.kind {
            Kind::Sync => Destination::Handler { route, concurrent: false, deadline },
            Kind::Async => Destination::Handler { route, concurrent: true, deadline },
            Kind::Wait { wait, then } => Destination::Wait { route, wait: wait.clone(), then: *then, deadline },
            Kind::Constant => Destination::Constant { route },
            Kind::Preflight => Destination::Preflight,
        }
    }
}
