//! The data of the admin page.

use std::time::Instant;

use parkade_core::{RequestStage, RequestStatus, WaitTarget};

use super::turns::Turns;
use super::{Server, report};
use crate::admin::Snapshot;
use crate::admin::snapshot::{self, RequestRow};
use crate::statistics::RouteName;
use crate::words;

/// Requests of each group, queries of each database, routes and jobs that are listed. Then: only counted.
const ROWS_COUNT_MAX: usize = 100;
/// Channels that are listed, those with most waiters. Then: only counted.
const CHANNELS_COUNT_MAX: usize = 50;

pub fn snapshot(server: &mut Server, turns: &Turns) -> Snapshot {
    let began = Instant::now();
    let mut report = report::report(server, turns);
    report.channels.busiest.truncate(CHANNELS_COUNT_MAX);
    let (routes, runs) =
        (snapshot::routes(&report.ended, &report.routes, ROWS_COUNT_MAX), snapshot::runs(&report.runs, ROWS_COUNT_MAX));
    let mut snapshot =
        Snapshot { routes, runs, graph: server.clients.log.recent().graph(), report, ..Snapshot::default() };
    for status in server.core.oldest(server.clock.now(), ROWS_COUNT_MAX) {
        let group = match &status.stage {
            _ if status.is_run => "runs",
            RequestStage::Queued => "queued",
            RequestStage::Running { .. } => "running",
            RequestStage::Parked { kind, .. } => words::wait(*kind),
        };
        let row = row(server, &snapshot.report.routes, status);
        snapshot.requests.entry(group).or_default().push(row);
    }
    snapshot.took = began.elapsed();
    snapshot
}

fn row(server: &Server, names: &[RouteName], status: RequestStatus) -> RequestRow {
    let RequestStatus { request, stage, age, .. } = status;
    let exchange = server.clients.exchanges.peek(request);
    let name = exchange.and_then(|exchange| exchange.route_number.name(names));
    let note = exchange.and_then(|exchange| exchange.note());
    let run = server.jobs.runs.job(request);
    let (worker, target) = match stage {
        RequestStage::Queued => (None, None),
        RequestStage::Running { worker } => (Some(worker.0), None),
        RequestStage::Parked { target, .. } => (None, target),
    };
    RequestRow {
        id: format!("{}.{}", request.slot, request.generation),
        request_id: server.clients.id(request),
        method: name.map(|name| name.method.to_string()).unwrap_or_default(),
        route: run
            .map(|(name, _)| name.to_owned())
            .or(name.map(|name| name.pattern.to_string()))
            .or_else(|| server.scripts.contains(request).then(|| "a script".to_owned()))
            .unwrap_or_default(),
        path: note.map(|note| note.path.to_string()),
        client: note.and_then(|note| note.origin.client).map(|client| client.to_string()),
        target: target.map(|target| match target {
            WaitTarget::Channel(channel) => channel.to_string(),
            WaitTarget::Query(query) => format!("query {}", query.0),
            WaitTarget::Job(job) => format!("job {job}"),
        }),
        worker,
        job: run.map(|(_, job)| job.to_string()),
        age: age.as_secs_f64(),
    }
}
