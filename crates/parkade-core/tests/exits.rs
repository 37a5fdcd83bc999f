//! Workers that die of jobs: requests do not notice. The words are explained in `script` and `script::jobs`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use parkade_core::Config;
use script::{Script, check_with, of_jobs};

fn check(events: &str, effects: &str) {
    check_with(of_jobs(1), events, effects);
}

/// The second worker in a row that dies of a job.
const TWICE: &str = "ready:1 jobs claimed:r exited:1 ready:2 claimed:s exited:2";
const LOST: &str = "verdict:s:retry:WorkerDied cancelled:s:WorkerDied";

#[test]
fn workers_that_die_again_and_again_are_started_later_and_jobs_wait_for_them() {
    let first = LOST.replace(":s", ":r");
    check("ready:1 jobs claimed:r exited:1", &format!("{first} start:2"));
    check(TWICE, LOST);
    check(&TWICE.replace("claimed:r", "claimed:r+async code:r").replace("ready:1", "ready:1:concurrent"), LOST);
    check(&format!("{TWICE} wait:249ms"), "");
    check(&format!("{TWICE} wait:250ms"), "start:3");
    check(&format!("{TWICE} jobs wait:250ms"), "start:3");
    check(&format!("{TWICE} jobs wait:250ms ready:3"), "claim:1");
    let thrice = format!("{TWICE} wait:250ms ready:3 jobs claimed:t exited:3");
    check(&format!("{thrice} wait:499ms"), "");
    check(&format!("{thrice} wait:500ms"), "start:4");
    check("ready:1 exited:1 ready:2 exited:2", "");
}

#[test]
fn requests_do_not_notice() {
    check(&format!("{TWICE} arrive:a"), "assign:a:0");
    check(&format!("{TWICE} exited:0"), "start:3");
    check(&format!("{TWICE} exited:0 ready:3 arrive:a"), "assign:a:3");
    let script = Script::run(of_jobs(1), TWICE);
    assert!(script.core.ready() && script.core.jobs_put_off(script.now).is_some());
}

#[test]
fn nor_do_jobs_when_workers_of_requests_die() {
    check("ready:1 exited:0 ready:2 exited:2", "");
    check("ready:1 exited:0 ready:2 exited:2 jobs", "claim:1");
    check("ready:1 exited:0 ready:2 exited:2 exited:1", "start:3");
    check("ready:1 exited:0 ready:2 exited:2 wait:250ms", "start:3");
}

#[test]
fn a_job_that_ends_well_ends_the_pause() {
    let begun = "ready:1 ready:2 jobs claimed:w+endless,r exited:2 ready:3 jobs claimed:s exited:3";
    check_with(of_jobs(2), begun, LOST);
    check_with(of_jobs(2), &format!("{begun} wait:1ms error:w"), "verdict:w:retry:Raised done:w");
    check_with(of_jobs(2), &format!("{begun} wait:1ms return:w"), "verdict:w:completed done:w start:4");
}

#[test]
fn so_does_a_worker_that_lives_for_long() {
    check(&format!("{TWICE} wait:250ms ready:3 jobs claimed:t wait:9s exited:3"), {
        "verdict:t:retry:WorkerDied cancelled:t:WorkerDied"
    });
    check(&format!("{TWICE} wait:250ms ready:3 jobs claimed:t+endless wait:10s exited:3"), {
        "verdict:t:retry:WorkerDied cancelled:t:WorkerDied start:4"
    });
}

#[test]
fn and_new_code() {
    check(&format!("{TWICE} reload"), "start:3");
    check(&format!("{TWICE} reload ready:3"), "start:4");
    check(&format!("{TWICE} reload ready:3 ready:4"), "reloaded:Done drain:0:30s dismiss:0");
    check(&format!("{TWICE} jobs reload ready:3 ready:4"), "reloaded:Done drain:0:30s dismiss:0 claim:1");
}

/// Other servers may begin it, and have its place in its queue.
#[test]
fn what_had_been_claimed_goes_back() {
    let dead = "ready:1 jobs claimed:r exited:1 ready:2 claimed:s,t exited:2";
    check(dead, &format!("{LOST} verdict:t:back cancelled:t:Stopping"));
    check(&format!("{dead} wait:250ms"), "start:3");
    check(&format!("{dead} wait:250ms ready:3"), "claim:1");
    let on_its_way = "ready:1 jobs claimed:r exited:1 ready:2 jobs exited:2";
    check(&format!("{on_its_way} claimed:t:100ms"), "verdict:t:back cancelled:t:Stopping");
    check(&format!("{on_its_way} claimed:t:100ms wait:250ms ready:3"), "claim:1");
}

#[test]
fn one_that_does_not_start_keeps_nobody_from_serving() {
    check("failed:1", "");
    check("failed:1 exited:1 wait:999ms", "");
    check("failed:1 exited:1 wait:1s", "start:2");
    check("failed:1 exited:1 arrive:a", "assign:a:0");
    let exits = Config { exit_when_the_first_start_fails: true, ..of_jobs(1) };
    check_with(exits, "failed:1 exited:1 arrive:a", "assign:a:0");
    // That another one ends a job well says nothing of starting.
    check_with(of_jobs(2), "ready:2 jobs claimed:r failed:1 exited:1 wait:1ms return:r", "verdict:r:completed done:r");
}

#[test]
fn nothing_is_left_of_the_pause_at_the_end() {
    let mut script = Script::run(of_jobs(1), &format!("{TWICE} jobs drain:30s exited:0"));
    assert_eq!(script.told, ["exit:Drained"]);
    assert_eq!((script.core.next_due(), script.alarms()), (None, 0));
    script.now = script.now + std::time::Duration::from_secs(60);
    script.go_on("tick");
    assert_eq!(script.told, [""; 0]);
}
