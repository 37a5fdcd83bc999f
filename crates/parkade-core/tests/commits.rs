//! Transactions that enqueue jobs: what happens between the COMMIT that is asked for and the one that is sent.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use parkade_core::limits::{TRANSACTION_JOBS_BYTES_MAX, TRANSACTION_JOBS_COUNT_MAX};
use parkade_core::{Config, DatabaseId};
use script::{Script, check, check_with, config};

/// Request a, a coroutine of worker 1, has a transaction that enqueues job x.
const ENQUEUED: &str = "ready:1:concurrent:9 arrive:a:/async park:a:query:begin:await ended:a within:a:x";
const COMMIT: &str = "park:a:query:commit:await";

/// The store of jobs may be in the database of the scripts.
fn shared() -> Config {
    Config { job_databases: vec![DatabaseId(0)], ..config() }
}

fn check_shared(events: &str, effects: &str) {
    check_with(shared(), events, effects);
}

#[test]
fn jobs_are_kept_until_the_commit_and_dropped_with_the_transaction() {
    check(ENQUEUED, "keepjob:a");
    check(&format!("{ENQUEUED} within:a:x"), "");
    check(&format!("{ENQUEUED} within:a:y"), "keepjob:a");
    check(&format!("{ENQUEUED} answer:a"), "relay:a endlease:a dropjobs:a done:a");
    check(&format!("{ENQUEUED} left:a"), "recall:a:1:ClientLeft endlease:a dropjobs:a cancelled:a:ClientLeft");
    check(&format!("{ENQUEUED} park:a:query:rollback:await"), "query:a2:rollback:collect");
    check(&format!("{ENQUEUED} park:a:query:rollback:await ended:a2"), "dropjobs:a resume:1:ended@a2:a dropresult:a2");
}

#[test]
fn elsewhere_they_are_given_to_the_store_after_the_commit() {
    let committing = format!("{ENQUEUED} within:a:y {COMMIT}");
    check(&committing, "willcommit:a2 commit:a2");
    check(&format!("{committing} ended:a2"), "give:a dropjobs:a resume:1:ended@a2:a dropresult:a2");
    check(&format!("{committing} ended:a2 answer:a"), "keep:a");
    check(&format!("{committing} ended:a2 answer:a stored:a stored:a"), "release:a done:a");
    check(&format!("{committing} failed:a2"), "dropjobs:a resume:1:failed@a2:a dropresult:a2");
    check(&format!("{committing} failed:a2 answer:a"), "relay:a done:a");
    check(&format!("{committing} left:a"), "cancelquery:a2 recall:a:1:ClientLeft endlease:a cancelled:a:ClientLeft");
    check(&format!("{committing} left:a ended:a2"), "give:a dropjobs:a dropresult:a2");
    check(&format!("{committing} left:a failed:a2"), "dropjobs:a dropresult:a2");
}

#[test]
fn the_stores_own_database_stores_them_in_the_transaction() {
    let asked = format!("standing:open {ENQUEUED} within:a:y {COMMIT}");
    check_shared(&format!("standing:open {asked}"), "willcommit:a2 probe:a");
    check_shared(&format!("{asked} probed:maybe"), "enqueue:a:x+y");
    check_shared(&format!("{asked} probed:maybe enqueued:x+y"), "commit:a2");
    let stored = "stored:x:x stored:y:y dropjobs:a resume:1:ended@a2:a dropresult:a2";
    check_shared(&format!("{asked} probed:maybe enqueued:x+y ended:a2"), stored);
    check_shared(&format!("{asked} probed:maybe enqueued:x+y ended:a2 answer:a"), "relay:a done:a");
    let known = format!("{asked} probed:maybe enqueued:x+y ended:a2 park:a:query:begin:await ended:a3 within:a:z");
    check_shared(&format!("{known} {COMMIT}"), "willcommit:a4 enqueue:a:z");
}

#[test]
fn a_database_that_has_no_jobs_commits_at_once() {
    let asked = format!("standing:open {ENQUEUED} {COMMIT}");
    check_shared(&format!("{asked} probed:no"), "commit:a2");
    check_shared(&format!("{asked} probed:closed"), "tablesclosed commit:a2");
    check_shared(&format!("{asked} probed:maybe enqueued:elsewhere"), "commit:a2");
    let again = format!("{asked} probed:closed ended:a2 park:a:query:begin:await ended:a3 within:a:z {COMMIT}");
    check_shared(&format!("{again} probed:closed"), "commit:a4");
}

#[test]
fn jobs_with_keys_are_those_that_are_there() {
    let asked = format!("standing:open {ENQUEUED} within:a:y {COMMIT} probed:maybe");
    check_shared(&format!("{asked} enqueued:y"), "findkeys:a:x");
    check_shared(&format!("{asked} enqueued:y lookedup:x=z"), "commit:a2");
    let stored = "stored:x:z stored:y:y dropjobs:a resume:1:ended@a2:a dropresult:a2";
    check_shared(&format!("{asked} enqueued:y lookedup:x=z ended:a2"), stored);
    check_shared(&format!("{asked} enqueued:y lookedup:none"), "enqueue:a:x");
    let thrice = "enqueued:y lookedup:none enqueued:none lookedup:none enqueued:none lookedup:none";
    check_shared(&format!("{asked} {thrice}"), "endlease:a fail:a2:KeysBusy");
}

