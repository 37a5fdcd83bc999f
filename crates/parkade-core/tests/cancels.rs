//! Jobs that operators and clients end, wherever they are. The words are explained in `script` and `script::jobs`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use parkade_core::limits::{CANCEL_TRIES_COUNT, CANCELS_COUNT_MAX};
use parkade_core::{CancelEffect, CancelEvent, CancelId, CancelOutcome, Effect, Event, JobId};
use script::{Script, check_with, of_jobs};

fn check(events: &str, effects: &str) {
    check_with(of_jobs(1), events, effects);
}

const RUNS: &str = "ready:1 jobs claimed:r";
/// It has failed, is tried again, and the store has not noted that.
const FAILED: &str = "ready:1 jobs claimed:r error:r";
const RETURNED: &str = "ready:1 jobs claimed:r return:r";
const TOLD: &str = "recall:r:1:Operator verdict:r:cancelled cancelled:r:Operator";

#[test]
fn a_job_that_waits_is_ended_by_the_store() {
    check("ready:1 cancel:x", "ask:x");
    check("ready:1 cancel:x asked:x:ended", "ends:1");
    check("ready:1 cancel:x cancel:x", "");
    check("ready:1 cancel:x cancel:x cancel:y asked:x:ended", "ends:1+2");
    check("ready:1 cancel:x asked:x:ended asked:x:ended", "");
}

#[test]
fn a_job_that_runs_is_ended_here_and_the_store_is_not_asked() {
    check(&format!("{RUNS} cancel:r"), &format!("ends:1 {TOLD}"));
    check(&format!("{RUNS} cancel:r cancel:r"), "ends:2");
    check(&format!("{RUNS} cancel:r noted:r cancel:r"), "ask:r");
    check(&format!("{RUNS} cancel:r noted:r cancel:r asked:r:waiting state:r:over"), "stays:2");
}

#[test]
fn a_job_that_has_ended_or_is_none_stays_as_it_is() {
    check("ready:1 cancel:x asked:x:waiting", "state:x");
    check("ready:1 cancel:x asked:x:waiting state:x:over", "stays:1");
    check("ready:1 cancel:x asked:x:waiting cancel:x state:x:over", "stays:1+2");
}

#[test]
fn a_job_that_another_server_runs_is_ended_there() {
    check("ready:1 cancel:x asked:x:elsewhere", "ends:1");
    check("ready:1 jobs cancel:x asked:x:elsewhere claimed:-", "ends:1");
    check("ready:1 jobs cancel:x asked:x:elsewhere unclaimed", "ends:1");
}

#[test]
fn a_job_that_the_store_is_just_giving_is_ended_when_it_comes() {
    let gives = "ready:1 jobs cancel:x asked:x:waiting";
    let ends = "ends:1 verdict:x:cancelled cancelled:x:Operator";
    check(gives, "");
    check(&format!("{gives} claimed:x"), ends);
    check("ready:1 jobs cancel:x claimed:x", ends);
    check("ready:1 jobs cancel:x claimed:x asked:x:waiting", "");
    check(&format!("{gives} claimed:y"), "state:x run:y:1");
    check(&format!("{gives} unclaimed"), "state:x");
    check(&format!("{gives} drain:30s claimed:x"), "verdict:x:back cancelled:x:Stopping");
    check(&format!("{gives} drain:30s claimed:x noted:x"), "ask:x");
}

#[test]
fn a_job_whose_end_is_being_noted_ends_by_that_or_is_ended_after_it() {
    check(&format!("{RETURNED} cancel:r"), "");
    check(&format!("{RETURNED} cancel:r noted:r"), "stays:1");
    check(&format!("{FAILED} cancel:r"), "");
    check(&format!("{FAILED} cancel:r noted:r"), "ask:r");
    check(&format!("{FAILED} cancel:r noted:r asked:r:ended"), "ends:1");
    check(&format!("{FAILED} noted:r cancel:r"), "ask:r");
    check("ready:1 jobs claimed:r cancel:x asked:x:waiting error:r", "verdict:r:retry:Raised done:r");
}

