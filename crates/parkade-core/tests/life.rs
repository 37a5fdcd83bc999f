//! The life of one request: what the last word of a story leads to. The words are explained in `script`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use parkade_core::State;
use script::{Script, check, config};

#[test]
fn a_request_goes_to_an_idle_worker_at_once() {
    check("ready:1 arrive:a", "assign:a:1");
}

#[test]
fn before_the_first_routes_it_waits_for_them() {
    check("arrive:a", "");
    check("arrive:a ready:1", "route:a:1 assign:a:1");
    check("arrive:a ready:1:sync:3:without", "route:a:1 refuse:a:NotFound done:a");
}

#[test]
fn an_answer_ends_it() {
    check("ready:1 arrive:a answer:a", "relay:a done:a");
    check("ready:1 arrive:a begin:a", "begin:a");
    check("ready:1 arrive:a begin:a end:a", "end:a done:a");
}

#[test]
fn an_answer_gives_the_credit_back() {
    check("ready:1:concurrent:1 arrive:a:/async arrive:b:/async", "");
    check("ready:1:concurrent:1 arrive:a:/async arrive:b:/async answer:a", "relay:a done:a assign:b:1");
}

#[test]
fn a_second_answer_changes_nothing() {
    check("ready:1 arrive:a answer:a answer:a", "");
    check("ready:1 arrive:a begin:a answer:a", "");
    check("ready:1 arrive:a end:a", "");
}

#[test]
fn nobody_answers_for_another_worker() {
    check("ready:1 arrive:a answer:a:2", "");
}

#[test]
fn an_error_is_told_while_nothing_was_sent() {
    check("ready:1 arrive:a error:a", "refuse:a:ApplicationFailed done:a");
    check("ready:1 arrive:a error:a:bad", "refuse:a:BadAnswer done:a");
    check("ready:1 arrive:a error:a:overloaded", "refuse:a:WorkerOverloaded done:a");
    check("ready:1 arrive:a begin:a error:a", "abort:a done:a");
}

#[test]
fn what_needs_no_worker_takes_none() {
    check("ready:1 arrive:a:/constant", "constant:a done:a");
    check("ready:1 arrive:a:/preflight", "preflight:a done:a");
    check("ready:1 arrive:a:/missing", "refuse:a:NotFound done:a");
    check("ready:1 arrive:a:/next publish:bids", "deliver:m1:a done:a");
    check("ready:1 arrive:a:/stream", "open:a:1.0");
}

#[test]
fn a_parked_request_gives_its_worker_back() {
    check("ready:1:sync:1 arrive:a arrive:b park:a:timer:2s:answer", "keep:a assign:b:1");
}

#[test]
fn a_timer_ends_in_each_of_three_ways() {
    check("ready:1 arrive:a park:a:timer:2s:answer wait:2s", "release:a done:a");
    check("ready:1 arrive:a park:a:timer:2s:call wait:2s", "call:a:1:elapsed");
    let coroutine = "ready:1:concurrent arrive:a:/async park:a:timer:500ms:await";
    check(&format!("{coroutine} wait:500ms"), "resume:1:elapsed:a");
    check(&format!("{coroutine} wait:500ms answer:a"), "relay:a done:a");
}

#[test]
fn a_message_ends_a_wait_in_each_of_three_ways() {
    check("ready:1 arrive:a park:a:next:bids:answer publish:bids", "deliver:m1:a done:a");
    check("ready:1 arrive:a park:a:next:bids:call publish:bids", "call:a:1:m1");
    check("ready:1:concurrent arrive:a park:a:next:bids:await publish:bids", "resume:1:m1:a");
}

#[test]
fn a_coroutine_that_gives_its_wait_up_goes_on_at_once() {
    let parked = "ready:1:concurrent arrive:a:/async park:a:next:bids:await";
    check(&format!("{parked} unpark:a"), "resume:1:unparked:a");
    check(&format!("{parked} unpark:a publish:bids"), "");
    check(&format!("{parked} unpark:a publish:bids answer:a"), "relay:a done:a");
    check(&format!("{parked} publish:bids unpark:a"), "");
    check(&format!("{parked} left:a unpark:a"), "");
    check("ready:1 arrive:a park:a:next:bids:answer unpark:a", "");
}

#[test]
fn no_message_in_time_ends_it_too() {
    check("ready:1 arrive:a park:a:next:bids:answer wait:5s", "empty:a:1.0 done:a");
    check("ready:1 arrive:a park:a:next:bids:call wait:5s", "call:a:1:timed_out");
}

#[test]
fn a_client_that_leaves_is_forgotten_wherever_it_is() {
    check("arrive:a left:a", "cancelled:a:ClientLeft");
    check("ready:1:sync:1 arrive:b arrive:a left:a", "cancelled:a:ClientLeft");
    check("ready:1 arrive:a left:a", "recall:a:1:ClientLeft cancelled:a:ClientLeft");
    check("ready:1 arrive:a park:a:timer:2s:answer left:a", "cancelled:a:ClientLeft");
    check("ready:1 arrive:a park:a:stream:bids:answer left:a", "cancelled:a:ClientLeft");
    check("ready:1 arrive:a answer:a left:a", "");
}

#[test]
fn a_client_that_leaves_while_parked_stops_the_watch() {
    check("ready:1 arrive:a park:a:next:bids:answer left:a publish:bids", "");
    check("ready:1:concurrent arrive:a park:a:next:bids:await left:a", "recall:a:1:ClientLeft cancelled:a:ClientLeft");
    check("ready:1:concurrent arrive:a park:a:next:bids:await left:a publish:bids", "");
}

