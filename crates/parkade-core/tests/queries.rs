//! Queries: how a request waits for a database, and who has it cancelled. The words are explained in `script`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use std::time::Duration;

use parkade_core::limits::{KEPT_RESULTS_BYTES_MAX, KEPT_RESULTS_COUNT_MAX};
use parkade_core::{Config, State, WaitKind};
use script::{Script, check, check_with, config};

/// The client of a waits for rows that go out as they come.
const ANSWER: &str = "ready:1 arrive:a park:a:query:alone:answer";
const CALL: &str = "ready:1 arrive:a park:a:query:alone:call";
const AWAIT: &str = "ready:1:concurrent arrive:a:/async park:a:query:alone:await";
/// Two wait for one execution, the first for ever.
const SHARED: &str = "ready:1:concurrent:9 arrive:a park:a:query:shared@k:answer arrive:b park:b:query:shared@k:answer";
const KEPT: &str = "ready:1:concurrent:9 arrive:a park:a:query:shared@k@5s:answer ended:a arrive:b";

#[test]
fn a_query_begins_and_its_worker_is_free() {
    check("ready:1:sync:1 arrive:a arrive:b park:a:query:alone:answer", "query:a assign:b:1");
    check(CALL, "keep:a query:a:collect");
    check(AWAIT, "query:a:collect");
    check("ready:1 arrive:a:/query", "query:a");
}

#[test]
fn a_query_ends_in_each_of_three_ways() {
    check(&format!("{ANSWER} ended:a"), "told:a done:a dropresult:a");
    check(&format!("{CALL} ended:a"), "call:a:1:ended@a");
    check(&format!("{CALL} ended:a answer:a"), "relay:a done:a dropresult:a");
    check(&format!("{AWAIT} ended:a"), "resume:1:ended@a:a dropresult:a");
    check(&format!("{AWAIT} ended:a answer:a"), "relay:a done:a");
}

#[test]
fn a_query_that_fails_is_told_in_each_of_three_ways() {
    check(&format!("{ANSWER} failed:a"), "told:a done:a dropresult:a");
    check(&format!("{CALL} failed:a"), "told:a done:a dropresult:a");
    check(&format!("{AWAIT} failed:a"), "resume:1:failed@a:a dropresult:a");
}

#[test]
fn a_call_keeps_its_rows_until_it_has_ended() {
    let called = "ready:1:sync:1 arrive:a park:a:query:alone:call arrive:b ended:a";
    check(called, "");
    check(&format!("{called} left:a"), "cancelled:a:ClientLeft dropresult:a");
    check(&format!("{called} answer:b"), "relay:b done:b call:a:1:ended@a");
    check(&format!("{called} answer:b park:a:timer:1s:answer"), "keep:a dropresult:a");
    check(&format!("{CALL} ended:a left:a"), "recall:a:1:ClientLeft cancelled:a:ClientLeft dropresult:a");
    check(&format!("{CALL} ended:a exited:1"), "refuse:a:WorkerDied cancelled:a:WorkerDied start:2 dropresult:a");
}

#[test]
fn rows_go_out_as_they_come() {
    check(&format!("{ANSWER} began:a"), "rows:a");
    check(&format!("{ANSWER} began:a began:a"), "");
    check(&format!("{ANSWER} began:a ended:a"), "end:a done:a dropresult:a");
}

#[test]
fn a_query_that_fails_behind_rows_breaks_the_connection() {
    check(&format!("{ANSWER} began:a failed:a"), "abort:a done:a dropresult:a");
}

#[test]
fn rows_that_are_needed_whole_do_not_begin_an_answer() {
    check(&format!("{CALL} began:a"), "");
    check(&format!("{AWAIT} began:a"), "");
    check(&format!("{SHARED} began:a"), "");
    check(&format!("{CALL} began:a ended:a"), "call:a:1:ended@a");
}

