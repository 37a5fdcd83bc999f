//! Workers that die of jobs: requests do not pay for that. The words are explained in `script` and `script::jobs`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use std::time::Duration;

use parkade_core::Config;
use script::{Script, check_quietly as check, check_with, quiet as config};

/// So many for requests, and one for jobs.
fn apart(workers: u32) -> Config {
    Config { workers, job_workers: 1, ..config() }
}

/// The second worker in a row that dies of a job.
const TWICE: &str = "ready:1 jobs claimed:r exited:1 ready:2 claimed:s exited:2";

#[test]
fn workers_that_die_of_jobs_are_started_again_at_once() {
    let lost = "verdict:s:retry:WorkerDied cancelled:s:WorkerDied start:3";
    check("ready:1 jobs claimed:r exited:1", &lost.replace(":s", ":r").replace('3', "2"));
    check(TWICE, lost);
    check(&format!("{TWICE} ready:3 arrive:a"), "assign:a:3");
    check(&TWICE.replace("exited:2", "stop:s exited:2"), "start:3");
    check(&TWICE.replace("claimed:r", "claimed:r+async").replace("ready:1", "ready:1:concurrent"), lost);
}

#[test]
fn instead_the_jobs_have_to_wait() {
    check(&format!("{TWICE} jobs ready:3"), "");
    check(&format!("{TWICE} jobs ready:3 wait:249ms"), "");
    check(&format!("{TWICE} jobs ready:3 wait:250ms"), "claim:1");
    check(&format!("{TWICE} ready:3 wait:250ms"), "claim:1");
    let thrice = format!("{TWICE} ready:3 wait:250ms claimed:t exited:3 ready:4");
    check(&format!("{thrice} wait:499ms"), "");
    check(&format!("{thrice} wait:500ms"), "claim:1");
    let asked = TWICE.replace("exited:2", "jobs jobs:100ms jobs:9s exited:2");
    check(&format!("{asked} ready:3 wait:249ms"), "");
    check(&format!("{asked} ready:3 wait:250ms"), "claim:1");
    assert_eq!(Script::run(config(), &format!("{asked} jobs:100ms")).alarms(), 1);
}

