//! Each race of `docs/queries.md`, forced.

use std::time::Duration;

use bytes::BytesMut;
use parkade_sql::{Availability, Certainty, FailureKind, QueryEnd, SlotState};

use super::world::{CONNECT_TIMEOUT, World};

pub const MILLI: Duration = Duration::from_millis(1);

/// A pool that is connected, with its canceller.
fn world(slots: usize) -> World {
    let mut world = World::new(slots, 1);
    world.run(100 * MILLI);
    world
}

pub fn states(world: &World) -> Vec<SlotState> {
    world.pool.status(world.now).slots.into_iter().map(|slot| slot.state).collect()
}

fn failure(end: &QueryEnd) -> (FailureKind, Certainty) {
    match end {
        QueryEnd::Failed(failure) => (failure.kind, failure.certainty),
        other => panic!("it did not fail: {other:?}"),
    }
}

pub fn is_completed(end: &QueryEnd) -> bool {
    matches!(end, QueryEnd::Completed(_))
}

#[test]
fn a_cancelled_statement_ends_and_its_connection_serves_the_next() {
    let mut world = world(1);
    let query = world.submit("work 10000000");
    world.run(10 * MILLI);
    let begun = world.now;
    world.cancel(query);
    assert_eq!(world.end_of(query), QueryEnd::Cancelled);
    assert!(world.now - begun < 5 * MILLI);
    let next = world.submit("work 10");
    assert!(is_completed(&world.end_of(next)));
    let counts = world.pool.status(world.now).counts;
    assert_eq!((counts.connects, counts.cancels_sent, counts.cancels_repeated), (1, 1, 0));
}

#[test]
fn a_cancel_behind_the_end_does_nothing() {
    let mut world = world(1);
    let query = world.submit("work 10");
    assert!(is_completed(&world.end_of(query)));
    world.cancel(query);
    world.run(1000 * MILLI);
    assert_eq!(world.server.cancel_statements, 0);
}

#[test]
#[cfg(not(feature = "without-fence"))]
fn a_statement_that_ends_within_the_grace_needs_no_cancel() {
    let mut world = world(1);
    let query = world.submit("work 1000");
    world.run(MILLI / 2);
    world.cancel(query);
    assert!(is_completed(&world.end_of(query)));
    let counts = world.pool.status(world.now).counts;
    assert_eq!((counts.cancels_sent, counts.cancels_late), (0, 1));
}

#[test]
fn a_cancel_that_comes_before_its_statement_is_repeated() {
    let mut world = world(1);
    let first = world.submit("work 1");
    world.end_of(first);
    let query = world.submit("work 10000000");
    world.turn();
    // Its Parse and its Bind are delayed on the way.
    let lines: Vec<_> = world.links.keys().copied().collect();
    world.link(lines[0]).up.is_held = true;
    world.run(MILLI);
    world.cancel(query);
    world.run(10 * MILLI);
    assert_eq!((world.server.cancel_signals, world.server.hits.len()), (1, 0));
    world.link(lines[0]).up.is_held = false;
    assert_eq!(world.end_of(query), QueryEnd::Cancelled);
}

#[test]
fn a_statement_that_was_only_prepared_is_never_run() {
    let mut world = world(1);
    let query = world.submit("work 10000000");
    let line = *world.links.keys().next().unwrap();
    world.link(line).down.is_held = true;
    world.run(MILLI);
    world.cancel(query);
    world.run(2 * MILLI);
    world.link(line).down.is_held = false;
    assert_eq!(world.end_of(query), QueryEnd::Cancelled);
    assert_eq!(world.server.seen, Vec::<String>::new());
}

#[test]
#[cfg(not(feature = "without-fence"))]
fn the_next_statement_waits_for_the_acknowledgement_of_a_cancel_that_crossed_the_end() {
    let mut world = world(1);
    let query = world.submit("work 20000");
    world.run(10 * MILLI);
    let canceller = world.pool.canceller_line().unwrap();
    world.link(canceller).up.is_held = true;
    world.cancel(query);
    assert!(is_completed(&world.end_of(query)));
    let next = world.submit("work 1000");
    world.run(100 * MILLI);
    assert_eq!(states(&world), [SlotState::Settling]);
    assert_eq!(world.server.seen.len(), 1);
    world.link(canceller).up.is_held = false;
    assert!(is_completed(&world.end_of(next)));
    assert_eq!(world.server.hits, Vec::<String>::new());
}

