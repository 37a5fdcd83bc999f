//! Transactions: whose they are, and what ends them. The words are explained in `script`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use script::check_quietly as check;

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
    check(&format!("{OPEN} park:a:query:within:answer ended:a2"), "told:a@a2 endlease:a done:a dropresult:a2");
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
fn nothing_is_done_in_a_transaction_before_its_begin_has_ended() {
    let begins = "ready:1:concurrent:9 arrive:a:/async park:a:query:begin:await";
    for work in ["within", "commit", "rollback"] {
        check(&format!("{begins} branch:a:b:query:{work}"), "resume:1:TransactionBusy:b done:b");
        check(&format!("{begins} cancelquery:a branch:a:b:query:{work}"), "resume:1:NoTransaction:b done:b");
        check(&format!("{begins} ended:a branch:a:b:query:{work}"), &format!("query:a2:{work}:collect"));
    }
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
fn an_operator_does_not_cancel_an_end() {
    for end in ["commit", "rollback"] {
        check(&format!("{OPEN} park:a:query:{end}:await cancelquery:a2"), "");
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
    check(&format!("{OPEN} drain:5s wait:5s"), {
        "refuse:a:Stopping recall:a:1:Stopping endlease:a cancelled:a:Stopping kill:1:GraceOver"
    });
}
