//! Jobs that a transaction enqueues.

pub mod within;

use std::collections::{HashMap, HashSet};

use parkade_core::DatabaseId;
use parkade_model::QueryId;

use super::Server;
use within::Committing;

/// Transactions that enqueue jobs and commit.
#[derive(Default)]
pub struct Commits {
    /// By the statement that they are at.
    committing: HashMap<QueryId, Committing>,
    /// Those that wait until the store is open. Each holds a connection, so there are never many.
    early: Vec<Committing>,
    statements: u64,
    /// The databases whose transactions can enqueue jobs themselves, and those whose role may not.
    homes: HashSet<DatabaseId>,
    closed: HashSet<DatabaseId>,
}