#[test]
#[cfg(not(feature = "without-fence"))]
fn a_connection_whose_cancel_is_never_acknowledged_serves_nobody_again() {
    let mut world = world(1);
    let query = world.submit("work 20000");
    world.run(10 * MILLI);
    let canceller = world.pool.canceller_line().unwrap();
    world.link(canceller).up.is_held = true;
    world.cancel(query);
    assert!(is_completed(&world.end_of(query)));
    let next = world.submit("work 5000000");
    world.run(2000 * MILLI);
    // It arrives after all, at a process that is no longer ours.
    if let Some(link) = world.links.get_mut(&canceller) {
        link.up.is_held = false;
    }
    assert!(is_completed(&world.end_of(next)));
    assert_eq!(world.pool.status(world.now).counts.connects, 2);
}

#[test]
fn a_server_that_is_blocked_while_it_sends_is_read_until_it_hears_the_cancel() {
    let mut world = world(1);
    world.takes = false;
    let query = world.submit("rows 1000000");
    world.run(100 * MILLI);
    assert_eq!(states(&world), [SlotState::Busy]);
    assert!(world.untaken[&query] < 150_000);
    world.cancel(query);
    assert_eq!(world.end_of(query), QueryEnd::Cancelled);
}

#[test]
fn a_slow_reader_gets_everything_in_the_end() {
    let mut world = world(1);
    world.takes = false;
    let query = world.submit("rows 50000");
    let mut bytes = 0;
    while !world.ended.contains_key(&query) {
        world.run(10 * MILLI);
        assert!(world.untaken.values().sum::<usize>() < 300_000);
        bytes += world.untaken.values().sum::<usize>();
        world.take_all();
    }
    assert_eq!(bytes, 50_000 * "{\"n\":12345},\n".len());
}

#[test]
fn a_transaction_outlives_the_cancel_of_its_statement() {
    let mut world = world(1);
    let (lease, begin) = world.begin();
    assert!(is_completed(&world.end_of(begin)));
    let query = world.within(lease, "work 10000000");
    world.run(10 * MILLI);
    world.cancel(query);
    assert_eq!(world.end_of(query), QueryEnd::Cancelled);
    world.run(MILLI);
    assert_eq!(states(&world), [SlotState::Held]);
    let commit = world.finish(lease, true);
    assert_eq!(failure(&world.end_of(commit)), (FailureKind::Refused, Certainty::NotDone));
    world.run(MILLI);
    assert_eq!(states(&world), [SlotState::Idle]);
}

#[test]
fn a_holder_that_leaves_while_a_statement_runs_leaves_nothing_behind() {
    let mut world = world(1);
    let (lease, _) = world.begin();
    let query = world.within(lease, "work 10000000");
    let waiting = world.within(lease, "work 1");
    world.run(10 * MILLI);
    world.release(lease);
    assert_eq!((world.end_of(query), world.end_of(waiting)), (QueryEnd::Cancelled, QueryEnd::Cancelled));
    world.run(10 * MILLI);
    assert_eq!(states(&world), [SlotState::Idle]);
    assert_eq!(world.server.seen.last().unwrap(), "ROLLBACK");
    let late = world.within(lease, "work 1");
    assert_eq!(failure(&world.end_of(late)).0, FailureKind::NoTransaction);
}

#[test]
fn whoever_comes_back_to_a_transaction_that_was_lost_meanwhile_is_told_so() {
    let mut world = world(1);
    let (lease, begin) = world.begin();
    world.end_of(begin);
    world.server.restart(true);
    world.run(10 * MILLI);
    let late = world.within(lease, "work 1");
    assert_eq!(failure(&world.end_of(late)).0, FailureKind::Lost);
    let later = world.within(lease, "work 1");
    assert_eq!(failure(&world.end_of(later)).0, FailureKind::NoTransaction);
    assert!(world.pool.is_at_peace());
}

