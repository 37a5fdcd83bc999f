//! What all parts of a pool share: the time, the settings, the queries, the connections, and what is known about the
//! server.

use std::time::Instant;

use parkade_sql::{ConnectionTotals, FailureKind, QueryFailure};

use super::lines::PoolLines;
use super::queries::PendingQueries;
use super::server_facts::ServerFacts;
use crate::Options;
use crate::handshake::{BackendIdentity, Terms};
use crate::reach::Reaching;
use crate::wire::error::ServerError;

#[derive(Debug)]
pub(crate) struct PoolContext {
    /// The current time, on the pool's clock.
    pub(crate) now: Instant,
    pub(crate) phase: PoolPhase,
    pub(crate) config: PoolConfig,
    pub(crate) lines: PoolLines,
    pub(crate) queries: PendingQueries,
    pub(crate) server: ServerFacts,
    pub(crate) reach: Reaching,
    pub(crate) counts: ConnectionTotals,
    pub(crate) random: fastrand::Rng,
}

/// Constant settings.
#[derive(Debug)]
pub(crate) struct PoolConfig {
    /// The name of the database, for people.
    pub(crate) name: String,
    pub(crate) terms: Terms,
    pub(crate) options: Options,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PoolPhase {
    New,
    Open,
    /// Nothing new is accepted; running queries are cancelled.
    Ending,
}

impl PoolContext {
    pub(crate) fn new(config: PoolConfig, random: fastrand::Rng, now: Instant) -> Self {
        let reach = Reaching::new(config.options.slots.max(1), now);
        Self {
            now,
            phase: PoolPhase::New,
            config,
            lines: PoolLines::default(),
            queries: PendingQueries::default(),
            server: ServerFacts::new(),
            reach,
            counts: ConnectionTotals::default(),
            random,
        }
    }

    /// A connection is logged in.
    pub(crate) fn connected(&mut self, identity: &BackendIdentity) {
        if self.reach.succeeded() {
            let name = &self.config.name;
            tracing::info!(database = %name, "connected to the database {name} again");
        }
        self.server.learn(identity);
    }

    /// Counts a statement that was ended by a cancel although it was not cancelled.
    pub(crate) fn count_stray(&mut self, error: &ServerError) {
        self.counts.strays += u64::from(self.server.is_hit(error));
    }

    /// Counts a cancel; `sent`: how many have been sent for the same statement, including this one.
    pub(crate) fn count_cancel(&mut self, sent: usize) {
        self.counts.cancels_sent += 1;
        self.counts.cancels_repeated += u64::from(sent > 1);
    }

    /// Why no new connection is possible, if that is known.
    pub(crate) fn refusal(&self) -> Option<QueryFailure> {
        let (kind, why) = self.reach.refuses()?;
        let name = &self.config.name;
        let message = match kind {
            FailureKind::Denied => format!("the database {name} denies access: {why}"),
            _ => format!("the database {name} cannot be reached: {why}"),
        };
        Some(QueryFailure::new(kind, message))
    }

    /// Fails the queued queries, if they are known to wait in vain.
    pub(crate) fn fail_if_refused(&mut self) {
        let Some(failure) = self.refusal() else { return };
        tracing::warn!(database = %self.config.name, "{}", failure.message);
        self.queries.fail_all_queued(&failure);
    }
}