#[test]
fn a_commit_waits_until_the_store_is_open() {
    let early = format!("{ENQUEUED} {COMMIT}");
    check_shared(&early, "willcommit:a2");
    check_shared(&format!("{early} standing:open"), "probe:a");
    check_shared(&format!("{early} standing:refuses"), "endlease:a fail:a2:StoreRefuses");
    let left = "endlease:a fail:a2:Cancelled recall:a:1:ClientLeft cancelled:a:ClientLeft";
    check_shared(&format!("{early} left:a"), left);
    check_shared(&format!("{early} left:a failed:a2"), "dropjobs:a dropresult:a2");
    check_shared(&format!("{early} standing:open standing:opening notopen"), "");
    check_shared(&format!("{early} standing:open standing:opening notopen standing:open"), "probe:a");
    check_shared(&format!("{early} standing:open standing:opening probed:maybe standing:open"), "probe:a");
}

#[test]
fn what_fails_before_it_is_sent_rolls_back() {
    let asked = format!("standing:open {ENQUEUED} {COMMIT}");
    check_shared(&format!("{asked} broken"), "endlease:a fail:a2:Statement");
    check_shared(&format!("{asked} broken failed:a2"), "dropjobs:a resume:1:failed@a2:a dropresult:a2");
    check_shared(&format!("{asked} probed:maybe broken"), "endlease:a fail:a2:Statement");
    let known =
        format!("{asked} probed:maybe enqueued:x ended:a2 park:a:query:begin:await ended:a3 within:a:z {COMMIT}");
    check_shared(&format!("{known} enqueued:elsewhere"), "endlease:a fail:a4:Rejoining");
}

#[test]
fn one_that_nobody_waits_for_is_not_sent() {
    let asked = format!("standing:open {ENQUEUED} {COMMIT}");
    let left = "cancelstatement:a2 recall:a:1:ClientLeft endlease:a cancelled:a:ClientLeft";
    check_shared(&format!("{asked} left:a"), left);
    check_shared(&format!("{asked} left:a probed:maybe"), "fail:a2:Cancelled");
    check_shared(&format!("{asked} left:a broken"), "fail:a2:Statement");
    check_shared(&format!("{asked} probed:maybe left:a enqueued:x"), "fail:a2:Cancelled");
    check_shared(&format!("{asked} unpark:a"), "cancelstatement:a2 resume:1:unparked:a");
    check_shared(&format!("{asked} unpark:a probed:maybe"), "endlease:a fail:a2:Cancelled");
    check_shared(&format!("{asked} cancelquery:a2"), "");
}

#[test]
fn one_that_is_being_ended_can_only_be_rolled_back() {
    let given_up = format!("standing:open {ENQUEUED} {COMMIT} unpark:a");
    check_shared(&format!("{given_up} {COMMIT}"), "resume:1:NoTransaction:a");
    check_shared(&format!("{given_up} park:a:query:within:await"), "resume:1:NoTransaction:a");
    check_shared(&format!("{given_up} park:a:query:rollback:await"), "query:a3:rollback:collect");
    check_shared(&format!("{given_up} within:a:y"), "notransaction");
    check_shared(&format!("{given_up} within:a:y answer:a"), "refuse:a:StoreUnavailable endlease:a done:a");
}

#[test]
fn without_a_transaction_the_request_fails() {
    let none = "ready:1:concurrent:9 arrive:a:/async within:a:x";
    check(none, "notransaction");
    check(&format!("{none} answer:a"), "refuse:a:StoreUnavailable done:a");
    check("ready:1:concurrent:9 arrive:a:/async answer:a within:a:x", "");
}

#[test]
fn a_transaction_enqueues_no_more_than_it_may() {
    let begun = "ready:1:concurrent:9 arrive:a:/async park:a:query:begin:await ended:a";
    let large = format!("{begun} within:a:x:{TRANSACTION_JOBS_BYTES_MAX}");
    check(&large, "keepjob:a");
    check(&format!("{large} {COMMIT}"), "willcommit:a2 commit:a2");
    check(&format!("{large} within:a:y"), "");
    check(&format!("{large} within:a:y {COMMIT}"), "willcommit:a2 endlease:a fail:a2:TooManyJobs");
    let mut script = Script::run(config(), begun);
    for nth in 0..TRANSACTION_JOBS_COUNT_MAX {
        script.go_on(&format!("within:a:j{nth}"));
        assert_eq!(script.told, ["keepjob:a"]);
    }
    script.go_on("within:a:y");
    assert!(script.told.is_empty(), "{:?}", script.told);
    script.go_on(COMMIT);
    assert_eq!(script.told, ["willcommit:a2", "endlease:a", "fail:a2:TooManyJobs"]);
}
