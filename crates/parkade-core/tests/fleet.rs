//! Workers: started, watched, replaced, reloaded, dismissed. The words are explained in `script`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use std::time::Duration;

use parkade_core::{AppWorkers, Config, Recycle};
use script::{Script, check, check_with, config, of_jobs};

fn of(requests: u32) -> Vec<AppWorkers> {
    vec![AppWorkers { requests, jobs: 0 }]
}

fn workers(workers: u32) -> Config {
    Config { apps: of(workers), ..config() }
}

fn lenient() -> Config {
    Config { exit_when_the_first_start_fails: false, ..config() }
}

fn recycled(recycle: Recycle) -> Config {
    Config { recycle: Recycle { jitter_percent: 0, ..recycle }, ..config() }
}

#[test]
fn as_many_are_started_as_are_wanted() {
    assert_eq!(Script::run(workers(3), "").told, ["start:1", "start:2", "start:3"]);
}

#[test]
fn the_first_death_is_made_good_at_once_and_later_ones_with_back_off() {
    check("ready:1 exited:1", "start:2");
    check("ready:1 exited:1 ready:2 exited:2", "");
    check("ready:1 exited:1 ready:2 exited:2 wait:249ms", "");
    check("ready:1 exited:1 ready:2 exited:2 wait:250ms", "start:3");
    check("ready:1 exited:1 ready:2 exited:2 wait:250ms ready:3 exited:3 wait:499ms", "");
    check("ready:1 exited:1 ready:2 exited:2 wait:250ms ready:3 exited:3 wait:500ms", "start:4");
}

#[test]
fn workers_that_die_together_are_one_failure() {
    check_with(workers(3), "ready:1 ready:2 ready:3 wait:1s exited:1 exited:2 exited:3", "start:6");
    check_with(workers(2), "ready:1 ready:2 wait:1s exited:1 ready:3 wait:1s exited:2 ready:4 exited:3", "");
}

#[test]
fn a_steady_worker_ends_the_streak() {
    check("ready:1 exited:1 ready:2 exited:2 wait:250ms ready:3 wait:10s exited:3", "start:4");
}

#[test]
fn one_that_never_was_ready_is_started_again_after_a_second() {
    check_with(lenient(), "exited:1 wait:999ms", "");
    check_with(lenient(), "exited:1 wait:1s", "start:2");
    check_with(lenient(), "failed:1 wait:1s", "start:2");
    check_with(lenient(), "failed:1 exited:1 wait:1s failed:2 exited:2 wait:2s", "start:3");
}

#[test]
fn the_first_start_that_fails_ends_the_server() {
    check("failed:1", "");
    check("failed:1 exited:1", "exit:ApplicationFailed");
    check("exited:1", "exit:ApplicationFailed");
    check("arrive:a failed:1", "refuse:a:Stopping cancelled:a:Stopping");
    check_with(workers(2), "failed:1", "kill:2:NotNeeded");
    check_with(workers(2), "ready:2 failed:1", "");
}

#[test]
fn a_worker_of_the_first_code_that_does_not_start_ends_no_server_whose_new_code_has_loaded() {
    check_with(workers(2), "reload ready:3 failed:1", "");
    check_with(workers(2), "reload ready:3 exited:1 exited:2", "");
    check_with(workers(2), "reload ready:3 violated:1", "kill:1:Violation");
    check_with(workers(2), "wait:1s reload ready:3 wait:59s", "kill:1:StartedTooSlowly kill:2:StartedTooSlowly");
    check_with(workers(2), "reload ready:3 exited:1 exited:2 ready:4", "reloaded:Done");
    check_with(workers(2), "reload ready:3 exited:1 exited:2 ready:4 arrive:a", "assign:a:3");
    // The new code has loaded once: this is not the first start any more.
    check_with(workers(2), "reload ready:3 exited:3 exited:1 exited:2", "");
    check_with(workers(2), "reload ready:3 exited:3 exited:1 exited:2 wait:2s", "start:5 start:6");
    // Nothing has ever loaded.
    check_with(workers(2), "reload failed:1", "kill:2:NotNeeded kill:3:NotNeeded");
    check_with(workers(2), "reload failed:3 exited:3 failed:1", "kill:2:NotNeeded");
}

#[test]
fn while_the_application_does_not_start_requests_are_refused() {
    check_with(lenient(), "arrive:a failed:1", "refuse:a:NoApplication done:a");
    check_with(lenient(), "failed:1 arrive:a", "refuse:a:NoApplication done:a");
    check_with(lenient(), "failed:1 exited:1 wait:1s arrive:a", "");
}

