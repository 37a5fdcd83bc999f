//! Queries that many wait for: one execution, and its result for those who come a little later. The words are explained in `script`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use parkade_core::limits::{KEPT_RESULTS_BYTES_MAX, KEPT_RESULTS_COUNT_MAX};
use script::{Script, check_quietly as check, quiet as config};

/// Two wait for one execution, the first for ever.
const SHARED: &str = "ready:1:concurrent:9 arrive:a park:a:query:shared@k:answer arrive:b park:b:query:shared@k:answer";
/// Rows that are kept.
const KEPT: &str = "ready:1:concurrent:9 arrive:a park:a:query:shared@k@5s:answer ended:a arrive:b";

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
    check(&format!("{two} {}", kept("c", half + 1)), "told:c done:c dropresult:a dropresult:b");
    check(&format!("{two} {}", kept("c", 2 * half + 1)), "told:c done:c dropresult:a dropresult:b dropresult:c");
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