#[test]
fn a_cancelled_request_keeps_its_credit_until_its_closing_frame() {
    check("ready:1:concurrent:1 arrive:a:/async left:a arrive:b:/async", "");
    check("ready:1:concurrent:1 arrive:a:/async left:a arrive:b:/async error:a:cancelled", "assign:b:1");
    check("ready:1:concurrent:1 arrive:a:/async left:a arrive:b:/async begin:a", "");
}

#[test]
fn an_operator_ends_it_and_the_client_is_told() {
    check("ready:1 arrive:a operator:a", "refuse:a:CancelledByOperator recall:a:1:Operator cancelled:a:Operator");
    check("ready:1 arrive:a park:a:timer:2s:answer operator:a", "refuse:a:CancelledByOperator cancelled:a:Operator");
    check("ready:1 arrive:a park:a:stream:bids:answer operator:a", "end_stream:a cancelled:a:Operator");
}

#[test]
fn a_queued_request_past_its_deadline_is_refused() {
    check("arrive:a wait:10s", "refuse:a:QueuedTooLong cancelled:a:Deadline");
    let behind = "ready:1:sync:1 arrive:b:/endless arrive:a wait:10s";
    check(behind, "refuse:a:QueuedTooLong cancelled:a:Deadline");
}

#[test]
fn a_running_request_past_its_deadline_is_ended_and_its_worker_looked_at() {
    let told = "recall:a:1:Deadline dump:1:Deadline:a cancelled:a:Deadline";
    check("ready:1 arrive:a wait:10s", &format!("refuse:a:DeadlinePassed {told}"));
    check("ready:1 arrive:a begin:a wait:10s", &format!("abort:a {told}"));
}

#[test]
fn the_deadline_of_an_application_with_routes_of_its_own_is_for_the_beginning_of_a_response() {
    let told = "recall:a:1:Deadline";
    let hosted = "ready:1:concurrent:9:hosted arrive:a:/theirs";
    check(&format!("{hosted} begin:a wait:11s"), "ping:1 dump:1:Stuck");
    check(&format!("{hosted} begin:a wait:11s end:a"), "end:a done:a");
    check(
        &format!("{hosted} wait:10s"),
        &format!("ping:1 dump:1:Stuck refuse:a:DeadlinePassed {told} cancelled:a:Deadline"),
    );
    let plain = "ready:1:sync:1:hosted arrive:a:/theirs begin:a wait:10s";
    check(plain, &format!("abort:a {told} dump:1:Deadline:a cancelled:a:Deadline"));
    let thread = "ready:1:concurrent:9:threaded arrive:a:/theirs code:a begin:a wait:10s";
    check(thread, &format!("ping:1 dump:1:Stuck abort:a {told} cancelled:a:Deadline"));
}

#[test]
fn early_hints_go_to_the_client_until_its_response_begins() {
    check("ready:1 arrive:a hint:a", "hint:a");
    check("ready:1 arrive:a hint:a hint:a", "hint:a");
    check("ready:1 arrive:a begin:a hint:a", "");
    check("ready:1 arrive:a answer:a hint:a", "");
    check("ready:1:concurrent:9 arrive:a park:a:timer:9s:await hint:a", "");
    check("arrive:a hint:a", "");
}

#[test]
fn a_client_that_goes_with_a_complete_response_was_served_though_its_worker_has_not_ended_it() {
    check("ready:1 arrive:a begin:a served:a", "recall:a:1:ClientLeft done:a");
    check("ready:1 arrive:a begin:a served:a end:a", "");
    check("ready:1 arrive:a served:a", "recall:a:1:ClientLeft cancelled:a:ClientLeft");
    check("arrive:a served:a", "cancelled:a:ClientLeft");
    check("ready:1 arrive:a park:a:timer:9s:answer served:a", "cancelled:a:ClientLeft");
}

#[test]
fn trailers_end_a_response() {
    check("ready:1 arrive:a begin:a end:a:trailers", "end:a:trailers done:a");
    check("ready:1 arrive:a end:a:trailers", "");
}

#[test]
fn parked_time_does_not_count_for_the_deadline() {
    let long = "ready:1 arrive:a wait:9s park:a:timer:60s:call wait:60s";
    check(long, "call:a:1:elapsed");
    check(&format!("{long} wait:9s"), "");
    check(
        &format!("{long} wait:9s wait:1s"),
        "refuse:a:DeadlinePassed recall:a:1:Deadline dump:1:Deadline:a cancelled:a:Deadline",
    );
}

#[test]
fn a_wait_behind_a_head_breaks_the_connection() {
    check("ready:1 arrive:a begin:a park:a:timer:2s:answer", "abort:a done:a");
}

#[test]
fn two_coroutines_that_wake_together_are_told_together() {
    let both = "ready:1:concurrent arrive:a:/async arrive:b:/async park:a:next:bids:await park:b:next:bids:await";
    check(&format!("{both} publish:bids"), "resume:1:m1:a,b");
}

#[test]
fn wake_timeout_and_leave_at_one_instant_end_it_once() {
    let parked = "ready:1 arrive:a park:a:next:bids:answer";
    let instant = ["publish:bids", "left:a", "tick"];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut script = Script::run(config(), parked);
        script.now = script.now + std::time::Duration::from_secs(5);
        let mut endings = 0;
        for nth in order {
            script.go_on(instant[nth]);
            endings +=
                script.told.iter().filter(|word| word.starts_with("done:a") || word.starts_with("cancelled:a")).count();
        }
        assert_eq!((endings, script.core.status(script.now).alarms), (1, 0), "{order:?}");
    }
}

#[test]
fn a_slot_is_not_used_twice_at_a_time() {
    let mut script = Script::run(config(), "ready:1 arrive:a park:a:timer:2s:answer");
    script.go_on("arrive:a");
    assert_eq!((script.told.len(), script.state("a")), (0, Some(State::Parked)));
}