#[test]
fn a_cancelled_begin_is_rolled_back() {
    let mut world = world(1);
    let (lease, begin) = world.begin();
    world.run(Duration::from_micros(120));
    world.cancel(begin);
    assert_eq!(world.end_of(begin), QueryEnd::Cancelled);
    let late = world.within(lease, "work 1");
    assert_eq!(failure(&world.end_of(late)).0, FailureKind::NoTransaction);
    world.run(10 * MILLI);
    assert_eq!(states(&world), [SlotState::Idle]);
    assert_eq!(world.server.seen, ["BEGIN", "ROLLBACK"]);
}

#[test]
fn whoever_leaves_the_queue_never_touches_the_database() {
    let mut world = world(1);
    let running = world.submit("work 50000");
    world.run(MILLI);
    let queued = world.submit("work 1");
    world.cancel(queued);
    assert_eq!(world.end_of(queued), QueryEnd::Cancelled);
    assert!(is_completed(&world.end_of(running)));
    world.run(100 * MILLI);
    assert_eq!(world.server.seen.len(), 1);
    assert!(!world.started.contains(&queued));
}

#[test]
fn a_statement_that_hears_no_cancel_is_terminated() {
    let mut world = world(1);
    let query = world.submit("stuck 60000000");
    world.run(10 * MILLI);
    world.cancel(query);
    assert_eq!(failure(&world.end_of(query)), (FailureKind::Lost, Certainty::Unknown));
    let next = world.submit("work 1");
    assert!(is_completed(&world.end_of(next)));
    let counts = world.pool.status(world.now).counts;
    assert_eq!((counts.terminated, counts.strays), (1, 0));
    assert!(counts.cancels_repeated > 5);
}

#[test]
fn a_thousand_that_leave_at_once_are_one_statement_of_the_canceller() {
    let mut world = world(20);
    let queries: Vec<_> = (0..1000).map(|_| world.submit("work 10000000")).collect();
    world.run(100 * MILLI);
    for query in &queries {
        world.cancel(*query);
    }
    world.run(100 * MILLI);
    assert!(queries.iter().all(|query| world.ended[query] == QueryEnd::Cancelled));
    assert_eq!((world.server.cancel_statements, world.server.cancel_signals), (1, 20));
    assert_eq!(states(&world), [SlotState::Idle; 20]);
}

#[test]
fn a_commit_is_never_cancelled() {
    let mut world = world(1);
    let (lease, _) = world.begin();
    let query = world.within(lease, "work 1");
    world.end_of(query);
    let commit = world.finish(lease, true);
    let line = *world.links.keys().next().unwrap();
    world.turn();
    world.link(line).up.is_held = true;
    world.cancel(commit);
    world.release(lease);
    world.run(500 * MILLI);
    world.link(line).up.is_held = false;
    assert!(is_completed(&world.end_of(commit)));
    assert_eq!(world.server.cancel_statements, 0);
    assert_eq!(world.pool.status(world.now).counts.cancels_late, 1);
}

#[test]
fn a_commit_that_was_not_sent_goes_with_its_transaction_and_that_is_told() {
    let mut world = world(1);
    let (lease, begin) = world.begin();
    world.end_of(begin);
    let running = world.within(lease, "work 10000000");
    let commit = world.finish(lease, true);
    world.run(10 * MILLI);
    world.cancel(commit);
    assert!(!world.ended.contains_key(&commit));
    world.release(lease);
    assert_eq!((world.end_of(commit), world.end_of(running)), (QueryEnd::Cancelled, QueryEnd::Cancelled));
    world.run(10 * MILLI);
    assert!(!world.server.seen.contains(&"COMMIT".into()));
    assert_eq!(world.server.seen.last().unwrap(), "ROLLBACK");
}

#[test]
fn of_a_commit_that_never_left_it_is_known_that_it_did_not_happen() {
    let mut world = world(1);
    let (lease, begin) = world.begin();
    world.end_of(begin);
    let commit = world.finish(lease, true);
    let line = *world.links.keys().next().unwrap();
    world.pool.lost(world.now, line, crate::line::Loss::Broken("cut".into()));
    assert_eq!(failure(&world.end_of(commit)), (FailureKind::Lost, Certainty::NotDone));
}