#[test]
fn one_that_starts_too_slowly_is_killed() {
    check_with(lenient(), "wait:60s", "kill:1:StartedTooSlowly");
    check_with(lenient(), "wait:60s exited:1 wait:1s", "start:2");
}

#[test]
fn a_death_costs_only_what_it_ran() {
    check_with(
        workers(2),
        "ready:1 ready:2 arrive:a arrive:b exited:1",
        "refuse:a:WorkerDied cancelled:a:WorkerDied start:3",
    );
    check("ready:1 arrive:a begin:a exited:1", "abort:a cancelled:a:WorkerDied start:2");
    check("ready:1 arrive:a park:a:timer:9s:call exited:1", "start:2");
    let coroutine = "ready:1:concurrent arrive:a park:a:timer:9s:await exited:1";
    check(coroutine, "refuse:a:WorkerDied cancelled:a:WorkerDied start:2");
}

#[test]
fn what_was_sent_ahead_and_not_touched_goes_to_another_worker_first() {
    let ahead = "ready:1:sync:9 arrive:x answer:x arrive:a arrive:b arrive:c arrive:d left:c";
    check(&format!("{ahead} exited:1"), "refuse:a:WorkerDied cancelled:a:WorkerDied start:2");
    check(&format!("{ahead} exited:1 arrive:e ready:2:sync:9"), "assign:b:2");
    check(&format!("{ahead} exited:1 arrive:e ready:2:sync:9 answer:b"), "relay:b done:b assign:d:2 assign:e:2");
}

#[test]
fn a_worker_that_was_granted_more_may_have_begun_more() {
    let ahead = "ready:1:sync:9 arrive:x answer:x arrive:a arrive:b arrive:c credit:1:1 exited:1";
    let lost = "refuse:a:WorkerDied cancelled:a:WorkerDied refuse:b:WorkerDied cancelled:b:WorkerDied start:2";
    check(ahead, lost);
}

#[test]
fn a_violation_is_an_end_at_once() {
    let told = "kill:1:Violation refuse:a:WorkerDied cancelled:a:WorkerDied start:2";
    check("ready:1 arrive:a violated:1", told);
    check("ready:1 arrive:a violated:1 answer:a exited:1", "");
}

#[test]
fn a_stuck_worker_is_killed_when_the_deadline_and_the_grace_are_over() {
    check("ready:1 arrive:a wait:10s wait:999ms", "");
    check("ready:1 arrive:a wait:10s wait:1s", "kill:1:Deadline start:2");
    check("ready:1 arrive:a wait:10s answer:a wait:1s", "");
    check("ready:1 arrive:a left:a wait:10s", "dump:1:Deadline:a");
    check("ready:1 arrive:a left:a wait:10s wait:1s", "kill:1:Deadline start:2");
}

/// Its client does not read, and the worker is at nothing, or at another: it lets go as soon as it hears of it. One that has read meanwhile may
/// run again, and hang.
#[test]
fn the_stack_of_one_that_has_put_streams_aside_is_shown_when_it_does_not_let_go() {
    let slow = "ready:1 arrive:a begin:a credit:1:1 wait:10s";
    check(slow, "abort:a recall:a:1:Deadline cancelled:a:Deadline");
    check(&format!("{slow} error:a:cancelled wait:9s"), "");
    check(&format!("{slow} wait:499ms"), "");
    check(&format!("{slow} wait:500ms"), "dump:1:Deadline:a");
    check(&format!("{slow} wait:500ms wait:499ms"), "");
    check(&format!("{slow} wait:500ms wait:500ms"), "kill:1:Deadline start:2");
}

#[test]
fn one_that_waits_its_turn_in_a_worker_is_not_the_one_to_blame() {
    let behind = "ready:1:sync:9 arrive:x answer:x arrive:a:/endless arrive:b wait:10s";
    check(behind, "refuse:b:DeadlinePassed recall:b:1:Deadline cancelled:b:Deadline");
    check(&format!("{behind} wait:60s"), "");
    check(&format!("{behind} wait:60s answer:a wait:999ms"), "");
    check(&format!("{behind} wait:60s answer:a wait:2s"), "kill:1:Deadline start:2");
}

#[test]
fn an_event_loop_that_does_not_answer_is_dumped_then_killed() {
    check("ready:1 wait:60s", ""); // only loops are pinged
    check("ready:1:concurrent wait:1s", "ping:1");
    check("ready:1:concurrent wait:1s pong:1 wait:1s", "ping:1");
    check("ready:1:concurrent wait:1s wait:5s", "dump:1:Stuck");
    check("ready:1:concurrent wait:1s wait:5s wait:24s", "");
    check("ready:1:concurrent wait:1s wait:5s wait:25s", "kill:1:Stuck start:2");
}

