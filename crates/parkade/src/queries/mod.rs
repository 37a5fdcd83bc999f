//! Queries between applications and databases: their rows on the way to a client or a worker, and the outcomes if there
//! are no rows.
//!
//! | question | where |
//! |---|---|
//! | what a request asks of a database | `request` |
//! | rows on their way; the outcome for a client or a worker | `running`, `result` |
//! | status and text of a query that failed | `failure` |
//! | when two requests share an execution | `shared_key` |
//! | the comment that names the route | `sql_comment` |

mod failure;
mod request;
mod result;
mod running;
mod shared_key;
mod sql_comment;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parkade_core::{Moment, Outcome};
use parkade_model::{DatabaseId, LeaseId, QueryId, QueryWork, Reason, RequestId, Shape, TraceParent};
use parkade_sql::{DatabaseWork, FailureKind, QueryEnd, QueryFailure};
use parkade_wire::WaitOutcome;
use parkade_wire::limits::INLINE_BODY_BYTES_MAX;

use crate::admin::report::QueryTimes;
use crate::config::SqlComments;
use result::QueryResult;
use running::{Running, Sink};

pub use failure::kind_word;
pub use request::{WorkRequest, begin, end, query};
pub use result::QueryAnswer;
pub use sql_comment::QueryOrigin;

/// All rows together that functions, coroutines and requests with a shared query wait for. Then: 503 with
/// `Retry-After`.
const RESULTS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// An outage makes thousands of queries fail; the log gets one line about them a second.
const WARNING_INTERVAL: Duration = Duration::from_secs(1);

/// Queries that databases are working on, and results that are still needed.
#[derive(Debug)]
pub struct Queries {
    running: HashMap<QueryId, Running>,
    results: HashMap<QueryId, QueryResult>,
    /// Requests whose clients get rows as they arrive.
    flowing: HashMap<RequestId, QueryId>,
    /// All rows that were collected, including results.
    collected_bytes: usize,
    warned: Option<Moment>,
    times: QueryTimes,
    /// The maximum size of one collected result.
    result_bytes_max: usize,
    sql_comments: SqlComments,
    /// Responses include the statement that failed and the database's message: for developers.
    shows_failures: bool,
}

/// A query that failed, for the log.
#[derive(Debug)]
pub struct LoggedFailure {
    /// The one that it began with.
    pub request: RequestId,
    pub database: DatabaseId,
    pub text: Arc<str>,
    pub fault: &'static str,
}

/// A query that begins, as the core describes it.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    pub query: QueryId,
    pub request: RequestId,
    pub database: DatabaseId,
    pub work: QueryWork,
    pub lease: Option<LeaseId>,
    /// Whether all its rows are needed together.
    pub collect: bool,
}

/// Where rows that have arrived go.
#[derive(Debug)]
pub enum Rows {
    /// The query is over, or they wait for the next rows.
    Nowhere,
    /// They are kept until all rows have arrived.
    Collected { database: DatabaseId },
    /// There is no room for them: the query has to be cancelled.
    NoRoom { database: DatabaseId },
    /// They are the second rows of a response that has not begun: it begins now, and they follow.
    Begin(Bytes),
    /// They go to the client whose response has begun.
    Flow { request: RequestId, rows: Bytes },
}

impl Queries {
    /// `result_bytes_max`: the maximum size of one collected result. `shows_failures`: clients are developers.
    pub fn new(result_bytes_max: usize, sql_comments: SqlComments, shows_failures: bool) -> Self {
        Self {
            running: HashMap::new(),
            results: HashMap::new(),
            flowing: HashMap::new(),
            collected_bytes: 0,
            warned: None,
            times: QueryTimes::default(),
            result_bytes_max,
            sql_comments,
            shows_failures,
        }
    }

    /// Whether statements for PostgreSQL get a comment.
    pub fn has_comments(&self) -> bool {
        self.sql_comments != SqlComments::Off
    }

