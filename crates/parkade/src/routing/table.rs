//! The routes of one application, ready to be searched.

use super::decode::decode;
use super::dot_segments::has_dot_segment;
use super::limits::ROUTES_COUNT_MAX;
use super::pattern;
use super::tree::RouteNode;
use super::{
    BodyWay, Destination, Fallback, RouteError, RouteId, RouteMatch, RouteSpec, RouteWork, TableId, TableOwner, Then,
    Wait,
};
use parkade_wire::RequestBody;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct RouteTable {
    id: TableId,
    owner: TableOwner,
    /// `None`: requests that match no route go nowhere.
    fallback: Option<Fallback>,
    routes: Vec<RouteSpec>,
    root: RouteNode,
}

impl RouteTable {
    pub(super) fn new(
        (id, owner): (TableId, TableOwner),
        fallback: Option<Fallback>,
        routes: Vec<RouteSpec>,
    ) -> Result<Self, RouteError> {
        if routes.len() > ROUTES_COUNT_MAX {
            return Err(RouteError::TooMany);
        }
        let mut root = RouteNode::default();
        for (route, index) in routes.iter().zip(0..) {
            check(route)?;
            root.insert(&pattern::parse(&route.path)?, index);
        }
        Ok(Self { id, owner, fallback, routes, root })
    }

    pub(super) fn id(&self) -> TableId {
        self.id
    }

    pub(super) fn owner(&self) -> TableOwner {
        self.owner
    }

    /// Whether this table was made from these routes.
    pub(super) fn declares(&self, owner: TableOwner, fallback: Option<Fallback>, routes: &[RouteSpec]) -> bool {
        self.owner == owner && self.fallback == fallback && self.routes == routes
    }

    pub(super) fn find(&self, method: &str, path: &str, deadline: Option<Duration>) -> RouteMatch {
        if has_dot_segment(path) {
            return self.unresolved();
        }
        let Some(path) = path.strip_prefix('/') else { return self.nothing() };
        let mut values = Vec::new();
        let found = self.root.search(Some(path), &mut values, &mut |routes| self.choose(routes, method));
        let Some(route) = found else { return self.other_method(path) };
        let decoded = |raw: &str| decode(raw).expect("what a parameter accepted can be decoded").into_owned();
        let parameters = values.into_iter().map(decoded).collect();
        let websocket = self.routes[route as usize].websocket;
        RouteMatch { destination: self.destination(route, deadline), parameters, allow: None, websocket }
    }

    /// Whether any of its requests gets its body as that arrives.
    pub(super) fn streams_any(&self) -> bool {
        let bodies = self.routes.iter().map(|route| route.body).chain(self.fallback.map(|fallback| fallback.body.body));
        bodies.into_iter().any(|body| body != RequestBody::Collected)
    }

    /// Whether any of its requests may become a WebSocket.
    pub(super) fn takes_sockets(&self) -> bool {
        self.fallback.is_some_and(|fallback| fallback.websocket) || self.routes.iter().any(|route| route.websocket)
    }

    /// How a request gets its body.
    pub(super) fn body(&self, method: &str, path: &str) -> BodyWay {
        match self.find(method, path, None).destination {
            Destination::Handler { route, concurrent, .. } => {
                BodyWay { body: self.routes[route.index as usize].body, concurrent }
            }
            Destination::Fallback { .. } => self.fallback.unwrap_or_default().body,
            Destination::Wait { .. }
            | Destination::Constant { .. }
            | Destination::NotFound
            | Destination::MethodNotAllowed
            | Destination::DotSegment
            | Destination::Preflight
            | Destination::Unknown => BodyWay::default(),
        }
    }

    /// `HEAD` falls back to a route for `GET`.
    fn choose(&self, routes: &[u32], method: &str) -> Option<u32> {
        let by = |method: &str| routes.iter().copied().find(|&route| self.takes(route, method));
        by(method).or_else(|| if method == "HEAD" { by("GET") } else { None })
    }

    fn takes(&self, route: u32, method: &str) -> bool {
        self.routes[route as usize].methods.iter().any(|known| known == method)
    }

    fn destination(&self, index: u32, deadline: Option<Duration>) -> Destination {
        let route = RouteId { table: self.id, index };
        let spec = &self.routes[index as usize];
        let deadline = spec.deadline.unwrap_or(deadline);
        match &spec.kind {
            RouteWork::Sync => Destination::Handler { route, concurrent: false, deadline },
            RouteWork::Async => Destination::Handler { route, concurrent: true, deadline },
            RouteWork::Wait { wait, then } => Destination::Wait { route, wait: wait.clone(), then: *then, deadline },
            RouteWork::Constant => Destination::Constant { route },
        }
    }

    /// No route with this method matches the path.
    fn other_method(&self, path: &str) -> RouteMatch {
        if self.fallback.is_some() {
            return self.nothing();
        }
        let mut methods: Vec<&str> = Vec::new();
        self.root.search(Some(path), &mut Vec::new(), &mut |routes| {
            methods.extend(routes.iter().flat_map(|&route| &self.routes[route as usize].methods).map(String::as_str));
            None
        });
        if methods.is_empty() {
            return self.nothing();
        }
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.sort_unstable();
        methods.dedup();
        RouteMatch {
            destination: Destination::MethodNotAllowed,
            parameters: Vec::new(),
            allow: Some(methods.join(", ")),
            websocket: false,
        }
    }

    /// No route gets a path that leads upwards.
    fn unresolved(&self) -> RouteMatch {
        if self.owner.resolves_dots {
            return self.nothing();
        }
        RouteMatch { destination: Destination::DotSegment, parameters: Vec::new(), allow: None, websocket: false }
    }

    fn nothing(&self) -> RouteMatch {
        let fallback =
            self.fallback.map(|way| Destination::Fallback { table: self.id, concurrent: way.body.concurrent });
        RouteMatch {
            destination: fallback.unwrap_or(Destination::NotFound),
            parameters: Vec::new(),
            allow: None,
            websocket: self.fallback.is_some_and(|fallback| fallback.websocket),
        }
    }
}

/// A route has no coroutine that could wait, and a stream calls no function for each message.
fn check(route: &RouteSpec) -> Result<(), RouteError> {
    match &route.kind {
        RouteWork::Wait { then: Then::Await, .. }
        | RouteWork::Wait { wait: Wait::Stream { .. }, then: Then::Call { .. } }
        | RouteWork::Wait { wait: Wait::Access { .. }, .. } => Err(RouteError::Wait(route.path.clone())),
        RouteWork::Wait { .. } | RouteWork::Sync | RouteWork::Async | RouteWork::Constant => Ok(()),
    }
}