#[test]
fn the_pause_grows_up_to_half_a_minute_though_its_workers_live_long_without_jobs() {
    let mut script = Script::run(config(), "ready:1 jobs");
    let mut pauses = Vec::new();
    for worker in 1..12 {
        script.go_on(&format!("claimed:r{worker} wait:10ms exited:{worker} ready:{} jobs", worker + 1));
        let began = script.now;
        for _ in 0..10 {
            if script.told.iter().any(|word| word.starts_with("claim")) {
                break;
            }
            script.now = script.core.next_due().unwrap();
            script.go_on("tick");
        }
        pauses.push((script.now - began).as_millis());
    }
    assert_eq!(pauses, [0, 250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
}

#[test]
fn a_job_that_ends_well_ends_the_pause() {
    let three = || Config { workers: 3, ..config() };
    let begun = "ready:1 ready:2 ready:3 jobs claimed:w+endless,r exited:2 ready:4 jobs claimed:s";
    check_with(three(), begun, "run:s:3");
    let twice = format!("{begun} exited:3 ready:5 jobs");
    check_with(three(), &twice, "");
    check_with(three(), &format!("{twice} wait:1ms error:w"), "verdict:w:retry:Raised done:w");
    check_with(three(), &format!("{twice} wait:1ms return:w"), "verdict:w:completed done:w claim:2");
    check(&format!("{TWICE} ready:3 wait:250ms claimed:t return:t jobs claimed:u exited:3 ready:4 jobs"), "claim:1");
    check(&format!("{TWICE} ready:3 wait:250ms jobs claimed:t error:t jobs claimed:u exited:3 ready:4 jobs"), "");
}

#[test]
fn so_does_a_worker_that_did_not_die_of_jobs_for_long() {
    check(&format!("{TWICE} ready:3 wait:250ms claimed:t wait:9s exited:3 jobs ready:4"), "");
    check(&format!("{TWICE} ready:3 wait:250ms claimed:t+endless wait:10s exited:3 jobs ready:4"), "claim:1");
}

#[test]
fn and_new_code() {
    check(&format!("{TWICE} ready:3 jobs reload ready:4"), "reloaded:Done drain:3:30s dismiss:3 claim:1");
}

/// Other servers may begin it, and have its place in its queue.
#[test]
fn what_had_been_claimed_goes_back() {
    let ahead = "ready:1:sync:9 jobs claimed:x return:x jobs claimed:r exited:1 ready:2:sync:9 arrive:q answer:q \
                 claimed:s,t";
    check(ahead, "run:s:2 run:t:2");
    let dead = format!("{ahead} exited:2");
    check(&dead, "verdict:s:retry:WorkerDied cancelled:s:WorkerDied verdict:t:back cancelled:t:Stopping start:3");
    check(&format!("{dead} ready:3 wait:249ms"), "");
    check(&format!("{dead} ready:3 wait:250ms"), "claim:1");
    let on_its_way = "ready:1:concurrent jobs claimed:r+async exited:1 ready:2:concurrent jobs claimed:s+async jobs \
                      exited:2 ready:3:concurrent";
    check(&format!("{on_its_way} claimed:t+async:100ms"), "verdict:t:back cancelled:t:Stopping");
    check(&format!("{on_its_way} claimed:t+async:100ms wait:249ms"), "");
    check(&format!("{on_its_way} claimed:t+async:100ms wait:250ms"), "claim:3");
}

#[test]
fn who_died_of_a_request_or_of_nothing_that_it_was_given_is_started_later() {
    check("ready:1 arrive:a exited:1 ready:2 jobs claimed:s exited:2 ready:3 arrive:b exited:3", {
        "refuse:b:WorkerDied cancelled:b:WorkerDied"
    });
    check("ready:1 exited:1 ready:2 jobs exited:2", "");
    let both = "ready:1:concurrent exited:1 ready:2:concurrent arrive:a:/async jobs claimed:s+async exited:2";
    let lost = "refuse:a:WorkerDied cancelled:a:WorkerDied verdict:s:retry:WorkerDied cancelled:s:WorkerDied";
    check(both, lost);
    let left = both.replace("claimed", "left:a claimed");
    check(&left, "verdict:s:retry:WorkerDied cancelled:s:WorkerDied");
    let waits = "ready:1:concurrent exited:1 ready:2:concurrent arrive:a:/async park:a:timer:9s:await jobs \
                 claimed:s+async exited:2";
    let lost = "verdict:s:retry:WorkerDied cancelled:s:WorkerDied refuse:a:WorkerDied cancelled:a:WorkerDied start:3";
    check(waits, lost);
}

#[test]
fn the_death_of_a_worker_of_jobs_puts_no_other_off() {
    let dead = "ready:1 ready:2 exited:2 ready:3 exited:3";
    check_with(apart(1), dead, "");
    check_with(apart(1), &format!("{dead} exited:1"), "start:4");
    check_with(apart(1), &format!("{dead} exited:1 ready:4"), "");
    check_with(apart(1), &format!("{dead} exited:1 ready:4 wait:250ms"), "start:5");
    check_with(apart(1), &format!("{dead} wait:249ms"), "");
    check_with(apart(1), &format!("{dead} wait:250ms"), "start:4");
    check_with(apart(1), &format!("{dead} wait:250ms ready:4 wait:10s exited:4"), "start:5");
    check_with(apart(2), "ready:1 ready:2 ready:3 exited:3 ready:4 exited:4 wait:1ms exited:1 exited:2", "start:6");
    let jobs = "ready:1 ready:2 jobs claimed:r exited:2 ready:3 jobs claimed:s exited:3";
    check_with(apart(1), jobs, "verdict:s:retry:WorkerDied cancelled:s:WorkerDied start:4");
    check_with(apart(1), &format!("{jobs} exited:1"), "start:5");
    let requests = "ready:1 ready:2 exited:1 ready:3 exited:3";
    check_with(apart(1), requests, "");
    check_with(apart(1), &format!("{requests} wait:250ms"), "start:4");
}

#[test]
fn nothing_is_left_of_the_pause_at_the_end() {
    let mut script = Script::run(config(), &format!("{TWICE} ready:3 jobs drain:30s exited:3"));
    assert_eq!(script.told, ["exit:Drained"]);
    assert_eq!((script.core.next_due(), script.alarms()), (None, 0));
    script.now = script.now + Duration::from_secs(60);
    script.go_on("tick");
    assert_eq!(script.told, [""; 0]);
}
