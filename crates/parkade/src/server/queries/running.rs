//! Queries that databases have, and results that somebody still needs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parkade_core::{DatabaseId, Moment, QueryId, RequestId};
use parkade_model::Shape;
use parkade_sql::{Certainty, End, Failure, FailureKind};
use parkade_wire::Columns;

use crate::admin::report::QueryTimes;

/// Rows that functions, coroutines and those who share a query wait for, all together. Then: 503 with `Retry-After`.
const RESULTS_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Where the rows of a query go.
#[derive(Debug)]
pub enum Sink {
    /// Together, for a worker or for many.
    Collected(Vec<Bytes>),
    /// To a client as they come. The first piece is held back: when the end is right behind it, it is a whole answer.
    Client { request: RequestId, held: Option<Bytes> },
    /// To a client whose answer has begun.
    Flowing { request: RequestId },
}

/// A query that a database was given.
#[derive(Debug)]
pub struct Running {
    pub text: Arc<str>,
    pub shape: Shape,
    pub database: DatabaseId,
    pub sink: Sink,
    submitted: Moment,
    started: Option<Moment>,
    cancelled: Option<Moment>,
    collected_bytes: usize,
    /// Its rows did not fit beside those of others.
    is_crowded_out: bool,
}

/// What came of a query.
#[derive(Debug)]
pub struct QueryResult {
    pub text: Arc<str>,
    pub shape: Shape,
    /// JSON text; empty where it went to its client already.
    pub rows: Bytes,
    pub end: End,
    /// As workers are told; `None` where no worker will be, or where they are too many.
    pub columns: Option<Columns>,
    collected_bytes: usize,
}

#[derive(Debug, Default)]
pub struct Queries {
    running: HashMap<QueryId, Running>,
    results: HashMap<QueryId, QueryResult>,
    /// Whose rows are on their way to whom.
    flowing: HashMap<RequestId, QueryId>,
    /// Of all rows that were collected, results included.
    collected_bytes: usize,
    warned: Option<Moment>,
    times: QueryTimes,
}

impl Running {
    pub fn new(text: Arc<str>, shape: Shape, database: DatabaseId, sink: Sink, now: Moment) -> Self {
        Self {
            text,
            shape,
            database,
            sink,
            submitted: now,
            started: None,
            cancelled: None,
            collected_bytes: 0,
            is_crowded_out: false,
        }
    }

    pub fn has_started(&self) -> bool {
        self.started.is_some()
    }
}

impl QueryResult {
    pub fn new(running: Running, end: End) -> Self {
        let end = if running.is_crowded_out { crowded_out(&end) } else { end };
        let collected_bytes = running.collected_bytes;
        let columns = match (&running.sink, &end) {
            (Sink::Collected(_), End::Completed(summary)) => {
                Columns::new(summary.columns.iter().map(|column| (&*column.name, &*column.kind)))
            }
            _ => None,
        };
        let rows = match running.sink {
            Sink::Collected(pieces) => joined(pieces),
            Sink::Client { held, .. } => held.unwrap_or_default(),
            Sink::Flowing { .. } => Bytes::new(),
        };
        Self { text: running.text, shape: running.shape, rows, end, columns, collected_bytes }
    }
}

impl Queries {
    pub fn begin(&mut self, query: QueryId, running: Running) {
        self.running.insert(query, running);
    }

    pub fn of(&mut self, query: QueryId) -> Option<&mut Running> {
        self.running.get_mut(&query)
    }

    pub fn peek(&self, query: QueryId) -> Option<&Running> {
        self.running.get(&query)
    }

    pub fn started(&mut self, query: QueryId, now: Moment) {
        let Some(running) = self.running.get_mut(&query) else { return };
        running.started = Some(now);
        self.times.queue.observe(now.since(running.submitted));
    }

    pub fn cancelled(&mut self, query: QueryId, now: Moment) {
        if let Some(running) = self.running.get_mut(&query) {
            running.cancelled = Some(now);
        }
    }

    pub fn end(&mut self, query: QueryId, now: Moment) -> Option<Running> {
        let running = self.running.remove(&query)?;
        if let Some(started) = running.started {
            self.times.database.observe(now.since(started));
        }
        if let Some(cancelled) = running.cancelled {
            self.times.cancel.observe(now.since(cancelled));
        }
        if let Sink::Flowing { request } = running.sink {
            self.flowing.remove(&request);
        }
        Some(running)
    }

    /// Its rows go to the client from now on.
    pub fn flow(&mut self, query: QueryId) -> Option<Bytes> {
        let running = self.running.get_mut(&query)?;
        let Sink::Client { request, held } = &mut running.sink else { return None };
        let (request, held) = (*request, held.take());
        running.sink = Sink::Flowing { request };
        self.flowing.insert(request, query);
        held
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

    pub fn keep(&mut self, query: QueryId, result: QueryResult) {
        self.results.insert(query, result);
    }

    pub fn result(&self, query: QueryId) -> Option<&QueryResult> {
        self.results.get(&query)
    }

    pub fn drop_result(&mut self, query: QueryId) {
        if let Some(result) = self.results.remove(&query) {
            self.collected_bytes -= result.collected_bytes;
        }
    }

    /// Counts rows that are kept for somebody. Whether there is room for them.
    pub fn collect(&mut self, query: QueryId, bytes: usize) -> bool {
        let Some(running) = self.running.get_mut(&query) else { return false };
        running.collected_bytes += bytes;
        self.collected_bytes += bytes;
        running.is_crowded_out |= self.collected_bytes > RESULTS_BYTES_MAX;
        !running.is_crowded_out
    }

    /// Bytes of results that somebody still needs.
    pub fn result_bytes(&self) -> usize {
        self.collected_bytes
    }

    /// Once a second at most: an outage turns thousands away.
    pub fn may_warn(&mut self, now: Moment) -> bool {
        let may = self.warned.is_none_or(|warned| now.since(warned) >= Duration::from_secs(1));
        if may {
            self.warned = Some(now);
        }
        may
    }

    pub fn times(&self) -> &QueryTimes {
        &self.times
    }
}

/// What a query ends with whose rows did not fit beside those of others.
fn crowded_out(end: &End) -> End {
    let certainty = match end {
        End::Completed(_) => Certainty::Unknown,
        End::Cancelled => Certainty::NotDone,
        End::Failed(failure) => failure.certainty,
    };
    let message = format!("results of queries have {RESULTS_BYTES_MAX} bytes already");
    End::Failed(Failure { certainty, ..Failure::new(FailureKind::QueueFull, message) })
}

fn joined(mut pieces: Vec<Bytes>) -> Bytes {
    if pieces.len() <= 1 {
        return pieces.pop().unwrap_or_default();
    }
    let mut all = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
    for piece in &pieces {
        all.extend_from_slice(piece);
    }
    all.freeze()
}
