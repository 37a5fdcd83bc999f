//! Jobs: claimed, run, ended. The words are explained in `script` and `script::jobs`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use std::time::Duration;

use parkade_core::limits::{JOB_RETRY_MAX, JOB_RETRY_MIN};
use parkade_core::{Config, LivesStatus, State};
use script::{Script, check_with, of_jobs};

fn check(events: &str, effects: &str) {
    check_with(of_jobs(1), events, effects);
}

/// A worker runs it.
const RUNS: &str = "ready:1 jobs claimed:r";
/// A coroutine that waits.
const WAITS: &str = "ready:1:concurrent jobs claimed:r+async park:r:timer:60s:await";
/// A coroutine that waits, and began to do so later than a branch of it.
const BRANCHED: &str = "ready:1:concurrent jobs claimed:r+async+once park:r:timer:1s:await branch:r:b:timer:90s wait:1s park:r:timer:60s:await";
/// No worker could begin it.
const CLAIMED: &str = "ready:1 jobs claimed:x+endless claimed:r";
/// A second one was claimed ahead of it.
const AHEAD: &str = "ready:1:sync:9 jobs claimed:r,s";

#[test]
fn a_job_is_claimed_run_and_returned() {
    check("ready:1 jobs", "claim:1");
    check(RUNS, "run:r:1");
    check(&format!("{RUNS} return:r"), "verdict:r:completed done:r");
    check(&format!("{RUNS} return:r return:r"), "");
    check(&format!("{RUNS} return:r:2"), "");
}

#[test]
fn a_job_that_fails_is_tried_again_as_often_as_it_says() {
    check(&format!("{RUNS} error:r"), "verdict:r:retry:Raised done:r");
    check("ready:1 jobs claimed:r@2 error:r", "verdict:r:retry:Raised done:r");
    check("ready:1 jobs claimed:r@3 error:r", "verdict:r:dead:Raised done:r");
    check("ready:1 jobs claimed:r+once error:r", "verdict:r:dead:Raised done:r");
    check(&format!("{RUNS} error:r:overloaded"), "verdict:r:retry:Refused(WorkerOverloaded) done:r");
    check(&format!("{RUNS} error:r:retry@5s"), "verdict:r:retry:Raised done:r");
    check("ready:1 jobs claimed:r+once error:r:retry@5s", "verdict:r:dead:Raised done:r");
    check(&format!("{RUNS} error:r claimed:r2=r@2 return:r2"), "verdict:r2:completed done:r2");
}

#[test]
fn before_it_is_tried_again_there_is_a_pause() {
    let pause = |events: &str| Script::run(of_jobs(1), events).pauses[0];
    assert!(pause(&format!("{RUNS} error:r")) <= JOB_RETRY_MIN);
    assert!((1..=30).any(|seed| {
        let config = Config { seed, ..of_jobs(1) };
        Script::run(config, &format!("{RUNS} error:r")).pauses[0] > JOB_RETRY_MIN / 2
    }));
    assert_eq!(pause(&format!("{RUNS} error:r:retry@5s")), Duration::from_secs(5));
    assert!(pause(&format!("{RUNS} error:r:retry")) <= JOB_RETRY_MAX);
    assert!(pause(&format!("{RUNS} exited:1")) <= JOB_RETRY_MIN);
}

#[test]
fn a_job_that_does_not_want_to_be_tried_again_is_not() {
    check(&format!("{RUNS} error:r:discard"), "verdict:r:dead:Raised done:r");
}

#[test]
fn a_job_that_nobody_knows_is_kept() {
    check("ready:1 jobs claimed:r+stranger", "verdict:r:stranger done:r");
    check(&format!("{RUNS} error:r:stranger"), "verdict:r:stranger done:r");
}