#[test]
fn a_client_that_leaves_has_its_query_cancelled() {
    check(&format!("{ANSWER} left:a"), "cancelquery:a cancelled:a:ClientLeft");
    check(&format!("{ANSWER} began:a left:a"), "cancelquery:a cancelled:a:ClientLeft");
    check(&format!("{CALL} left:a"), "cancelquery:a cancelled:a:ClientLeft");
    check(&format!("{AWAIT} left:a"), "cancelquery:a recall:a:1:ClientLeft cancelled:a:ClientLeft");
    check(&format!("{ANSWER} ended:a left:a"), "");
}

#[test]
fn a_cancelled_query_is_remembered_until_it_has_ended_and_cancelled_once() {
    let left = format!("{ANSWER} left:a");
    let status = |events: &str| {
        let script = Script::run(config(), events);
        let status = script.core.query(script.query("a"));
        (script.core.is_idle(), status.map(|status| (status.waiting, status.cancelled)))
    };
    assert_eq!(status(ANSWER), (false, Some((1, false))));
    assert_eq!(status(&left), (false, Some((0, true))));
    assert_eq!(status(&format!("{left} failed:a")), (true, None));
    for again in ["left:a", "cancelquery:a", "operator:a", "wait:60s", "began:a"] {
        check(&format!("{left} {again}"), "");
    }
    check(&format!("{left} ended:a"), "dropresult:a");
    check(&format!("{left} failed:a"), "dropresult:a");
}

#[test]
fn what_never_was_or_has_ended_changes_nothing() {
    for known in [ANSWER, CALL, AWAIT] {
        check(&format!("{known} began:x"), "");
        check(&format!("{known} cancelquery:x"), "");
        check(&format!("{known} ended:x"), "dropresult:?");
        check(&format!("{known} ended:a began:a"), "");
        check(&format!("{known} ended:a cancelquery:a"), "");
    }
    check(&format!("{ANSWER} ended:a ended:a"), "dropresult:a");
    check(&format!("{CALL} ended:a ended:a"), "");
    check(&format!("{CALL} ended:a ended:a answer:a"), "relay:a done:a dropresult:a");
}

#[test]
fn a_query_that_comes_after_another_has_nothing_to_do_with_it() {
    let second = format!("{ANSWER} left:a arrive:b park:b:query:alone:answer");
    check(&second, "query:b");
    check(&format!("{second} ended:a"), "dropresult:a");
    check(&format!("{second} ended:a ended:b"), "told:b done:b dropresult:b");
    check(&format!("{second} ended:a arrive:c park:c:query:alone:answer ended:a"), "dropresult:a");
    check(&format!("{second} ended:b ended:a"), "dropresult:a");
}

#[test]
fn the_deadline_cancels_it_and_the_client_is_told_when_the_database_has_said_what_became_of_it() {
    let late = "ready:1 arrive:a park:a:query:alone@2s:answer wait:2s";
    check(late, "cancelquery:a");
    check(&format!("{late} failed:a"), "told:a:Deadline cancelled:a:Deadline dropresult:a");
    check(&format!("{late} ended:a"), "told:a:Deadline cancelled:a:Deadline dropresult:a");
    check(&format!("{late} wait:499ms"), "");
    check(&format!("{late} wait:500ms"), "refuse:a:QueryTooLong cancelled:a:Deadline");
    check(&format!("{late} wait:500ms failed:a"), "dropresult:a");
    check(&format!("{late} left:a"), "cancelled:a:ClientLeft");
    check(&format!("{late} operator:a"), "refuse:a:CancelledByOperator cancelled:a:Operator");
    check(&format!("{late} began:a"), "");
}

#[test]
fn a_function_is_not_called_after_the_deadline() {
    let late = "ready:1 arrive:a park:a:query:alone@2s:call wait:2s";
    check(late, "cancelquery:a");
    check(&format!("{late} ended:a"), "told:a:Deadline cancelled:a:Deadline dropresult:a");
    check(&format!("{late} wait:500ms"), "refuse:a:QueryTooLong cancelled:a:Deadline");
}

#[test]
fn a_coroutine_is_told_of_its_deadline_and_goes_on() {
    let late = "ready:1:concurrent arrive:a:/async park:a:query:alone@2s:await wait:2s";
    check(late, "cancelquery:a");
    check(&format!("{late} failed:a"), "resume:1:failed@a+Deadline:a dropresult:a");
    check(&format!("{late} ended:a"), "resume:1:ended@a+Deadline:a dropresult:a");
    check(&format!("{late} wait:500ms"), "resume:1:QueryTooLong:a");
    check(&format!("{late} wait:500ms failed:a"), "dropresult:a");
    check(&format!("{late} wait:500ms failed:a answer:a"), "relay:a done:a");
}

