//! Several servers over a modelled database: servers pause, crash, leave and come back, clocks drift and jump, connections break, statements are carried out
//! late, and the database goes away, in any order.
//!
//! What `docs/cluster.md` promises is checked at every statement and every answer. Everything comes from a seed: a failing one is printed with the end of its
//! trace, and `PARKADE_SEED=… cargo test -p parkade-jobs --test cluster` replays it. `PARKADE_SEEDS=5000` tries more.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod database;
mod member;
mod server;
mod world;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use world::World;

const SEEDS: u64 = 150;
const TRACE_LINES: usize = 60;

#[test]
fn what_the_servers_promise_each_other_holds() {
    if let Ok(seed) = std::env::var("PARKADE_SEED") {
        assert!(run(seed.parse().expect("PARKADE_SEED is a number"), true).is_some(), "seed {seed} fails");
        return;
    }
    let seeds = std::env::var("PARKADE_SEEDS").map_or(SEEDS, |seeds| seeds.parse().expect("PARKADE_SEEDS is a number"));
    let mut seen = BTreeSet::new();
    for seed in 1..=seeds {
        let Some(occurred) = run(seed, false) else {
            run(seed, true);
            panic!("a promise is broken: replay with PARKADE_SEED={seed}");
        };
        seen.extend(occurred);
    }
    let missing: Vec<&str> = EXPECTED.iter().filter(|expected| !seen.contains(**expected)).copied().collect();
    assert!(missing.is_empty(), "the world never made these happen: {missing:?}");
}

/// What occurred; `None` where a promise was broken.
fn run(seed: u64, is_traced: bool) -> Option<BTreeSet<&'static str>> {
    let mut world = World::new(seed, is_traced);
    let lived = catch_unwind(AssertUnwindSafe(|| {
        world.storm();
        world.calm_down();
    }));
    if lived.is_err() && is_traced {
        let trace = &world.model.trace;
        eprintln!("{}", trace[trace.len().saturating_sub(TRACE_LINES)..].join("\n"));
    }
    lived.is_ok().then_some(world.model.seen)
}

/// A simulation that never gets somewhere proves nothing about it.
const EXPECTED: [&str; 39] = [
    // What the world does.
    "server paused for longer than its lease",
    "server crashed",
    "server left",
    "database away for longer than a lease",
    "server cut off for longer than its lease",
    "clock jumped forward",
    "clock jumped back",
    "heartbeat answer lost",
    "heartbeat carried out late",
    "heartbeat of a dead instance answered after the next had joined",
    "join answer lost",
    "rescue answer lost",
    "leave answer lost",
    "claim answer lost",
    "claim never carried out",
    "claim carried out after it was fenced",
    "end answer lost",
    // What the servers do about it.
    "declared dead",
    "declared dead while it runs jobs",
    "declared dead though it lives",
    "not judged: this server is not steady",
    "not judged: this server has been silent itself",
    "not judged: its last heartbeat may not be the last",
    "claim refused: its instance is dead",
    "noticed its death by a heartbeat",
    "rejoined as a new instance",
    "rescued",
    "two servers rescue at once",
    "handed back",
    "begun under a dead instance",
    "run again beside a server that was declared dead",
    "stale outcome noticed",
    "outcome counted before a dead server's jobs were rescued",
    "outcome counted though it was reported twice",
    "outcome of a job that goes on counted though it was reported twice",
    "outcome of a claim reported while the next claim of its server has the job",
    "heartbeat sent while the last one hangs",
    "limit reached by others",
    "handed over",
];
