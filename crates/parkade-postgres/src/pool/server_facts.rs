//! What the connections have learned about the server, for all of them.

use crate::handshake::BackendIdentity;
use crate::json::Types;
use crate::slot::CancelRoute;
use crate::wire::error::ServerError;

#[derive(Debug)]
pub(crate) struct ServerFacts {
    version: Box<str>,
    is_pooled: bool,
    pub(crate) types: Types,
    /// How often a prepared statement no longer matched its tables.
    table_changes: u64,
    /// The last error message of a statement that we had cancelled, in the server's language.
    cancel_message: Box<str>,
}

impl ServerFacts {
    pub(crate) fn new() -> Self {
        Self {
            version: Box::default(),
            is_pooled: false,
            types: Types::new(),
            table_changes: 0,
            cancel_message: Box::default(),
        }
    }

    /// A connection is ready.
    pub(crate) fn learn(&mut self, identity: &BackendIdentity) {
        self.version.clone_from(&identity.version);
        self.is_pooled = identity.is_pooled;
    }

    /// Whether there is a pooler.
    pub(crate) fn is_pooled(&self) -> bool {
        self.is_pooled
    }

    /// How cancels travel. A pooler passes on only `CancelRequest`s.
    pub(crate) fn cancel_route(&self) -> CancelRoute {
        if self.is_pooled { CancelRoute::Request } else { CancelRoute::Canceller }
    }

    /// Empty before it is known.
    pub(crate) fn product(&self) -> String {
        if self.version.is_empty() { String::new() } else { format!("PostgreSQL {}", self.version) }
    }

    pub(crate) fn table_changes(&self) -> u64 {
        self.table_changes
    }

    /// A prepared statement was refused as stale. If a table has changed, the other connections drop their prepared
    /// statements before they are used again.
    pub(crate) fn refused_as_stale(&mut self, error: &ServerError) {
        self.table_changes += u64::from(error.is_stale_plan());
    }

    /// One of our cancels has hit.
    pub(crate) fn learn_cancel_message(&mut self, error: &ServerError) {
        if !error.is_time_out() {
            self.cancel_message.clone_from(&error.message);
        }
    }

    /// Whether the error comes from a cancel. The code alone is not enough: the server's own timeouts have the same.
    pub(crate) fn is_hit(&self, error: &ServerError) -> bool {
        error.is_cancel_by_request() || (error.is_cancel() && error.message == self.cancel_message)
    }
}