#[test]
fn rows_that_take_too_long_break_the_connection() {
    let late = "ready:1 arrive:a park:a:query:alone@2s:answer began:a wait:2s";
    check(late, "cancelquery:a abort:a cancelled:a:Deadline");
    check(&format!("{late} failed:a"), "dropresult:a");
}

#[test]
fn the_deadline_is_its_own_or_that_of_the_route_or_none() {
    check("ready:1 arrive:a park:a:query:alone:answer wait:10s", "cancelquery:a");
    check("ready:1 arrive:a:/query wait:10s", "cancelquery:a");
    check("ready:1 arrive:a wait:9s park:a:query:alone@60s:answer wait:59s", "");
    check("ready:1 arrive:a wait:9s park:a:query:alone@60s:answer wait:60s", "cancelquery:a");
    check("ready:1 arrive:a park:a:query:alone@0s:answer wait:3600s", "");
    check("ready:1 arrive:a:/endless park:a:query:alone:answer wait:3600s", "");
}

#[test]
fn an_operator_ends_a_query_and_who_waits_is_told_what_became_of_it() {
    let ended = format!("{ANSWER} cancelquery:a");
    check(&ended, "cancelquery:a");
    check(&format!("{ended} cancelquery:a"), "");
    check(&format!("{ended} failed:a"), "told:a:Operator cancelled:a:Operator dropresult:a");
    check(&format!("{ended} ended:a"), "told:a:Operator cancelled:a:Operator dropresult:a");
    check(&format!("{ended} wait:499ms"), "");
    check(&format!("{ended} wait:500ms"), "refuse:a:CancelledByOperator cancelled:a:Operator");
    check(&format!("{ANSWER} began:a cancelquery:a"), "cancelquery:a abort:a cancelled:a:Operator");
    check(&format!("{AWAIT} cancelquery:a wait:500ms"), "resume:1:CancelledByOperator:a");
    check(&format!("{AWAIT} cancelquery:a failed:a"), "resume:1:failed@a+Operator:a dropresult:a");
    check(&format!("{SHARED} cancelquery:a"), "cancelquery:a");
    check(
        &format!("{SHARED} cancelquery:a failed:a"),
        "told:a:Operator cancelled:a:Operator told:b@a:Operator cancelled:b:Operator dropresult:a",
    );
}

#[test]
fn an_operator_ends_a_request_and_its_query() {
    check(&format!("{ANSWER} operator:a"), "cancelquery:a refuse:a:CancelledByOperator cancelled:a:Operator");
    check(&format!("{ANSWER} began:a operator:a"), "cancelquery:a abort:a cancelled:a:Operator");
    check(&format!("{SHARED} operator:a"), "refuse:a:CancelledByOperator cancelled:a:Operator");
}

#[test]
fn a_coroutine_that_no_longer_wants_its_rows_has_the_query_cancelled() {
    check(&format!("{AWAIT} unpark:a"), "cancelquery:a resume:1:unparked:a");
    check(&format!("{AWAIT} unpark:a failed:a"), "dropresult:a");
    check(&format!("{AWAIT} cancelquery:a unpark:a"), "resume:1:unparked:a");
    check(&format!("{AWAIT} ended:a unpark:a"), "");
    let shared =
        "ready:1:concurrent:9 arrive:b park:b:query:shared@k:answer arrive:a:/async park:a:query:shared@k:await";
    check(&format!("{shared} unpark:a"), "resume:1:unparked:a");
}

#[test]
fn a_worker_that_dies_takes_the_queries_of_its_coroutines_with_it() {
    check(&format!("{AWAIT} exited:1"), "cancelquery:a refuse:a:WorkerDied cancelled:a:WorkerDied start:2");
    check(&format!("{ANSWER} exited:1"), "start:2");
    check(&format!("{CALL} exited:1 ended:a ready:2"), "call:a:2:ended@a");
}

