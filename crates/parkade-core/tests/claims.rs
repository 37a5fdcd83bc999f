//! How many jobs are claimed, when, and for which workers. The words are explained in `script` and `script::jobs`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use std::time::Duration;

use parkade_core::limits::JOBS_AHEAD_COUNT_MAX;
use parkade_core::{AppWorkers, Config, Recycle, Role};
use script::{Script, check_with, of_jobs, quiet};

fn check(events: &str, effects: &str) {
    check_with(of_jobs(1), events, effects);
}

#[test]
fn jobs_are_claimed_when_there_may_be_some_and_a_worker_could_begin_them() {
    check("ready:1", "");
    check("jobs", "");
    check("jobs ready:1", "claim:1");
    check("ready:1:sync:0 jobs", "");
    check("ready:1:sync:0 jobs credit:1:1", "claim:1");
    check("ready:1 arrive:a jobs", "claim:1");
    check("ready:1:concurrent:7 jobs", "claim:7");
    check("ready:1:concurrent:1000 jobs", "claim:256");
    check_with(of_jobs(2), "ready:1:concurrent:7 ready:2:concurrent:5 jobs", "claim:12");
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
    check("ready:1:concurrent jobs claimed:r,s+async:more", "run:r:1 run:s:1 claim:2");
    check("ready:1:concurrent jobs claimed:r+async,s+async:more", "run:r:1 run:s:1 claim:2");
    check("ready:1 jobs claimed:r:more", "run:r:1 claim:1");
    check("ready:1 jobs claimed:r:more claimed:s", "");
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
    check("jobs:5s wait:6s ready:1", "claim:1");
    assert_eq!(Script::run(of_jobs(1), "ready:1 jobs:5s jobs:2s jobs:9s").alarms(), 1);
}

#[test]
fn a_store_that_does_not_answer_is_asked_again_after_a_while() {
    check("ready:1 jobs unclaimed", "");
    check("ready:1 jobs unclaimed wait:999ms", "");
    check("ready:1 jobs unclaimed wait:1s", "claim:1");
    check("ready:1 jobs unclaimed wait:1s unclaimed wait:1s", "claim:1");
}

#[test]
fn more_are_claimed_ahead_when_they_come_too_late_for_workers() {
    let late = |times: usize| {
        let mut script = Script::run(of_jobs(1), "ready:1 jobs");
        for nth in 0..times {
            script.go_on(&format!("claimed:a{nth}:more wait:1ms return:a{nth}"));
        }
        script.go_on("claimed:-:more");
        script.told[0].strip_prefix("claim:").unwrap().parse::<u32>().unwrap()
    };
    assert_eq!([late(0), late(1), late(2), late(3)], [2, 3, 5, 9]);
    assert_eq!(late(30), 1 + JOBS_AHEAD_COUNT_MAX);
}

#[test]
fn a_job_is_sent_ahead_only_while_jobs_are_quick() {
    let quick = "ready:1:sync:9 jobs claimed:p return:p jobs claimed:q return:q jobs";
    check(&format!("{quick} claimed:r,s"), "run:r:1 run:s:1");
    check(&format!("{quick} claimed:r wait:1ms jobs claimed:s"), "");
    let slow = "ready:1:sync:9 jobs claimed:p wait:1s return:p jobs claimed:q wait:1s return:q jobs";
    check(&format!("{slow} claimed:r,s"), "run:r:1");
    check(&format!("{slow} claimed:r,s return:r"), "verdict:r:completed done:r run:s:1");
    check("ready:1:concurrent:9 jobs claimed:r,s,t+async", "run:r:1 run:t:1");
}

/// One that waits behind another in its worker has lost nothing: neither time nor, when that worker dies, an attempt.
#[test]
fn the_time_of_a_job_begins_with_its_code() {
    let ahead = "ready:1:sync:9 jobs claimed:p return:p jobs claimed:q return:q jobs claimed:r+endless,s";
    check(ahead, "run:r:1 run:s:1");
    check(&format!("{ahead} wait:60s"), "");
    check(&format!("{ahead} wait:60s exited:1 ready:2"), "run:s:2");
    check(&format!("{ahead} wait:60s return:r wait:9999ms"), "");
    let late = "cancelled:s:Deadline dump:1:Deadline:s recall:s:1:Deadline verdict:s:retry:DeadlinePassed";
    let told = Script::run(of_jobs(1), &format!("{ahead} wait:60s return:r wait:10s")).told;
    assert_eq!(sorted(&told), late.split(' ').collect::<Vec<_>>());
    let in_a_loop = "ready:1:concurrent:9 jobs claimed:r+async+endless,s+async code:r";
    check(&format!("{in_a_loop} exited:1 ready:2:concurrent:9"), "run:s:2");
    check(&format!("{in_a_loop} code:s exited:1 ready:2:concurrent:9"), "");
}