#[test]
fn a_job_waits_as_a_request_does() {
    check(&format!("{RUNS} park:r:timer:5s:call"), "keep:r");
    check(&format!("{RUNS} park:r:timer:5s:call wait:5s"), "call:r:1:elapsed");
    check(&format!("{RUNS} park:r:timer:5s:call wait:5s return:r"), "verdict:r:completed done:r");
    check(&format!("{WAITS} wait:60s"), "resume:1:elapsed:r");
    check(&format!("{WAITS} wait:60s return:r"), "verdict:r:completed done:r");
    check(&format!("{RUNS} park:r:timer:5s:call wait:5s error:r"), "verdict:r:retry:Raised done:r");
    let waits = Script::run(of_jobs(1), WAITS);
    assert_eq!((waits.state("r"), waits.core.status(waits.now).jobs_running), (Some(State::Parked), 1));
}

#[test]
fn runs_are_told_apart_from_requests() {
    let status = |events: &str| {
        let script = Script::run(of_jobs(1), events);
        let status = script.core.status(script.now);
        let waits: usize = status.waits.iter().map(|wait| wait.count).sum();
        (status.lives, status.runs, (waits, script.core.counts().parked))
    };
    let none = LivesStatus::default();
    let running = LivesStatus { running: 1, ..none };
    let parked = LivesStatus { parked: 1, ..none };
    let claimed = LivesStatus { routed: 1, running: 1, ..none };
    assert_eq!(status(CLAIMED), (claimed, claimed, (0, 0)));
    assert_eq!(status(RUNS), (running, running, (0, 0)));
    assert_eq!(status(WAITS), (parked, parked, (0, 0)));
    assert_eq!(status("ready:1 arrive:a park:a:timer:5s:call"), (parked, none, (1, 1)));
    let worker = Script::run(of_jobs(1), &format!("{RUNS} return:r arrive:a answer:a"));
    let workers = worker.core.status(worker.now).workers;
    assert_eq!(workers.iter().map(|worker| (worker.done, worker.jobs_done)).collect::<Vec<_>>(), [(1, 0), (1, 1)]);
}

#[test]
fn nobody_is_answered_by_a_job() {
    let failed = "verdict:r:retry:Refused(BadAnswer) done:r";
    check(&format!("{RUNS} park:r:timer:5s:answer"), failed);
    check(&format!("{RUNS} park:r:query:alone:answer"), failed);
    check(&format!("{RUNS} park:r:stream:bids:answer"), failed);
    check(&format!("{RUNS} answer:r"), failed);
    check(&format!("{RUNS} begin:r"), "");
    check(&format!("{RUNS} begin:r end:r"), failed);
    check(&format!("{RUNS} begin:r error:r"), "verdict:r:retry:Raised done:r");
    check(&format!("{RUNS} begin:r left:r"), {
        "recall:r:1:ClientLeft verdict:r:retry:Refused(StoreUnavailable) cancelled:r:ClientLeft"
    });
    check("ready:1 arrive:a return:a", "refuse:a:BadAnswer done:a");
    check("ready:1 arrive:a error:a:discard", "refuse:a:ApplicationFailed done:a");
    let counts = |events: &str| {
        let script = Script::run(of_jobs(1), events);
        let counts = script.core.counts();
        (counts.accepted, counts.answered, counts.cancelled.total(), counts.refused.total())
    };
    assert_eq!(counts(&format!("{RUNS} answer:r jobs claimed:s exited:1")), (0, 0, 0, 0));
}

#[test]
fn a_query_that_fails_is_why_the_attempt_failed() {
    let asks = format!("{RUNS} park:r:query:alone@2s:call");
    check(&asks, "keep:r query:r:collect");
    check(&format!("{asks} failed:r"), "told:r verdict:r:retry:Raised done:r dropresult:r");
    check(&format!("{asks} ended:r"), "call:r:1:ended@r");
    check(&format!("{asks} wait:2s"), "cancelquery:r");
    let late = "verdict:r:retry:DeadlinePassed cancelled:r:Deadline";
    check(&format!("{asks} wait:2s failed:r"), &format!("told:r:Deadline {late} dropresult:r"));
    check(&format!("{asks} wait:2s wait:500ms"), late);
    check(&format!("{asks} stop:r"), "cancelquery:r verdict:r:cancelled cancelled:r:Operator");
}

