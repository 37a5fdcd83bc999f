//! The whole core against a world of clients, workers and waits that leave, die, lag, restart, answer late, twice or for others, in any order.
//!
//! After every step the promises of the design are checked against a model that only saw the events and effects. Everything comes from a seed:
//! a failing one is printed with the end of its trace, and `PARKADE_SEED=… cargo test --test simulation` replays it. `PARKADE_SEEDS=5000` tries more.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod bodies;
mod boots;
mod branching;
mod cancels;
mod clients;
mod commits;
mod databases;
mod files;
mod following;
mod grouping;
mod hangs;
mod held_sockets;
mod histories;
mod job_promises;
mod jobs;
mod model;
mod outputs;
mod pressure;
mod process;
mod promises;
mod queries;
mod query_promises;
mod recurring;
mod runs;
mod scripts;
mod settings;
mod sockets;
mod store;
#[path = "../support/tables.rs"]
mod tables;
mod visits;
mod workers;
mod world;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parkade_core::Core;
use world::World;

const SEEDS: u64 = 570;
/// In the worlds after these, plain functions wait while they hold their workers.
const SEEDS_WITHOUT_PLAIN_WAITS: u64 = 480;
/// In the worlds after these, there are scripts.
const SEEDS_WITHOUT_SCRIPTS: u64 = 530;
/// In the worlds after these, bodies arrive while code reads them, and more responses come in pieces.
const SEEDS_WITHOUT_BODIES: u64 = 440;
/// In the worlds after these, there are WebSockets that no worker holds.
const SEEDS_WITHOUT_HELD_SOCKETS: u64 = 400;
/// In the worlds after these, coroutines wait for several things at a time. There is less time for everything else then.
const SEEDS_WITHOUT_BRANCHES: u64 = 300;
const STEPS: usize = 1500;
const TRACE_LINES: usize = 60;

#[test]
fn the_promises_hold_after_every_step() {
    if let Ok(seed) = std::env::var("PARKADE_SEED") {
        let seed = seed.parse().expect("PARKADE_SEED is a number");
        assert!(run(seed, true).is_ok(), "seed {seed} fails");
        return;
    }
    let seeds = std::env::var("PARKADE_SEEDS").map_or(SEEDS, |seeds| seeds.parse().expect("PARKADE_SEEDS is a number"));
    let mut seen = BTreeSet::new();
    for seed in 1..=seeds {
        match run(seed, false) {
            Ok(occurred) => seen.extend(occurred),
            Err(steps) => {
                let _ = run(seed, true);
                panic!("a promise is broken after {steps} steps: replay with PARKADE_SEED={seed}");
            }
        }
    }
    let missing: Vec<&str> = EXPECTED.iter().filter(|expected| !seen.contains(**expected)).copied().collect();
    assert!(missing.is_empty(), "the world never made these happen: {missing:?}");
}

/// What occurred, or how many steps it took until a promise was broken.
fn run(seed: u64, traced: bool) -> Result<BTreeSet<String>, usize> {
    let mut world = World::new(seed, traced);
    let mut steps = 0;
    let lived = catch_unwind(AssertUnwindSafe(|| {
        while steps < STEPS {
            world.step();
            steps += 1;
        }
        world.end();
        world.calms_down();
    }));
    if lived.is_err() && traced {
        let tail = world.trace.len().saturating_sub(TRACE_LINES);
        eprintln!("{}", world.trace[tail..].join("\n"));
    }
    lived.map(|()| occurred(&world)).map_err(|_| steps)
}

/// What cores counted at least once, and what the model saw.
fn occurred(world: &World) -> BTreeSet<String> {
    let seen = world.model.seen.iter().map(|seen| (*seen).to_owned());
    let store = &world.model.jobs.store;
    let lost = store.has_lost_an_answer.then(|| "answer lost".to_owned());
    let again = store.has_noted_twice.then(|| "end noted, and the answer lost".to_owned());
    world.counted.iter().cloned().chain(lost).chain(again).chain(counted(&world.core)).chain(seen).collect()
}

fn counted(core: &Core) -> BTreeSet<String> {
    let counts = core.counts();
    let refusals = counts.refused.iter().map(|(reason, _)| format!("{reason:?}"));
    let cancels = counts.cancelled.iter().map(|(reason, _)| format!("{reason:?}"));
    let kills = counts.workers_killed.iter().map(|(reason, _)| format!("kill {reason:?}"));
    let plain = [
        ("recycled", counts.workers_recycled),
        ("reloaded", counts.reloads_done),
        ("reload given up", counts.reloads_given_up),
        ("gap", counts.gaps),
        ("late frame", counts.late_frames),
        ("query cancelled", counts.queries_cancelled),
        ("query shared", counts.queries_shared),
    ];
    let plain = plain.into_iter().filter(|(_, count)| *count > 0).map(|(name, _)| name.to_owned());
    refusals.chain(cancels).chain(kills).chain(plain).collect()
}