#[test]
fn a_query_counts_as_parked() {
    let full = Config { parked_count_max: 1, ..config() };
    let two = "ready:1:concurrent:9 arrive:b:/query arrive:a:/async";
    check_with(full.clone(), &format!("{two} park:a:query:alone:answer"), "refuse:a:ParkedFull done:a");
    check_with(full.clone(), &format!("{two} park:a:query:alone:call"), "keep:a refuse:a:ParkedFull done:a");
    check_with(full, &format!("{two} park:a:query:alone:await"), "resume:1:ParkedFull:a");
    let script = Script::run(config(), &format!("{ANSWER} wait:3s"));
    let status = script.core.status(script.now);
    let waits = status.waits.iter().find(|wait| wait.kind == WaitKind::Query).unwrap();
    assert_eq!((waits.count, waits.oldest), (1, Some(Duration::from_secs(3))));
    assert_eq!((status.queries_count, script.core.queries().count(), status.results_held), (1, 1, 0));
}

#[test]
fn many_that_share_a_key_have_one_execution() {
    check("ready:1 arrive:a park:a:query:shared@k:answer", "query:a:collect");
    check(SHARED, "");
    check(&format!("{SHARED} ended:a"), "told:a done:a told:b@a done:b dropresult:a");
    check(&format!("{SHARED} failed:a"), "told:a done:a told:b@a done:b dropresult:a");
    check(&format!("{SHARED} arrive:c:/async park:c:query:shared@other:await"), "query:c:collect");
    let three = format!("{SHARED} arrive:c:/async park:c:query:shared@k:await arrive:d park:d:query:shared@k:call");
    check(&format!("{three} ended:a"), "told:a done:a told:b@a done:b call:d:1:ended@a resume:1:ended@a:c");
    check(&format!("{three} ended:a answer:d"), "relay:d done:d dropresult:a");
}

#[test]
fn a_shared_query_is_cancelled_only_when_the_last_has_left() {
    check(&format!("{SHARED} left:a"), "cancelled:a:ClientLeft");
    check(&format!("{SHARED} left:a ended:a"), "told:b@a done:b dropresult:a");
    check(&format!("{SHARED} left:a left:b"), "cancelquery:a cancelled:b:ClientLeft");
    check(&format!("{SHARED} left:b left:a"), "cancelquery:a cancelled:a:ClientLeft");
}

#[test]
fn whose_time_is_up_leaves_a_shared_query_and_only_the_last_waits_for_its_end() {
    let two = "ready:1:concurrent:9 arrive:a:/endless park:a:query:shared@k:answer arrive:b:/async";
    check(&format!("{two} park:b:query:shared@k:answer wait:10s"), "refuse:b:QueryTooLong cancelled:b:Deadline");
    check(&format!("{two} park:b:query:shared@k:await wait:10s"), "resume:1:QueryTooLong:b");
    check(&format!("{two} park:b:query:shared@k:answer wait:10s ended:a"), "told:a done:a dropresult:a");
    check(&format!("{two} park:b:query:shared@k:answer left:a wait:10s"), "cancelquery:a");
    check(
        &format!("{two} park:b:query:shared@k:answer left:a wait:10s failed:a"),
        "told:b@a:Deadline cancelled:b:Deadline dropresult:a",
    );
    check(&format!("{SHARED} wait:10s"), "refuse:a:QueryTooLong cancelled:a:Deadline cancelquery:a");
}

#[test]
fn whoever_comes_after_the_cancel_starts_a_new_one() {
    let again = format!("{SHARED} left:a left:b arrive:c park:c:query:shared@k:answer");
    check(&again, "query:c:collect");
    check(&format!("{again} ended:a"), "dropresult:a");
    check(&format!("{again} ended:a arrive:d park:d:query:shared@k:answer"), "");
    check(&format!("{again} ended:a arrive:d park:d:query:shared@k:answer ended:c"), {
        "told:c done:c told:d@c done:d dropresult:c"
    });
    let operator = format!("{SHARED} cancelquery:a arrive:c park:c:query:shared@k:answer");
    check(&operator, "query:c:collect");
    let ended = format!("{SHARED} ended:a arrive:c park:c:query:shared@k:answer");
    check(&ended, "query:c:collect");
}