#[test]
fn who_ends_a_query_of_a_job_does_not_end_the_job() {
    let ended = format!("{RUNS} park:r:query:alone:call cancelquery:r");
    let failed = "told:r:Operator verdict:r:retry:Raised done:r dropresult:r";
    check(&format!("{ended} failed:r"), failed);
    check(&format!("{ended} ended:r"), failed);
    check(&format!("{ended} wait:500ms"), "verdict:r:retry:Refused(QueryCancelledByOperator) done:r");
    check(&format!("{ended} stop:r"), "verdict:r:cancelled cancelled:r:Operator");
    assert_eq!(Script::run(of_jobs(1), &format!("{ended} wait:500ms")).alarms(), 0);
}

#[test]
fn a_job_is_cancelled_wherever_it_is() {
    let told = "verdict:r:cancelled cancelled:r:Operator";
    for stop in ["stop:r", "operator:r"] {
        check(&format!("{CLAIMED} {stop}"), told);
        check(&format!("{RUNS} {stop}"), &format!("recall:r:1:Operator {told}"));
        check(&format!("{WAITS} {stop}"), &format!("recall:r:1:Operator {told}"));
        check(&format!("{RUNS} park:r:timer:5s:call {stop}"), told);
        check(&format!("{RUNS} park:r:timer:5s:call jobs claimed:x+endless wait:5s {stop}"), told);
        check(&format!("{RUNS} {stop} return:r"), "");
    }
    check(&format!("{RUNS} return:r stop:r"), "");
    check("ready:1 stop:r", "");
    let runs = |events: &str| Script::run(of_jobs(1), events).runs_job("r");
    assert!(runs(CLAIMED) && runs(RUNS) && runs(WAITS));
    assert!(!runs("ready:1") && !runs(&format!("{RUNS} return:r")) && !runs(&format!("{RUNS} stop:r")));
}

#[test]
fn a_worker_that_dies_costs_an_attempt_of_what_it_had_begun() {
    let lost = "verdict:r:retry:WorkerDied cancelled:r:WorkerDied start:2";
    check(&format!("{RUNS} exited:1"), lost);
    check(&format!("{WAITS} exited:1"), lost);
    check(&format!("{RUNS} violated:1"), &format!("kill:1:Violation {lost}"));
    check("ready:1 jobs claimed:r+once exited:1", &lost.replace("retry", "dead"));
    check(&format!("{RUNS} park:r:timer:5s:call exited:1"), "start:2");
    check(&format!("{RUNS} park:r:timer:5s:call exited:1 ready:2 wait:5s"), "call:r:2:elapsed");
}

#[test]
fn what_a_dead_worker_had_not_touched_is_run_by_another() {
    check(AHEAD, "run:r:1");
    check(&format!("{AHEAD} exited:1"), "verdict:r:retry:WorkerDied cancelled:r:WorkerDied start:2");
    check(&format!("{AHEAD} exited:1 ready:2"), "run:s:2");
    check(&format!("{AHEAD} exited:1 ready:2 wait:9s"), "");
    check(&format!("{AHEAD} wait:9s exited:1 ready:2 wait:9s"), "");
    check(&format!("{AHEAD} exited:1 ready:2 return:s"), "verdict:s:completed done:s");
}

#[test]
fn the_deadline_of_an_attempt_begins_with_it() {
    let late = "recall:r:1:Deadline dump:1:Deadline:r verdict:r:retry:DeadlinePassed cancelled:r:Deadline";
    check(&format!("{RUNS} wait:10s"), late);
    check(&format!("{RUNS} wait:10s wait:1s"), "kill:1:Deadline start:2");
    check("ready:1 jobs claimed:r+endless wait:3600s", "");
    check(&format!("{CLAIMED}+endless wait:400ms"), "");
    check(&format!("{CLAIMED} wait:400ms return:x wait:9s"), "");
    check(&format!("{CLAIMED} wait:400ms return:x wait:10s"), late);
    check(&format!("{RUNS} wait:9s park:r:timer:60s:call wait:60s wait:9s"), "");
}

