//! Converts what a `PARK`, or a route, asks of a database for the core and for the database.

use std::sync::Arc;
use std::time::Duration;

use parkade_model::{DatabaseId, LeaseId, QueryWait, QueryWork, Sharing, TransactionMode, Wait};
use parkade_sql::{DatabaseWork, FailureKind, Query, QueryFailure, RowFormat};
use parkade_wire::{Begin as WireBegin, QueryRequest};

use super::shared_key::shared_key;
use crate::databases::Databases;
use crate::seconds::duration;

/// The work for a database, kept until the core begins it. The core does not look into it.
#[derive(Debug, Clone)]
pub enum WorkRequest {
    /// A statement, alone or in the request's transaction. Whether its result is limited is known only when it begins:
    /// when all rows are needed together.
    Statement(Box<Query>),
    Begin(TransactionMode),
    /// The transaction ends; the core knows how.
    End,
    /// There is no such database. The text says what to do.
    NoDatabase(Box<str>),
}

const DEFAULT: &str = "default";
/// The number of a database that does not exist.
const NOWHERE: DatabaseId = DatabaseId(u16::MAX);

/// A query for the core and for the database.
pub fn query(told: QueryRequest, databases: &Databases) -> (Wait, WorkRequest) {
    let options = told.options;
    let database = match find(options.database.as_deref(), databases) {
        Ok(database) => database,
        Err(why) => return no_database(why),
    };
    let form = RowFormat { shape: options.shape, int8: options.int8, bytes_max: None };
    let query = Query { text: told.text, commented: None, parameters: told.parameters, form };
    let shared =
        options.shared.map(|key| Sharing { key: shared_key(database, &key, &query), ttl: duration(options.ttl) });
    let work = if options.within { QueryWork::Within } else { QueryWork::Alone };
    let wait = QueryWait { database, deadline: options.deadline.map(duration), work, shared };
    (Wait::Query(wait), WorkRequest::Statement(Box::new(query)))
}

/// A transaction that begins.
pub fn begin(told: &WireBegin, databases: &Databases) -> (Wait, WorkRequest) {
    let database = match find(told.database.as_deref(), databases) {
        Ok(database) => database,
        Err(why) => return no_database(why),
    };
    let deadline = told.deadline.map(duration);
    (Wait::Query(QueryWait { database, deadline, work: QueryWork::Begin, shared: None }), WorkRequest::Begin(told.mode))
}

/// The request's transaction ends. The core knows which one. It has no deadline: a commit is not cancelled.
pub fn end(work: QueryWork) -> (Wait, WorkRequest) {
    let database = DatabaseId(0);
    (Wait::Query(QueryWait { database, deadline: Some(Duration::ZERO), work, shared: None }), WorkRequest::End)
}

impl WorkRequest {
    /// The work for the database, or why there can be none. `bytes_max`: the limit of the result if all rows are needed
    /// together.
    pub fn work(
        self,
        work: QueryWork,
        lease: Option<LeaseId>,
        bytes_max: Option<usize>,
    ) -> Result<DatabaseWork, QueryFailure> {
        Ok(match (self, work, lease) {
            (Self::Statement(mut query), work, lease) => {
                query.form.bytes_max = bytes_max;
                match (work, lease) {
                    (QueryWork::Within, Some(lease)) => DatabaseWork::Within { lease, query: *query },
                    _ => DatabaseWork::Alone(*query),
                }
            }
            (Self::Begin(mode), _, Some(lease)) => DatabaseWork::Begin { lease, mode },
            (Self::End, QueryWork::Commit, Some(lease)) => DatabaseWork::Commit { lease },
            (Self::End, QueryWork::Rollback, Some(lease)) => DatabaseWork::Rollback { lease },
            (Self::NoDatabase(why), _, _) => return Err(QueryFailure::new(FailureKind::NoDatabase, why)),
            (Self::Begin(_) | Self::End, _, _) => {
                let why = "a bug in parkade: a transaction begins or ends without a connection";
                return Err(QueryFailure::new(FailureKind::Unsupported, why));
            }
        })
    }

    /// How many values its statement has besides its text.
    pub fn parameters_count(&self) -> usize {
        match self {
            Self::Statement(query) => query.parameters.len(),
            Self::Begin(_) | Self::End | Self::NoDatabase(_) => 0,
        }
    }

    /// The text of the query on the status page and in logs.
    pub fn text(&self, work: QueryWork) -> Arc<str> {
        match (self, work) {
            (Self::Statement(query), _) => Arc::clone(&query.text),
            (Self::NoDatabase(_), _) => "".into(),
            (_, QueryWork::Commit) => "commit".into(),
            (_, QueryWork::Rollback) => "rollback".into(),
            (_, QueryWork::Begin | QueryWork::Alone | QueryWork::Within) => "begin".into(),
        }
    }
}

/// It fails as soon as it begins.
fn no_database(why: String) -> (Wait, WorkRequest) {
    let wait = QueryWait { database: NOWHERE, deadline: None, work: QueryWork::Alone, shared: None };
    (Wait::Query(wait), WorkRequest::NoDatabase(why.into()))
}

fn find(name: Option<&str>, databases: &Databases) -> Result<DatabaseId, String> {
    let name = name.unwrap_or(DEFAULT);
    databases
        .find(name)
        .ok_or_else(|| format!("no database is named {name:?}: add one with --database {name}=postgres://…"))
}