#[test]
fn a_job_whose_end_could_not_be_noted_is_ended_when_it_is_and_never_noted_otherwise() {
    check(&format!("{FAILED} cancel:r unnoted:r"), "");
    check(&format!("{FAILED} cancel:r unnoted:r wait:999ms"), "");
    check(&format!("{FAILED} cancel:r unnoted:r wait:1s"), "note:r");
    check(&format!("{FAILED} cancel:r unnoted:r wait:1s unnoted:r wait:1s"), "note:r");
    check(&format!("{FAILED} cancel:r unnoted:r wait:1s noted:r"), "ask:r");
    check(&format!("{FAILED} cancel:r unnoted:r wait:1s noted:r asked:r:ended"), "ends:1");
    check(&format!("{FAILED} unnoted:r cancel:r"), "");
    check(&format!("{FAILED} unnoted:r wait:1s"), "note:r");
    check(&format!("{FAILED} unnoted:r wait:1s cancel:r noted:r"), "ask:r");
    check(&format!("{RETURNED} cancel:r unnoted:r"), "");
    check(&format!("{RETURNED} unnoted:r cancel:r"), "");
    check(&format!("{RETURNED} unnoted:r cancel:r wait:1s"), "note:r");
    check(&format!("{RETURNED} unnoted:r cancel:r wait:1s noted:r"), "stays:1");
    check(&format!("{RETURNED} cancel:r stale:r"), "ask:r");
    // It was cancelled already.
    check(&format!("{RUNS} cancel:r unnoted:r wait:1s"), "note:r");
    check(&format!("{RUNS} cancel:r unnoted:r cancel:r"), "ends:2");
}

#[test]
fn what_could_not_be_noted_is_said_until_it_is() {
    check(&format!("{RETURNED} unnoted:r wait:1s unnoted:r wait:1s"), "note:r");
    check(&format!("{RETURNED} unnoted:r wait:1s noted:r wait:60s"), "");
    let script = Script::run(of_jobs(1), &format!("{RETURNED} unnoted:r wait:1s noted:r"));
    assert_eq!(script.core.status(script.now).runs_unnoted_count, 0);
    // The server sees to it after the exit.
    check(&format!("{RETURNED} unnoted:r drain:0s exited:0 exited:1"), "exit:Drained");
    check(&format!("{RETURNED} drain:0s exited:0 exited:1 unnoted:r"), "");
}

#[test]
fn a_job_that_nobody_has_is_asked_for_again_and_not_for_ever() {
    let nowhere = "asked:x:waiting state:x:pending";
    check(&format!("ready:1 cancel:x {nowhere}"), "");
    check(&format!("ready:1 cancel:x {nowhere} wait:9ms"), "");
    check(&format!("ready:1 cancel:x {nowhere} wait:10ms"), "ask:x");
    check(&format!("ready:1 cancel:x {nowhere} wait:10ms {nowhere} wait:19ms"), "");
    check(&format!("ready:1 cancel:x {nowhere} wait:10ms asked:x:ended"), "ends:1");
    check(&format!("ready:1 jobs cancel:x {nowhere} claimed:x"), "ends:1 verdict:x:cancelled cancelled:x:Operator");
    let tries = format!("{nowhere} wait:1s ").repeat(CANCEL_TRIES_COUNT as usize - 1);
    check(&format!("ready:1 cancel:x {tries} {nowhere}"), "stays:1");
    check(&format!("ready:1 cancel:x {nowhere} drain:0s exited:0 exited:1"), "stays:1 exit:Drained");
}

#[test]
fn a_store_that_cannot_say_is_told_as_it_is() {
    check("ready:1 cancel:x refused:x", "refused:1");
    check("ready:1 cancel:x asked:x:waiting refused:x", "refused:1");
    check("ready:1 refused:x", "");
    check("ready:1 arrive:a:/visit/cancel found:a:pending refused:x", "refuse:a:StoreUnreadable done:a");
}