    /// The work of a database for a query that begins; or how the query ends without a database. `by`: who asks, for
    /// the comment of its statement.
    pub fn start(
        &mut self,
        start: &Start,
        mut asked: WorkRequest,
        by: Option<(QueryOrigin<'_>, Option<TraceParent>)>,
        now: Moment,
    ) -> Result<DatabaseWork, QueryFailure> {
        let Start { query, request, database, work, lease, collect } = *start;
        let text = asked.text(work);
        if let (WorkRequest::Statement(query), Some((asker, trace))) = (&mut asked, by) {
            sql_comment::add(query, self.sql_comments, asker, trace);
        }
        let bytes_max = collect.then_some(self.result_bytes_max);
        let work = asked.work(work, lease, bytes_max);
        let sink =
            if collect || work.is_err() { Sink::Collected(Vec::new()) } else { Sink::Client { request, held: None } };
        let shape = work.as_ref().map_or(Shape::Rows, shape);
        self.running.insert(query, Running::new(text, request, shape, database, sink, now));
        work
    }

    /// Its database has started to run it.
    pub fn started(&mut self, query: QueryId, now: Moment) {
        if let Some(queued) = self.running.get_mut(&query).map(|running| running.start(now)) {
            self.times.queue.observe(queued);
        }
    }

    /// It is being cancelled.
    pub fn cancelled(&mut self, query: QueryId, now: Moment) {
        if let Some(running) = self.running.get_mut(&query) {
            running.cancel(now);
        }
    }

    /// Rows have arrived.
    pub fn take(&mut self, query: QueryId, rows: Bytes) -> Rows {
        let Some(running) = self.running.get_mut(&query) else { return Rows::Nowhere };
        let database = running.database;
        match &mut running.sink {
            Sink::Collected(pieces) => {
                self.collected_bytes += rows.len();
                let has_room = self.collected_bytes <= RESULTS_BYTES_MAX;
                pieces.push(rows);
                if running.has_room(has_room) { Rows::Collected { database } } else { Rows::NoRoom { database } }
            }
            Sink::Client { held: held @ None, .. } => {
                *held = Some(rows);
                Rows::Nowhere
            }
            Sink::Client { .. } => Rows::Begin(rows),
            Sink::Flowing { request } => Rows::Flow { request: *request, rows },
        }
    }

    /// Its rows go to the client from now on. Returns the first ones.
    pub fn flow(&mut self, query: QueryId) -> Option<Bytes> {
        let running = self.running.get_mut(&query)?;
        let Sink::Client { request, held } = &mut running.sink else { return None };
        let (request, held) = (*request, held.take());
        running.sink = Sink::Flowing { request };
        self.flowing.insert(request, query);
        held
    }

    /// The request whose client gets the rows of this query.
    pub fn taker(&self, query: QueryId) -> Option<RequestId> {
        match self.running.get(&query)?.sink {
            Sink::Flowing { request } => Some(request),
            Sink::Collected(_) | Sink::Client { .. } => None,
        }
    }

    /// The query whose rows this request's client gets, and its database.
    pub fn flowing_to(&self, request: RequestId) -> Option<(QueryId, DatabaseId)> {
        if self.flowing.is_empty() {
            return None;
        }
        let query = *self.flowing.get(&request)?;
        Some((query, self.running.get(&query)?.database))
    }

    /// The request has ended; its rows are dropped.
    pub fn stop_flow(&mut self, request: RequestId) {
        if !self.flowing.is_empty() {
            self.flowing.remove(&request);
        }
    }

    /// The query has ended in the database of this name. Its result is kept until it is dropped. Returns whether the
    /// query completed, and the size of the result.
    pub fn ended(&mut self, query: QueryId, end: QueryEnd, now: Moment) -> Option<(bool, usize)> {
        let running = self.running.remove(&query)?;
        if let Some(took) = running.time_in_database(now) {
            self.times.database.observe(took);
        }
        if let Some(took) = running.time_to_cancel(now) {
            self.times.cancel.observe(took);
        }
        if let Sink::Flowing { request } = running.sink {
            self.flowing.remove(&request);
        }
        let result = QueryResult::new(running, end);
        let told = (result.is_complete(), result.rows().len());
        self.results.insert(query, result);
        Some(told)
    }

    /// The result is no longer needed.
    pub fn drop_result(&mut self, query: QueryId) {
        if let Some(result) = self.results.remove(&query) {
            self.collected_bytes -= result.collected_bytes();
        }
    }

    /// The outcome for a client. `late`: the query had been abandoned for this reason.
    pub fn answer(&self, query: QueryId, late: Option<Reason>) -> Option<QueryAnswer> {
        Some(self.results.get(&query)?.answer(late, self.shows_failures))
    }

    /// The outcome for a worker.
    pub fn outcome(&self, query: QueryId, late: Option<Reason>) -> Option<WaitOutcome<'_>> {
        Some(self.results.get(&query)?.outcome(late))
    }

