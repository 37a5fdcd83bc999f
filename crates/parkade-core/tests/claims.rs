//! How many jobs are claimed, when, and for which workers. The words are explained in `script` and `script::jobs`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use std::time::Duration;

use parkade_core::limits::JOBS_AHEAD_COUNT_MAX;
use parkade_core::{Config, Recycle};
use script::{Script, check_quietly as check, check_with, quiet as config};

fn workers(workers: u32) -> Config {
    Config { workers, ..config() }
}

/// So many for requests, and one for jobs.
fn apart(workers: u32) -> Config {
    Config { workers, job_workers: 1, ..config() }
}

#[test]
fn jobs_are_claimed_when_there_may_be_some_and_a_worker_could_begin_them() {
    check("ready:1", "");
    check("jobs", "");
    check("jobs ready:1", "claim:1");
    check("ready:1:sync:0 jobs", "");
    check("ready:1:sync:0 jobs credit:1:1", "claim:1");
    check("ready:1 arrive:a jobs", "");
    check("ready:1:sync:1 arrive:a jobs wait:1ms answer:a", "relay:a done:a claim:1");
    check("ready:1:concurrent:7 jobs", "claim:7");
    check("ready:1:concurrent:1000 jobs", "claim:256");
    check_with(workers(2), "ready:1:concurrent:7 ready:2:concurrent:5 jobs", "claim:12");
    check("ready:1 jobs claimed:-", "");
    check("ready:1 jobs claimed:- jobs", "claim:1");
}

#[test]
fn the_store_is_asked_once_at_a_time() {
    check("ready:1 jobs jobs", "");
    check("ready:1:concurrent jobs jobs jobs", "");
    check("ready:1:concurrent jobs jobs jobs claimed:-", "claim:3");
    check("ready:1:concurrent jobs jobs jobs claimed:- claimed:-", "");
    check("ready:1:concurrent jobs jobs jobs unclaimed", "claim:3");
}

#[test]
fn when_others_are_ready_the_store_is_asked_again() {
    check("ready:1:concurrent jobs claimed:r,s+async:more", "run:r:1");
    check("ready:1:concurrent jobs claimed:r+async,s+async:more", "run:r:1 run:s:1 claim:1");
    check("ready:1 jobs claimed:r:more", "run:r:1");
    check("ready:1 jobs claimed:r:more wait:1ms return:r", "verdict:r:completed done:r claim:1");
    check("ready:1 jobs claimed:r wait:1ms return:r", "verdict:r:completed done:r");
}

#[test]
fn when_the_next_is_known_the_store_is_asked_then() {
    check("ready:1 jobs:5s wait:4999ms", "");
    check("ready:1 jobs:5s wait:5s", "claim:1");
    check("ready:1 jobs:0 wait:5s", "");
    check("ready:1 jobs claimed:-:5s wait:4999ms", "");
    check("ready:1 jobs claimed:-:5s wait:5s", "claim:1");
    check("ready:1 jobs:5s jobs:9s wait:5s claimed:- wait:4s", "");
    check("ready:1 jobs:9s jobs:5s wait:5s", "claim:1");
    check("ready:1 jobs:9s jobs:5s wait:5s claimed:-:4s wait:4s", "claim:1");
    check("ready:1 arrive:a:/endless jobs:5s wait:6s answer:a", "relay:a done:a claim:1");
    assert_eq!(Script::run(config(), "ready:1 jobs:5s jobs:2s jobs:9s").alarms(), 1);
}

#[test]
fn a_store_that_does_not_answer_is_asked_again_after_a_while() {
    check("ready:1 jobs unclaimed", "");
    check("ready:1 jobs unclaimed wait:999ms", "");
    check("ready:1 jobs unclaimed wait:1s", "claim:1");
    check("ready:1 jobs unclaimed wait:1s unclaimed wait:1s", "claim:1");
}

#[test]
fn quick_workers_have_a_few_jobs_ready_ahead_and_more_when_those_come_too_late() {
    let quick = "ready:1:sync:4 jobs claimed:r return:r";
    check(&format!("{quick} jobs"), "claim:5");
    let late = |times: usize| {
        let mut script = Script::run(config(), quick);
        script.go_on("jobs");
        for nth in 0..times {
            script.go_on(&format!("claimed:a{nth}:more return:a{nth}"));
        }
        script.go_on("claimed:-:more");
        script.told[0].strip_prefix("claim:").unwrap().parse::<u32>().unwrap()
    };
    assert_eq!([late(0), late(1), late(2), late(3)], [6, 8, 12, 20]);
    assert_eq!(late(30), 4 + JOBS_AHEAD_COUNT_MAX);
}

