//! The whole core against a world of clients, workers and waits that leave, die, lag, restart, answer late, twice or for others, in any order.
//!
//! After every step the promises of the design are checked against a model that only saw the events and effects. Everything comes from a seed:
//! a failing one is printed with the end of its trace, and `PARKADE_SEED=… cargo test --test simulation` replays it.

mod model;
mod process;
mod promises;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use world::World;

const SEEDS: u64 = 150;
const STEPS: usize = 1500;
const TRACE_LINES: usize = 60;

#[test]
fn the_promises_hold_after_every_step() {
    if let Ok(seed) = std::env::var("PARKADE_SEED") {
        let seed = seed.parse().expect("PARKADE_SEED is a number");
        assert!(run(seed, true).is_ok(), "seed {seed} fails");
        return;
    }
    let failed = (1..=SEEDS).find_map(|seed| Some((seed, run(seed, false).err()?)));
    if let Some((seed, steps)) = failed {
        let _ = run(seed, true);
        panic!("a promise is broken after {steps} steps: replay with PARKADE_SEED={seed}");
    }
}

/// The number of steps until a promise was broken, if one was.
fn run(seed: u64, traced: bool) -> Result<(), usize> {
    let mut world = World::new(seed, traced);
    let mut steps = 0;
    let lived = catch_unwind(AssertUnwindSafe(|| {
        while steps < STEPS {
            world.step();
            steps += 1;
        }
        world.end();
    }));
    if lived.is_err() && traced {
        let tail = world.trace.len().saturating_sub(TRACE_LINES);
        eprintln!("{}", world.trace[tail..].join("\n"));
    }
    lived.map_err(|_| steps)
}