/// Plain functions run beside the loop: none of them keeps it from turning.
#[test]
fn no_plain_function_excuses_a_loop_that_does_not_turn() {
    let busy = "ready:1:concurrent arrive:a:/endless code:a wait:1s";
    check(busy, "ping:1");
    check(&format!("{busy} wait:5s"), "dump:1:Stuck");
    check(&format!("{busy} wait:5s wait:25s"), "kill:1:Stuck start:2");
    check(&format!("{busy} pong:1 wait:1s"), "ping:1");
}

/// Its loop turns all the time, and others come and go: it is judged by itself.
#[test]
fn a_plain_function_beside_a_loop_is_killed_when_its_grace_is_over() {
    let hangs = "ready:1:concurrent:9 arrive:a code:a wait:1s pong:1 arrive:b:/async answer:b wait:8s pong:1";
    let late = format!("{hangs} wait:1s");
    check(&late, "refuse:a:DeadlinePassed recall:a:1:Deadline dump:1:Deadline:a ping:1 cancelled:a:Deadline");
    let others = "pong:1 arrive:b:/async answer:b arrive:c:/async";
    check(&format!("{late} {others} wait:999ms"), "");
    check(&format!("{late} {others} wait:1s"), "kill:1:Deadline start:2");
    check(&format!("{late} {others} error:a:cancelled:1 wait:1s"), "ping:1");
}

#[test]
fn what_queues_behind_it_in_its_worker_is_neither_to_blame_nor_an_excuse() {
    let quick = "ready:1:concurrent:9 arrive:p code:p answer:p arrive:q code:q answer:q";
    let ahead = format!("{quick} arrive:a arrive:b");
    check(&ahead, "assign:b:1");
    check(&format!("{ahead} code:a exited:1"), "refuse:a:WorkerDied cancelled:a:WorkerDied start:2");
    check(&format!("{ahead} code:a exited:1 ready:2:concurrent"), "assign:b:2");
    check(&format!("{ahead} code:a code:b exited:1 ready:2:concurrent"), "");
    let late = format!("{ahead} code:a wait:9s pong:1 wait:1s pong:1 error:b:cancelled:1");
    check(&format!("{late} wait:1s"), "kill:1:Deadline start:2");
}

#[test]
fn a_loop_that_does_not_answer_is_given_nothing_new() {
    let silent = "ready:1:concurrent:9 wait:1s";
    for path in ["/async", "/sync"] {
        check(&format!("{silent} arrive:a:{path}"), "");
        check(&format!("{silent} arrive:a:{path} pong:1"), "assign:a:1");
    }
    let hangs = "ready:1:concurrent:9 arrive:a:/async wait:9999ms";
    check(&format!("{hangs} wait:1s"), "refuse:a:DeadlinePassed recall:a:1:Deadline cancelled:a:Deadline");
    check(&format!("{hangs} wait:1ms wait:1s"), "kill:1:Deadline start:2");
}

/// A coroutine needs no thread.
#[test]
fn coroutines_wait_for_no_plain_function() {
    let busy = "ready:1:concurrent:9 arrive:a code:a arrive:b:/sync";
    check(busy, "");
    check(&format!("{busy} arrive:c:/async"), "assign:c:1");
    check(&format!("{busy} arrive:c:/async answer:a"), "relay:a done:a assign:b:1");
}

#[test]
fn an_event_loop_that_nobody_hears_is_not_stuck() {
    let unheard = "ready:1:concurrent wait:1s heldup:1";
    check(&format!("{unheard} wait:3600s"), "");
    check(&format!("{unheard} wait:3600s pong:1 wait:1s"), "ping:1");
    check(&format!("{unheard} wait:3600s leton:1 wait:4999ms"), "");
    check(&format!("{unheard} wait:3600s leton:1 wait:5s"), "dump:1:Stuck");
    let again = "ready:1:concurrent wait:1s wait:4s heldup:1 wait:9s leton:1 heldup:1 wait:9s leton:1";
    check(&format!("{again} wait:999ms"), "");
    check(&format!("{again} wait:1s"), "dump:1:Stuck");
    let late = "ready:1:concurrent wait:1s pong:1 arrive:a:/async wait:1s pong:1 heldup:1 wait:9s wait:500ms";
    check(&format!("{late} wait:8s"), "");
    check(&format!("{late} wait:8s leton:1 wait:1500ms"), "kill:1:Deadline start:2");
    check("heldup:7", "");
    check("ready:1 heldup:1", "pause:1");
    check("ready:1 heldup:1 leton:1", "resume:1");
}

