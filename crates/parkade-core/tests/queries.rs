//! Queries: how a request waits for a database, and who has it cancelled. The words are explained in `script`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use std::time::Duration;

use parkade_core::{Config, State, WaitKind};
use script::{Script, check_quietly as check, check_with, quiet as config};

/// The client of a waits for rows that go out as they come.
const ANSWER: &str = "ready:1 arrive:a park:a:query:alone:answer";
const CALL: &str = "ready:1 arrive:a park:a:query:alone:call";
const AWAIT: &str = "ready:1:concurrent arrive:a:/async park:a:query:alone:await";
/// Two wait for one execution, the first for ever.
const SHARED: &str = "ready:1:concurrent:9 arrive:a park:a:query:shared@k:answer arrive:b park:b:query:shared@k:answer";

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
    check(&format!("{late} operator:a"), "refuse:a:QueryCancelledByOperator cancelled:a:Operator");
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
    check(&format!("{ended} wait:500ms"), "refuse:a:QueryCancelledByOperator cancelled:a:Operator");
    check(&format!("{ANSWER} began:a cancelquery:a"), "cancelquery:a abort:a cancelled:a:Operator");
    check(&format!("{AWAIT} cancelquery:a wait:500ms"), "resume:1:QueryCancelledByOperator:a");
    check(&format!("{AWAIT} cancelquery:a failed:a"), "resume:1:failed@a+Operator:a dropresult:a");
    check(&format!("{SHARED} cancelquery:a"), "cancelquery:a");
    check(
        &format!("{SHARED} cancelquery:a failed:a"),
        "told:a:Operator cancelled:a:Operator told:b@a:Operator cancelled:b:Operator dropresult:a",
    );
}

#[test]
fn an_operator_ends_a_request_and_its_query() {
    check(&format!("{ANSWER} operator:a"), "cancelquery:a refuse:a:QueryCancelledByOperator cancelled:a:Operator");
    check(&format!("{ANSWER} began:a operator:a"), "cancelquery:a abort:a cancelled:a:Operator");
    check(&format!("{SHARED} operator:a"), "refuse:a:QueryCancelledByOperator cancelled:a:Operator");
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
fn a_drain_gives_queries_a_grace_and_cancels_them_then() {
    let drained = format!("{ANSWER} drain:30s");
    check(&format!("{drained} wait:999ms"), "");
    check(&format!("{drained} ended:a"), "told:a done:a dismiss:1 dropresult:a");
    check(&format!("{drained} wait:1s"), "cancelquery:a");
    check(&format!("{drained} wait:1s failed:a"), "told:a:Stopping cancelled:a:Stopping dismiss:1 dropresult:a");
    check(&format!("{drained} wait:1s wait:500ms"), "refuse:a:QueryStopped cancelled:a:Stopping dismiss:1");
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
    check(&format!("{over} wait:1s park:a:query:alone:answer"), "refuse:a:Stopping done:a dismiss:1");
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
    check(&format!("{forced} wait:500ms"), "cancelquery:a refuse:a:QueryStopped cancelled:a:Stopping dismiss:1");
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