/// A simulation that never gets somewhere proves nothing about it.
const EXPECTED: [&str; 238] = [
    "script told",
    "script refused",
    "script done",
    "script left its transaction",
    "script left its statement",
    "script silent for too long",
    "script ended by an operator",
    "script ended by a stop",
    "script out of turn",
    "job of a script",
    "jobs of a script given after the commit",
    "end called",
    "end not called",
    "end broken off",
    "an application without workers for its jobs",
    "NotFound",
    "branch",
    "branch of a job",
    "branch of a plain function",
    "branch of a plain function in a thread",
    "branch of a plain job",
    "branch of a response that has begun",
    "branch over",
    "branch withdrawn",
    "branch refused",
    "branch ended with its request",
    "branches over in one step",
    "branches awaited",
    "member over",
    "member ended with its group",
    "a member failed",
    "called with several outcomes",
    "transaction busy",
    "ApplicationFailed",
    "BadAnswer",
    "WorkerDied",
    "QueueFull",
    "QueueTooSlow",
    "ParkedFull",
    "ChannelsFull",
    "NotPublished",
    "WorkerOverloaded",
    "QueuedTooLong",
    "NoApplication",
    "Stopping",
    "CancelledByOperator",
    "DeadlinePassed",
    "ClientLeft",
    "Deadline",
    "Operator",
    "kill Deadline",
    "kill Stuck",
    "kill StartedTooSlowly",
    "kill Violation",
    "kill GraceOver",
    "kill NotNeeded",
    "recycled",
    "reloaded",
    "reload given up",
    "gap",
    "late frame",
    "QueryTooLong",
    "NoTransaction",
    "query cancelled",
    "query shared",
    "rows",
    "rows ended",
    "rows broken",
    "told",
    "told late",
    "resumed with rows",
    "resumed late",
    "called with rows",
    "never told",
    "left the others",
    "no transaction",
    "transaction not begun",
    "transaction open",
    "completed though cancelled",
    "cancelled",
    "kept",
    "messages lost",
    "committed",
    "released",
    "killed",
    "run",
    "began",
    "early hints",
    "trailers",
    "served, though its worker has not ended it",
    "retired",
    "left its work",
    "socket",
    "socket closed by its client",
    "socket closed by its worker",
    "socket closed by a reload",
    "socket closed by a stop",
    "socket held",
    "said",
    "said out of turn",
    "called for a client",
    "a call cancelled with its client",
    "waited while the server stops",
    "said to a server that stops",
    "held socket closed",
    "held socket closed as a worker died",
    "held socket closed by a stop",
    "history",
    "empty history",
    "cursor of a message",
    "began after a wait",
    "killed beside a loop that turns",
    "behind one that hangs",
    "held",
    "held up",
    "paused until the store has caught up",
    "resumed when the store had caught up",
    "resumed beside a store that stands still",
    "store stands still",
    "output held",
    "given up while the wait was held",
    "held output released",
    "ended while its output was held",
    "given back by what was held",
    "acknowledged",
    "not stored",
    "awaited the store",
    "enqueued while it waits",
    "completed job",
    "tried again",
    "dead",
    "cancelled job",
    "handed back",
    "stranger",
    "job ended",
    "job pending",
    "job missing",
    "job dropped",
    "jobs put off",
    "not looked up",
    "store silent",
    "followed in vain",
    "asked about",
    "let in",
    "turned away",
    "told who may",
    "may without being asked about",
    "channel ended",
    "StoreFull",
    "StoreUnavailable",
    "jobs not claimed",
    "looked up again after a reload",
    "time noted",
    "time noted before",
    "time refused",
    "schedules not read",
    "each missed time enqueued",
    "missed time skipped",
    "enqueued by another server",
    "answer lost",
    "end noted again",
    "cancel asked again",
    "cancel refused",
    "cancelled where it waited",
    "cancelled where it ran",
    "cancelled when the claim had it",
    "cancelled when its end was noted at last",
    "end noted, and the answer lost",
    "cancelled elsewhere",
    "cancelled too late",
    "cancel given up",
    "ended for a client",
    "ended for a client at once",
    "StoreUnreadable",
    "clock put forward",
    "clock put back",
    "commit with jobs",
    "commit with jobs while the server stops",
    "commit waited for the store",
    "store lost before a commit",
    "jobs stored by their transaction",
    "jobs given after the commit",
    "tables closed",
    "enqueued in another database",
    "rejoining",
    "a job with its key was there",
    "keys too busy",
    "too many jobs in a transaction",
    "commit refused by the store",
    "a statement before the commit failed",
    "commit cancelled before it was sent",
    "given up before the store was open",
    "given up while it was probed",
    "given up while it enqueued",
    "given up while it looked up",
    "executed though it was given up",
    "given up while it committed",
    "answer of a commit with jobs lost",
    "killed while it committed",
    "job without a transaction",
    "a transaction with jobs is being ended",
    "file began",
    "file sent",
    "file broken off",
    "no file",
    "left its file",
    "left before its file was open",
    "disk hung until the deadline",
    "file cut short by the core",
    "file while the server stops",
    "late word of a file",
    "piece asked for",
    "read for longer than its deadline",
    "body complete",
    "piece for a coroutine that waits",
    "piece read while the server stops",
    "piece read while a response without a deadline goes on",
    "late piece",
    "body given to another worker",
    "worker takes no bodies that are arriving",
    "body ended early",
    "body ended early before it was read",
    "body ended early in a wait",
    "body ended early in the queue",
    "deadline while a body was coming",
    "operator while a body was coming",
    "stopped while a body was coming",
    "worker died while a body was coming",
    "answered before its body had come",
    "piece of a response",
    "broken off by its code",
    "client left in the middle of a response",
    "deadline in the middle of a response",
    "operator in the middle of a response",
    "stopped in the middle of a response",
    "worker died in the middle of a response",
    "worker died between a body and a response",
    "response complete while the server stops",
];