#[test]
fn who_is_heard_late_is_given_requests_only_when_nobody_else_is_there() {
    let one = "ready:1:concurrent ready:2:concurrent arrive:a:/async";
    check_with(workers(2), &format!("{one} arrive:b:/async"), "assign:b:2");
    check_with(workers(2), &format!("{one} heldup:2 arrive:b:/async"), "assign:b:1");
    check_with(workers(2), &format!("{one} heldup:1 heldup:2 arrive:b:/async"), "assign:b:2");
}

#[test]
fn a_plain_function_that_is_given_to_a_stuck_loop_does_not_excuse_it() {
    let stuck = "ready:1:concurrent wait:1s wait:5s arrive:a:/endless";
    check(&format!("{stuck} wait:24s"), "");
    check(&format!("{stuck} wait:25s"), "kill:1:Stuck start:2");
    let behind = Script::run(config(), "ready:1:concurrent arrive:b:/async wait:1s arrive:a wait:60s");
    assert_eq!(behind.told[behind.told.len() - 2..], ["kill:1:Deadline", "start:2"]);
}

#[test]
fn an_event_loop_that_is_stuck_at_a_deadline_is_killed_then() {
    let late = "ready:1:concurrent wait:1s pong:1 arrive:a:/async wait:1s pong:1 wait:9s";
    check(&format!("{late} wait:1s"), "kill:1:Deadline start:2");
    check(&format!("{late} pong:1 error:a:cancelled:1 wait:1s"), "ping:1");
}

/// It is told at its deadline. Most coroutines end then.
#[test]
fn the_stack_of_a_coroutine_is_shown_when_it_has_had_half_its_grace() {
    let late = "ready:1:concurrent wait:1s pong:1 arrive:a:/async wait:9s pong:1 wait:1s pong:1";
    check(&format!("{late} wait:499ms"), "");
    check(&format!("{late} wait:500ms"), "dump:1:Deadline:a");
    check(&format!("{late} error:a:cancelled:1 wait:500ms"), "");
}

/// So many seconds pass, in which worker 1 answers what it is asked.
fn turns(script: &mut Script, seconds: u32) -> Vec<String> {
    let mut told = Vec::new();
    for _ in 0..seconds {
        script.go_on("wait:1s");
        told.extend(script.told.iter().filter(|word| !word.starts_with("ping")).cloned());
        if script.told.iter().any(|word| word == "ping:1") {
            script.go_on("pong:1");
        }
    }
    told
}

#[test]
fn a_coroutine_that_cleans_up_slowly_does_not_kill_its_neighbours() {
    let mut script = Script::run(config(), "ready:1:concurrent arrive:a:/async wait:1s pong:1");
    assert_eq!(
        turns(&mut script, 25),
        ["refuse:a:DeadlinePassed", "recall:a:1:Deadline", "cancelled:a:Deadline", "dump:1:Deadline:a", "start:2"]
    );
    script.go_on("ready:2");
    assert_eq!(script.told, ["drain:1:3600s"]);
    assert_eq!(turns(&mut script, 11), ["dismiss:1"]);
}

/// It goes on politely, as long as its loop turns.
#[test]
fn a_worker_that_is_replaced_for_a_slow_coroutine_is_judged_on() {
    let mut script = Script::run(config(), "ready:1:concurrent arrive:b:/endless arrive:a:/async wait:1s pong:1");
    turns(&mut script, 25);
    script.go_on("ready:2");
    assert_eq!(turns(&mut script, 60), [""; 0]);
    script.go_on("wait:3s");
    assert!(script.told.contains(&"kill:1:Deadline".into()), "{:?}", script.told);
}

#[test]
fn a_core_that_was_stopped_itself_blames_nobody() {
    let mut script = Script::run(config(), "ready:1:concurrent wait:1s");
    script.now = script.now + Duration::from_secs(40);
    script.go_on("tick");
    assert_eq!(script.told, [""; 0]);
    script.go_on("wait:5s");
    assert_eq!(script.told, ["dump:1:Stuck"]);
}

#[test]
fn a_worn_worker_is_replaced_and_finishes_what_it_holds() {
    let config = || recycled(Recycle { requests: Some(2), ..Recycle::default() });
    let worn = "ready:1:concurrent arrive:a arrive:b answer:a answer:b";
    check_with(config(), worn, "relay:b done:b start:2");
    check_with(config(), &format!("{worn} arrive:c"), "assign:c:1");
    check_with(config(), &format!("{worn} arrive:c ready:2:concurrent"), "drain:1:3600s");
    check_with(config(), &format!("{worn} arrive:c ready:2:concurrent arrive:d"), "assign:d:2");
    check_with(config(), &format!("{worn} arrive:c ready:2:concurrent answer:c"), "relay:c done:c dismiss:1");
    check_with(config(), &format!("{worn} ready:2:concurrent"), "drain:1:3600s dismiss:1");
    check_with(config(), &format!("{} ready:2 wait:30s", worn.replace(":concurrent", "")), "kill:1:GraceOver");
}

