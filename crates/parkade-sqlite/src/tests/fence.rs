//! No interrupt hits a query that was not cancelled; and these tests would notice.

use std::cell::Cell;
use std::collections::HashSet;
use std::time::Instant;

use parkade_sql::{End, QueryId};

use super::owner::{Heard, Owner, options};
use crate::Options;
use crate::board::Slot;

/// Some tens of microseconds: cancels meet it before, in and behind its run.
const SHORT: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300) SELECT count(*) FROM n";

/// Keeps four queries with one thread and cancels one in two, after a random while. Returns how many of the others were hit.
fn strays(rounds: usize, cancel: impl Fn(&mut Owner, QueryId)) -> usize {
    let mut owner = Owner::new(Options { readers: 1, ..options() });
    let mut cancelled = HashSet::new();
    for _ in 0..rounds {
        let batch: Vec<_> = (0..4).map(|_| owner.ask(SHORT)).collect();
        for query in &batch {
            pause(fastrand::usize(..2000));
            if fastrand::bool() {
                cancelled.insert(*query);
                cancel(&mut owner, *query);
            }
        }
        for query in batch {
            owner.end(query);
        }
    }
    let is_hit = |heard: &Heard| !matches!(heard.end, Some(End::Completed(_)));
    owner.heard.iter().filter(|(query, heard)| !cancelled.contains(query) && is_hit(heard)).count()
}

fn pause(turns: usize) {
    for _ in 0..turns {
        std::hint::spin_loop();
    }
}

#[test]
fn a_cancel_never_hits_another_query() {
    let sent = Cell::new(0);
    let hits = strays(3_000, |owner, query| {
        owner.cancel(query);
        let counts = owner.database.status(Instant::now()).counts;
        assert_eq!(counts.strays, 0);
        sent.set(counts.cancels_sent);
    });
    assert_eq!(hits, 0);
    assert!(sent.get() > 300, "only {} of the cancels met their query while it ran", sent.get());
}

/// What a cancel would be without the lock: it finds out where the query runs, and interrupts whatever runs there when it gets there.
#[test]
fn without_the_fence_a_cancel_hits_others() {
    let hits = strays(100, |owner, query| {
        let shared = owner.database.shared();
        let is_there = |slot: &&Slot| slot.running.as_ref().is_some_and(|running| running.query == query);
        let find = || shared.change(|board| board.slots.iter().find(is_there).and_then(Slot::interrupt_handle));
        let Some(handle) = find() else { return };
        while find().is_some() {
            std::thread::yield_now();
        }
        pause(fastrand::usize(..2000));
        handle.interrupt();
    });
    assert!(hits > 0);
}