#[test]
fn without_a_canceller_a_request_does() {
    let mut world = world(1);
    let canceller = world.pool.canceller_line().unwrap();
    let query = world.submit("work 10000000");
    world.run(10 * MILLI);
    world.pool.lost(world.now, canceller, crate::line::Loss::Closed);
    world.cancel(query);
    assert_eq!(world.end_of(query), QueryEnd::Cancelled);
    let next = world.submit("work 1");
    assert!(is_completed(&world.end_of(next)));
    let counts = world.pool.status(world.now).counts;
    assert_eq!((counts.connects, counts.cancels_sent), (1, 1));
}

#[test]
fn a_restart_fails_what_runs_and_keeps_what_waits() {
    let mut world = world(1);
    let running = world.submit("work 10000000");
    let waiting = world.submit("work 1");
    world.run(10 * MILLI);
    world.server.restart(true);
    assert_eq!(failure(&world.end_of(running)), (FailureKind::Lost, Certainty::NotDone));
    assert!(is_completed(&world.end_of(waiting)));
    let running = world.submit("work 10000000");
    world.run(10 * MILLI);
    world.server.restart(false);
    assert_eq!(failure(&world.end_of(running)), (FailureKind::Lost, Certainty::Unknown));
}

#[test]
fn what_is_lost_before_its_commit_was_sent_has_changed_nothing() {
    let mut world = world(1);
    let (lease, begin) = world.begin();
    world.end_of(begin);
    let (running, commit) = (world.within(lease, "work 10000000"), world.finish(lease, true));
    world.run(10 * MILLI);
    world.server.restart(false);
    assert_eq!(failure(&world.end_of(running)), (FailureKind::Lost, Certainty::NotDone));
    assert_eq!(failure(&world.end_of(commit)), (FailureKind::Lost, Certainty::NotDone));

    let (lease, begin) = world.begin();
    world.end_of(begin);
    let stuck = world.within(lease, "stuck 60000000");
    world.run(10 * MILLI);
    world.cancel(stuck);
    assert_eq!(failure(&world.end_of(stuck)), (FailureKind::Lost, Certainty::NotDone));

    let (lease, begin) = world.begin();
    world.end_of(begin);
    let own = world.within(lease, "commit work 10000000");
    world.run(10 * MILLI);
    world.server.restart(false);
    assert_eq!(failure(&world.end_of(own)), (FailureKind::Lost, Certainty::Unknown), "a COMMIT of its own");
}

#[test]
fn a_database_that_stays_away_fails_those_who_wait() {
    let mut world = World::new(2, 1);
    world.server.is_down = true;
    let query = world.submit("work 1");
    world.run(4000 * MILLI);
    assert!(!world.ended.contains_key(&query));
    assert_eq!(failure(&world.end_of(query)).0, FailureKind::Unreachable);
    let next = world.submit("work 1");
    assert_eq!(failure(&world.end_of(next)).0, FailureKind::Unreachable);
    world.server.is_down = false;
    world.run(6000 * MILLI);
    let next = world.submit("work 1");
    assert!(is_completed(&world.end_of(next)));
}

#[test]
fn the_end_cancels_what_runs_and_closes_everything() {
    let mut world = world(3);
    let (lease, begin) = world.begin();
    world.end_of(begin);
    let queries: Vec<_> = (0..5).map(|_| world.submit("work 10000000")).collect();
    world.run(10 * MILLI);
    world.cancelled.extend(queries.iter().copied());
    world.pool.end(world.now);
    world.run(100 * MILLI);
    assert!(queries.iter().all(|query| world.ended[query] == QueryEnd::Cancelled));
    assert!(world.pool.is_ended() && world.server.processes.is_empty());
    let late = world.within(lease, "work 1");
    world.cancelled.insert(late);
    assert_eq!(world.end_of(late), QueryEnd::Cancelled);
}

