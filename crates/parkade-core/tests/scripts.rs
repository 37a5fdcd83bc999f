//! Scripts: programs that are no workers, each with a transaction. The words are explained in `script`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use parkade_core::{AppWorkers, Config, State};
use script::{Script, check_quietly as check, check_with, quiet};

/// A script with an open transaction.
const OPEN: &str = "script:s ask:s:query:begin ended:s";

#[test]
fn a_script_begins_uses_and_ends_its_transaction() {
    check("script:s", "");
    check("script:s ask:s:query:begin", "query:s:begin:collect");
    check(OPEN, "tell:s:ended@s dropresult:s");
    check(&format!("{OPEN} ask:s:query:within"), "query:s2:within:collect");
    let used = format!("{OPEN} ask:s:query:within ended:s2");
    check(&used, "tell:s:ended@s2 dropresult:s2");
    for end in ["commit", "rollback"] {
        check(&format!("{used} ask:s:query:{end}"), &format!("query:s3:{end}:collect"));
        check(&format!("{used} ask:s:query:{end} ended:s3"), "tell:s:ended@s3 dropresult:s3");
        check(&format!("{used} ask:s:query:{end} ended:s3 left:s"), "done:s");
        check(&format!("{used} ask:s:query:{end} ended:s3 ask:s:query:within"), "tell:s:NoTransaction");
        check(&format!("{used} ask:s:query:{end} ended:s3 ask:s:query:begin"), "query:s4:begin:collect");
    }
}

#[test]
fn a_script_that_leaves_leaves_nothing_behind() {
    check("script:s left:s", "done:s");
    check("script:s ask:s:query:begin left:s", "cancelquery:s endlease:s cancelled:s:ClientLeft");
    check("script:s ask:s:query:begin left:s ended:s", "dropresult:s");
    check("script:s ask:s:query:begin failed:s left:s", "done:s");
    check(&format!("{OPEN} left:s"), "endlease:s cancelled:s:ClientLeft");
    let within = format!("{OPEN} ask:s:query:within");
    check(&format!("{within} left:s"), "cancelquery:s2 endlease:s cancelled:s:ClientLeft");
    check(&format!("{within} left:s ended:s2"), "dropresult:s2");
    check(&format!("{within} ended:s2 left:s"), "endlease:s cancelled:s:ClientLeft");
    check(&format!("{within} failed:s2 left:s"), "endlease:s cancelled:s:ClientLeft");
    // The driver does not cancel a COMMIT.
    check(&format!("{OPEN} ask:s:query:commit left:s"), "cancelquery:s2 endlease:s cancelled:s:ClientLeft");
    check(&format!("{OPEN} left:s left:s"), "");
    check(&format!("{OPEN} left:s ask:s:query:within"), "");
}

#[test]
fn a_script_that_is_silent_for_too_long_is_rolled_back() {
    check(&format!("{OPEN} wait:9s"), "");
    check(&format!("{OPEN} wait:10s"), "endlease:s cancelled:s:Deadline");
    check("script:s wait:10s", "cancelled:s:Deadline");
    check(&format!("{OPEN} wait:9s ask:s:query:within ended:s2 wait:9s"), "");
    let endless = Config { deadline: None, ..quiet() };
    check_with(endless.clone(), &format!("ready:1 {OPEN} wait:59s"), "");
    check_with(endless.clone(), &format!("ready:1 {OPEN} wait:60s"), "endlease:s cancelled:s:Deadline");
    check_with(endless, &format!("ready:1 {OPEN} ask:s:query:within wait:600s"), "");
}

#[test]
fn a_statement_past_its_deadline_is_cancelled_and_the_script_told() {
    let late = format!("{OPEN} ask:s:query:within wait:10s");
    check(&late, "cancelquery:s2");
    check(&format!("{late} failed:s2"), "tell:s:failed@s2+Deadline dropresult:s2");
    check(&format!("{late} wait:500ms"), "tell:s:QueryTooLong");
    check(&format!("{late} wait:500ms ask:s:query:rollback"), "query:s3:rollback:collect");
    check(&format!("{late} wait:500ms failed:s2 ask:s:query:rollback ended:s3 left:s"), "done:s");
    check("script:s ask:s:query:begin wait:10s wait:500ms", "endlease:s tell:s:QueryTooLong");
    check("script:s ask:s:query:begin wait:10s wait:500ms left:s", "done:s");
}

