//! Queries between applications and databases: their rows on the way to a client or a worker, and the outcomes for clients and workers if there
//! are none.

mod failure;
mod request;
mod result;
mod running;
mod shared_key;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parkade_core::Moment;
use parkade_model::{DatabaseId, LeaseId, QueryId, QueryWork, Reason, RequestId, Shape};
use parkade_sql::{DatabaseWork, FailureKind, QueryEnd, QueryFailure};
use parkade_wire::WaitOutcome;
use parkade_wire::limits::INLINE_BODY_BYTES_MAX;

use crate::admin::report::QueryTimes;
use result::QueryResult;
use running::{Running, Sink};

pub use failure::error_json;
pub use request::{WorkRequest, begin, end, query};
pub use result::QueryAnswer;

/// Rows that functions, coroutines and those who share a query wait for, all together. Then: 503 with `Retry-After`.
const RESULTS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// An outage turns thousands away, and is one line in the log each second.
const WARNING_INTERVAL: Duration = Duration::from_secs(1);

/// Queries that databases have, and results that somebody still needs.
#[derive(Debug)]
pub struct Queries {
    running: HashMap<QueryId, Running>,
    results: HashMap<QueryId, QueryResult>,
    /// Requests whose clients take rows as they come.
    flowing: HashMap<RequestId, QueryId>,
    /// Of all rows that were collected, results included.
    collected_bytes: usize,
    warned: Option<Moment>,
    times: QueryTimes,
    /// Of one result that is collected.
    result_bytes_max: usize,
    /// Clients are told the statement that failed, and what its database said of it: they are developers.
    shows_failures: bool,
}

/// What the core says of a query that begins.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    pub query: QueryId,
    pub request: RequestId,
    pub database: DatabaseId,
    pub work: QueryWork,
    pub lease: Option<LeaseId>,
    /// Its rows are needed whole.
    pub collect: bool,
}

/// Where rows go that have come.
#[derive(Debug)]
pub enum Rows {
    /// The query is over, or they wait for the next ones.
    Nowhere,
    /// They are kept for those who need all of them.
    Collected { database: DatabaseId },
    /// There is no room for them: the query is to be cancelled.
    NoRoom { database: DatabaseId },
    /// They are the second of an answer that has not begun: it begins now, and they follow.
    Begin(Bytes),
    /// They go to the client whose answer has begun.
    Flow { request: RequestId, rows: Bytes },
}

impl Queries {
    /// `result_bytes_max`: of one result that is collected. `shows_failures`: clients are developers.
    pub fn new(result_bytes_max: usize, shows_failures: bool) -> Self {
        Self {
            running: HashMap::new(),
            results: HashMap::new(),
            flowing: HashMap::new(),
            collected_bytes: 0,
            warned: None,
            times: QueryTimes::default(),
            result_bytes_max,
            shows_failures,
        }
    }

    /// What a database is to do for a query that begins; or how it ends, without one.
    pub fn start(&mut self, start: &Start, asked: WorkRequest, now: Moment) -> Result<DatabaseWork, QueryFailure> {
        let Start { query, request, database, work, lease, collect } = *start;
        let text = asked.text(work);
        let bytes_max = collect.then_some(self.result_bytes_max);
        let work = asked.work(work, lease, bytes_max);
        let sink =
            if collect || work.is_err() { Sink::Collected(Vec::new()) } else { Sink::Client { request, held: None } };
        let shape = work.as_ref().map_or(Shape::Rows, shape);
        self.running.insert(query, Running::new(text, shape, database, sink, now));
        work
    }

    /// Its database carries it out now.
    pub fn started(&mut self, query: QueryId, now: Moment) {
        if let Some(queued) = self.running.get_mut(&query).map(|running| running.start(now)) {
            self.times.queue.observe(queued);
        }
    }

    /// Nobody waits for it any more.
    pub fn cancelled(&mut self, query: QueryId, now: Moment) {
        if let Some(running) = self.running.get_mut(&query) {
            running.cancel(now);
        }
    }

    /// Rows have come.
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

    /// Its rows go to the client from now on: those that came first.
    pub fn flow(&mut self, query: QueryId) -> Option<Bytes> {
        let running = self.running.get_mut(&query)?;
        let Sink::Client { request, held } = &mut running.sink else { return None };
        let (request, held) = (*request, held.take());
        running.sink = Sink::Flowing { request };
        self.flowing.insert(request, query);
        held
    }