#[test]
fn a_drain_hands_back_at_once_what_no_worker_has() {
    check(
        &format!("{CLAIMED} drain:30s"),
        "stop_accepting drain:0:30s drain:1:30s verdict:r:back cancelled:r:Stopping dismiss:0",
    );
    check(&format!("{RUNS} drain:30s"), "stop_accepting drain:0:30s drain:1:30s dismiss:0");
    check(&format!("{RUNS} drain:30s return:r"), "verdict:r:completed done:r dismiss:1");
    check(&format!("{WAITS} drain:30s"), "stop_accepting drain:0:30s drain:1:30s dismiss:0");
    check("ready:1 jobs drain:30s claimed:r", "verdict:r:back cancelled:r:Stopping");
    let lost = "verdict:r:retry:WorkerDied cancelled:r:WorkerDied";
    check(&format!("{AHEAD} drain:30s exited:0 exited:1"), &format!("{lost} exit:Drained"));
}

#[test]
fn what_runs_when_the_grace_is_over_is_handed_back_too() {
    let back = "verdict:r:back cancelled:r:Stopping";
    check(&format!("{RUNS} drain:5s exited:0 wait:5s"), &format!("recall:r:1:Stopping {back}"));
    check(&format!("{WAITS} drain:5s exited:0 wait:5s"), &format!("recall:r:1:Stopping {back} dismiss:1"));
    check(&format!("{RUNS} park:r:timer:60s:call drain:5s exited:0 wait:5s"), &format!("{back} dismiss:1"));
    let at_once =
        format!("stop_accepting drain:0:0s drain:1:0s recall:r:1:Stopping {back} kill:0:GraceOver kill:1:GraceOver");
    check("ready:1 jobs claimed:r+once drain:0", &at_once);
}

#[test]
fn a_coroutine_is_told_nothing_of_its_other_waits_when_the_grace_is_over() {
    let back = "recall:r:1:Stopping cancelled:b:Stopping verdict:r:back cancelled:r:Stopping";
    check(&format!("{BRANCHED} drain:5s exited:0 wait:5s"), &format!("{back} dismiss:1"));
    check(
        &format!("{BRANCHED} reload ready:2 ready:3 wait:30s"),
        &format!("kill:0:GraceOver {back} dismiss:1 claim:1"),
    );
}

#[test]
fn what_is_told_that_the_grace_is_over_has_a_moment_to_end() {
    let told = format!("{RUNS} drain:5s exited:0 wait:5s");
    check(&format!("{told} return:r"), "dismiss:1");
    check(&format!("{told} return:r exited:1"), "exit:GraceOver");
    check(&format!("{told} wait:999ms"), "");
    check(&format!("{told} wait:1s"), "kill:1:GraceOver");
    check(&format!("{told} drain:0"), "kill:1:GraceOver");
    check(&format!("{RUNS} drain:200ms wait:200ms wait:199ms"), "");
    check(&format!("{RUNS} drain:200ms wait:200ms wait:200ms"), "kill:1:GraceOver");
    let beside = "ready:1 arrive:a:/endless jobs claimed:r drain:5s wait:5s";
    let lost = "refuse:a:Stopping recall:a:0:Stopping cancelled:a:Stopping kill:0:GraceOver";
    check(beside, &format!("recall:r:1:Stopping verdict:r:back cancelled:r:Stopping {lost}"));
}

#[test]
fn what_is_not_done_within_the_grace_of_a_reload_is_handed_back_too() {
    let back = "recall:r:1:Stopping verdict:r:back cancelled:r:Stopping";
    let (runs, waits) =
        (RUNS.replace("claimed:r", "claimed:r+once+endless"), WAITS.replace(":r+async", ":r+async+once"));
    check(&format!("{runs} reload ready:2 ready:3 wait:30s"), &format!("kill:0:GraceOver {back} claim:1"));
    check(&format!("{waits} reload ready:2 ready:3 wait:30s"), &format!("kill:0:GraceOver {back} dismiss:1 claim:1"));
    check(&format!("{runs} reload ready:2 ready:3 wait:30s claimed:r2=r wait:999ms"), "");
    check(&format!("{runs} reload ready:2 ready:3 wait:30s claimed:r2=r wait:1s"), "kill:1:GraceOver");
    check(&format!("{runs} reload ready:2 ready:3 wait:30s claimed:r2=r error:r:cancelled:1"), "dismiss:1");
    check(&format!("{runs} reload ready:2 ready:3 wait:29s return:r"), "verdict:r:completed done:r dismiss:1");
    check(
        &format!("{runs} reload ready:2 ready:3 wait:29s exited:1"),
        "verdict:r:dead:WorkerDied cancelled:r:WorkerDied",
    );
}