#[test]
fn the_time_after_a_wait_begins_with_the_code_too() {
    let queued = "ready:1 jobs claimed:r park:r:timer:5s:call jobs claimed:s+endless wait:5s wait:60s";
    check(queued, "");
    let again = format!("{queued} return:s");
    check(&again, "verdict:s:completed done:s call:r:1:elapsed");
    check(&format!("{again} wait:9999ms"), "");
    let late = "cancelled:r:Deadline dump:1:Deadline:r recall:r:1:Deadline verdict:r:retry:DeadlinePassed";
    let told = Script::run(of_jobs(1), &format!("{again} wait:10s")).told;
    assert_eq!(sorted(&told), late.split(' ').collect::<Vec<_>>());
    let in_a_loop = "ready:1:concurrent:9 jobs claimed:r+async code:r park:r:timer:5s:call+async wait:5s";
    check(in_a_loop, "call:r:1:elapsed");
    check(&format!("{in_a_loop} wait:60s"), "");
    check(&format!("{in_a_loop} wait:60s exited:1 ready:2:concurrent:9"), "call:r:2:elapsed");
    check(&format!("{in_a_loop} code:r wait:9999ms"), "");
    check(&format!("{in_a_loop} code:r exited:1"), "verdict:r:retry:WorkerDied cancelled:r:WorkerDied start:2");
}

#[test]
fn what_waits_for_long_keeps_others_in_the_store() {
    let ahead = "ready:1 jobs claimed:r+endless:more claimed:s:more";
    check(ahead, "claim:1");
    check(&format!("{ahead} claimed:- wait:20ms jobs"), "claim:1");
    check(&format!("{ahead} claimed:- wait:21ms jobs"), "");
    check(&format!("{ahead} claimed:- wait:21ms jobs return:r"), "verdict:r:completed done:r run:s:1 claim:1");
}

/// Somebody else may begin it meanwhile.
#[test]
fn what_waits_for_too_long_goes_back_to_the_store() {
    let ahead = "ready:1 jobs claimed:r+endless:more claimed:s";
    check(&format!("{ahead} wait:499ms"), "");
    check(&format!("{ahead} wait:500ms"), "verdict:s:back cancelled:s:Stopping");
    check(&format!("{ahead} wait:500ms jobs"), "");
    check(&format!("{ahead} wait:500ms return:r"), "verdict:r:completed done:r claim:1");
    let both = "ready:1 ready:2:concurrent:9 jobs claimed:p+endless,q+endless,r";
    check_with(of_jobs(2), &format!("{both} wait:9s"), "");
    assert_eq!(Script::run(of_jobs(1), &format!("{ahead} wait:500ms return:r")).alarms(), 0);
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
    let full = "ready:1:concurrent:9 queue:1:1 claimed:r+async+q1 code:r";
    for (end, told) in [
        ("stop:r", "recall:r:1:Operator verdict:r:cancelled cancelled:r:Operator"),
        ("wait:10s", "recall:r:1:Deadline verdict:r:retry:DeadlinePassed cancelled:r:Deadline ping:1"),
    ] {
        let heard = if end.starts_with("wait") { " pong:1" } else { "" };
        let told: Vec<&str> = told.split(' ').collect();
        assert_eq!(sorted(&Script::run(of_jobs(1), &format!("{full} {end}")).told), sorted(&told), "{end}");
        check(&format!("{full} {end}{heard} jobs"), "claim:8:q1=0");
        check(&format!("{full} {end}{heard} jobs claimed:- error:r:cancelled:1"), "claim:9:q1=1");
        check(&format!("{full} jobs {end}{heard} claimed:- jobs"), "claim:8:q1=0");
        let died = Script::run(of_jobs(1), &format!("{full} {end}{heard} jobs claimed:- exited:1"));
        assert!(died.told.contains(&"start:2".into()), "{:?}", died.told);
        check(&format!("{full} {end}{heard} jobs claimed:- exited:1 ready:2:concurrent:9"), "claim:9:q1=1");
    }
    let back = format!("{full} error:r claimed:s+async+q1+endless jobs reload ready:2 ready:3:concurrent:9 wait:30s");
    check(&format!("{back} claimed:-"), "claim:9:q1=0");
    check(&format!("{back} claimed:- claimed:- error:s:cancelled:1"), "dismiss:1 claim:9:q1=1");
    let waits = "ready:1 ready:2 queue:1:1 claimed:r+q1 wait:1ms park:r:timer:5s:call";
    check_with(of_jobs(2), &format!("{waits} stop:r"), "verdict:r:cancelled cancelled:r:Operator claim:2:q1=1");
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
    let mut script = Script::run(of_jobs(1), both);
    script.go_on("wait:9s");
    assert!(script.told.iter().all(|word| !word.starts_with("claim")), "{:?}", script.told);
    check(&format!("{both} return:r"), "verdict:r:completed done:r claim:9:q1=1");
    let few = "ready:1:concurrent:9 queue:1:5:1 claimed:r+async+q1";
    check(&format!("{few} wait:999ms"), "");
    check(&format!("{few} wait:1s"), "claim:8:q1=1");
}

