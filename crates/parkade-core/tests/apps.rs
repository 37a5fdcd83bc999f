//! Several applications in one core: what happens to one changes nothing for the others. The words are explained in `script`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use parkade_core::{AppId, AppWorkers, Config, ReloadOutcome};
use script::{Script, quiet};

fn two() -> Config {
    Config { apps: vec![AppWorkers { requests: 1, jobs: 0 }; 2], ..quiet() }
}

/// With workers of jobs: 1 is that of the second application, whose worker of requests is ready first, and 2 that of the first.
fn two_with_jobs() -> Config {
    Config { apps: vec![AppWorkers { requests: 1, jobs: 1 }; 2], ..quiet() }
}

fn check(events: &str, effects: &str) {
    script::check_with(two(), events, effects);
}

#[test]
fn each_has_workers_of_its_own() {
    check("", "start:1 start:2@1");
    check("ready:1 ready:2 arrive:a@1", "assign:a:2");
    check("ready:1 ready:2 arrive:a@0", "assign:a:1");
    check("ready:1 ready:2 exited:2", "start:3@1");
}

#[test]
fn one_that_is_busy_or_hangs_does_not_keep_the_other_waiting() {
    let busy = "ready:1:sync:1 ready:2:sync:1 arrive:a arrive:b";
    check(busy, "");
    check(&format!("{busy} arrive:c@1"), "assign:c:2");
    check(&format!("{busy} arrive:c@1 arrive:d@1 answer:c"), "relay:c done:c assign:d:2");
}

#[test]
fn each_has_a_queue_of_its_own() {
    let tight = Config { queued_count_max: 1, ..two() };
    let full = "ready:1:sync:1 ready:2:sync:1 arrive:a arrive:b arrive:c";
    script::check_with(tight.clone(), full, "refuse:c:QueueFull done:c");
    script::check_with(tight.clone(), &format!("{full} arrive:d@1"), "assign:d:2");
    script::check_with(tight, &format!("{full} arrive:d@1 arrive:e@1"), "");
}

#[test]
fn each_has_a_bound_of_its_own_for_what_runs() {
    let tight = Config { running_count_max: 1, ..two() };
    let full = "ready:1:concurrent:9 ready:2:concurrent:9 arrive:a:/async arrive:b:/async";
    script::check_with(tight.clone(), full, "");
    script::check_with(tight, &format!("{full} arrive:c@1:/async"), "assign:c:2");
}

#[test]
fn one_that_does_not_start_is_refused_and_the_other_serves() {
    check("failed:2 ready:1 arrive:a@1", "refuse:a:NoApplication done:a");
    check("failed:2 ready:1 arrive:a", "assign:a:1");
    check("arrive:a@1 failed:2", "refuse:a:NoApplication done:a");
    check("failed:2 ready:1 wait:1s", "start:3@1");
    check("failed:2 exited:2 ready:1 wait:1s ready:3 arrive:a@1", "assign:a:3");
}

#[test]
fn the_server_ends_if_none_loads_at_the_first_start() {
    check("failed:1", "");
    check("failed:1 exited:1 failed:2 exited:2", "exit:ApplicationFailed");
    check("ready:1 failed:2 exited:2 exited:1", "start:3");
}

#[test]
fn one_whose_workers_keep_dying_does_not_slow_down_the_other() {
    let cursed = "ready:1 ready:2 exited:2 ready:3 exited:3";
    check(cursed, "");
    check(&format!("{cursed} arrive:a@1"), "");
    check(&format!("{cursed} arrive:b"), "assign:b:1");
    check(&format!("{cursed} exited:1"), "start:4");
}

#[test]
fn a_reload_loads_all_of_them() {
    check("ready:1 ready:2 reload", "start:3 start:4@1");
    let first = "ready:1 ready:2 reload ready:3";
    check(first, "reloaded:Done drain:1:30s dismiss:1");
    check(&format!("{first} ready:4"), "reloaded:Done@1 drain:2:30s dismiss:2");
    let done = Script::run(two(), &format!("{first} ready:4")).core;
    assert_eq!((done.counts().reloads_done, done.counts().reloads_given_up), (1, 0));
}

#[test]
fn one_that_cannot_load_keeps_its_old_code() {
    let events = "ready:1 ready:2 reload ready:3 failed:4";
    check(events, "reloaded:GivenUp@1");
    check(&format!("{events} arrive:a@1"), "assign:a:2");
    check(&format!("{events} arrive:a"), "assign:a:3");
    let script = Script::run(two(), events);
    let status = script.core.status(script.now);
    let generations: Vec<u32> = status.apps.iter().map(|app| app.generation).collect();
    assert_eq!((generations, status.last_reload), (vec![2, 1], Some(ReloadOutcome::GivenUp)));
    assert_eq!((script.core.counts().reloads_done, script.core.counts().reloads_given_up), (0, 1));
}