#[test]
#[should_panic(expected = "a stray is counted")]
fn a_stray_is_counted_in_whatever_language_the_server_speaks() {
    let mut world = world(1);
    world.server.cancel_words = "storniere Anfrage wegen Benutzeraufforderung";
    let query = world.submit("work 10000000");
    world.run(10 * MILLI);
    world.cancel(query);
    assert_eq!(world.end_of(query), QueryEnd::Cancelled);
    let next = world.submit("work 10000000");
    world.run(10 * MILLI);
    world.cancelled.insert(next);
    world.server.signal(*world.server.processes.keys().next().unwrap());
    world.end_of(next);
}

#[test]
fn of_connections_that_nobody_uses_one_stays() {
    let mut world = world(3);
    let queries: Vec<_> = (0..3).map(|_| world.submit("work 100000")).collect();
    assert!(queries.iter().all(|query| is_completed(&world.end_of(*query))));
    assert_eq!(states(&world), [SlotState::Idle; 3]);
    world.run(Duration::from_secs(1300));
    assert_eq!(states(&world), [SlotState::Idle]);
}

#[test]
fn whoever_comes_to_a_full_queue_is_told_at_once() {
    let mut world = world(1);
    world.submit("work 10000000");
    world.run(MILLI);
    let queries: Vec<_> = (0..2001).map(|_| world.submit("work 1")).collect();
    world.turn();
    assert!(!world.ended.contains_key(&queries[1999]));
    assert_eq!(failure(&world.ended[&queries[2000]]), (FailureKind::QueueFull, Certainty::NotDone));
}

/// A transaction with a statement that is prepared on its connection. Returns how it ended.
fn in_transaction(world: &mut World) -> QueryEnd {
    let (lease, begin) = world.begin();
    assert!(is_completed(&world.end_of(begin)));
    let query = world.common(lease);
    let end = world.end_of(query);
    let last = world.finish(lease, is_completed(&end));
    world.end_of(last);
    world.release(lease);
    end
}

#[test]
fn of_all_transactions_one_fails_when_a_table_is_changed_under_their_statements() {
    let mut world = world(2);
    let both = [world.begin(), world.begin()];
    for (lease, begin) in both {
        assert!(is_completed(&world.end_of(begin)));
        let query = world.common(lease);
        assert!(is_completed(&world.end_of(query)));
    }
    for (lease, _) in both {
        let commit = world.finish(lease, true);
        assert!(is_completed(&world.end_of(commit)));
    }
    world.server.processes.values_mut().for_each(|process| process.is_altered = !process.prepared.is_empty());
    assert_eq!(failure(&in_transaction(&mut world)), (FailureKind::Refused, Certainty::NotDone));
    let both = [world.begin(), world.begin()];
    for (lease, begin) in both {
        assert!(is_completed(&world.end_of(begin)));
        let query = world.common(lease);
        assert!(is_completed(&world.end_of(query)), "its connection has forgotten what is stale, whichever it is");
    }
}

#[test]
fn a_statement_that_the_server_has_forgotten_fails_one_transaction() {
    let mut world = world(1);
    assert!(is_completed(&in_transaction(&mut world)));
    world.server.processes.values_mut().for_each(|process| process.prepared.retain(|name, _| name != "s1"));
    assert_eq!(failure(&in_transaction(&mut world)), (FailureKind::Refused, Certainty::NotDone));
    assert!(is_completed(&in_transaction(&mut world)));
}

fn reach(world: &World) -> Availability {
    world.pool.status(world.now).reach
}

#[test]
fn a_slow_statement_is_no_outage() {
    let mut world = world(1);
    world.submit("work 1000000000");
    for _ in 0..60 {
        world.run(1000 * MILLI);
        assert_eq!(reach(&world), Availability::Up);
    }
}

#[test]
fn a_database_that_stands_still_while_something_is_asked_is_down_until_it_goes_on() {
    for seconds in [1, 20] {
        let mut world = world(1);
        let query = world.submit("work 1000000");
        world.run(100 * MILLI);
        world.server.is_still = true;
        world.run(3500 * MILLI);
        assert_eq!(reach(&world), Availability::Up, "it may only be slow");
        world.run(2000 * MILLI);
        assert!(matches!(reach(&world), Availability::Down { .. }));
        world.run(seconds * 1000 * MILLI);
        assert!(matches!(reach(&world), Availability::Down { .. }));
        world.server.is_still = false;
        assert!(is_completed(&world.end_of(query)));
        world.run(100 * MILLI);
        assert_eq!(reach(&world), Availability::Up);
    }
}