#[test]
fn a_result_is_given_to_those_who_come_within_its_time() {
    check(&KEPT.replace(" arrive:b", ""), "told:a done:a");
    check(&format!("{KEPT} park:b:query:shared@k@5s:answer"), "told:b@a done:b");
    check(&format!("{KEPT} park:b:query:shared@k:call"), "keep:b call:b:1:ended@a");
    check(&format!("{KEPT} park:b:query:shared@k:await"), "resume:1:ended@a:b");
    check(&format!("{KEPT} park:b:query:shared@other:answer"), "query:b:collect");
    check(&format!("{KEPT} wait:4999ms park:b:query:shared@k:answer"), "told:b@a done:b");
    check(&format!("{KEPT} wait:5s"), "dropresult:a");
    check(&format!("{KEPT} wait:5s park:b:query:shared@k:answer"), "query:b:collect");
}

#[test]
fn a_kept_result_stays_as_long_as_a_call_needs_it() {
    let called = format!("{KEPT} park:b:query:shared@k:call wait:5s");
    check(&called, "");
    check(&format!("{called} answer:b"), "relay:b done:b dropresult:a");
    check(&format!("{KEPT} park:b:query:shared@k:call answer:b"), "relay:b done:b");
}

#[test]
fn nothing_is_kept_of_what_failed_or_was_given_up() {
    let begun = "ready:1:concurrent:9 arrive:a park:a:query:shared@k@5s:answer arrive:b";
    check(&format!("{begun} failed:a"), "told:a done:a dropresult:a");
    check(&format!("{begun} failed:a park:b:query:shared@k:answer"), "query:b:collect");
    check(&format!("{begun} left:a ended:a"), "dropresult:a");
    check(&format!("{begun} left:a ended:a park:b:query:shared@k:answer"), "query:b:collect");
    check(&format!("{begun} cancelquery:a ended:a"), "told:a:Operator cancelled:a:Operator dropresult:a");
}

#[test]
fn kept_results_are_bounded_in_bytes_and_the_oldest_goes() {
    let half = KEPT_RESULTS_BYTES_MAX / 2;
    let kept =
        |key: &str, bytes: usize| format!("arrive:{key} park:{key}:query:shared@{key}@9s:answer ended:{key}:{bytes}");
    let two = format!("ready:1:concurrent:9 {} {}", kept("a", half), kept("b", half));
    check(&two, "told:b done:b");
    check(&format!("{two} {}", kept("c", 1)), "told:c done:c dropresult:a");
    check(&format!("{two} {}", kept("c", half + 1)), "told:c done:c dropresult:c dropresult:a dropresult:b");
    check(&format!("{two} {}", kept("c", 2 * half + 1)), "told:c done:c dropresult:c dropresult:a dropresult:b");
    check(&format!("{two} wait:9s {}", kept("c", 2 * half)), "told:c done:c");
}

#[test]
fn kept_results_are_bounded_in_number_and_the_oldest_goes() {
    let mut script = Script::run(config(), "ready:1:concurrent:9");
    for nth in 0..KEPT_RESULTS_COUNT_MAX {
        script.go_on(&format!("arrive:r{nth} park:r{nth}:query:shared@{nth}@9s:answer ended:r{nth}:0"));
        assert_eq!(script.told, [format!("told:r{nth}"), format!("done:r{nth}")]);
    }
    script.go_on("arrive:x park:x:query:shared@x@9s:answer ended:x:0");
    assert_eq!(script.told, ["told:x", "done:x", "dropresult:r0"]);
    assert_eq!(script.core.status(script.now).results_held, KEPT_RESULTS_COUNT_MAX);
}

