//! What an application adds to the responses of all its requests: its own header fields, and those for other origins.

use std::rc::Rc;

use parkade_core::{Destination, RouteId};
use parkade_model::TableId;
use parkade_wire::{CorsPolicy, Headers};

use super::cors::{self, Policy};
use crate::clients::added::{AddedHeaders, OwnedHeader};
use crate::http::Head;
use crate::http::answer::{self, BadAnswer};
use crate::http::limits::ADDED_COUNT_MAX;

/// What one application adds.
#[derive(Debug)]
pub struct Surroundings {
    table: TableId,
    usual: Rc<AddedHeaders>,
    policies: Vec<Policy>,
    /// The policy of each route, by its index.
    of_routes: Vec<Option<u32>>,
    /// The policy for requests that match no route.
    unmatched: Option<u32>,
}

/// The declaration of an application, checked, before its table has an id.
#[derive(Debug)]
pub struct Declared {
    pub headers: Headers,
    pub policies: Vec<CorsPolicy>,
    pub of_routes: Vec<Option<u32>>,
    pub unmatched: Option<u32>,
}

/// What an application declares cannot be added to responses. The text is for the operator's log.
#[derive(Debug, thiserror::Error)]
pub enum BadSurroundings {
    #[error("the headers of the application cannot be sent: {0}")]
    Headers(BadAnswer),
    #[error(
        "a policy for other origins (CORS) is invalid: it contains something that is not an origin, a method or a header name"
    )]
    Cors,
}

impl Declared {
    /// `None` if the application adds nothing.
    pub fn checked(self) -> Result<Option<impl FnOnce(TableId) -> Surroundings>, BadSurroundings> {
        if self.headers.is_empty() && self.policies.is_empty() {
            return Ok(None);
        }
        let fields = fields(&self.headers).map_err(BadSurroundings::Headers)?;
        let usual = Rc::new(AddedHeaders { usual: fields, ..AddedHeaders::default() });
        let policies: Vec<Policy> = self.policies.into_iter().map(|said| Policy::new(said, &usual)).collect();
        if policies.iter().any(|policy| !policy.is_sendable()) {
            return Err(BadSurroundings::Cors);
        }
        let (of_routes, unmatched) = (self.of_routes, self.unmatched);
        Ok(Some(move |table| Surroundings { table, usual, policies, of_routes, unmatched }))
    }
}

impl Surroundings {
    pub fn table(&self) -> TableId {
        self.table
    }

    /// What is added to the response of a request that goes there.
    pub fn added(&self, destination: &Destination, head: &Head) -> Rc<AddedHeaders> {
        match self.policy(destination) {
            Some(policy) => policy.for_origin(head.field("origin"), &self.usual),
            None => Rc::clone(&self.usual),
        }
    }

    /// What is added to the response of a preflight.
    pub fn usual(&self) -> &Rc<AddedHeaders> {
        &self.usual
    }

    /// The fields that answer a preflight; `destination`: where the request that it asks about would go.
    pub fn preflight(&self, destination: &Destination, head: &Head) -> Option<Vec<OwnedHeader>> {
        Some(self.policy(destination)?.preflight(head))
    }

    /// The method that a preflight asks about, if there are policies.
    pub fn asked_method<'a>(&self, head: &'a Head) -> Option<&'a str> {
        cors::asks(head).filter(|_| !self.policies.is_empty())
    }

    fn policy(&self, destination: &Destination) -> Option<&Policy> {
        let number = match destination {
            Destination::Handler { route, .. } | Destination::Wait { route, .. } | Destination::Constant { route } => {
                self.of_route(*route)
            }
            Destination::Fallback { .. }
            | Destination::Preflight
            | Destination::NotFound
            | Destination::MethodNotAllowed
            | Destination::DotSegment
            | Destination::Unknown => self.unmatched,
        };
        self.policies.get(number? as usize)
    }

    fn of_route(&self, route: RouteId) -> Option<u32> {
        *self.of_routes.get(route.index as usize)?
    }
}

/// Header fields that are added, in their own memory. A length would be wrong.
pub fn fields(headers: &Headers) -> Result<Vec<OwnedHeader>, BadAnswer> {
    if headers.len() > ADDED_COUNT_MAX {
        return Err(BadAnswer::Count);
    }
    match answer::check(200, headers.iter())? {
        Some(_) => Err(BadAnswer::Length),
        None => Ok(headers.iter().map(|(name, value)| (name.into(), value.into())).collect()),
    }
}
