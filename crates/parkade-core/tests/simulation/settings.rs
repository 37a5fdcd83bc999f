//! What differs from seed to seed: limits, histories, routes.

use std::time::Duration;

use parkade_core::{
    AppWorkers, ChannelName, Config, DatabaseId, DeclaredJobs, Errand, HistoryLimits, JobId, QueryWait, QueryWork,
    Random, Recycle, SharedKey, Sharing, Then, Wait,
};

use crate::tables::{Kind, Route, route};

pub const PATHS: [&str; 18] = [
    "/sync",
    "/async",
    "/endless",
    "/next",
    "/next/call",
    "/stream",
    "/timer",
    "/history",
    "/constant",
    "/preflight",
    "/missing",
    "/query",
    "/query/shared",
    "/query/call",
    "/job",
    "/job/now",
    "/job/cancel",
    "/follow",
];
pub const CHANNELS: [&str; 4] = ["a", "b", "news/1", "news/2"];

pub fn config(random: &mut Random, seed: u64) -> Config {
    let tight = random.below(2) == 0;
    let some = |random: &mut Random, value: u64| (random.below(2) == 0).then_some(value);
    Config {
        apps: apps(random, seed),
        seed,
        epoch: 1 + random.below(1000),
        queued_count_max: if tight { 5 } else { 1000 },
        running_count_max: if tight { 8 } else { 1000 },
        jobs_elsewhere_count_max: if tight { 3 } else { 20 },
        parked_count_max: if tight && seed % 4 != 1 { 10 } else { 1000 },
        deadline: some(random, 1000).map(Duration::from_millis),
        recycle: Recycle {
            requests: some(random, 30),
            age: some(random, 20).map(Duration::from_secs),
            resident_bytes: some(random, 1500),
            jitter_percent: 10,
        },
        history: history(random),
        history_bytes_max: if tight { 500 } else { 10_000 },
        channels_count_max: if tight { 2 } else { 100 },
        query_grace: Duration::from_millis(if tight { 100 } else { 1000 }),
        job_databases: (0..u16::try_from(random.below(4).min(2)).unwrap()).map(DatabaseId).collect(),
        exit_when_the_first_start_fails: random.below(8) == 0,
        tells_spells: true,
        ..Config::default()
    }
}

/// In a third of the worlds, several applications share the core.
fn apps(random: &mut Random, seed: u64) -> Vec<AppWorkers> {
    let count = if seed % 3 == 2 { 2 + seed % 2 } else { 1 };
    let workers = |random: &mut Random| AppWorkers {
        requests: u32::try_from(1 + random.below(4)).unwrap(),
        jobs: u32::try_from(random.below(4)).unwrap(),
    };
    (0..count).map(|_| workers(random)).collect()
}

/// What newer code declares: mostly jobs of both kinds.
pub fn declared(random: &mut Random) -> DeclaredJobs {
    let kind = random.below(6);
    DeclaredJobs { plain: kind > 1, coroutines: kind > 2 || kind == 1 }
}

/// Of queues: how many run at a time, how many begin in a second. The first has no bound.
pub const BOUNDS: [(u64, Option<u32>, Option<f64>); 3] =
    [(1, Some(2), None), (2, None, Some(2.0)), (3, Some(3), Some(4.0))];

pub fn history(random: &mut Random) -> HistoryLimits {
    HistoryLimits {
        count: usize::try_from(random.below(6)).unwrap(),
        bytes: usize::try_from(random.below(1000)).unwrap(),
        age: Duration::from_secs(random.below(20)),
    }
}

/// Mostly the same routes; now and then those of newer code.
pub fn routes(version: u64) -> (Option<bool>, Vec<Route>) {
    let channel = |name| ChannelName::parse(name).unwrap();
    let next = Wait::Next { channel: channel("a"), timeout: Some(Duration::from_secs(2)), since: None };
    let mut routes = vec![
        route("/sync", Kind::Sync),
        route("/async", Kind::Async),
        Route { deadline: Some(None), ..route("/endless", Kind::Sync) },
        route("/next", Kind::Wait { wait: next.clone(), then: Then::Answer }),
        route("/next/call", Kind::Wait { wait: next, then: Then::Call { concurrent: false } }),
        route("/stream", Kind::Wait { wait: Wait::Stream { channel: channel("b"), since: None }, then: Then::Answer }),
        route(
            "/history",
            Kind::Wait { wait: Wait::History { channel: channel("a"), count: None }, then: Then::Answer },
        ),
        route("/timer", Kind::Wait { wait: Wait::Timer { after: Duration::from_millis(700) }, then: Then::Answer }),
        route(
            "/follow",
            Kind::Wait { wait: visit(Errand::Events { channel: channel("news/1"), since: None }), then: Then::Answer },
        ),
        route("/constant", Kind::Constant),
        route("/preflight", Kind::Preflight),
        route("/query", Kind::Wait { wait: query(None), then: Then::Answer }),
        route("/query/shared", Kind::Wait { wait: query(Some("one")), then: Then::Answer }),
        route(
            "/job",
            Kind::Wait {
                wait: visit(Errand::Result { timeout: Some(Duration::from_millis(600)) }),
                then: Then::Answer,
            },
        ),
        route(
            "/job/now",
            Kind::Wait { wait: visit(Errand::Result { timeout: Some(Duration::ZERO) }), then: Then::Answer },
        ),
        route("/job/cancel", Kind::Wait { wait: visit(Errand::Cancel), then: Then::Answer }),
        route("/query/call", Kind::Wait { wait: query(None), then: Then::Call { concurrent: false } }),
        route("/file", Kind::Wait { wait: Wait::File, then: Then::Answer }),
    ];
    match version {
        0 => routes.reverse(),
        1 => drop(routes.remove(1)),
        2 => routes[0].deadline = Some(Some(Duration::from_millis(300))),
        _ => {}
    }
    let fallback = match version {
        3 => Some(true),
        4 => Some(false),
        _ => None,
    };
    (fallback, routes)
}

/// At the address of a job, which is another for each client.
fn visit(errand: Errand) -> Wait {
    Wait::Visit { job: JobId::new(0), errand }
}

/// Of which jobs the application says itself who may have them.
pub fn is_guarded(job: JobId) -> bool {
    job.number().is_multiple_of(2)
}

fn query(key: Option<&str>) -> Wait {
    let shared = key.map(|key| Sharing {
        key: SharedKey(std::array::from_fn(|at| key.as_bytes().get(at).copied().unwrap_or(0))),
        ttl: Duration::from_millis(300),
    });
    Wait::Query(QueryWait { database: DatabaseId(0), deadline: None, work: QueryWork::Alone, shared })
}