#[test]
fn a_drain_gives_queries_a_grace_and_cancels_them_then() {
    let drained = format!("{ANSWER} drain:30s");
    check(&format!("{drained} wait:999ms"), "");
    check(&format!("{drained} ended:a"), "told:a done:a dismiss:1 dropresult:a");
    check(&format!("{drained} wait:1s"), "cancelquery:a");
    check(&format!("{drained} wait:1s failed:a"), "told:a:Stopping cancelled:a:Stopping dismiss:1 dropresult:a");
    check(&format!("{drained} wait:1500ms"), "refuse:a:Stopping cancelled:a:Stopping dismiss:1");
    check(&format!("{ANSWER} began:a drain:30s wait:1s"), "cancelquery:a abort:a cancelled:a:Stopping dismiss:1");
    check(&format!("{AWAIT} drain:30s wait:1s failed:a"), "resume:1:failed@a+Stopping:a dropresult:a");
    let own = Config { query_grace: Duration::from_secs(3), ..config() };
    check_with(own.clone(), &format!("{drained} wait:2999ms"), "");
    check_with(own, &format!("{drained} wait:3s"), "cancelquery:a");
}

#[test]
fn no_query_is_begun_when_their_grace_is_over() {
    let over = "ready:1:concurrent:9 arrive:a:/async arrive:b park:b:query:shared@k@60s:answer ended:b drain:30s";
    check(&format!("{over} park:a:query:alone:answer"), "query:a");
    check(&format!("{over} wait:1s park:a:query:alone:answer"), "refuse:a:Stopping done:a");
    check(&format!("{over} wait:1s park:a:query:alone:await"), "resume:1:Stopping:a");
    check(&format!("{over} wait:1s park:a:query:begin:await"), "resume:1:Stopping:a");
}

#[test]
fn the_exit_waits_for_the_ends_of_queries_but_not_for_ever() {
    let gone = format!("{ANSWER} drain:5s left:a exited:1");
    check(&gone, "");
    check(&format!("{gone} failed:a"), "dropresult:a exit:Drained");
    check(&format!("{gone} wait:5s wait:1999ms"), "");
    check(&format!("{gone} wait:5s wait:2s"), "exit:Drained");
    let forced = format!("{ANSWER} drain:500ms");
    check(&format!("{forced} wait:500ms"), "cancelquery:a refuse:a:Stopping cancelled:a:Stopping kill:1:GraceOver");
    check(&format!("{forced} wait:500ms exited:1"), "");
    check(&format!("{forced} wait:500ms exited:1 failed:a"), "dropresult:a exit:GraceOver");
    check(&format!("{forced} wait:500ms exited:1 wait:1999ms"), "");
    check(&format!("{forced} wait:500ms exited:1 wait:2s"), "exit:GraceOver");
    check(&format!("{forced} wait:500ms wait:2s exited:1"), "exit:GraceOver");
}

#[test]
fn a_worker_that_outlives_the_last_query_is_no_reason_to_look_again_and_again() {
    let mut script = Script::run(config(), &format!("{ANSWER} drain:0 wait:60s"));
    assert!(script.core.next_due().is_none_or(|due| due > script.now));
    script.go_on("exited:1");
    assert_eq!(script.told, ["exit:GraceOver"]);
}

#[test]
fn the_exit_drops_what_was_kept() {
    let kept = "ready:1 arrive:a park:a:query:shared@k@60s:answer ended:a drain:30s exited:1";
    check(kept, "dropresult:a exit:Drained");
    assert_eq!(Script::run(config(), kept).core.next_due(), None);
}

/// A coroutine with an open transaction.
const OPEN: &str = "ready:1:concurrent:9 arrive:a:/async park:a:query:begin:await ended:a";

#[test]
fn a_transaction_is_begun_used_and_ended() {
    check("ready:1:concurrent arrive:a:/async park:a:query:begin:await", "query:a:begin:collect");
    check(OPEN, "resume:1:ended@a:a dropresult:a");
    check(&format!("{OPEN} park:a:query:within:await"), "query:a2:within:collect");
    check(&format!("{OPEN} park:a:query:within:await ended:a2"), "resume:1:ended@a2:a dropresult:a2");
    check(&format!("{OPEN} park:a:query:commit:await"), "query:a2:commit:collect");
    check(&format!("{OPEN} park:a:query:rollback:await"), "query:a2:rollback:collect");
    for end in ["commit", "rollback"] {
        for came in ["ended", "failed"] {
            let over = format!("{OPEN} park:a:query:{end}:await {came}:a2");
            check(&over, &format!("resume:1:{came}@a2:a dropresult:a2"));
            check(&format!("{over} answer:a"), "relay:a done:a");
            check(&format!("{over} park:a:query:within:await"), "resume:1:NoTransaction:a");
            check(&format!("{over} park:a:query:begin:await"), "query:a3:begin:collect");
            check(&format!("{over} park:a:query:begin:await ended:a3 answer:a"), "relay:a endlease:a done:a");
        }
    }
}