#[test]
fn age_and_memory_wear_a_worker_too() {
    let by_age = recycled(Recycle { age: Some(Duration::from_secs(60)), ..Recycle::default() });
    check_with(by_age, "ready:1 wait:60s", "start:2");
    let by_memory = recycled(Recycle { resident_bytes: Some(1000), ..Recycle::default() });
    check_with(by_memory.clone(), "ready:1 measured:1:1000", "");
    check_with(by_memory, "ready:1 measured:1:1001", "start:2");
}

#[test]
fn one_worn_worker_is_replaced_at_a_time() {
    let config = Config { apps: of(2), ..recycled(Recycle { resident_bytes: Some(1000), ..Recycle::default() }) };
    let both = "ready:1 ready:2 measured:1:2000 measured:2:2000";
    check_with(config.clone(), both, "");
    check_with(config.clone(), &format!("{both} ready:3"), "drain:1:3600s dismiss:1");
    check_with(config, &format!("{both} ready:3 exited:1"), "start:4");
}

/// It counts for the one that is queued, so no fresh one is started for that, and found not to be needed, again and again.
#[test]
fn a_worker_that_was_to_be_replaced_is_kept_when_the_server_drains() {
    let config = recycled(Recycle { resident_bytes: Some(1000), ..Recycle::default() });
    let silent = "ready:1:concurrent measured:1:2000 wait:1s arrive:a:/async";
    check_with(config.clone(), silent, "");
    check_with(config.clone(), &format!("{silent} drain:60s"), "stop_accepting drain:1:60s kill:2:NotNeeded");
    check_with(config, &format!("{silent} drain:60s pong:1"), "assign:a:1");
}

#[test]
fn a_reload_probes_then_starts_then_switches() {
    check_with(workers(2), "ready:1 ready:2 reload", "start:3");
    check_with(workers(2), "ready:1 ready:2 reload ready:3", "start:4");
    check_with(workers(2), "ready:1 ready:2 reload ready:3 arrive:a", "assign:a:1");
    let switched = "reloaded:Done drain:1:30s drain:2:30s dismiss:2";
    check_with(workers(2), "ready:1 ready:2 reload ready:3 arrive:a ready:4", switched);
    check_with(workers(2), "ready:1 ready:2 reload ready:3 arrive:a ready:4 arrive:b", "assign:b:3");
    check_with(workers(2), "ready:1 ready:2 reload ready:3 arrive:a ready:4 answer:a", "relay:a done:a dismiss:1");
    check_with(
        workers(2),
        "ready:1 ready:2 reload ready:3 arrive:a:/endless ready:4 wait:30s",
        "kill:1:GraceOver kill:2:GraceOver",
    );
}

#[test]
fn new_code_is_in_force_with_the_last_of_its_workers() {
    let served = |events: &str, worker: u32| {
        let script = Script::run(workers(2), events);
        script.core.generation_served_with(parkade_core::WorkerId(worker), parkade_core::DeclaredJobs::default())
    };
    assert_eq!((served("", 1), served("ready:1", 2), served("ready:1", 1)), (Some(1), Some(1), None));
    assert_eq!((served("ready:1 ready:2 reload", 3), served("ready:1 ready:2 reload ready:3", 4)), (None, Some(2)));
    assert_eq!(
        (served("ready:1 ready:2 exited:1 reload", 3), served("ready:1 ready:2 reload failed:3", 3)),
        (Some(1), None)
    );
    assert_eq!(served("ready:1 ready:2 reload ready:3 ready:4 exited:3", 5), Some(2));
    assert_eq!(served("ready:1 ready:2 reload ready:3 drain:30s", 4), None);
}

#[test]
fn a_reload_that_fails_leaves_everything_as_it_was() {
    check("ready:1 reload failed:2", "reloaded:GivenUp");
    check_with(workers(2), "ready:1 ready:2 reload ready:3 failed:4", "kill:3:NotNeeded reloaded:GivenUp");
    check("ready:1 reload failed:2 exited:2 arrive:a", "assign:a:1");
    check("ready:1 reload wait:60s", "kill:2:StartedTooSlowly reloaded:GivenUp");
}

#[test]
fn a_reload_during_a_reload_is_done_afterwards_once() {
    check("ready:1 reload reload reload failed:2", "reloaded:GivenUp start:3");
    check("ready:1 reload reload reload failed:2 ready:3", "reloaded:Done drain:1:30s dismiss:1");
}