#[test]
fn a_job_waits_for_no_other_beside_an_idle_worker() {
    check_with(of_jobs(2), "ready:1 ready:2 jobs", "claim:2");
    check_with(of_jobs(2), "ready:1 ready:2 jobs claimed:r,s", "run:r:1 run:s:2");
    let loops = "ready:1:concurrent:2 ready:2:concurrent:2 jobs";
    check_with(of_jobs(2), &format!("{loops} claimed:r+async,s+async,t+async"), "run:r:1 run:s:2 run:t:1");
    check_with(of_jobs(2), &format!("{loops} claimed:r,s"), "run:r:1 run:s:2");
}

#[test]
fn workers_of_jobs_run_nothing_else_and_others_run_no_jobs() {
    check("jobs claimed:r", "");
    check("ready:1 jobs claimed:r", "run:r:1");
    check("ready:1 jobs claimed:r,s", "run:r:1");
    check("ready:1 jobs claimed:r arrive:a", "assign:a:0");
    check("ready:1 arrive:a arrive:b", "");
    check("ready:1 arrive:a arrive:b jobs", "claim:1");
    let (ready, not) = (Script::run(of_jobs(1), ""), Script::run(of_jobs(1), "ready:1 exited:0"));
    assert!(ready.core.ready() && !not.core.ready());
    assert_eq!(roles(of_jobs(1), "ready:1"), [(1, Role::Requests), (2, Role::Jobs)]);
}

#[test]
fn workers_of_jobs_are_there_when_the_application_declares_jobs() {
    let starts = |config: Config| {
        let mut script = Script::run(config, "");
        std::mem::take(&mut script.told)
    };
    assert_eq!(starts(of_jobs(1)), ["start:1"]);
    assert_eq!(starts(of_jobs(3)), ["start:1", "start:2", "start:3"]);
    assert_eq!(starts(Config { apps: vec![AppWorkers { requests: 2, jobs: 1 }], ..quiet() }), [""; 0]);
    assert_eq!(starts(of_jobs(0)), ["start:1"]);
    check_with(of_jobs(0), "ready:1 jobs", "");
}

#[test]
fn their_number_follows_what_new_code_declares() {
    let drops = "ready:1 silent reload ready:2";
    check(drops, "reloaded:Done drain:0:30s drain:1:30s dismiss:0 dismiss:1");
    let adds = format!("{drops} declaring reload ready:3");
    check(&adds, "start:4");
    check(&format!("{adds} ready:4"), "reloaded:Done drain:2:30s dismiss:2");
    check(&format!("{adds} failed:4"), "kill:3:NotNeeded reloaded:GivenUp");
    check(&format!("{drops} jobs"), "");
}

/// Nobody here runs them any more.
#[test]
fn jobs_that_are_left_of_code_that_is_gone_go_back_to_the_store() {
    let waits = "ready:1 jobs claimed:r park:r:timer:5s:call silent reload ready:2 exited:0 exited:1";
    check(&format!("{waits} wait:5s"), "verdict:r:back cancelled:r:Stopping");
    let late = "ready:1 jobs silent reload ready:2";
    check(&format!("{late} claimed:r"), "verdict:r:back cancelled:r:Stopping");
}

