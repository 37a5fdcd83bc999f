//! Files as answers: a request waits for its file to be sent, and nobody works meanwhile.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use script::check;

const PARKED: &str = "ready:1 arrive:a park:a:file:-:answer";

#[test]
fn the_worker_is_free_while_a_file_is_sent() {
    check(PARKED, "keep:a sendfile:a");
    check(&format!("{PARKED} filebegan:a"), "");
    check(&format!("{PARKED} filebegan:a filesent:a"), "end:a stopfile:a done:a");
    check(&format!("{PARKED} filesent:a"), "end:a stopfile:a done:a");
}

#[test]
fn a_file_that_cannot_be_sent_is_an_error_or_a_broken_answer() {
    check(&format!("{PARKED} nofile:a"), "stopfile:a refuse:a:FileMissing done:a");
    check(&format!("{PARKED} filebegan:a filebroken:a"), "abort:a stopfile:a done:a");
}

#[test]
fn a_client_that_leaves_stops_its_file() {
    check(&format!("{PARKED} left:a"), "stopfile:a cancelled:a:ClientLeft");
    check(&format!("{PARKED} filebegan:a left:a"), "stopfile:a cancelled:a:ClientLeft");
}

#[test]
fn the_deadline_is_for_the_beginning() {
    check(&format!("{PARKED} wait:3600s"), "stopfile:a refuse:a:DeadlinePassed cancelled:a:Deadline");
    check(&format!("{PARKED} filebegan:a wait:3600s"), "");
}

#[test]
fn an_operator_breaks_a_file_off() {
    check(&format!("{PARKED} operator:a"), "stopfile:a refuse:a:CancelledByOperator cancelled:a:Operator");
    check(&format!("{PARKED} filebegan:a operator:a"), "stopfile:a abort:a cancelled:a:Operator");
}

#[test]
fn a_file_is_nothing_to_go_on_with() {
    check("ready:1 arrive:a park:a:file:-:call", "keep:a refuse:a:BadAnswer done:a");
}