    /// The rows that follow an outcome because they are too large for its frame.
    pub fn rows_after(&self, outcome: Outcome) -> Option<Bytes> {
        let Outcome::Queried { query, completed: true, late: None } = outcome else { return None };
        let rows = self.results.get(&query)?.rows();
        (rows.len() > INLINE_BODY_BYTES_MAX).then(|| rows.clone())
    }

    /// The database's message, if it failed.
    pub fn failure(&self, query: QueryId) -> Option<&QueryFailure> {
        match self.results.get(&query)?.end() {
            QueryEnd::Failed(failure) => Some(failure),
            QueryEnd::Completed(_) | QueryEnd::Cancelled => None,
        }
    }

    /// The text of a query that has not ended, and whether its database has started to run it.
    pub fn shown(&self, query: QueryId) -> Option<(&Arc<str>, bool)> {
        let running = self.running.get(&query)?;
        Some((&running.text, running.has_started()))
    }

    /// Bytes of results that are still needed.
    pub fn result_bytes(&self) -> usize {
        self.collected_bytes
    }

    pub fn times(&self) -> &QueryTimes {
        &self.times
    }

    /// What the log says of a query that ends in this way; `None` if it has not failed.
    pub fn failed(&self, query: QueryId, end: &QueryEnd) -> Option<LoggedFailure> {
        let QueryEnd::Failed(failure) = end else { return None };
        let running = self.running.get(&query)?;
        let Running { request, database, .. } = *running;
        Some(LoggedFailure {
            request,
            database,
            text: Arc::clone(&running.text),
            fault: failure::failed(failure).fault,
        })
    }

    /// Logs a query that failed. `request` and `database`: their names.
    pub fn log_failure(
        &mut self,
        failed: &LoggedFailure,
        end: &QueryEnd,
        (request, database): (&str, &str),
        now: Moment,
    ) {
        let QueryEnd::Failed(failure) = end else { return };
        let (sqlstate, query) = (failure.sqlstate.as_deref(), &failed.text);
        let message = match failure::consequence(failure) {
            None => failure.message.to_string(),
            Some(consequence) => format!("{}; {consequence}", failure.message),
        };
        let is_news = match failure.kind {
            // It follows from an earlier failure, which has been logged.
            FailureKind::NoTransaction => false,
            FailureKind::Unreachable | FailureKind::QueueFull => self.may_warn(now),
            _ => true,
        };
        match failed.fault {
            _ if !is_news => tracing::debug!(request, database, %query, "a query failed: {message}"),
            "client" => tracing::debug!(request, database, sqlstate, %query, "a query failed: {message}"),
            "server" => tracing::warn!(request, database, sqlstate, %query, "a query failed: {message}"),
            _ => tracing::error!(request, database, sqlstate, %query, "a query failed: {message}"),
        }
    }

    /// Whether a failure of a kind that thousands of queries have at the same time is logged.
    fn may_warn(&mut self, now: Moment) -> bool {
        let may = self.warned.is_none_or(|warned| now.since(warned) >= WARNING_INTERVAL);
        if may {
            self.warned = Some(now);
        }
        may
    }
}

fn shape(work: &DatabaseWork) -> Shape {
    match work {
        DatabaseWork::Alone(query) | DatabaseWork::Within { query, .. } => query.form.shape,
        DatabaseWork::Begin { .. } | DatabaseWork::Commit { .. } | DatabaseWork::Rollback { .. } => Shape::Rows,
    }
}