#[test]
fn a_reload_that_is_asked_for_meanwhile_begins_when_the_last_has_loaded() {
    let events = "ready:1 ready:2 reload ready:3 reload";
    check(events, "");
    check(&format!("{events} ready:4"), "reloaded:Done@1 drain:2:30s dismiss:2 start:5 start:6@1");
}

#[test]
fn a_request_stays_with_its_application() {
    let events = "ready:1:sync:3:a ready:2:sync:3:a arrive:a@1 park:a:timer:1s:call";
    check(&format!("{events} wait:1s"), "call:a:2:elapsed");
    check(&format!("{events} exited:2 wait:1s"), "");
    check(&format!("{events} exited:2 wait:1s ready:3"), "call:a:3:elapsed");
}

#[test]
fn the_server_is_ready_when_each_has_had_its_start() {
    let ready = |events| Script::run(two(), events).core.ready();
    assert!(!ready("") && !ready("ready:1") && ready("ready:1 ready:2") && ready("ready:1 failed:2"));
    assert!(ready("ready:1 ready:2 exited:2") && !ready("ready:1 ready:2 exited:1 exited:2"));
}

#[test]
fn a_worker_tells_whose_code_it_runs() {
    let script = Script::run(two(), "");
    let app = |worker| script.core.app(parkade_core::WorkerId(worker));
    assert_eq!((app(1), app(2), app(3)), (Some(AppId(0)), Some(AppId(1)), None));
}

#[test]
fn a_job_runs_in_a_worker_of_its_application() {
    let events = "ready:1 ready:2 jobs";
    script::check_with(two_with_jobs(), events, "claim:2");
    script::check_with(two_with_jobs(), &format!("{events} claimed:a+@1,b"), "run:b:2 run:a:1");
}

/// The store gives the jobs of all alike.
#[test]
fn jobs_of_one_that_is_busy_wait_and_the_other_goes_on() {
    let busy = "ready:1 ready:2 jobs claimed:a,b+@1 jobs claimed:c jobs";
    let script = Script::run(two_with_jobs(), busy);
    assert_eq!(script.told, [""; 0], "nobody is free");
    let freed = format!("{busy} return:b claimed:d");
    let script = Script::run(two_with_jobs(), &freed);
    assert_eq!(script.core.status(script.now).jobs_waiting, 2, "c, and d");
    script::check_with(two_with_jobs(), &format!("{freed} jobs claimed:e+@1"), "run:e:1");
}

/// 1 is the worker for jobs of the second application, and 2 that of the first.
#[test]
fn a_queue_of_which_too_much_waits_here_is_left_out_and_the_others_are_not() {
    let tight = Config { jobs_elsewhere_count_max: 2, ..two_with_jobs() };
    let check = |events: &str, effects: &str| script::check_with(tight.clone(), events, effects);
    let busy = "ready:1 ready:2 jobs claimed:a+q1,b+q1,c+q1";
    check(&format!("{busy} jobs"), "claim:1:q1=0");
    check(&format!("{busy} jobs claimed:d+@1+q2"), "run:d:1");
    check("ready:1 ready:2 jobs claimed:a+q1,b+q1 jobs", "claim:1");
}

#[test]
fn a_queue_that_was_left_out_is_claimed_from_when_fewer_wait() {
    let tight = Config { jobs_elsewhere_count_max: 2, ..two_with_jobs() };
    let busy = "ready:1 ready:2 jobs claimed:a+q1,b+q1,c+q1 jobs claimed:-";
    script::check_with(tight.clone(), busy, "");
    script::check_with(tight, &format!("{busy} return:a"), "verdict:a:completed done:a run:b:2 run:c:2 claim:2");
}

/// A job that nobody declares is set aside until somebody does. 1 is the worker for requests of the second application, and 2 that for jobs of the
/// first.
#[test]
fn nothing_is_claimed_before_each_has_had_its_start() {
    let mut config = two_with_jobs();
    config.apps[1].jobs = 0;
    let check = |events: &str, effects: &str| script::check_with(config.clone(), events, effects);
    check("ready:2 jobs", "");
    check("ready:2 jobs ready:1", "start:3@1 claim:1");
    check("ready:2 jobs failed:1", "claim:1");
}

#[test]
fn a_drain_keeps_workers_for_whoever_still_needs_them() {
    let busy = "ready:1:sync:1 ready:2:sync:1 arrive:a@1 arrive:b@1 drain:30s";
    check(busy, "stop_accepting drain:1:30s drain:2:30s dismiss:1");
    check(&format!("{busy} exited:2"), "refuse:a:WorkerDied cancelled:a:WorkerDied start:3@1");
    check(&format!("{busy} exited:2 ready:3"), "drain:3:30s assign:b:3");
}
