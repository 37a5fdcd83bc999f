//! What the admin page shows: the report, and lists of bounded length.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::report::Report;
use crate::statistics::{EndedRequests, Graph, RouteName, RunOutcome, RunStatistics};

#[derive(Debug, Default, Serialize)]
pub struct Snapshot {
    pub report: Report,
    /// The oldest of each group, the oldest first: `queued`, `running`, the kinds of waits, and `runs` of jobs.
    pub requests: BTreeMap<&'static str, Vec<RequestRow>>,
    pub routes: Vec<RouteRow>,
    pub runs: Vec<RunRow>,
    pub graph: Graph,
    /// How long the server took to put it together.
    #[serde(skip)]
    pub took: Duration,
}

/// A request, or a run of a job, that has not ended.
#[derive(Debug, Default, Serialize)]
pub struct RequestRow {
    pub id: String,
    /// The one that the log and its response have. A run of a job has none.
    pub request_id: Option<String>,
    pub method: String,
    /// The pattern of its route, or the name of the job.
    pub route: String,
    /// Known only if there is an access log.
    pub path: Option<String>,
    pub client: Option<String>,
    /// The channel, query or job that it waits for.
    pub target: Option<String>,
    /// The one that runs it.
    pub worker: Option<u32>,
    /// The job of a run.
    pub job: Option<String>,
    /// How long it has been there, in seconds.
    pub age: f64,
}

/// Requests of a route that have ended. Times are seconds.
#[derive(Debug, Serialize)]
pub struct RouteRow {
    pub method: String,
    pub route: String,
    /// The function, as `module:name`, and where it is written, as `file:line`.
    pub handler: Option<String>,
    pub source: Option<String>,
    pub requests: u64,
    pub client_errors: u64,
    pub errors: u64,
    pub p99: Option<f64>,
    pub queued: f64,
    pub running: f64,
    pub parked: f64,
}

/// Runs of a job that have ended.
#[derive(Debug, Serialize)]
pub struct RunRow {
    pub job: String,
    pub completed: u64,
    pub retried: u64,
    pub dead: u64,
    pub seconds: f64,
    pub count: u64,
}

/// The busiest routes.
pub fn routes(ended: &EndedRequests, names: &[RouteName], count_max: usize) -> Vec<RouteRow> {
    let mut routes: Vec<_> = ended.routes.named(names).collect();
    routes.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.count()));
    let rows = routes.into_iter().take(count_max).map(|(name, counts)| RouteRow {
        method: name.method.to_string(),
        route: name.pattern.to_string(),
        handler: name.handler.as_deref().map(str::to_owned),
        source: name.source.as_deref().map(str::to_owned),
        requests: counts.count(),
        client_errors: counts.by_class[4],
        errors: counts.by_class[5],
        p99: counts.seconds.quantile(0.99),
        queued: counts.queued.as_secs_f64(),
        running: counts.running.as_secs_f64(),
        parked: counts.parked.as_secs_f64(),
    });
    rows.collect()
}

/// The jobs with most runs.
pub fn runs(statistics: &RunStatistics, count_max: usize) -> Vec<RunRow> {
    let mut runs = statistics.named();
    runs.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.count()));
    let rows = runs.into_iter().take(count_max).map(|(job, counts)| RunRow {
        job: job.into(),
        completed: counts.of(RunOutcome::Completed),
        retried: counts.of(RunOutcome::Retried),
        dead: counts.of(RunOutcome::Dead),
        seconds: counts.seconds.sum().as_secs_f64(),
        count: counts.seconds.count(),
    });
    rows.collect()
}
