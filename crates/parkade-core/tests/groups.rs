//! Several waits as one, while no worker has the request. The words are explained in `script`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use parkade_core::Config;
use script::{Script, check_quietly as check, check_with, of_jobs, quiet};

/// A request that waits for two things, while its worker is free.
const ALL: &str = "ready:1 arrive:a park:a:all:2:call";
const FIRST: &str = "ready:1 arrive:a park:a:first:2:call";
const BOTH: &str = "join:a:b:timer:1s join:a:c:next:bids";
const GONE: &str = "cancelled:b:ClientLeft cancelled:c:ClientLeft";

#[test]
fn all_of_goes_on_when_all_are_over() {
    check(ALL, "keep:a");
    check(&format!("{ALL} {BOTH}"), "");
    check(&format!("{ALL} {BOTH} publish:bids"), "done:c");
    check(&format!("{ALL} {BOTH} publish:bids wait:1s"), "done:b call:a:1:[0=elapsed,1=m1]");
    check(&format!("{ALL} {BOTH} wait:1s publish:bids"), "done:c call:a:1:[0=elapsed,1=m1]");
    check(&format!("{ALL} {BOTH} wait:1s publish:bids answer:a"), "relay:a done:a");
    let messages_held = |events: &str| {
        let script = Script::run(quiet(), events);
        script.core.status(script.now).messages_held
    };
    let alone = "ready:1 arrive:a park:a:next:bids:call publish:bids answer:a";
    assert_eq!(messages_held(&format!("{ALL} {BOTH} wait:1s publish:bids answer:a")), messages_held(alone));
}

#[test]
fn first_of_goes_on_when_one_is_over_and_the_others_end() {
    check(&format!("{FIRST} {BOTH} publish:bids"), "done:c cancelled:b:ClientLeft call:a:1:[1=m1]");
    check(&format!("{FIRST} {BOTH} wait:1s"), "done:b cancelled:c:ClientLeft call:a:1:[0=elapsed]");
    check(&format!("{FIRST} {BOTH} wait:1s publish:bids"), "");
    check(&format!("{FIRST} join:a:b:query:alone join:a:c:timer:1s wait:1s"), {
        "done:c cancelquery:a cancelled:b:ClientLeft call:a:1:[1=elapsed]"
    });
}

#[test]
fn what_is_over_at_once_counts() {
    check("ready:1 arrive:a park:a:all:0:call", "keep:a call:a:1:[]");
    check("ready:1 arrive:a park:a:all:1:call join:a:b:history:bids", "hold1:1.0: done:b call:a:1:[0=history1]");
    check(&format!("{FIRST} join:a:b:history:bids join:a:c:timer:1s"), "done:c");
}

#[test]
fn the_first_failure_ends_both() {
    for group in [ALL, FIRST] {
        let queries = format!("{group} join:a:b:query:alone join:a:c:query:alone");
        check(&queries, "query:a2:collect");
        check(
            &format!("{queries} failed:a2"),
            "done:c cancelquery:a cancelled:b:ClientLeft told:a@a2 done:a dropresult:a2",
        );
        check(&format!("{queries} failed:a2 failed:a"), "dropresult:a");
        check(&format!("{queries} cancelquery:a2"), "cancelquery:a2");
        let told = "done:c cancelquery:a cancelled:b:ClientLeft";
        check(
            &format!("{queries} cancelquery:a2 failed:a2"),
            &format!("{told} told:a@a2:Operator cancelled:a:Operator dropresult:a2"),
        );
    }
}

#[test]
fn whoever_ends_the_request_ends_its_waits() {
    for group in [ALL, FIRST] {
        let both = format!("{group} {BOTH}");
        check(&format!("{both} left:a"), &format!("{GONE} cancelled:a:ClientLeft"));
        let ended = "refuse:a:CancelledByOperator cancelled:b:Operator cancelled:c:Operator cancelled:a:Operator";
        check(&format!("{both} operator:a"), ended);
        check(&format!("{both} operator:b"), ended);
    }
}

#[test]
fn the_worker_may_die_meanwhile() {
    check(&format!("{ALL} {BOTH} publish:bids exited:1 ready:2 wait:1s"), "done:b call:a:2:[0=elapsed,1=m1]");
}

#[test]
fn a_drain_ends_what_may_last_for_ever() {
    check(&format!("{ALL} {BOTH} drain:30s"), "stop_accepting drain:1:30s done:c");
    check(&format!("{ALL} {BOTH} drain:30s wait:1s"), "done:b call:a:1:[0=elapsed,1=timed_out]");
    let ended = "refuse:a:Stopping cancelled:b:Stopping cancelled:a:Stopping dismiss:1";
    check(&format!("{ALL} {BOTH} drain:500ms wait:500ms"), ended);
}

#[test]
fn a_drain_ends_one_group_of_a_request_early() {
    let members = "join:a:{}:next:bids join:a:{}:next:bids";
    let two = |first: &str, second: &str| members.replacen("{}", first, 1).replacen("{}", second, 1);
    let early = format!("ready:1 arrive:a drain:30s park:a:all:2:call {}", two("b", "c"));
    check(&early, "done:c call:a:1:[0=timed_out,1=timed_out]");
    check(&format!("{early} park:a:all:2:call {}", two("d", "e")), "");
}

#[test]
fn a_group_is_refused_where_nothing_could_follow() {
    for then in ["answer", "await"] {
        let told = Script::run(quiet(), &format!("ready:1:concurrent arrive:a:/async park:a:all:2:{then}")).told;
        assert!(told.join(" ").contains("BadAnswer"), "{told:?}");
    }
    check("ready:1 arrive:a join:a:b:timer:1s", "done:b");
    check(&format!("{ALL} {BOTH} join:a:d:timer:1s"), "done:d");
}

#[test]
fn no_more_are_parked_than_may() {
    let config = Config { parked_count_max: 2, ..quiet() };
    check_with(config, &format!("{ALL} {BOTH}"), "done:c cancelled:b:ClientLeft refuse:a:ParkedFull done:a");
}

#[test]
fn a_job_waits_for_several_things_too() {
    let run = "ready:1 jobs claimed:r park:r:all:2:call join:r:b:timer:1s join:r:c:timer:2s";
    check_with(of_jobs(1), &format!("{run} wait:1s wait:1s"), "done:c call:r:1:[0=elapsed,1=elapsed]");
    check_with(of_jobs(1), &format!("{run} stop:r"), {
        "cancelled:b:Operator cancelled:c:Operator verdict:r:cancelled cancelled:r:Operator"
    });
}
