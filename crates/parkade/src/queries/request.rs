//! From what a `PARK`, or a route, asks of a database to what the core and the database are told.

use std::sync::Arc;
use std::time::Duration;

use parkade_model::{DatabaseId, LeaseId, QueryWait, QueryWork, Sharing, TransactionMode, Wait};
use parkade_sql::{DatabaseWork, FailureKind, Query, QueryFailure, RowFormat};
use parkade_wire::{Begin as WireBegin, QueryRequest};

use super::shared_key::shared_key;
use crate::databases::Databases;
use crate::seconds::duration;

/// What is asked, until the core says that it begins: opaque to the core.
#[derive(Debug, Clone)]
pub enum WorkRequest {
    /// A statement, alone or in the request's transaction. Its rows are bounded when it begins: only then it is known who needs them whole.
    Statement(Box<Query>),
    Begin(TransactionMode),
    /// The transaction is to end; how, the core knows.
    End,
    /// There is no such database: what to do about that.
    NoDatabase(Box<str>),
}

const DEFAULT: &str = "default";
/// The number of no database.
const NOWHERE: DatabaseId = DatabaseId(u16::MAX);

/// A query as the core and the database understand it.
pub fn query(told: QueryRequest, databases: &Databases) -> (Wait, WorkRequest) {
    let options = told.options;
    let database = match find(options.database.as_deref(), databases) {
        Ok(database) => database,
        Err(why) => return no_database(why),
    };
    let form = RowFormat { shape: options.shape, int8: options.int8, bytes_max: None };
    let query = Query { text: told.text, parameters: told.parameters, form };
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

/// The request's transaction ends. The core knows which, and that it has no deadline: what is being committed is not cancelled.
pub fn end(work: QueryWork) -> (Wait, WorkRequest) {
    let database = DatabaseId(0);
    (Wait::Query(QueryWait { database, deadline: Some(Duration::ZERO), work, shared: None }), WorkRequest::End)
}

impl WorkRequest {
    /// What the database is told; else why it cannot be. `bytes_max`: of the rows, where they are needed whole.
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

    /// What is shown of it where people look.
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