#[test]
fn a_coroutine_that_waits_keeps_its_old_worker() {
    let parked = "ready:1:concurrent arrive:a park:a:timer:500ms:await reload ready:2:concurrent";
    check(parked, "reloaded:Done drain:1:30s");
    check(&format!("{parked} wait:500ms"), "resume:1:elapsed:a");
    check(&format!("{parked} wait:500ms answer:a"), "relay:a done:a dismiss:1");
}

#[test]
fn other_routes_route_the_queue_again() {
    check("ready:1:sync:0 arrive:a deaf reload ready:2:sync:3:b", "reloaded:Done drain:1:30s route:a:2 dismiss:1");
    let without = "reloaded:Done drain:1:30s route:a:2 dismiss:1 refuse:a:NotFound done:a";
    check("ready:1:sync:0 arrive:a reload ready:2:sync:3:without", without);
}

#[test]
fn a_request_is_run_by_the_routes_that_its_worker_knows() {
    let mixed = "ready:1 ready:2:sync:3:b arrive:a";
    check_with(workers(2), mixed, "assign:a:2");
    check_with(workers(2), &format!("{mixed} arrive:b"), "route:b:1 assign:b:1");
}

#[test]
fn a_drain_tells_the_workers_then_the_parked() {
    let parked = "ready:1 arrive:a:/next arrive:b:/stream arrive:c park:c:timer:9s:answer arrive:d drain:30s";
    let told = "stop_accepting drain:1:30s empty:a:1.0 done:a end_stream:b cancelled:b:Stopping";
    check(parked, told);
    check(&format!("{parked} answer:d"), "relay:d done:d");
    check(&format!("{parked} answer:d wait:9s"), "release:c done:c dismiss:1");
    check(&format!("{parked} answer:d wait:9s exited:1"), "exit:Drained");
}

/// Their clients send them while the server stops.
#[test]
fn a_drain_waits_for_requests_that_are_arriving() {
    let drained = "ready:1 arriving:2 drain:5s";
    check(drained, "stop_accepting drain:1:5s");
    check(&format!("{drained} arrive:a"), "assign:a:1");
    check(&format!("{drained} arrive:a arriving:1 answer:a"), "relay:a done:a");
    check(&format!("{drained} arrive:a arriving:1 answer:a arriving:0"), "dismiss:1");
    check(&format!("{drained} arrive:a arriving:0 answer:a"), "relay:a done:a dismiss:1");
    check("ready:1 arrive:a drain:5s arrive:b answer:a", "relay:a done:a assign:b:1");
    check(&format!("{drained} arrive:a exited:1 arriving:1"), "");
    let over = format!("{drained} wait:5s");
    check(&over, "dismiss:1");
    check(&format!("{over} exited:1"), "exit:GraceOver");
    check(&format!("{over} arrive:a"), "refuse:a:Stopping cancelled:a:Stopping");
}

#[test]
fn a_drain_goes_on_with_functions_and_coroutines() {
    check("ready:1 arrive:a park:a:next:bids:call drain:30s", "stop_accepting drain:1:30s call:a:1:timed_out");
    let coroutine = "ready:1:concurrent arrive:a park:a:next:bids:await drain:30s";
    check(coroutine, "stop_accepting drain:1:30s resume:1:timed_out:a");
    check("ready:1 arrive:a drain:30s park:a:next:bids:answer", "empty:a:1.0 done:a dismiss:1");
}

/// Otherwise a handler that waits again whenever its time is up would do nothing else until the grace is over.
#[test]
fn a_drain_ends_one_wait_of_a_request_early() {
    let (call, again) = ("park:a:next:bids:call", "call:a:1:timed_out");
    for first in [format!("{call} drain:30s"), format!("drain:30s {call}")] {
        let once = format!("ready:1 arrive:a {first}");
        check(&format!("{once} park:a:next:bids:call"), "keep:a");
        check(&format!("{once} park:a:next:bids:call wait:4999ms"), "");
        check(&format!("{once} park:a:next:bids:call wait:5s"), again);
        check(&format!("{once} park:a:next:bids:call publish:bids"), "call:a:1:m1");
        check(&format!("{once} park:a:next:bids:call left:a"), "cancelled:a:ClientLeft dismiss:1");
        check(&format!("{once} park:a:next:bids:answer"), "empty:a:1.0 done:a dismiss:1");
    }
    let coroutine = "ready:1:concurrent arrive:a:/async park:a:next:bids:await drain:30s";
    check(&format!("{coroutine} park:a:next:bids:await"), "");
    check(&format!("{coroutine} branch:a:b:next:bids"), "");
    check(&format!("{coroutine} park:a:next:bids:await wait:5s"), "ping:1 resume:1:timed_out:a");
    let job = "ready:1 arrive:a drain:30s park:a:job:x@5s:call";
    check(&format!("{job} found:a:pending park:a:job:x@5s:call found:a:pending"), "");
}