#[test]
fn what_waits_for_long_keeps_others_in_the_store() {
    let most = || Config { running_count_max: 1, ..config() };
    let ahead = "ready:1:concurrent:9 jobs claimed:r+async,s+async";
    check_with(most(), &format!("{ahead} wait:20ms jobs"), "claim:7");
    check_with(most(), &format!("{ahead} wait:21ms jobs"), "");
    check_with(most(), &format!("{ahead} wait:21ms jobs return:r"), "verdict:r:completed done:r run:s:1 claim:8");
}

#[test]
fn a_queue_runs_so_many_at_a_time() {
    let two = "ready:1:concurrent:9 queue:1:2";
    check(two, "claim:9:q1=2");
    let full = format!("{two} claimed:r+async+q1,s+async+q1");
    check(&full, "run:r:1 run:s:1");
    check(&format!("{full} jobs"), "claim:7:q1=0");
    check(&format!("{full} jobs claimed:-"), "");
    check(&format!("{full} return:r"), "verdict:r:completed done:r claim:8:q1=1");
    check(&format!("{full} park:r:timer:9s:await"), "");
    check(&format!("{two} claimed:r+async+q1 return:r"), "verdict:r:completed done:r");
    check(&format!("{full} jobs return:r"), "verdict:r:completed done:r");
    check(&format!("{full} jobs return:r claimed:-"), "claim:8:q1=1");
    check(&format!("{two} queue:1"), "");
    check(&format!("{two} queue:1 claimed:-"), "claim:9");
    check(&format!("{two} queue:2:1 claimed:-"), "claim:9:q2=1");
    check(&format!("{two} queues claimed:-"), "claim:9");
}

/// Its code may go on: a plain function that does not look is told nothing.
#[test]
fn what_has_ended_has_its_place_in_its_queue_until_its_worker_lets_go_of_it() {
    let full = "ready:1:concurrent:9 queue:1:1 claimed:r+async+q1";
    for (end, told) in [
        ("stop:r", "recall:r:1:Operator verdict:r:cancelled cancelled:r:Operator"),
        ("wait:10s", "recall:r:1:Deadline dump:1:Deadline verdict:r:retry:DeadlinePassed cancelled:r:Deadline ping:1"),
    ] {
        let told: Vec<&str> = told.split(' ').collect();
        assert_eq!(sorted(&Script::run(config(), &format!("{full} {end}")).told), sorted(&told), "{end}");
        check(&format!("{full} {end} jobs"), "claim:8:q1=0");
        check(&format!("{full} {end} jobs claimed:- error:r:cancelled:1"), "claim:9:q1=1");
        check(&format!("{full} jobs {end} claimed:- jobs"), "claim:8:q1=0");
        let died = Script::run(config(), &format!("{full} {end} jobs claimed:- exited:1"));
        assert!(died.told.contains(&"start:2".into()), "{:?}", died.told);
        check(&format!("{full} {end} jobs claimed:- exited:1 ready:2:concurrent:9"), "claim:9:q1=1");
    }
    let back = format!("{full} error:r claimed:s+async+q1+endless jobs reload ready:2:concurrent:9 wait:30s");
    check(&format!("{back} claimed:-"), "claim:9:q1=0");
    check(&format!("{back} claimed:- claimed:- error:s:cancelled:1"), "dismiss:1 claim:9:q1=1");
    let waits = "ready:1 ready:2 queue:1:1 claimed:r+q1 park:r:timer:5s:call";
    check_with(workers(2), &format!("{waits} stop:r"), "verdict:r:cancelled cancelled:r:Operator claim:5:q1=1");
}

fn sorted<T: ToString>(words: &[T]) -> Vec<String> {
    let mut words: Vec<String> = words.iter().map(T::to_string).collect();
    words.sort();
    words
}

#[test]
fn a_place_that_came_free_while_the_store_was_asked_is_not_forgotten() {
    let asked = "ready:1:concurrent:9 queue:1:2 claimed:r+async+q1 jobs";
    check(asked, "claim:8:q1=1");
    check(&format!("{asked} return:r claimed:s+async+q1"), "run:s:1 claim:8:q1=1");
    check(&format!("{asked} return:r claimed:-"), "");
}

