//! Clients, a network and a server that do anything at any time, from a seed.
//!
//! `PARKADE_SEED=…` replays one seed, `PARKADE_SEEDS=5000` tries more.

#![expect(clippy::similar_names, reason = "a line of the pool is a link of the model")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use parkade_sql::{LeaseId, QueryEnd, QueryId, SlotState};

use super::link::Packet;
use super::world::World;

/// A missing fence is found within some of them.
const SEEDS: u64 = if cfg!(feature = "without-fence") { 500 } else { 20 };
const STEPS: usize = 200;
/// Each needs a connection.
const CYCLES: usize = 1_250;

#[test]
fn no_cancel_hits_what_nobody_cancelled() {
    try_all(|random, seed| World::new(random.usize(1..6), seed));
}

#[test]
fn no_cancel_hits_what_nobody_cancelled_behind_a_pooler() {
    try_all(|random, seed| {
        let mut world = World::pooled(random.usize(1..6), random.usize(1..5), seed);
        if let Some(pooler) = &mut world.server.pooler {
            pooler.delay = Duration::from_micros([0, 2_000, 100_000][random.usize(0..3)]);
        }
        world
    });
}

/// Every cancel takes a connection of its own, and there are few numbers for them; meanwhile a transaction keeps its
/// connection.
#[test]
fn a_connection_is_never_mistaken_for_another_however_often_numbers_come_round() {
    let (slots, places) = (2, 6);
    for seed in 1..=1 {
        let (mut world, mut random) = (World::with_places(slots, places, seed), fastrand::Rng::with_seed(seed));
        world.server.refuses_cancels = true;
        world.is_random = true;
        world.run(Duration::from_millis(100));
        let (lease, begin) = world.begin();
        assert!(matches!(world.end_of(begin), QueryEnd::Completed(_)));
        for _ in 0..CYCLES {
            churn(&mut world, &mut random, lease);
        }
        assert!(world.lines > 200 * places, "{} lines for {places} places", world.lines);
        let commit = world.finish(lease, true);
        assert!(matches!(world.end_of(commit), QueryEnd::Completed(_)), "its connection was there all the time");
        leave(&mut world, slots);
    }
}

/// Clients leave statements as soon as they run; meanwhile the transaction continues.
fn churn(world: &mut World, random: &mut fastrand::Rng, lease: LeaseId) {
    let queries = [world.submit("work 10000000"), world.submit("work 10000000")];
    world.run(Duration::from_millis(random.u64(1..20)));
    for query in queries {
        world.cancel(query);
    }
    if random.u8(0..10) == 0 {
        let query = world.within(lease, "work 100");
        assert!(matches!(world.end_of(query), QueryEnd::Completed(_)), "the transaction goes on");
    }
    for query in queries {
        world.end_of(query);
    }
}

fn try_all(world: impl Fn(&mut fastrand::Rng, u64) -> World) {
    if let Ok(seed) = std::env::var("PARKADE_SEED") {
        return run(&world, seed.parse().expect("PARKADE_SEED is a number"));
    }
    let seeds = std::env::var("PARKADE_SEEDS").map_or(SEEDS, |seeds| seeds.parse().expect("PARKADE_SEEDS is a number"));
    for seed in 1..=seeds {
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(&world, seed))) else { continue };
        let said = panic.downcast_ref::<String>().map_or("", String::as_str);
        if cfg!(feature = "without-fence") {
            assert!(said.contains("a stray"), "without a fence something else fails first: PARKADE_SEED={seed}");
            return;
        }
        panic!("replay with PARKADE_SEED={seed}");
    }
    let is_noticed = !cfg!(feature = "without-fence");
    assert!(is_noticed, "the simulation does not notice that a fence is missing");
}

fn run(world: &impl Fn(&mut fastrand::Rng, u64) -> World, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut world = world(&mut random, seed);
    let slots = world.slots;
    world.is_random = true;
    world.delay = Duration::from_micros([100, 2_000, 20_000][random.usize(0..3)]);
    for _ in 0..STEPS {
        step(&mut world, &mut random);
        let shown = world.pool.status(world.now);
        assert!(shown.slots.len() <= slots && shown.queued <= 2000);
    }
    leave(&mut world, slots);
}