#[test]
fn a_drain_ends_with_its_grace() {
    let running = "ready:1 arrive:a:/endless drain:5s wait:5s";
    check(running, "refuse:a:Stopping recall:a:1:Stopping cancelled:a:Stopping kill:1:GraceOver");
    check(&format!("{running} exited:1"), "exit:GraceOver");
    let told = "refuse:a:Stopping recall:a:1:Stopping cancelled:a:Stopping kill:1:GraceOver";
    check("ready:1 arrive:a drain:30s drain:0", told);
}

/// Its code may go on after its responses.
#[test]
fn a_dismissed_worker_has_until_the_grace_is_over() {
    check("ready:1 drain:20s", "stop_accepting drain:1:20s dismiss:1");
    check("ready:1 drain:20s wait:19999ms", "");
    check("ready:1 drain:20s wait:20s", "kill:1:GraceOver");
    // A reload gives 30 s, and so does the stop of a server that may take longer.
    check("ready:1 drain:60s wait:29999ms", "");
    check("ready:1 drain:60s wait:30s", "kill:1:GraceOver");
    // Hooks have two seconds in any case; and no more if the server cannot wait any longer.
    check("ready:1 drain:1s wait:1999ms", "");
    check("ready:1 drain:1s wait:2s", "kill:1:GraceOver");
    check("ready:1 drain:20s drain:1s wait:2999ms", "");
    check("ready:1 drain:20s drain:1s wait:3s", "kill:1:GraceOver");
    check("ready:1 drain:20s drain:0", "kill:1:GraceOver");
}

/// Whatever is still at work elsewhere, their hooks run.
#[test]
fn a_drain_dismisses_those_that_nobody_will_need() {
    let two = |events: &str, effects: &str| check_with(workers(2), &format!("ready:1 ready:2 {events}"), effects);
    let told = "stop_accepting drain:1:30s drain:2:30s";
    two("arrive:a:/endless drain:30s", &format!("{told} dismiss:2"));
    two("arrive:a:/endless arrive:b:/endless drain:30s error:b", "refuse:b:ApplicationFailed done:b dismiss:2");
    // Whatever waits may need one.
    let parked = "arrive:a:/endless arrive:b park:b:timer:9s:call drain:30s";
    two(parked, told);
    two(&format!("{parked} wait:9s"), "call:b:2:elapsed");
    two(&format!("{parked} wait:9s error:b"), "refuse:b:ApplicationFailed done:b dismiss:2");
    // Requests need no workers of jobs, and jobs none of requests.
    check_with(of_jobs(1), "ready:1 arrive:a:/endless drain:30s", "stop_accepting drain:0:30s drain:1:30s dismiss:1");
    let runs = "ready:1 jobs claimed:r drain:30s";
    check_with(of_jobs(1), runs, "stop_accepting drain:0:30s drain:1:30s dismiss:0");
}

#[test]
fn when_the_grace_is_over_the_idle_still_have_their_two_seconds() {
    let waits = "ready:1 ready:2 arrive:a:/endless arrive:b park:b:timer:60s:call drain:5s wait:5s";
    let ended = "refuse:a:Stopping recall:a:1:Stopping cancelled:a:Stopping refuse:b:Stopping cancelled:b:Stopping";
    check_with(workers(2), waits, &format!("{ended} kill:1:GraceOver dismiss:2"));
    check_with(workers(2), &format!("{waits} exited:1 wait:1999ms"), "");
    check_with(workers(2), &format!("{waits} exited:1 wait:2s"), "kill:2:GraceOver");
    check_with(workers(2), &format!("{waits} exited:1 exited:2"), "exit:GraceOver");
    check_with(workers(2), &format!("{waits} drain:0"), "kill:2:GraceOver");
    // One that was dismissed just before has them, too.
    let late = "ready:1 ready:2 arrive:a:/endless arrive:b park:b:timer:4s:answer drain:5s wait:4s";
    check_with(
        workers(2),
        &format!("{late} wait:1s"),
        "refuse:a:Stopping recall:a:1:Stopping cancelled:a:Stopping kill:1:GraceOver",
    );
    check_with(workers(2), &format!("{late} wait:1s wait:999ms"), "");
    check_with(workers(2), &format!("{late} wait:1s wait:1s"), "kill:2:GraceOver");
}

#[test]
fn a_drain_starts_a_worker_only_for_those_that_are_queued() {
    check("ready:1 arrive:a drain:30s exited:1", "refuse:a:WorkerDied cancelled:a:WorkerDied exit:Drained");
    check("ready:1:sync:1 arrive:a arrive:b drain:30s exited:1", "refuse:a:WorkerDied cancelled:a:WorkerDied start:2");
}

