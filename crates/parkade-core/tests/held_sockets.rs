//! WebSockets that wait on a channel: no worker holds them, and each message of their clients is a call.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use parkade_core::State;
use script::{Script, check_quietly, quiet};

const OPEN: &str = "ready:1 arrive:a park:a:socket:room:call";

fn open(events: &str, effects: &str) {
    check_quietly(&format!("{OPEN} {events}"), effects);
}

#[test]
fn it_waits_without_a_worker_and_has_no_deadline() {
    check_quietly(OPEN, "keep:a hold:a");
    open("wait:3600s", "");
    open("exited:1", "start:2");
    open("reload ready:2", "reloaded:Done drain:1:30s dismiss:1");
}

#[test]
fn it_gets_every_message_of_its_channel() {
    open("publish:room", "feed:m1:a");
    open("publish:elsewhere", "");
    check_quietly("ready:1 publish:room arrive:a park:a:socket:room@1.0:call", "keep:a hold:a feed:m1:a");
}

#[test]
fn only_a_function_can_be_called_for_what_its_client_says() {
    for then in ["answer", "await"] {
        let mut script = Script::run(quiet(), &format!("ready:1:concurrent arrive:a:/async park:a:socket:room:{then}"));
        script.go_on("publish:room");
        assert_ne!(script.state("a"), Some(State::Parked), "{then}");
    }
}

#[test]
fn what_its_client_says_is_a_call_whose_answer_goes_to_it() {
    open("said:a:b", "call:b:1:said@b");
    open("said:a:b answer:b", "relay:b done:b read:a");
    open("said:a:b answer:b said:a:c", "call:c:1:said@c");
}

#[test]
fn messages_of_one_client_are_dealt_with_one_after_the_other() {
    open("said:a:b said:a:c", "done:c");
    open("said:a:b said:a:c answer:b", "relay:b done:b read:a");
}

#[test]
fn messages_of_several_clients_are_queued_like_requests() {
    let two = "ready:1:sync:1 arrive:a park:a:socket:room:call arrive:x park:x:socket:room:call";
    check_quietly(&format!("{two} said:a:b said:x:y"), "");
    check_quietly(&format!("{two} said:a:b said:x:y answer:b"), "relay:b done:b read:a call:y:1:said@y");
}

#[test]
fn it_gets_messages_while_its_client_is_heard() {
    open("said:a:b publish:room", "feed:m1:a");
}

#[test]
fn a_call_may_wait_like_a_request() {
    open("said:a:b park:b:timer:2s:answer", "keep:b");
    open("said:a:b park:b:timer:2s:answer wait:2s", "release:b done:b read:a");
    open("said:a:b park:b:query:alone:answer", "query:b:collect");
    open("said:a:b park:b:query:alone:answer ended:b", "told:b done:b read:a dropresult:b");
    open("said:a:b enqueue:b answer:b stored:b", "release:b done:b read:a");
}

#[test]
fn what_is_no_message_closes_it() {
    for wait in ["stream:room:answer", "socket:room:call", "file:-:answer"] {
        open(&format!("said:a:b park:b:{wait}"), "done:b close:a:BadAnswer done:a");
    }
    open("said:a:b accept:b", "recall:b:1:ClientLeft done:b close:a:BadAnswer done:a");
}

#[test]
fn a_long_answer_comes_in_pieces() {
    open("said:a:b begin:b", "begin:b");
    open("said:a:b begin:b end:b", "end:b done:b read:a");
    open("said:a:b begin:b error:b", "done:b close:a:ApplicationFailed done:a");
}

#[test]
fn a_call_that_fails_closes_it() {
    open("said:a:b error:b", "done:b close:a:ApplicationFailed done:a");
    open("said:a:b error:b:overloaded", "done:b close:a:WorkerOverloaded done:a");
    open("said:a:b exited:1", "cancelled:b:WorkerDied close:a:WorkerDied done:a start:2");
    open(
        "said:a:b wait:10s",
        "recall:b:1:Deadline dump:1:Deadline:b cancelled:b:Deadline close:a:DeadlinePassed done:a",
    );
    open("said:a:b operator:b", "recall:b:1:Operator cancelled:b:Operator close:a:CancelledByOperator done:a");
}

#[test]
fn a_call_that_no_worker_has_touched_goes_to_another() {
    let two = "ready:1 arrive:a park:a:socket:room:call arrive:q said:a:b";
    check_quietly(&format!("{two} exited:1 ready:2"), "call:b:2:said@b");
}

#[test]
fn a_client_that_leaves_cancels_its_call() {
    open("left:a", "cancelled:a:ClientLeft");
    open("said:a:b left:a", "recall:b:1:ClientLeft cancelled:b:ClientLeft cancelled:a:ClientLeft");
    open("said:a:b left:a answer:b", "");
    open("left:a said:a:b", "done:b");
}

#[test]
fn a_client_that_closes_it_is_told_nothing_more() {
    open("closed:a", "done:a");
    open("closed:a publish:room", "");
    open("closed:a closed:a", "");
}

#[test]
fn an_operator_ends_it() {
    open("operator:a", "close:a:CancelledByOperator cancelled:a:Operator");
}