#[test]
fn a_queue_begins_so_many_in_a_second() {
    let ten = "ready:1:concurrent:99 queue:1:-:10";
    check(ten, "claim:99:q1=10");
    let all = (0..10).map(|nth| format!("r{nth}+async+q1")).collect::<Vec<String>>().join(",");
    check(&format!("{ten} claimed:{all} wait:99ms"), "");
    check(&format!("{ten} claimed:{all} wait:100ms"), "claim:89:q1=1");
    check(&format!("{ten} claimed:{all} wait:100ms claimed:s+async+q1 wait:100ms"), "claim:88:q1=1");
    check(&format!("{ten} claimed:{all} wait:100ms claimed:- wait:1s"), "");
    check(&format!("{ten} claimed:{all} wait:100ms claimed:- wait:1s jobs"), "claim:89:q1=10");
    check(&format!("{ten} claimed:r+async+q1 wait:1s"), "");
}

/// It would be asked again and again, for nothing.
#[test]
fn a_queue_that_may_run_no_more_is_not_asked_for_because_it_may_begin_more() {
    let both = "ready:1:concurrent:9 queue:1:1:10 claimed:r+async+q1";
    check(both, "run:r:1");
    let mut script = Script::run(config(), both);
    script.go_on("wait:9s");
    assert!(script.told.iter().all(|word| !word.starts_with("claim")), "{:?}", script.told);
    check(&format!("{both} return:r"), "verdict:r:completed done:r claim:9:q1=1");
    let few = "ready:1:concurrent:9 queue:1:5:1 claimed:r+async+q1";
    check(&format!("{few} wait:999ms"), "");
    check(&format!("{few} wait:1s"), "claim:8:q1=1");
}

#[test]
fn the_last_worker_that_no_job_takes_up_is_left_to_requests() {
    check_with(workers(2), "ready:1 ready:2 jobs", "claim:1");
    check_with(workers(3), "ready:1 ready:2 ready:3 jobs", "claim:2");
    check_with(workers(2), "ready:1 ready:2 jobs claimed:r,s", "run:r:1");
    check_with(workers(2), "ready:1 ready:2 jobs claimed:r,s arrive:a", "assign:a:2");
    check_with(workers(2), "ready:1 ready:2 jobs claimed:r,s wait:1ms return:r", "verdict:r:completed done:r run:s:1");
    check_with(workers(2), "ready:1 ready:2 arrive:a jobs claimed:r", "run:r:2");
    check_with(workers(2), "ready:1 jobs claimed:r", "run:r:1");
}

#[test]
fn all_workers_are_taken_up_only_by_jobs_that_have_been_quick() {
    let requests = "ready:1:sync:9 ready:2:sync:9 arrive:x arrive:y answer:x answer:y";
    check_with(workers(2), &format!("{requests} jobs claimed:r,s"), "run:r:1");
    let jobs = "jobs claimed:p return:p jobs claimed:r,s";
    check_with(workers(2), &format!("{requests} {jobs}"), "run:r:1 run:s:2");
    check_with(workers(2), &format!("{requests} {jobs} jobs return:r wait:1ms claimed:t"), "");
}

#[test]
fn a_coroutine_takes_no_loop_up() {
    let loops = "ready:1:concurrent:2 ready:2:concurrent:2 jobs";
    check_with(workers(2), &format!("{loops} claimed:r+async,s+async,t+async"), "run:r:1 run:s:2 run:t:1");
    check_with(workers(2), &format!("{loops} claimed:r,s"), "run:r:1");
    check_with(workers(2), &format!("{loops} claimed:r,s arrive:a:/async"), "assign:a:2");
    check_with(workers(2), &format!("{loops} claimed:r,s+async"), "run:r:1 run:s:2");
    check("ready:1:concurrent:2 jobs claimed:r,s", "run:r:1");
}

#[test]
fn workers_of_jobs_run_nothing_else_and_others_run_no_jobs() {
    check_with(apart(1), "", "start:1 start:2");
    check_with(apart(1), "ready:1 jobs", "");
    check_with(apart(1), "ready:1 ready:2 jobs", "claim:1");
    check_with(apart(1), "ready:1 ready:2 jobs claimed:r", "run:r:2");
    check_with(apart(1), "ready:1 ready:2 jobs claimed:r,s", "run:r:2");
    check_with(apart(1), "ready:1 ready:2 arrive:a arrive:b", "");
    check_with(apart(1), "ready:2 ready:1 arrive:a", "assign:a:2");
    let (ready, not) = (Script::run(apart(1), "ready:1 ready:2"), Script::run(apart(1), "ready:1 ready:2 exited:1"));
    assert!(ready.core.ready() && !not.core.ready());
    let roles: Vec<bool> = ready.core.status(ready.now).workers.iter().map(|worker| worker.for_jobs).collect();
    assert_eq!(roles, [false, true]);
}

