//! What the connections have learned of the server, for all of them.

use crate::handshake::BackendIdentity;
use crate::json::Types;
use crate::slot::CancelRoute;
use crate::wire::error::ServerError;

#[derive(Debug)]
pub(crate) struct ServerFacts {
    version: Box<str>,
    is_pooled: bool,
    pub(crate) types: Types,
    /// How often a prepared statement no longer fitted its tables.
    table_changes: u64,
    /// The last message for a statement that we had cancelled: the server says it in its own language.
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

    /// Whether a pooler stands between.
    pub(crate) fn is_pooled(&self) -> bool {
        self.is_pooled
    }

    /// How cancels travel. A pooler passes on only requests.
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

    /// A prepared statement was refused as stale. For a changed table the other connections forget theirs before they are used again.
    pub(crate) fn refused_as_stale(&mut self, error: &ServerError) {
        self.table_changes += u64::from(error.is_stale_plan());
    }

    /// One of our cancels has hit.
    pub(crate) fn learn_cancel_message(&mut self, error: &ServerError) {
        if !error.is_time_out() {
            self.cancel_message.clone_from(&error.message);
        }
    }

    /// Whether somebody's cancel has hit. The code alone does not say so: the server's own time-outs have the same.
    pub(crate) fn is_hit(&self, error: &ServerError) -> bool {
        error.is_cancel_by_request() || (error.is_cancel() && error.message == self.cancel_message)
    }
}