#[test]
fn nothing_is_claimed_while_the_server_stops() {
    check("ready:1 drain:30s jobs", "");
    let busy = "ready:1:concurrent:0 arrive:a:/endless";
    check(&format!("{busy} jobs drain:30s credit:1:5"), "");
    check(&format!("{busy} drain:30s credit:1:5 jobs"), "");
    check("ready:1 jobs:5s drain:30s wait:29999ms", "");
    check("ready:1 arrive:a drain:30s exited:1 jobs:5s wait:5s", "");
    for left in ["jobs:5s", "jobs claimed:-:5s", "jobs unclaimed", "jobs"] {
        let mut script = Script::run(of_jobs(1), &format!("ready:1 {left} drain:30s exited:0 exited:1"));
        assert_eq!(script.told, ["exit:Drained"], "{left}");
        assert_eq!((script.core.next_due(), script.core.status(script.now).alarms), (None, 0), "{left}");
        script.go_on("jobs jobs:5s claimed:r");
        assert_eq!((script.core.next_due(), script.core.status(script.now).alarms), (None, 0), "{left}");
    }
}

#[test]
fn while_no_worker_of_jobs_starts_claimed_jobs_go_back() {
    let gone = "ready:1 jobs claimed:x,r exited:1";
    check(gone, "verdict:x:retry:WorkerDied cancelled:x:WorkerDied start:2");
    check(&format!("{gone} failed:2"), "verdict:r:back cancelled:r:Stopping");
    check(&format!("{gone} failed:2 exited:2 wait:1s ready:3"), "claim:1");
}

#[test]
fn a_slot_that_is_taken_gives_the_job_back_and_a_pause() {
    check("ready:1 jobs arrive:a claimed:a=r", "verdict:a:back done:a");
    check("ready:1 jobs arrive:a claimed:a=r answer:a wait:999ms", "");
    check("ready:1 jobs arrive:a claimed:a=r answer:a wait:1s", "claim:1");
}

#[test]
fn end_deadline_and_cancelling_at_one_instant_end_it_once() {
    let instant = ["return:r", "stop:r", "tick", "exited:1"];
    for first in 0..4 {
        for second in (0..4).filter(|second| *second != first) {
            for third in (0..4).filter(|third| ![first, second].contains(third)) {
                let mut script = Script::run(of_jobs(1), RUNS);
                script.now = script.now + Duration::from_secs(10);
                let mut told = Vec::new();
                for nth in [first, second, third, 6 - first - second - third] {
                    script.go_on(instant[nth]);
                    told.append(&mut script.told);
                }
                let count = |word: &str| told.iter().filter(|told| told.starts_with(word)).count();
                assert_eq!((count("verdict:r"), count("done:r") + count("cancelled:r")), (1, 1), "{told:?}");
                let verdict = told.iter().position(|told| told.starts_with("verdict:r")).unwrap();
                assert!(told[verdict + 1].starts_with("done:r") || told[verdict + 1].starts_with("cancelled:r"));
                let status = script.core.status(script.now);
                assert_eq!((status.alarms, status.jobs_running, status.jobs_waiting), (0, 0, 0), "{told:?}");
            }
        }
    }
}

#[test]
fn a_job_under_which_servers_die_is_not_run_for_ever() {
    check("ready:1 jobs claimed:r@13", "run:r:1");
    check("ready:1 jobs claimed:r@14", "verdict:r:dead:ServerDied done:r");
    check("ready:1 jobs claimed:r@12+once", "verdict:r:dead:ServerDied done:r");
}