    /// The request whose client takes the rows of this query.
    pub fn taker(&self, query: QueryId) -> Option<RequestId> {
        match self.running.get(&query)?.sink {
            Sink::Flowing { request } => Some(request),
            Sink::Collected(_) | Sink::Client { .. } => None,
        }
    }

    /// The query whose rows this request's client takes, and its database.
    pub fn flowing_to(&self, request: RequestId) -> Option<(QueryId, DatabaseId)> {
        if self.flowing.is_empty() {
            return None;
        }
        let query = *self.flowing.get(&request)?;
        Some((query, self.running.get(&query)?.database))
    }

    /// The request has ended; its rows go nowhere.
    pub fn stop_flow(&mut self, request: RequestId) {
        if !self.flowing.is_empty() {
            self.flowing.remove(&request);
        }
    }

    /// The database of a query that has not ended.
    pub fn database(&self, query: QueryId) -> Option<DatabaseId> {
        Some(self.running.get(&query)?.database)
    }

    /// Its database, of this name, is done with it. What came of it is kept until it is dropped: whether it completed, and how many bytes that are.
    pub fn ended(&mut self, query: QueryId, end: QueryEnd, database: &str, now: Moment) -> Option<(bool, usize)> {
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
        self.log(&running, &end, database, now);
        let result = QueryResult::new(running, end);
        let told = (result.is_complete(), result.rows().len());
        self.results.insert(query, result);
        Some(told)
    }

    /// Nobody needs the result any more.
    pub fn drop_result(&mut self, query: QueryId) {
        if let Some(result) = self.results.remove(&query) {
            self.collected_bytes -= result.collected_bytes();
        }
    }

    /// What came of it, for a client. `late`: it had been given up for this reason.
    pub fn answer(&self, query: QueryId, late: Option<Reason>) -> Option<QueryAnswer> {
        Some(self.results.get(&query)?.answer(late, self.shows_failures))
    }

    /// And for a worker.
    pub fn outcome(&self, query: QueryId, late: Option<Reason>) -> Option<WaitOutcome<'_>> {
        Some(self.results.get(&query)?.outcome(late))
    }

    /// Its rows, where they are too many to go with the outcome.
    pub fn rows_after_outcome(&self, query: QueryId) -> Option<Bytes> {
        let rows = self.results.get(&query)?.rows();
        (rows.len() > INLINE_BODY_BYTES_MAX).then(|| rows.clone())
    }

    /// What its database said of one that failed.
    pub fn failure(&self, query: QueryId) -> Option<&QueryFailure> {
        match self.results.get(&query)?.end() {
            QueryEnd::Failed(failure) => Some(failure),
            QueryEnd::Completed(_) | QueryEnd::Cancelled => None,
        }
    }

    /// The text of one that has not ended, and whether its database carries it out already.
    pub fn shown(&self, query: QueryId) -> Option<(&Arc<str>, bool)> {
        let running = self.running.get(&query)?;
        Some((&running.text, running.has_started()))
    }

    /// Bytes of results that somebody still needs.
    pub fn result_bytes(&self) -> usize {
        self.collected_bytes
    }

    pub fn times(&self) -> &QueryTimes {
        &self.times
    }

    fn log(&mut self, running: &Running, end: &QueryEnd, database: &str, now: Moment) {
        let QueryEnd::Failed(failure) = end else { return };
        let (sqlstate, message, query) = (failure.sqlstate.as_deref().unwrap_or("-"), &failure.message, &running.text);
        let is_news = match failure.kind {
            // It follows from what has been told before.
            FailureKind::NoTransaction => false,
            FailureKind::Unreachable | FailureKind::QueueFull => self.may_warn(now),
            _ => true,
        };
        match failure::failed(failure).fault {
            _ if !is_news => tracing::debug!(database, %query, "a query failed: {message}"),
            "client" => tracing::debug!(database, sqlstate, %query, "a query failed: {message}"),
            "server" => tracing::warn!(database, sqlstate, %query, "a query failed: {message}"),
            _ => tracing::error!(database, sqlstate, %query, "a query failed: {message}"),
        }
    }

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
