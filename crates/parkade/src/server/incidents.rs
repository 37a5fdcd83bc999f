//! What the log says of requests: records of workers, workers that died, queries that failed.

use parkade_core::{Event, RequestId, WorkerId};
use parkade_sql::{FailureKind, QueryEnd};

use super::Server;
use crate::log::{self, Record, RecordOrigin};
use crate::queries::LoggedFailure;

/// Requests that the record of a dead worker names. Then: it has only their number.
const NAMED_COUNT_MAX: usize = 20;

/// Requests that were answered with 502 because their worker died.
#[derive(Debug, Default)]
pub struct Casualties {
    names: Vec<String>,
    count: usize,
}

impl Casualties {
    pub fn note(&mut self, name: impl FnOnce() -> String) {
        self.count += 1;
        if self.names.len() < NAMED_COUNT_MAX {
            self.names.push(name());
        }
    }
}

impl Server {
    /// A request as the log names it: method, path, and its id.
    pub(super) fn describe(&self, request: RequestId) -> String {
        self.clients.describe(request, &self.routes.names())
    }

    /// The code of a worker has logged something.
    pub(super) fn worker_logged(&self, worker: WorkerId, request: Option<RequestId>, record: &Record) {
        let pid = self.upstream.pid(worker);
        let route = request.and_then(|request| self.clients.route(request, &self.routes.names()));
        let request_id = request.and_then(|request| self.clients.id(request));
        log::record(record, &RecordOrigin { worker: worker.0, pid, route, request_id });
    }

    /// Its process is gone. `announced`: that was to be expected.
    pub(super) fn worker_exited(&mut self, worker: WorkerId, how: &str, announced: bool) {
        let pid = self.upstream.pid(worker);
        self.loading.reloads.note_death(&format!("a worker has exited: {how}"));
        self.casualties = Some(Casualties::default());
        self.tell(Event::WorkerExited { worker });
        let Casualties { names, count } = self.casualties.take().unwrap_or_default();
        let requests = names.join(", ");
        match (announced, count) {
            (true, 0) => tracing::info!(worker = worker.0, pid, "a worker has exited: {how}"),
            (_, 0) => tracing::warn!(worker = worker.0, pid, "a worker died: {how}; it is being replaced"),
            (_, 1) => tracing::warn!(
                worker = worker.0,
                pid,
                requests,
                "a worker died: {how}; the request that it was running is answered with 502"
            ),
            (_, count) => tracing::warn!(
                worker = worker.0,
                pid,
                requests,
                "a worker died: {how}; {count} requests that it was running are answered with 502"
            ),
        }
    }

    /// Logs a query that failed, with a request that waited for it.
    pub(super) fn log_failure(&mut self, failed: &LoggedFailure, end: &QueryEnd) {
        let QueryEnd::Failed(failure) = end else { return };
        let (sqlstate, message, query) = (failure.sqlstate.as_deref().unwrap_or("-"), &failure.message, &failed.text);
        let is_news = match failure.kind {
            // It follows from an earlier failure, which has been logged.
            FailureKind::NoTransaction => false,
            FailureKind::Unreachable | FailureKind::QueueFull => self.queries.may_warn(self.now),
            _ => true,
        };
        let (request, database) = (self.describe(failed.request), self.databases.name(failed.database));
        match failed.fault {
            _ if !is_news => tracing::debug!(request, database, %query, "a query failed: {message}"),
            "client" => tracing::debug!(request, database, sqlstate, %query, "a query failed: {message}"),
            "server" => tracing::warn!(request, database, sqlstate, %query, "a query failed: {message}"),
            _ => tracing::error!(request, database, sqlstate, %query, "a query failed: {message}"),
        }
    }
}