#[test]
fn operators_end_a_script_or_its_statement() {
    check(&format!("{OPEN} operator:s"), "endlease:s cancelled:s:Operator");
    check(&format!("{OPEN} ask:s:query:within operator:s"), "cancelquery:s2 endlease:s cancelled:s:Operator");
    check(&format!("{OPEN} ask:s:query:within cancelquery:s2"), "cancelquery:s2");
    let told = "tell:s:failed@s2+Operator dropresult:s2";
    check(&format!("{OPEN} ask:s:query:within cancelquery:s2 failed:s2"), told);
    check(&format!("{OPEN} ask:s:query:commit cancelquery:s2"), "");
}

#[test]
fn a_server_that_stops_lets_a_script_end_its_transaction_within_the_grace() {
    let open = format!("ready:1 {OPEN}");
    check(&format!("{open} drain:5s"), "stop_accepting drain:1:5s dismiss:1");
    let stopping = format!("{open} drain:5s exited:1");
    check(&format!("{stopping} wait:4s ask:s:query:commit"), "query:s2:commit:collect");
    check(&format!("{stopping} wait:4s ask:s:query:commit ended:s2 left:s"), "done:s exit:Drained");
    check(&format!("{stopping} wait:5s"), "endlease:s cancelled:s:Stopping exit:GraceOver");
    check(&format!("{stopping} script:t"), "tell:t:Stopping done:t");
    let within = format!("{open} ask:s:query:within drain:5s exited:1 wait:1s");
    check(&within, "cancelquery:s2");
    check(&format!("{within} failed:s2"), "tell:s:failed@s2+Stopping dropresult:s2");
    check(&format!("{within} failed:s2 ask:s:query:rollback ended:s3 left:s"), "done:s exit:Drained");
}

#[test]
fn a_reload_is_nothing_to_a_script() {
    let told = Script::run(quiet(), &format!("ready:1 {OPEN} reload ready:2 exited:1 ask:s:query:within")).told;
    assert_eq!(told, ["query:s2:within:collect"]);
}

#[test]
fn what_is_asked_out_of_turn_changes_nothing() {
    check(&format!("{OPEN} ask:s:query:within ask:s:query:within"), "");
    check(&format!("{OPEN} ask:s:query:within ask:s:query:within ended:s2"), "tell:s:ended@s2 dropresult:s2");
    check("ready:1 arrive:a ask:a:query:begin", "");
    check("ready:1 arrive:a park:a:timer:2s:answer ask:a:query:begin", "");
    check("script:s script:s", "");
    check(&format!("{OPEN} ask:s:query:begin"), "tell:s:TransactionOpen");
}

#[test]
fn a_script_takes_the_place_of_a_parked_request() {
    let full = Config { parked_count_max: 1, ..quiet() };
    check_with(full.clone(), "script:s script:t", "tell:t:ParkedFull done:t");
    check_with(full.clone(), "script:s left:s script:t", "");
    check_with(full.clone(), &format!("{OPEN} ask:s:query:within ended:s2"), "tell:s:ended@s2 dropresult:s2");
    check_with(full, "ready:1 script:s arrive:a park:a:timer:2s:answer", "keep:a refuse:a:ParkedFull done:a");
}

#[test]
fn no_worker_is_kept_for_a_script() {
    let config = Config { apps: vec![AppWorkers { requests: 1, jobs: 0 }], ..quiet() };
    let script = Script::run(config, &format!("ready:1 {OPEN} drain:5s"));
    assert!(script.told.iter().any(|told| told == "dismiss:1"), "{:?}", script.told);
    assert_eq!(script.state("s"), Some(State::Parked));
}

#[test]
fn jobs_of_a_script_are_stored_with_its_commit_or_not_at_all() {
    let enqueued = format!("{OPEN} inscript:s:x");
    check(&enqueued, "keepjob:s");
    check(&format!("{enqueued} left:s"), "endlease:s dropjobs:s cancelled:s:ClientLeft");
    check(&format!("{enqueued} ask:s:query:rollback ended:s2"), "dropjobs:s tell:s:ended@s2 dropresult:s2");
    check(&format!("{enqueued} ask:s:query:commit"), "willcommit:s2 commit:s2");
    let committed = format!("{enqueued} ask:s:query:commit ended:s2");
    check(&committed, "tell:s:ended@s2 give:s dropjobs:s dropresult:s2");
    check(&format!("{committed} ask:s:stored:all"), "");
    check(&format!("{committed} ask:s:stored:all stored:s"), "tell:s:stored");
    check(&format!("{committed} stored:s ask:s:stored:all"), "tell:s:stored");
    check(&format!("{committed} full:s ask:s:stored:all"), "tell:s:StoreFull");
    check(&format!("{committed} ask:s:stored:all stored:s left:s"), "done:s");
    check("script:s inscript:s:x", "notransaction");
    check("script:s inscript:s:x ask:s:stored:all", "tell:s:StoreUnavailable");
    check("inscript:s:x", "");
}