#[test]
fn a_client_ends_a_job_when_it_is_known_that_it_may() {
    check("ready:1 arrive:a:/visit/cancel", "lookup:a:x:visitor");
    check("ready:1 arrive:a:/visit/cancel found:a:missing", "ended:a:x-missing done:a");
    check("ready:1 arrive:a:/visit/cancel found:a:ended", "ended:a:x-ended done:a dropjob:x");
    let lets_in = "ready:1 arrive:a:/visit/cancel found:a:pending";
    check(lets_in, "ask:x");
    check(&format!("{lets_in} asked:x:ended"), "lookup:a:x:guest");
    check(&format!("{lets_in} asked:x:ended found:a:ended"), "ended:a:x-ended:ends done:a dropjob:x");
    check(&format!("{lets_in} asked:x:elsewhere found:a:pending"), "ended:a:x-pending:ends done:a");
    check(&format!("{lets_in} asked:x:waiting state:x:over found:a:pending"), "ended:a:x-pending done:a");
    let runs = format!("{RUNS} claimed:x jobs arrive:a:/visit/cancel");
    let told = "recall:x:1:Operator verdict:x:cancelled cancelled:x:Operator lookup:a:x:guest";
    check("ready:1 jobs claimed:x arrive:a:/visit/cancel found:a:pending", told);
    check(&format!("{runs} left:a found:a:pending"), "");
}

#[test]
fn a_client_is_asked_about_before_anything_is_done() {
    let asked = "ready:1 arrive:a:/visit/cancel guarded:a";
    check(asked, "assign:a:0");
    check(&format!("{asked} park:a:access:no:answer"), "told:a:x-missing done:a");
    check(&format!("{asked} park:a:access:yes:answer"), "lookup:a:x:guest");
    check(&format!("{asked} park:a:access:yes:answer found:a:pending"), "ask:x");
    check(&format!("{asked} left:a found:a:pending"), "");
}

#[test]
fn a_client_that_does_not_wait_changes_nothing_for_the_job() {
    let lets_in = "ready:1 arrive:a:/visit/cancel found:a:pending";
    check(&format!("{lets_in} left:a"), "cancelled:a:ClientLeft");
    check(&format!("{lets_in} left:a asked:x:ended"), "");
    check(&format!("{lets_in} wait:10s"), "refuse:a:StoreUnreadable done:a");
    check(&format!("{lets_in} over:x"), "dropjob:x");
    check(&format!("{lets_in} over:x asked:x:ended"), "lookup:a:x:guest");
    check(&format!("{lets_in} drop:x"), "ended:a:x-missing done:a");
    check(&format!("{lets_in} cancel:x asked:x:ended"), "ends:1 lookup:a:x:guest");
    for events in [format!("{lets_in} left:a asked:x:ended"), format!("{lets_in} asked:x:ended found:a:missing")] {
        let script = Script::run(of_jobs(1), &events);
        let status = script.core.status(script.now);
        assert_eq!((status.jobs_cancelled_count, status.jobs_watched, status.jobs_looked_up), (0, 0, 0), "{events}");
    }
}

#[test]
fn no_more_are_ended_at_a_time_than_may() {
    let mut script = Script::run(of_jobs(1), "ready:1");
    let mut wanted = |number| {
        let mut effects = Vec::new();
        let event = CancelEvent::Wanted { job: JobId::new(number), by: CancelId(u64::try_from(number).unwrap()) };
        script.core.handle(script.now, Event::Cancel(event), &mut effects);
        effects
    };
    for number in 0..CANCELS_COUNT_MAX as u128 {
        assert_eq!(wanted(number), [Effect::Cancel(CancelEffect::Ask { job: JobId::new(number) })]);
    }
    let operators = vec![CancelId(CANCELS_COUNT_MAX as u64)];
    let told = CancelEffect::Tell { operators, outcome: CancelOutcome::TooMany };
    assert_eq!(wanted(CANCELS_COUNT_MAX as u128), [Effect::Cancel(told)]);
}