fn step(world: &mut World, random: &mut fastrand::Rng) {
    let live: Vec<QueryId> = world.submitted.iter().filter(|query| !world.ended.contains_key(query)).copied().collect();
    let leases: Vec<LeaseId> = world.leases.keys().copied().collect();
    let pick = |random: &mut fastrand::Rng, count: usize| random.usize(0..count.max(1));
    match random.u8(0..100) {
        0..35 => _ = world.submit(&some_text(random)),
        35..65 if !live.is_empty() => world.cancel(live[pick(random, live.len())]),
        65..68 => _ = world.begin(),
        68..78 if !leases.is_empty() => _ = world.within(leases[pick(random, leases.len())], &some_text(random)),
        78..80 if !leases.is_empty() => _ = world.finish(leases[pick(random, leases.len())], random.bool()),
        80..85 if !leases.is_empty() => world.release(leases[pick(random, leases.len())]),
        85 => world.server.restart(random.bool()),
        86 => cut(world, random),
        87..89 => world.takes = random.bool(),
        89 => world.server.is_down = random.u8(0..3) == 0,
        90 => hold(world, random),
        91 if random.u8(0..4) == 0 => world.stand_still(Duration::from_millis(random.u64(0..8_000))),
        _ => world.take_all(),
    }
    let most = [200, 3_000, 30_000][random.usize(0..3)];
    world.run(Duration::from_micros(random.u64(0..most)));
}

fn some_text(random: &mut fastrand::Rng) -> String {
    match random.u8(0..12) {
        0 => "rows 3000".into(),
        1 => "fail".into(),
        2 => format!("stuck {}", random.u64(0..4_000_000)),
        3..6 => format!("work {}", random.u64(0..1_000_000)),
        _ => format!("work {}", random.u64(0..5_000)),
    }
}

/// A connection breaks on our side; bytes in transit still arrive on the other.
fn cut(world: &mut World, random: &mut fastrand::Rng) {
    let lines: Vec<_> = world.links.iter().filter(|(_, link)| !link.is_left).map(|(line, _)| *line).collect();
    if !lines.is_empty() {
        let (now, line) = (world.now, lines[random.usize(0..lines.len())]);
        let link = world.link(line);
        link.is_left = true;
        link.up.send(now, Duration::from_millis(random.u64(0..2000)), Packet::End);
        world.pool.lost(world.now, line, crate::line::Loss::Broken("cut".into()));
    }
}

/// A connection stalls, or continues.
fn hold(world: &mut World, random: &mut fastrand::Rng) {
    let lines: Vec<_> = world.links.keys().copied().collect();
    if !lines.is_empty() {
        let link = world.link(lines[random.usize(0..lines.len())]);
        let way = if random.bool() { &mut link.up } else { &mut link.down };
        way.is_held = !way.is_held;
    }
}

/// The clients leave, and the network works again: everything has to come to rest.
fn leave(world: &mut World, slots: usize) {
    world.server.is_down = false;
    world.takes = true;
    world.take_all();
    for link in world.links.values_mut() {
        (link.up.is_held, link.down.is_held) = (false, false);
    }
    for lease in world.leases.keys().copied().collect::<Vec<_>>() {
        world.release(lease);
    }
    for query in world.submitted.clone() {
        if !world.ended.contains_key(&query) {
            world.cancel(query);
        }
    }
    world.run(Duration::from_secs(30));
    let left: Vec<_> = world.submitted.iter().filter(|query| !world.ended.contains_key(query)).collect();
    assert!(left.is_empty(), "{left:?} never ended: {:?}", world.pool.status(world.now));
    let shown = world.pool.status(world.now);
    assert!(shown.slots.iter().all(|slot| slot.state == SlotState::Idle), "{shown:?}");
    assert!(shown.queued == 0 && world.pool.is_at_peace(), "something is left of the queries");
    let processes = &world.server.processes;
    assert!(processes.len() <= slots + 1, "more processes than connections");
    assert!(processes.values().all(|process| process.running.is_none() && process.transaction == b'I'));
}
