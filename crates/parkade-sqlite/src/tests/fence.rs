//! No interrupt hits a query that was not cancelled. A control test shows that these tests would notice.

use std::collections::HashSet;
use std::time::Instant;

use parkade_sql::QueryEnd;

use super::owner::{ENDLESS, Heard, Owner, options};
use crate::Options;
use crate::scheduler::ThreadSlot;

/// Takes some tens of microseconds: cancels hit it before, during and after its run.
const SHORT: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300) SELECT count(*) FROM n";

/// Takes some tens of milliseconds: cancels hit it while it runs, even if the thread and the test share one processor.
const LONG: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300000) SELECT count(*) FROM n";

/// Observes a busy thread this many times, and cancels its query after a random delay. Returns how many of the other
/// queries were hit.
fn strays(looks: usize, owner: &mut Owner) -> usize {
    let mut waiting = vec![owner.ask(SHORT)];
    owner.end(waiting[0]);
    let mut cancelled = HashSet::new();
    for _ in 0..looks {
        waiting.retain(|query| owner.heard.get(query).is_none_or(|heard| heard.end.is_none()));
        while waiting.len() < 4 {
            waiting.push(owner.ask(if fastrand::u8(..10) == 0 { LONG } else { SHORT }));
        }
        let running = owner.database.status(Instant::now()).slots[1].query;
        if let Some(query) = running {
            pause(fastrand::usize(..1000));
            cancelled.insert(query);
            owner.cancel(query);
        }
        // Waits instead of spinning, which would take the CPU away from the thread.
        owner.end(running.unwrap_or(waiting[0]));
    }
    for query in waiting {
        owner.end(query);
    }
    let is_hit = |heard: &Heard| !matches!(heard.end, Some(QueryEnd::Completed(_)));
    owner.heard.iter().filter(|(query, heard)| !cancelled.contains(query) && is_hit(heard)).count()
}

fn pause(turns: usize) {
    for _ in 0..turns {
        std::hint::spin_loop();
    }
}

#[test]
fn a_cancel_never_hits_another_query() {
    let mut owner = Owner::new(Options { readers: 1, ..options() });
    assert_eq!(strays(3_000, &mut owner), 0);
    let counts = owner.database.status(Instant::now()).counts;
    assert_eq!(counts.strays, 0);
    assert!(counts.cancels_sent > 0, "no cancel met its query while it ran");
}

/// A cancel without the lock: it finds out where its query runs, and interrupts whatever runs there a moment later.
#[test]
fn without_the_fence_a_cancel_hits_others() {
    let mut owner = Owner::new(Options { readers: 1, ..options() });
    let query = owner.ask(ENDLESS);
    owner.until_started(query);
    let runs_it = |slot: &&ThreadSlot| slot.query() == Some(query);
    let handle =
        owner.database.shared().change(|scheduler| scheduler.slots().find(runs_it)?.interrupt_handle()).unwrap();
    owner.cancel(query);
    owner.end(query);

    let another = owner.ask(ENDLESS);
    owner.until_started(another);
    // An interrupt before the statement's first step is ignored.
    owner.until(|owner| {
        handle.interrupt();
        owner.heard[&another].end.is_some()
    });
    assert!(!matches!(owner.end(another), QueryEnd::Completed(_)));
}
