//! Requests that have become WebSockets: their ends, their credit, and what a stop or a reload means for them.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use std::time::Duration;

use parkade_core::{Config, State};
use script::{Script, check_quietly, check_with, quiet};

const OPEN: &str = "ready:1:concurrent arrive:a:/async accept:a";

fn open(events: &str, effects: &str) {
    check_quietly(&format!("{OPEN} {events}"), effects);
}

#[test]
fn a_request_becomes_a_websocket_and_has_no_deadline_any_more() {
    check_quietly(OPEN, "socket:a");
    open("wait:3600s", "");
}

#[test]
fn a_second_response_is_not_heard() {
    for frame in ["accept:a", "begin:a", "answer:a"] {
        open(frame, "");
    }
}

#[test]
fn the_worker_closes_it() {
    open("end:a", "done:a");
}

#[test]
fn the_client_closes_it_and_the_code_goes_on_to_its_end() {
    open("closed:a", "");
    open("closed:a end:a", "done:a");
    open("closed:a error:a", "done:a");
}

#[test]
fn code_that_does_not_end_after_its_client_has_a_deadline_again() {
    open("wait:60s closed:a wait:9s", "");
    open("wait:60s closed:a wait:10s", "recall:a:1:Deadline ping:1 cancelled:a:Deadline");
}

#[test]
fn a_connection_that_breaks_cancels_the_code() {
    open("left:a", "recall:a:1:ClientLeft cancelled:a:ClientLeft");
    open("left:a end:a", "");
}

#[test]
fn a_client_is_told_why_it_ends() {
    open("error:a", "close:a:ApplicationFailed done:a");
    open("error:a:overloaded", "close:a:WorkerOverloaded done:a");
    open("exited:1", "close:a:WorkerDied cancelled:a:WorkerDied start:2");
    open("operator:a", "close:a:CancelledByOperator recall:a:1:Operator cancelled:a:Operator");
    open("park:a:timer:2s:answer", "close:a:BadAnswer done:a");
}

#[test]
fn a_client_that_has_closed_it_is_told_nothing() {
    open("closed:a exited:1", "cancelled:a:WorkerDied start:2");
    open("closed:a operator:a", "recall:a:1:Operator cancelled:a:Operator");
}

#[test]
fn what_is_no_websocket_is_not_closed_as_one() {
    for begun in ["", "begin:a"] {
        check_quietly(&format!("ready:1:concurrent arrive:a:/async {begun} closed:a"), "");
    }
    open("closed:a closed:a", "");
}

#[test]
fn a_stop_closes_those_that_their_applications_leave_open() {
    open("drain:30s", "stop_accepting drain:1:30s");
    open("drain:30s wait:2999ms", "");
    open("drain:30s wait:3s", "close:a:Stopping tellclose:a:1:Stopping");
    open("drain:30s wait:3s end:a", "done:a dismiss:1");
    open("drain:30s end:a", "done:a dismiss:1");
}

#[test]
fn code_that_ignores_the_end_of_its_websocket_is_cancelled_with_the_grace() {
    open("drain:5s wait:1s wait:4s", "recall:a:1:Stopping cancelled:a:Stopping kill:1:GraceOver");
}

#[test]
fn a_stop_without_a_grace_closes_at_once() {
    open(
        "drain:0",
        "stop_accepting drain:1:0s close:a:Stopping tellclose:a:1:Stopping recall:a:1:Stopping cancelled:a:Stopping kill:1:GraceOver",
    );
}

#[test]
fn a_reload_leaves_them_with_the_old_worker_for_most_of_its_grace() {
    open("reload ready:2:concurrent wait:26s", "");
    open("reload ready:2:concurrent wait:27s", "close:a:Stopping tellclose:a:1:Stopping");
    open("reload ready:2:concurrent wait:27s end:a", "done:a dismiss:1");
}

/// Workers cancel coroutines a second before the end, or a quarter of a shorter grace.
#[test]
fn a_short_grace_of_a_reload_leaves_time_between_the_close_and_the_cancelling() {
    let close = "close:a:Stopping tellclose:a:1:Stopping";
    for (grace, at) in [(20_000, 18_000), (10_000, 8_000), (4_000, 2_000), (1_000, 500)] {
        let config = Config { reload_grace: Duration::from_millis(grace), ..quiet() };
        let reloaded = format!("{OPEN} reload ready:2:concurrent");
        check_with(config.clone(), &format!("{reloaded} wait:{}ms", at - 1), "");
        check_with(config, &format!("{reloaded} wait:{at}ms"), close);
    }
}

#[test]
fn one_that_is_accepted_too_late_is_closed_at_once() {
    let late = "ready:1:concurrent arrive:a:/async drain:30s wait:4s accept:a";
    check_quietly(late, "socket:a close:a:Stopping tellclose:a:1:Stopping");
}

#[test]
fn one_that_is_open_takes_no_credit() {
    let first = "ready:1:concurrent:1 arrive:a:/async accept:a arrive:b:/async";
    check_quietly(first, "assign:b:1");
    check_quietly(&format!("{first} arrive:c:/async"), "");
    check_quietly(&format!("{first} arrive:c:/async end:a"), "done:a");
    check_quietly(&format!("{first} arrive:c:/async closed:a left:a end:a"), "");
    check_quietly(&format!("{first} arrive:c:/async end:b"), "");
    check_quietly(&format!("{first} arrive:c:/async answer:b"), "relay:b done:b assign:c:1");
}

#[test]
fn a_long_life_of_one_says_nothing_about_how_long_others_are_queued() {
    let mut script = Script::run(quiet(), "ready:1:concurrent:1 arrive:a:/async accept:a wait:5000s end:a");
    script.go_on("arrive:b:/async arrive:c:/async");
    assert_eq!(script.state("c"), Some(State::Routed), "not refused");
}
