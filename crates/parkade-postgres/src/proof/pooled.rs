//! The same behind a pooler, where a cancel goes to the process that its client has when it arrives.

use parkade_sql::{QueryEnd, SlotState};

use super::races::{MILLI, is_completed, states};
use super::world::World;

fn pooled(slots: usize, processes: usize) -> World {
    let mut world = World::pooled(slots, processes, 1);
    world.run(100 * MILLI);
    assert!(world.pool.status(world.now).is_pooled);
    world
}

#[test]
fn behind_a_pooler_a_cancel_that_was_seen_to_hit_keeps_the_connection() {
    let mut world = pooled(1, 1);
    let query = world.submit("work 10000000");
    world.run(10 * MILLI);
    world.cancel(query);
    assert_eq!(world.end_of(query), QueryEnd::Cancelled);
    let next = world.submit("work 10");
    assert!(is_completed(&world.end_of(next)));
    let counts = world.pool.status(world.now).counts;
    assert_eq!((counts.connects, counts.cancels_sent), (1, 1));
}

#[test]
#[cfg(not(feature = "without-fence"))]
fn behind_a_pooler_a_cancel_that_was_not_seen_to_hit_costs_the_connection() {
    let mut world = pooled(1, 2);
    world.server.pooler.as_mut().unwrap().delay = 10_000 * MILLI;
    let query = world.submit("work 20000");
    world.run(10 * MILLI);
    world.cancel(query);
    assert!(is_completed(&world.end_of(query)));
    let next = world.submit("work 20000000");
    assert!(is_completed(&world.end_of(next)));
    let counts = world.pool.status(world.now).counts;
    assert_eq!((counts.connects, counts.strays, world.server.hits.len()), (2, 0, 0));
}

#[test]
fn a_statement_that_still_waits_in_the_pooler_is_cancelled_when_it_begins() {
    let mut world = pooled(2, 1);
    let first = world.submit("work 200000");
    let waiting = world.submit("work 10000000");
    world.run(10 * MILLI);
    world.cancel(waiting);
    assert!(is_completed(&world.end_of(first)));
    assert_eq!(world.end_of(waiting), QueryEnd::Cancelled);
    let next = world.submit("work 10");
    assert!(is_completed(&world.end_of(next)));
}

#[test]
fn behind_a_pooler_nothing_is_prepared_for_the_next_statement() {
    let mut world = pooled(2, 1);
    for _ in 0..4 {
        let queries = [world.submit("work 10"), world.submit("work 10")];
        assert!(queries.iter().all(|query| is_completed(&world.end_of(*query))));
    }
}

#[test]
fn behind_a_pooler_a_transaction_keeps_its_process() {
    let mut world = pooled(2, 1);
    let (lease, begin) = world.begin();
    assert!(is_completed(&world.end_of(begin)));
    let other = world.submit("work 10");
    let query = world.within(lease, "work 10000000");
    world.run(10 * MILLI);
    world.cancel(query);
    assert_eq!(world.end_of(query), QueryEnd::Cancelled);
    world.release(lease);
    assert!(is_completed(&world.end_of(other)));
    world.run(10 * MILLI);
    assert_eq!(states(&world), [SlotState::Idle; 2]);
    assert_eq!(&world.server.seen[1..3], [format!("/* q{} */ work 10000000", query.0), "ROLLBACK".into()]);
}
