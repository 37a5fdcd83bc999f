//! What must hold of queries after every step. Promise 3: a query is cancelled when nobody waits for it any more, and only then.

use std::collections::{BTreeMap, BTreeSet};

use parkade_core::{QueryId, QueryWork, Reason, RequestId, Status, Wait};

use crate::model::{Place, Waiting};
use crate::world::World;

/// Who still waits for what was just cancelled must have a reason to.
pub fn sync(world: &mut World) {
    let now = world.model.now;
    let databases = &world.model.databases;
    let cancelled: BTreeSet<QueryId> = databases.cancelled.iter().copied().collect();
    for request in world.model.requests.values_mut() {
        let Place::Waiting(waiting) = &mut request.place else { continue };
        let Some(query) = waiting.asked.query.filter(|query| cancelled.contains(query)) else { continue };
        let work = databases.running[&query].wait.work;
        let closes = matches!(work, QueryWork::Alone | QueryWork::Within | QueryWork::Begin);
        let reasons = [
            (Reason::Operator, databases.operated == Some(query)),
            (Reason::Deadline, waiting.asked.until.is_some_and(|until| until <= now)),
            (Reason::Stopping, closes && world.ticked && databases.is_closed(now)),
        ];
        let reasons: Vec<Reason> = reasons.into_iter().filter(|(_, holds)| *holds).map(|(reason, _)| reason).collect();
        assert!(!reasons.is_empty(), "{query:?} is cancelled, and {waiting:?} waits for it");
        waiting.asked.ending = Some((now, reasons));
    }
}

pub fn check(world: &World, status: &Status) {
    let waiters = waiters(world);
    who_waits_is_known(world, status, &waiters);
    what_nobody_waits_for_is_cancelled(world, &waiters);
    a_key_has_one_execution(world);
    results_are_there_as_long_as_they_are_needed(world, status);
    transactions_end_with_their_requests(world, status, &waiters);
    nothing_new_is_begun_at_the_end(world);
    what_ended_is_told(world, &waiters);
    let nothing_left = world.model.drains && world.model.requests.is_empty() && world.model.processes.is_empty();
    assert!(!nothing_left || !world.model.databases.running.is_empty(), "nothing is left, and it does not end");
}

/// Who waits for which query.
type Waiters<'a> = BTreeMap<QueryId, Vec<(RequestId, &'a Waiting)>>;

fn waiters(world: &World) -> Waiters<'_> {
    let mut waiters = Waiters::new();
    for (id, request) in &world.model.requests {
        let waiting = request.waiting().filter(|waiting| matches!(waiting.wait, Wait::Query(_)));
        let Some(waiting) = waiting else { continue };
        let query = waiting.asked.query.expect("whoever waits for a query has one");
        waiters.entry(query).or_default().push((*id, waiting));
    }
    waiters
}

fn who_waits_is_known(world: &World, status: &Status, waiters: &Waiters) {
    let running = &world.model.databases.running;
    assert_eq!((status.queries_count, world.core.queries().count()), (running.len(), running.len()));
    for (id, query) in running {
        let known = world.core.query(*id).expect("what has not ended is known");
        let told = (known.waiting, known.cancelled, known.database);
        let database = query.lease.and_then(|lease| world.model.databases.leases.get(&lease));
        let database = database.map_or(known.database, |lease| lease.database);
        assert_eq!(told, (waiters.get(id).map_or(0, Vec::len), query.cancelled.is_some(), database), "{query:?}");
        assert_eq!(known.since, query.since);
    }
    let ended = waiters.keys().find(|query| !running.contains_key(query));
    assert!(ended.is_none(), "somebody waits for {ended:?}, which has ended");
}

fn what_nobody_waits_for_is_cancelled(world: &World, waiters: &Waiters) {
    for (id, query) in &world.model.databases.running {
        let Some(waiters) = waiters.get(id) else {
            assert!(query.cancelled.is_some(), "nobody waits for {query:?}, and it runs on");
            continue;
        };
        for (_, waiting) in waiters {
            assert_eq!(waiting.asked.ending.is_some(), query.cancelled.is_some(), "{waiting:?} waits for {query:?}");
        }
    }
}

fn a_key_has_one_execution(world: &World) {
    let databases = &world.model.databases;
    let mut keys = BTreeSet::new();
    let wanted = databases.running.values().filter(|query| query.cancelled.is_none());
    for key in wanted.filter_map(|query| query.wait.shared.as_ref()).map(|sharing| &sharing.key) {
        assert!(keys.insert(key), "two executions for one key");
        assert!(databases.kept.iter().all(|kept| kept.key != *key), "executed, though its result is kept");
    }
}

fn results_are_there_as_long_as_they_are_needed(world: &World, status: &Status) {
    let databases = &world.model.databases;
    let kept = databases.kept.iter().map(|kept| kept.query);
    let of_groups = world.model.group_results.iter().filter(|(id, _)| world.model.requests.contains_key(id));
    let of_groups = of_groups.flat_map(|(_, queries)| queries).copied();
    let held = world.model.requests.values().filter_map(|call| call.holds);
    let needed: BTreeSet<QueryId> = kept.chain(held).chain(of_groups).collect();
    assert_eq!(databases.results, needed, "results that nobody needs, or that somebody lacks");
    assert_eq!(status.results_held, needed.len());
}

fn transactions_end_with_their_requests(world: &World, status: &Status, waiters: &Waiters) {
    let databases = &world.model.databases;
    assert_eq!(status.transactions_count, databases.leases.len());
    for lease in databases.leases.values() {
        assert!(world.model.requests.contains_key(&lease.request), "a transaction of nobody: {lease:?}");
        let begins = waiters.contains_key(&lease.begin);
        assert!(!lease.given_up || begins, "a transaction that nobody knows of: {lease:?}");
    }
    for lease in &databases.released {
        assert!(lease.given_up || !world.model.requests.contains_key(&lease.request), "ended under its request");
    }
}

fn nothing_new_is_begun_at_the_end(world: &World) {
    let databases = &world.model.databases;
    if !databases.is_closed(world.now) {
        return;
    }
    let alone = |work| matches!(work, QueryWork::Alone | QueryWork::Begin);
    let runs = databases.running.values().find(|query| alone(query.wait.work) && query.cancelled.is_none());
    assert!(runs.is_none(), "queries have had their time, and {runs:?} runs on");
}

fn what_ended_is_told(world: &World, waiters: &Waiters) {
    let Some((ended, _)) = &world.model.databases.ended else { return };
    assert!(!waiters.contains_key(&ended.id), "somebody still waits for {ended:?}");
    assert!(world.core.query(ended.id).is_none(), "{ended:?} is not forgotten");
}