#[test]
fn a_transaction_ends_with_its_request() {
    check(&format!("{OPEN} answer:a"), "relay:a endlease:a done:a");
    check(&format!("{OPEN} error:a"), "refuse:a:ApplicationFailed endlease:a done:a");
    check(&format!("{OPEN} left:a"), "recall:a:1:ClientLeft endlease:a cancelled:a:ClientLeft");
    check(&format!("{OPEN} exited:1"), "refuse:a:WorkerDied endlease:a cancelled:a:WorkerDied start:2");
    check(&format!("{OPEN} park:a:timer:1s:answer wait:1s"), "release:a endlease:a done:a");
    check(&format!("{OPEN} park:a:query:within:answer ended:a2"), "told:a2 endlease:a done:a dropresult:a2");
    let within = format!("{OPEN} park:a:query:within:await");
    check(&format!("{within} left:a"), "cancelquery:a2 recall:a:1:ClientLeft endlease:a cancelled:a:ClientLeft");
    let commit = format!("{OPEN} park:a:query:commit:await left:a");
    check(&commit, "cancelquery:a2 recall:a:1:ClientLeft endlease:a cancelled:a:ClientLeft");
    check(&format!("{commit} ended:a2"), "dropresult:a2");
}

#[test]
fn a_begin_that_fails_leaves_no_transaction() {
    let failed = "ready:1:concurrent arrive:a:/async park:a:query:begin:await failed:a";
    check(failed, "resume:1:failed@a:a dropresult:a");
    check(&format!("{failed} answer:a"), "relay:a done:a");
    check(&format!("{failed} park:a:query:within:await"), "resume:1:NoTransaction:a");
    check(&format!("{failed} park:a:query:begin:await"), "query:a2:begin:collect");
}

#[test]
fn a_begin_that_is_given_up_leaves_no_transaction() {
    let begin = "ready:1:concurrent:9 arrive:a:/async park:a:query:begin:await";
    check(&format!("{begin} unpark:a"), "cancelquery:a endlease:a resume:1:unparked:a");
    check(&format!("{begin} unpark:a ended:a"), "dropresult:a");
    check(&format!("{begin} unpark:a ended:a answer:a"), "relay:a done:a");
    check(&format!("{begin} unpark:a failed:a answer:a"), "relay:a done:a");
    check(&format!("{begin} unpark:a park:a:query:begin:await"), "query:a2:begin:collect");
    check(&format!("{begin} unpark:a park:a:query:begin:await failed:a answer:a"), "");
    check(&format!("{begin} wait:10s"), "cancelquery:a");
    check(&format!("{begin} wait:10s ended:a"), "endlease:a resume:1:ended@a+Deadline:a dropresult:a");
    check(&format!("{begin} wait:10s ended:a answer:a"), "relay:a done:a");
    check(&format!("{begin} wait:10s failed:a"), "resume:1:failed@a+Deadline:a dropresult:a");
    check(&format!("{begin} wait:10s wait:500ms"), "endlease:a resume:1:QueryTooLong:a");
    check(&format!("{begin} wait:10s wait:500ms ended:a answer:a"), "relay:a done:a");
}

#[test]
fn an_end_that_nobody_waited_for_is_an_end_all_the_same() {
    for end in ["commit", "rollback"] {
        let late = format!("{OPEN} park:a:query:{end}:await wait:10s wait:500ms");
        check(&late, "resume:1:QueryTooLong:a");
        check(&format!("{late} answer:a"), "relay:a endlease:a done:a");
        check(&format!("{late} park:a:query:begin:await"), "resume:1:TransactionOpen:a");
        check(&format!("{late} ended:a2 answer:a"), "relay:a done:a");
        check(&format!("{late} ended:a2 park:a:query:begin:await"), "query:a3:begin:collect");
        let unparked = format!("{OPEN} park:a:query:{end}:await unpark:a failed:a2");
        check(&format!("{unparked} answer:a"), "relay:a done:a");
        check(&format!("{unparked} park:a:query:begin:await"), "query:a3:begin:collect");
    }
}