#[test]
fn what_a_job_goes_on_with_is_for_the_workers_of_jobs_if_they_can() {
    let waits = "ready:1 ready:2 jobs claimed:r park:r:timer:5s:call";
    check_with(apart(1), &format!("{waits} wait:5s"), "call:r:2:elapsed");
    check_with(apart(1), &format!("{waits} jobs claimed:s+endless wait:5s"), "call:r:1:elapsed");
    let waits = "ready:1 ready:2 arrive:a park:a:timer:5s:call";
    check_with(apart(1), &format!("{waits} wait:5s"), "call:a:1:elapsed");
}

#[test]
fn a_fresh_worker_takes_the_place_of_the_one_that_is_gone() {
    let roles = |config: Config, events: &str| {
        let script = Script::run(config, events);
        let status = script.core.status(script.now);
        let here = status.workers.iter().filter(|worker| worker.state == parkade_core::WorkerState::Ready);
        here.map(|worker| (worker.worker.0, worker.for_jobs)).collect::<Vec<_>>()
    };
    assert_eq!(roles(apart(1), "ready:1 ready:2 exited:1 ready:3"), [(2, true), (3, false)]);
    assert_eq!(roles(apart(1), "ready:1 ready:2 exited:2 ready:3"), [(1, false), (3, true)]);
    assert_eq!(roles(apart(1), "ready:1 ready:2 reload ready:3 ready:4"), [(3, false), (4, true)]);
    let worn = |worker| format!("ready:1 ready:2 measured:{worker}:2000 ready:3 exited:{worker}");
    let recycled = || Config { recycle: Recycle { resident_bytes: Some(1000), ..Recycle::default() }, ..apart(1) };
    assert_eq!(roles(recycled(), &worn(1)), [(2, true), (3, false)]);
    assert_eq!(roles(recycled(), &worn(2)), [(1, false), (3, true)]);
}

#[test]
fn requests_are_given_to_workers_before_jobs() {
    check("ready:1:sync:1 arrive:x arrive:a jobs claimed:r answer:x", "relay:x done:x assign:a:1");
    check("ready:1:sync:1 arrive:x arrive:a jobs claimed:r answer:x wait:1ms answer:a", "relay:a done:a run:r:1");
}

#[test]
fn no_more_run_than_may_jobs_included() {
    let most = Config { running_count_max: 1, ..config() };
    let two = "ready:1:concurrent:9 jobs claimed:r+async,s+async";
    check_with(most.clone(), two, "run:r:1");
    check_with(most.clone(), &format!("{two} return:r"), "verdict:r:completed done:r run:s:1");
    check_with(most, &format!("{two} arrive:a:/async wait:1ms return:r"), "verdict:r:completed done:r assign:a:1");
}

#[test]
fn time_alone_claims_nothing_again() {
    let mut script = Script::run(config(), "ready:1 jobs claimed:-");
    script.now = script.now + Duration::from_secs(3600);
    script.go_on("tick");
    assert_eq!(script.told, [""; 0]);
}

#[test]
fn a_run_that_goes_on_neither_waits_for_workers_of_requests_nor_lets_new_jobs_pass() {
    let waits = "jobs ready:1 ready:2 claimed:r park:r:timer:5s:call";
    let busy = format!("{waits} arrive:a:/endless arrive:b:/endless");
    check_with(apart(1), &format!("{busy} wait:5s"), "call:r:2:elapsed");
    let taken = format!("{busy} jobs claimed:s+endless wait:5s");
    check_with(apart(1), &taken, "");
    check_with(apart(1), &format!("{taken} jobs claimed:t return:s"), {
        "verdict:s:completed done:s call:r:2:elapsed"
    });
    check_with(apart(1), &format!("{taken} stop:r"), "verdict:r:cancelled cancelled:r:Operator");
}

#[test]
fn where_workers_do_both_a_run_that_goes_on_and_requests_take_turns_as_they_come() {
    let waits = "jobs ready:1:sync:1 claimed:r park:r:timer:5s:call arrive:a:/endless arrive:b:/endless wait:5s arrive:c:/endless";
    check(&format!("{waits} answer:a"), "relay:a done:a assign:b:1");
    check(&format!("{waits} answer:a answer:b"), "relay:b done:b call:r:1:elapsed");
    check(&format!("{waits} answer:a answer:b return:r"), "verdict:r:completed done:r assign:c:1");
}