#[test]
fn what_a_job_goes_on_with_is_for_the_workers_of_jobs() {
    let waits = "ready:1 jobs claimed:r park:r:timer:5s:call";
    check(&format!("{waits} wait:5s"), "call:r:1:elapsed");
    check(&format!("{waits} jobs claimed:s+endless wait:5s"), "");
    check(&format!("{waits} jobs claimed:s+endless wait:5s return:s"), "verdict:s:completed done:s call:r:1:elapsed");
    check("ready:1 arrive:a park:a:timer:5s:call wait:5s", "call:a:0:elapsed");
}

fn roles(config: Config, events: &str) -> Vec<(u32, Role)> {
    let script = Script::run(config, events);
    let status = script.core.status(script.now);
    let here = status.workers.iter().filter(|worker| worker.state == parkade_core::WorkerState::Ready);
    here.map(|worker| (worker.worker.0, worker.role)).collect()
}

#[test]
fn a_fresh_worker_takes_the_place_of_the_one_that_is_gone() {
    use Role::{Jobs, Requests};
    assert_eq!(roles(of_jobs(1), "ready:1 exited:0 ready:2"), [(2, Jobs), (3, Requests)]);
    assert_eq!(roles(of_jobs(1), "ready:1 exited:1 ready:2"), [(1, Requests), (3, Jobs)]);
    assert_eq!(roles(of_jobs(1), "ready:1 reload ready:2 ready:3"), [(3, Requests), (4, Jobs)]);
    let worn = |worker| format!("ready:1 measured:{worker}:2000 ready:2 exited:{worker}");
    let recycled = || Config { recycle: Recycle { resident_bytes: Some(1000), ..Recycle::default() }, ..of_jobs(1) };
    assert_eq!(roles(recycled(), &worn(0)), [(2, Jobs), (3, Requests)]);
    assert_eq!(roles(recycled(), &worn(1)), [(1, Requests), (3, Jobs)]);
}

/// The old one drains as long as its job takes.
#[test]
fn a_worn_worker_of_jobs_keeps_no_other_role_from_being_renewed() {
    let recycled = || Config { recycle: Recycle { resident_bytes: Some(1000), ..Recycle::default() }, ..of_jobs(1) };
    let long = "ready:1 jobs claimed:r+endless measured:1:2000 ready:2";
    check_with(recycled(), long, "drain:1:3600s");
    check_with(recycled(), &format!("{long} measured:0:2000"), "start:3");
    check_with(recycled(), &format!("{long} measured:0:2000 ready:3"), "drain:0:3600s dismiss:0");
}

#[test]
fn no_more_run_than_may_jobs_and_requests_apart() {
    let most = || Config { running_count_max: 1, ..of_jobs(1) };
    let two = "ready:1:concurrent:9 jobs claimed:r+async,s+async";
    check_with(most(), two, "run:r:1");
    check_with(most(), &format!("{two} return:r"), "verdict:r:completed done:r run:s:1");
    check_with(most(), &format!("{two} arrive:a"), "assign:a:0");
    check_with(most(), &format!("{two} arrive:a arrive:b"), "");
    check_with(most(), "ready:1:concurrent:9 arrive:a jobs claimed:r+async,s+async", "run:r:1");
}

#[test]
fn time_alone_claims_nothing_again() {
    let mut script = Script::run(of_jobs(1), "ready:1 jobs claimed:-");
    script.now = script.now + Duration::from_secs(3600);
    script.go_on("tick");
    assert_eq!(script.told, [""; 0]);
}

#[test]
fn a_run_that_goes_on_neither_waits_for_workers_of_requests_nor_lets_new_jobs_pass() {
    let waits = "jobs ready:1 claimed:r park:r:timer:5s:call";
    let busy = format!("{waits} arrive:a:/endless arrive:b:/endless");
    check(&format!("{busy} wait:5s"), "call:r:1:elapsed");
    let taken = format!("{busy} jobs claimed:s+endless wait:5s");
    check(&taken, "");
    check(&format!("{taken} jobs claimed:t return:s"), "verdict:s:completed done:s call:r:1:elapsed");
    check(&format!("{taken} stop:r"), "verdict:r:cancelled cancelled:r:Operator");
}