#[test]
fn a_statement_that_is_given_up_leaves_its_transaction_open() {
    let given_up = format!("{OPEN} park:a:query:within:await unpark:a");
    check(&given_up, "cancelquery:a2 resume:1:unparked:a");
    check(&format!("{given_up} park:a:query:rollback:await"), "query:a3:rollback:collect");
    check(&format!("{given_up} park:a:query:rollback:await failed:a2 ended:a3"), "resume:1:ended@a3:a dropresult:a3");
}

#[test]
fn transactions_are_one_at_a_time_and_of_coroutines() {
    let none = "ready:1:concurrent:9 arrive:a:/async";
    for work in ["within", "commit", "rollback"] {
        check(&format!("{none} park:a:query:{work}:await"), "resume:1:NoTransaction:a");
    }
    check(&format!("{none} park:a:query:within:answer"), "refuse:a:NoTransaction done:a");
    for work in ["begin", "commit", "rollback"] {
        check(&format!("{none} park:a:query:{work}:answer"), "refuse:a:BadAnswer done:a");
        check(&format!("{none} park:a:query:{work}:call"), "keep:a refuse:a:BadAnswer done:a");
    }
    check(&format!("{OPEN} park:a:query:begin:await"), "resume:1:TransactionOpen:a");
    check(&format!("{OPEN} park:a:query:commit:answer"), "refuse:a:BadAnswer endlease:a done:a");
    check(&format!("{OPEN} park:a:query:alone:await"), "query:a2:collect");
    check(&format!("{OPEN} arrive:b:/async park:b:query:begin:await"), "query:b:begin:collect");
    check(&format!("{OPEN} arrive:b:/async park:b:query:within:await"), "resume:1:NoTransaction:b");
}

#[test]
fn a_transaction_may_be_ended_when_the_grace_of_queries_is_over() {
    let over = format!("{OPEN} drain:30s wait:1s");
    check(&format!("{over} park:a:query:within:await"), "query:a2:within:collect");
    check(&format!("{over} park:a:query:commit:await"), "query:a2:commit:collect");
    let asked = |work: &str| format!("{OPEN} park:a:query:{work}:await drain:30s wait:1s");
    check(&asked("within"), "cancelquery:a2");
    check(&asked("commit"), "");
    check(&asked("rollback"), "");
    check("ready:1:concurrent arrive:a:/async park:a:query:begin:await drain:30s wait:1s", "cancelquery:a");
    check(&format!("{over} wait:29s"), {
        "refuse:a:Stopping recall:a:1:Stopping endlease:a cancelled:a:Stopping kill:1:GraceOver"
    });
}

#[test]
fn end_deadline_and_leave_at_one_instant_end_it_once() {
    let instant = ["ended:a", "left:a", "tick", "cancelquery:a"];
    for first in 0..4 {
        for second in (0..4).filter(|second| *second != first) {
            for third in (0..4).filter(|third| ![first, second].contains(third)) {
                let mut script = Script::run(config(), ANSWER);
                script.now = script.now + Duration::from_secs(10);
                let mut told = Vec::new();
                for nth in [first, second, third, 6 - first - second - third] {
                    script.go_on(instant[nth]);
                    told.append(&mut script.told);
                }
                let count = |word: &str| told.iter().filter(|told| told.starts_with(word)).count();
                assert_eq!(count("done:a") + count("cancelled:a"), 1, "{told:?}");
                assert_eq!(count("dropresult:a"), 1, "{told:?}");
                assert!(count("cancelquery:a") <= 1, "{told:?}");
                assert!(script.core.status(script.now).alarms == 0 && script.core.is_idle(), "{told:?}");
                assert!(matches!(script.state("a"), Some(State::Done | State::Cancelled)));
            }
        }
    }
}