#[test]
fn a_reload_does_not_touch_it_and_new_code_hears_its_client() {
    open("reload ready:2 said:a:b", "call:b:2:said@b");
}

#[test]
fn a_stop_closes_it() {
    open("drain:30s", "stop_accepting drain:1:30s");
    open("drain:30s wait:99ms", "");
    open("drain:30s wait:100ms", "close:a:Stopping cancelled:a:Stopping dismiss:1");
    open("drain:0", "stop_accepting drain:1:0s close:a:Stopping cancelled:a:Stopping kill:1:GraceOver");
}

#[test]
fn a_stop_waits_for_what_its_client_has_said() {
    open("said:a:b drain:30s", "stop_accepting drain:1:30s");
    let closed = "close:a:Stopping cancelled:a:Stopping dismiss:1";
    open("said:a:b drain:30s answer:b", "relay:b done:b read:a");
    open("said:a:b drain:30s answer:b wait:100ms", closed);
    open("said:a:b drain:30s wait:5s answer:b said:a:c", "call:c:1:said@c");
    open("said:a:b drain:30s answer:b said:a:c wait:5s answer:c", "relay:c done:c read:a");
    open("said:a:b drain:30s answer:b said:a:c wait:5s answer:c wait:100ms", closed);
    open("drain:30s wait:99ms said:a:b answer:b", "relay:b done:b read:a");
    open("said:a:b drain:30s error:b", "done:b close:a:ApplicationFailed done:a dismiss:1");
    let late = "close:a:Stopping recall:b:1:Stopping cancelled:b:Stopping cancelled:a:Stopping kill:1:GraceOver";
    open("said:a:b drain:5s wait:5s", late);
}

#[test]
fn a_request_that_is_none_cannot_be_heard() {
    for place in ["arrive:a", "arrive:a park:a:stream:room:answer", "arrive:a park:a:timer:2s:call"] {
        check_quietly(&format!("ready:1 {place} said:a:b"), "done:b");
    }
    check_quietly("ready:1 arrive:a park:a:timer:2s:call closed:a", "");
}

const CLOSING: &str = "ready:1 arrive:a park:a:closing:room:call";

fn closing(events: &str, effects: &str) {
    check_quietly(&format!("{CLOSING} {events}"), effects);
}

#[test]
fn its_end_is_a_call_however_it_ends() {
    closing("left:a", "call:a:1:closed@a");
    closing("closed:a", "call:a:1:closed@a");
    closing("operator:a", "close:a:CancelledByOperator call:a:1:closed@a");
    closing("said:a:b error:b", "done:b close:a:ApplicationFailed call:a:1:closed@a");
    closing("left:a answer:a", "cancelled:a:ClientLeft");
    closing("closed:a answer:a", "done:a");
    closing("closed:a error:a", "lost:a:ApplicationFailed done:a");
}

#[test]
fn its_end_is_called_when_what_its_client_has_said_is_dealt_with() {
    let two = "ready:1 arrive:a park:a:closing:room:call said:a:b";
    check_quietly(&format!("{two} left:a"), "recall:b:1:ClientLeft cancelled:b:ClientLeft");
    check_quietly(&format!("{two} left:a answer:b"), "call:a:1:closed@a");
    check_quietly(&format!("{two} left:a exited:1"), "start:2");
    check_quietly(&format!("{two} left:a exited:1 ready:2"), "call:a:2:closed@a");
}

#[test]
fn its_end_goes_to_another_worker_if_one_dies_that_had_not_begun_it() {
    check_quietly(&format!("{CLOSING} arrive:q left:a exited:1 ready:2"), "call:a:2:closed@a");
    closing("left:a exited:1", "lost:a:WorkerDied cancelled:a:ClientLeft start:2");
}

#[test]
fn a_refused_one_has_no_end() {
    check_quietly("ready:1 arrive:a park:a:closing:room:answer", "refuse:a:BadAnswer done:a");
}

#[test]
fn a_stop_waits_for_its_end_until_the_grace_is_over() {
    closing("drain:30s wait:100ms", "close:a:Stopping call:a:1:closed@a");
    closing("drain:30s wait:100ms answer:a", "cancelled:a:Stopping dismiss:1");
    closing("drain:5s wait:100ms wait:5s", "lost:a:Stopping recall:a:1:Stopping cancelled:a:Stopping kill:1:GraceOver");
}

#[test]
fn one_that_is_open_when_the_grace_is_over_has_no_worker_for_its_end() {
    let mut script = Script::run(quiet(), &format!("{CLOSING} said:a:b drain:5s"));
    script.go_on("wait:5s");
    assert!(script.told.join(" ").contains("lost:a:Stopping"), "{:?}", script.told);
    assert_eq!(script.state("a"), Some(State::Cancelled));
}

#[test]
fn nobody_hears_the_answer_to_its_end() {
    closing("left:a begin:a", "");
    closing("left:a begin:a end:a", "cancelled:a:ClientLeft");
    closing("left:a park:a:timer:2s:answer", "lost:a:BadAnswer cancelled:a:ClientLeft");
    closing("left:a park:a:timer:2s:call wait:2s", "call:a:1:elapsed");
    closing("left:a enqueue:a answer:a", "");
    closing("left:a enqueue:a answer:a stored:a", "cancelled:a:ClientLeft");
}