#[test]
fn while_we_stood_still_nobody_was_silent() {
    // Around the times at which it is probed, and at which the probe times out.
    for step in 0..240 {
        let mut world = world(1);
        world.delay = 20 * MILLI;
        let query = world.submit("work 40000000");
        world.run(step * 20 * MILLI);
        let before = world.pool.status(world.now).counts;
        world.stand_still(Duration::from_secs(10));
        assert_eq!(reach(&world), Availability::Up, "what has come is not read yet, step {step}");
        world.run(3000 * MILLI);
        assert_eq!(reach(&world), Availability::Up, "step {step}");
        let now = world.pool.status(world.now).counts;
        assert_eq!((now.connects_failed, now.terminated), (0, 0), "step {step}");
        assert!(now.connects <= before.connects.max(1), "step {step}: nothing is dialled again");
        assert!(is_completed(&world.end_of(query)));
    }
}

#[test]
fn a_dial_does_not_fail_while_we_stand_still() {
    for step in 0..30 {
        let mut world = world(2);
        world.delay = 50 * MILLI;
        let queries = [world.submit("work 10"), world.submit("work 10")];
        world.run(step * 10 * MILLI);
        world.stand_still(2 * CONNECT_TIMEOUT);
        assert!(queries.iter().all(|query| is_completed(&world.end_of(*query))), "step {step}");
        assert_eq!(world.pool.status(world.now).counts.connects_failed, 0, "step {step}");
    }
}

#[test]
fn a_database_that_stood_still_with_us_has_a_moment_to_answer() {
    let mut world = world(1);
    world.delay = 20 * MILLI;
    let query = world.submit("work 1000000");
    world.run(100 * MILLI);
    world.server.is_still = true;
    world.stand_still(Duration::from_secs(10));
    world.run(100 * MILLI);
    world.server.is_still = false;
    world.run(1000 * MILLI);
    assert_eq!(reach(&world), Availability::Up);
    assert!(is_completed(&world.end_of(query)));
}

#[test]
fn a_database_that_is_silent_is_found_out_though_each_turn_comes_late() {
    let mut world = world(1);
    world.submit("work 1000000");
    world.run(100 * MILLI);
    world.server.is_still = true;
    let late = (0..60).take_while(|_| {
        world.stand_still(1300 * MILLI);
        world.turn();
        reach(&world) == Availability::Up
    });
    assert!(late.count() < 30, "time that nobody had does not count, but all of it does not go on for ever");
}

#[test]
fn a_server_that_speaks_out_of_turn_has_lost_its_connection() {
    let farewell: &[u8] = b"E\0\0\0\x24SFATAL\0C57P01\0Mterminating now\0\0";
    for said in [&b"Z\0\0\0\x05I"[..], b"D\0\0\0\x06\0\0", b"C\0\0\0\x0dSELECT 1\0", farewell] {
        let mut world = world(1);
        let query = world.submit("work 1");
        assert!(is_completed(&world.end_of(query)));
        let line = *world.links.keys().next().unwrap();
        world.pool.received(world.now, line, &mut BytesMut::from(said));
        let next = world.submit("work 1");
        assert!(is_completed(&world.end_of(next)));
        let counts = world.pool.status(world.now).counts;
        assert_eq!(counts.connects, 2, "what it says next could be taken for another's answer: {said:?}");
    }
}

#[test]
fn a_connection_that_tells_of_a_changed_setting_is_nobody_elses() {
    let mut world = world(1);
    let query = world.submit("work 100000");
    world.run(10 * MILLI);
    let line = *world.links.keys().next().unwrap();
    world.pool.received(world.now, line, &mut BytesMut::from(&b"S\0\0\0\x11TimeZone\0JST\0"[..]));
    assert!(is_completed(&world.end_of(query)), "it is its own statement that has changed it");
    let next = world.submit("work 1");
    assert!(is_completed(&world.end_of(next)));
    assert_eq!(world.pool.status(world.now).counts.connects, 2);
}
