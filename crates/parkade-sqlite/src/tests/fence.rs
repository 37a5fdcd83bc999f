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

/// Keeps a thread busy and cancels, so many times, what runs there, a random while after it was seen. Returns how many of the others
/// were hit.
fn strays(cancels: usize, cancel: impl Fn(&mut Owner, QueryId)) -> usize {
    let mut owner = Owner::new(Options { readers: 1, ..options() });
    let mut waiting = vec![owner.ask(SHORT)];
    owner.end(waiting[0]);
    let mut cancelled = HashSet::new();
    while cancelled.len() < cancels {
        waiting.retain(|query| owner.heard.get(query).is_none_or(|heard| heard.end.is_none()));
        while waiting.len() < 4 {
            waiting.push(owner.ask(SHORT));
        }
        let running = owner.database.status(Instant::now()).slots[1].query;
        if let Some(query) = running {
            pause(fastrand::usize(..1000));
            cancelled.insert(query);
            cancel(&mut owner, query);
        }
        // Waits instead of turning in circles, which would take the processor away from the thread.
        owner.end(running.unwrap_or(waiting[0]));
    }
    for query in waiting {
        owner.end(query);
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
    let hits = strays(300, |owner, query| {
        let is_there = |slot: &&Slot| slot.running.as_ref().is_some_and(|running| running.query == query);
        let found = owner.database.shared().change(|board| board.slots.iter().find(is_there)?.interrupt_handle());
        let Some(handle) = found else { return };
        owner.end(query);
        pause(fastrand::usize(..1000));
        handle.interrupt();
    });
    assert!(hits > 0);
}