#[test]
fn readiness_tells_the_truth() {
    let ready = |events| Script::run(lenient(), events).core.ready();
    assert!(!ready("") && ready("ready:1") && !ready("ready:1 exited:1") && ready("ready:1 reload"));
    assert!(!ready("ready:1 drain:30s") && !ready("ready:1 violated:1"));
}

/// It may be killed, and would take along what it was given.
#[test]
fn a_worker_that_is_at_something_overdue_gets_nothing_new_while_there_is_another() {
    let check = |events: &str, effects| check_with(Config { apps: of(2), ..script::quiet() }, events, effects);
    let both =
        "ready:1:concurrent:9 ready:2:concurrent:9 arrive:a wait:9s arrive:b:/async arrive:c:/async arrive:d:/async";
    check(&format!("{both} arrive:e:/async"), "assign:e:1");
    check(&format!("{both} wait:1s pong:1 arrive:e:/async"), "assign:e:2");
    check(&format!("{both} wait:1s pong:1 arrive:e:/async arrive:f:/async arrive:g:/async"), "assign:g:2");
    check(&format!("{both} wait:1s pong:1 answer:a:1 arrive:e:/async"), "assign:e:1");
}

#[test]
fn a_worker_that_leaves_with_nothing_unfinished_is_retired() {
    let served = "ready:1 arrive:a answer:a";
    check(&format!("{served} leaves:1"), "start:2");
    check(&format!("{served} leaves:1 arrive:b"), "");
    check(&format!("{served} leaves:1 arrive:b ready:2"), "assign:b:2");
    check(&format!("{served} leaves:1 ready:2 exited:1"), "");
    check(&format!("{served} leaves:1 ready:2 wait:60s"), "kill:1:GraceOver");
    // As often as it likes: no death, and so no pause.
    let again = format!("{served} leaves:1 exited:1 ready:2 arrive:b answer:b leaves:2");
    check(&again, "start:3");
    let script = Script::run(config(), &again);
    assert_eq!((script.core.counts().workers_died, script.core.counts().workers_recycled), (0, 2));
}

#[test]
fn one_that_leaves_its_work_has_died() {
    let left = "ready:1:sync:9 arrive:x answer:x arrive:a arrive:b leaves:1";
    check(left, "start:2");
    check(&format!("{left} exited:1"), "refuse:a:WorkerDied cancelled:a:WorkerDied");
    check(&format!("{left} exited:1 ready:2"), "assign:b:2");
    let script = Script::run(config(), &format!("{left} exited:1"));
    assert_eq!((script.core.counts().workers_died, script.core.counts().workers_recycled), (1, 0));
}

#[test]
fn one_that_has_withdrawn_its_credit_leaves_what_it_has_not_begun() {
    let left = "ready:1:sync:9 arrive:x answer:x arrive:a arrive:b credit:1:-9 answer:a leaves:1";
    check(left, "start:2");
    check(&format!("{left} exited:1"), "");
    check(&format!("{left} exited:1 ready:2"), "assign:b:2");
    let script = Script::run(config(), &format!("{left} exited:1"));
    assert_eq!((script.core.counts().workers_died, script.core.counts().workers_recycled), (0, 1));
    // Not all of it: b has begun.
    let not_all = left.replace("-9", "-8");
    check(&format!("{not_all} exited:1"), "refuse:b:WorkerDied cancelled:b:WorkerDied");
    // It says so, and yet b waits for something.
    let waits = left.replace("leaves", "branch:b:w:timer:9s leaves");
    check(&format!("{waits} exited:1"), "refuse:b:WorkerDied cancelled:w:WorkerDied cancelled:b:WorkerDied");
}

#[test]
fn so_has_one_that_did_none() {
    check("ready:1 leaves:1", "start:2");
    check("ready:1 leaves:1 exited:1 ready:2 leaves:2", "");
    check("ready:1 leaves:1 exited:1 ready:2 leaves:2 wait:250ms", "start:3");
    check("leaves:1", "");
    check("leaves:1 exited:1", "exit:ApplicationFailed");
}

#[test]
fn what_is_a_coroutine_by_the_routes_of_one_worker_and_none_by_those_of_another_goes_back_to_one_of_them() {
    let two = "ready:1:concurrent:9:awaited arrive:a:/async arrive:b:/async ready:2:concurrent:9:a arrive:c:/sync";
    check_with(workers(2), two, "assign:c:2");
    check_with(workers(2), &format!("{two} arrive:d:/sync"), "route:d:1 assign:d:1");
}
