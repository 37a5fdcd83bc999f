//! The data of the status page and of the readiness check.

use std::collections::{BTreeMap, HashMap};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parkade_core::{AppId, Core, Moment, Status};
use parkade_sql::Availability;

use super::Server;
use super::turns::Turns;
use crate::admin::report::{ApplicationReport, Connections, DatabaseReport, JobsReport, QueryReport, TurnsReport};
use crate::admin::{Readiness, Report, Shell};
use crate::clock::Clock;
use crate::databases::Databases;
use crate::jobs::StoreLink;
use crate::queries::Queries;
use crate::store::wall;
use crate::words;

/// The server's own part of the status page.
#[derive(Debug, Clone)]
pub struct About {
    /// What is served, for people.
    pub target: String,
    /// Of each application.
    pub targets: Vec<String>,
    pub started: SystemTime,
    pub addresses: Vec<String>,
    pub dropped: crate::log::Dropped,
    pub connections_count_max: usize,
    pub body_bytes_max: usize,
    /// Whether this is `parkade dev`: responses explain to developers why a query failed.
    pub is_dev: bool,
}

/// Whether a request would be served now. A database that denies access makes the server not ready, as missing workers
/// do.
pub fn readiness(core: &Core, databases: &Databases, now: Instant) -> Readiness {
    let not_ready = |reason: &str| Readiness::NotReady { reason: reason.into() };
    if core.ready() {
        let unreachable = databases.status(now).find_map(|(name, status)| match status.reach {
            Availability::Down { why } | Availability::Denied { why } => Some(format!("the database {name}: {why}")),
            Availability::Untried | Availability::Up => None,
        });
        unreachable.map_or(Readiness::Ready, |reason| not_ready(&reason))
    } else if core.is_draining() {
        not_ready("the server is stopping")
    } else {
        not_ready("no worker is ready; if the application does not start, the log says why")
    }
}

pub fn report(server: &Server, turns: &Turns) -> Report {
    let Server { core, clients, upstream, databases, jobs, queries, routes, clock, about, loading, .. } = server;
    let now = clock.now();
    let status = core.status(now);
    let pids: HashMap<_, _> =
        status.workers.iter().filter_map(|known| Some((known.worker, upstream.pid(known.worker)?))).collect();
    let connections = clients.http.counts();
    let shell = Shell {
        target: about.target.clone(),
        interface: loading.interface(AppId(0)).map(str::to_owned).filter(|_| about.targets.len() == 1),
        applications: applications(server, &status),
        addresses: about.addresses.clone(),
        started: about.started.duration_since(UNIX_EPOCH).unwrap_or_default(),
        uptime: now.since(Moment::default()),
        connections: Connections { http1: connections.http1, http2: connections.http2, broken: connections.broken },
        turns: TurnsReport {
            long: turns.long_count,
            longest: turns.longest.as_secs_f64(),
            busy: turns.busy_count,
            busiest: turns.busiest.as_secs_f64(),
        },
        parked_bytes: clients.exchanges.kept_bytes(),
        request_bytes: clients.http.request_bytes(),
        log_lines_dropped: about.dropped.lines(),
        spans: server.traces.counts(),
        worker_pids: pids,
        rates: clients.log.recent().rates(),
        ended: clients.log.counts().clone(),
        routes: routes.names(),
        runs: jobs.runs.statistics().clone(),
        databases: database_reports(core, queries, databases, *clock),
        query_times: queries.times().clone(),
        result_bytes: queries.result_bytes(),
        jobs: jobs_report(&jobs.store),
        jobs_enqueued: jobs.store.enqueued(),
        connections_count_max: about.connections_count_max,
        body_bytes_max: about.body_bytes_max,
        reload_error: loading.reloads.last_error().map(str::to_owned),
    };
    shell.report(status, core.counts())
}

/// Empty if the server has a single application.
fn applications(server: &Server, status: &Status) -> Vec<ApplicationReport> {
    let Server { routes, about, loading, .. } = server;
    let report = |app: &parkade_core::AppStatus| {
        let mount = routes.mounts().name(app.app)?.to_owned();
        let state = match app {
            _ if app.workers_ready > 0 => "ready",
            _ if app.fails_to_start => "failed",
            _ if app.has_started => "no worker",
            _ => "starting",
        };
        Some(ApplicationReport {
            mount,
            target: about.targets[usize::from(app.app.0)].clone(),
            interface: loading.interface(app.app).map(str::to_owned),
            state: state.into(),
            generation: app.generation,
            last_reload: app.last_reload.map(|outcome| words::reload(outcome).into()),
            error: loading.error(app.app).map(str::to_owned),
            workers_ready: app.workers_ready,
            queued: app.queued,
        })
    };
    status.apps.iter().filter_map(report).collect()
}

fn database_reports(
    core: &Core,
    queries: &Queries,
    databases: &Databases,
    clock: Clock,
) -> BTreeMap<String, DatabaseReport> {
    let now = clock.now();
    let status = databases.status(clock.at(now)).enumerate();
    let reports = status.map(|(place, (name, status))| {
        let its = core.queries().filter(|known| usize::from(known.database.0) == place);
        let running = its.filter_map(|known| {
            let (text, has_started) = queries.shown(known.query)?;
            Some(QueryReport {
                id: known.query.0,
                statement: shown(text),
                state: if has_started { "running" } else { "queued" }.into(),
                age: now.since(known.since).as_secs_f64(),
                waiting: known.waiting,
                cancelled: known.cancelled,
            })
        });
        (name.to_owned(), DatabaseReport::new(status, running.collect()))
    });
    reports.collect()
}

fn jobs_report(store: &StoreLink) -> JobsReport {
    let counts = store.counts();
    #[expect(clippy::cast_precision_loss, reason = "milliseconds are exact up to 285,000 years")]
    let oldest = counts.oldest_ready.map(|since| wall().0.saturating_sub(since.0).max(0) as f64 / 1_000.0);
    JobsReport::new(counts, oldest)
}

/// The statement, shortened for a status page.
fn shown(text: &str) -> String {
    const CHARACTERS_MAX: usize = 200;
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
