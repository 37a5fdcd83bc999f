//! Where the time of a request goes, told as it leaves each state. The words are explained in `script`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use parkade_core::Config;
use script::{check, check_with, quiet};

fn told(events: &str, effects: &str) {
    check_with(Config { tells_spells: true, ..quiet() }, events, effects);
}

#[test]
fn each_state_that_took_time_is_told() {
    told("ready:1:sync:1 arrive:a wait:5ms answer:a", "relay:a spent:a:Running:5 done:a");
    told(
        "ready:1:sync:1 arrive:a arrive:b wait:7ms answer:a",
        "relay:a spent:a:Running:7 done:a assign:b:1 spent:b:Queued:7",
    );
    told("ready:1 arrive:a wait:3ms park:a:timer:2s:answer", "spent:a:Running:3 keep:a");
    told("ready:1 arrive:a park:a:timer:2s:answer wait:2s", "spent:a:Parked:2000 release:a done:a");
    told("ready:1 arrive:a:/next wait:9ms left:a", "spent:a:Parked:9 cancelled:a:ClientLeft");
}

#[test]
fn a_request_that_a_worker_can_take_at_once_was_not_queued() {
    told("ready:1 arrive:a", "assign:a:1");
}

#[test]
fn a_branch_waits_for_its_request() {
    let branches = "ready:1:concurrent arrive:a:/async park:a:timer:9s:await branch:a:b:timer:2s wait:2s";
    told(branches, "spent:a:Parked:2000 resume:1:elapsed:b done:b");
}

#[test]
fn nothing_is_told_unless_it_is_asked_for() {
    check("ready:1:sync:1 arrive:a wait:5ms answer:a", "relay:a done:a");
}
