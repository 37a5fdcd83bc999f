//! Clients at the addresses of jobs: told nothing before it is known whether they may be. The words are explained in `script` and `script::jobs`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use std::time::Duration;

use parkade_core::{Config, State};
use script::{Script, check_quietly as check, check_with, quiet as config};

/// The client of a asks for job x, of which the application says who may have it. The worker has it.
const ASKED: &str = "ready:1 arrive:a:/visit guarded:a";
const WAYS: [(&str, &str); 3] =
    [("/visit", "told:a:x-pending done:a"), ("/visit/next", ""), ("/visit/events", "open:a:1.0")];

fn asked(path: &str) -> String {
    format!("ready:1 arrive:a:{path} guarded:a")
}

#[test]
fn a_job_that_is_public_is_asked_for_once() {
    for (path, told) in WAYS {
        check(&format!("ready:1 arrive:a:{path}"), "lookup:a:x:visitor");
        check(&format!("ready:1 arrive:a:{path} found:a:pending"), told);
        check(&format!("ready:1 arrive:a:{path} found:a:missing"), "told:a:x-missing done:a");
    }
    check("ready:1 arrive:a:/visit found:a:ended", "told:a:x-ended done:a dropjob:x");
    check("ready:1 arrive:a:/visit/next over:x found:a:pending", "lookup:a:x:visitor");
    check("ready:1 arrive:a park:a:job:x:answer", "lookup:a:x");
}

#[test]
fn the_application_is_asked_before_anything_is_told() {
    for (path, told) in WAYS {
        check(&asked(path), "assign:a:1");
        check(&format!("{} park:a:access:yes:answer", asked(path)), "lookup:a:x:guest");
        check(&format!("{} park:a:access:yes:answer found:a:pending", asked(path)), told);
        check(&format!("{} park:a:access:yes:answer found:a:missing", asked(path)), "told:a:x-missing done:a");
        check(&format!("{} park:a:access:no:answer", asked(path)), "told:a:x-missing done:a");
        check(&format!("{} answer:a", asked(path)), "relay:a done:a");
        check(&format!("{} error:a", asked(path)), "refuse:a:ApplicationFailed done:a");
    }
    check(&format!("{ASKED} park:a:access:yes:answer found:a:ended"), "told:a:x-ended done:a dropjob:x");
    check("ready:1:concurrent arrive:a:/visit guarded:a:async", "assign:a:1");
}

#[test]
fn what_happens_to_the_job_meanwhile_is_told_to_nobody() {
    for (path, _) in WAYS {
        check(&format!("ready:1 arrive:a:{path} over:x"), "dropjob:x");
        check(&format!("ready:1 arrive:a:{path} over:x guarded:a"), "assign:a:1");
        check(&format!("{} over:x", asked(path)), "dropjob:x");
        check(&format!("{} drop:x", asked(path)), "");
        check(&format!("{} publish:jobs/x", asked(path)), "");
        check(&format!("{} found:a:ended", asked(path)), "");
        check(&format!("{} guarded:a", asked(path)), "");
    }
}

#[test]
fn a_worker_permits_only_what_it_was_asked_about() {
    let refused = "refuse:a:BadAnswer done:a";
    check("ready:1 arrive:a park:a:access:yes:answer", refused);
    check("ready:1 arrive:a park:a:access:no:answer", refused);
    check("ready:1 arrive:a park:a:access:yes:call", "keep:a refuse:a:BadAnswer done:a");
    check("ready:1:concurrent arrive:a:/async park:a:access:yes:await", "resume:1:BadAnswer:a");
    check(&format!("{ASKED} park:a:access:yes:call"), "keep:a refuse:a:BadAnswer done:a");
    let other = "ready:1:concurrent arrive:a:/visit guarded:a arrive:b:/async";
    check(&format!("{other} park:b:access:yes:answer"), "refuse:b:BadAnswer done:b");
    let both = "ready:1:concurrent arrive:a:/visit arrive:b:/visit/events guarded:a";
    check(&format!("{both} park:b:access:yes:answer"), "");
    check(&format!("{both} park:a:access:yes:answer found:b:pending"), "open:b:1.0");
}

#[test]
fn a_coroutine_may_wait_before_it_says_so() {
    let waits = "ready:1:concurrent arrive:a:/visit guarded:a:async park:a:timer:1s:await";
    check(&format!("{waits} wait:1s"), "resume:1:elapsed:a");
    check(&format!("{waits} wait:1s park:a:access:yes:answer"), "lookup:a:x:guest");
    check(&format!("{waits} left:a"), "recall:a:1:ClientLeft cancelled:a:ClientLeft");
    let another = "ready:1:concurrent arrive:a:/visit guarded:a:async park:a:job:y:await";
    check(another, "lookup:a:y");
    check(&format!("{another} found:a:pending over:y park:a:access:yes:answer"), "lookup:a:x:guest");
    let same =
        "ready:1:concurrent arrive:a:/visit guarded:a:async park:a:job:x:await unpark:a park:a:access:yes:answer";
    check(same, "");
    check(&format!("{same} found:a:pending"), "lookup:a:x:guest");
    check(&format!("{same} found:a:pending found:a:pending"), "told:a:x-pending done:a");
}

#[test]
fn who_is_asked_about_is_a_request_as_any_other() {
    let queued = "ready:1:sync:1 arrive:b arrive:a:/visit guarded:a";
    check(queued, "");
    check(&format!("{queued} answer:b"), "relay:b done:b assign:a:1");
    check(&format!("{queued} left:a"), "cancelled:a:ClientLeft");
    check("ready:1:sync:0 arrive:a:/visit guarded:a wait:10s", "refuse:a:QueuedTooLong cancelled:a:Deadline");
    check(&format!("{ASKED} left:a"), "recall:a:1:ClientLeft cancelled:a:ClientLeft");
    check(
        &format!("{ASKED} wait:10s"),
        "refuse:a:DeadlinePassed recall:a:1:Deadline dump:1:Deadline:a cancelled:a:Deadline",
    );
    check(&format!("{ASKED} exited:1"), "refuse:a:WorkerDied cancelled:a:WorkerDied start:2");
    check("ready:1 arrive:a:/visit left:a guarded:a", "");
    check("ready:1 arrive:a:/visit wait:10s guarded:a", "");
    check(&format!("{ASKED} drain:30s park:a:access:yes:answer found:a:pending"), "told:a:x-pending done:a dismiss:1");
    check("ready:1 arrive:a:/visit/next drain:30s guarded:a", "assign:a:1");
    let next = asked("/visit/next");
    check(&format!("{next} drain:30s park:a:access:yes:answer"), "lookup:a:x:guest");
    check(&format!("{next} drain:30s park:a:access:yes:answer found:a:pending"), "told:a:x-pending done:a dismiss:1");
}

#[test]
fn the_time_that_a_client_waits_begins_when_it_may() {
    let next = format!("{} wait:4s park:a:access:yes:answer found:a:pending", asked("/visit/next"));
    check(&format!("{next} wait:4s"), "");
    check(&format!("{next} wait:5s"), "told:a:x-pending done:a");
}

#[test]
fn a_full_queue_refuses_whoever_is_to_be_asked_about() {
    let full = Config { queued_count_max: 1, ..config() };
    let queue = "ready:1:sync:1 arrive:a:/visit arrive:b arrive:c";
    check_with(full.clone(), &format!("{queue} guarded:a"), "refuse:a:QueueFull done:a");
    check_with(full, &format!("{queue} found:a:pending"), "told:a:x-pending done:a");
}

#[test]
fn other_code_is_asked_anew_what_job_it_is() {
    let queued = "ready:1:sync:0 arrive:a:/visit guarded:a deaf reload ready:2:sync:1:b";
    check(queued, "reloaded:Done drain:1:30s route:a:2 dismiss:1");
    check(&format!("{queued} routed:a:/visit"), "lookup:a:x:visitor");
    check(&format!("{queued} routed:a:/visit found:a:pending"), "told:a:x-pending done:a");
    check(&format!("{queued} routed:a:/sync"), "assign:a:2");
    check(&format!("{queued} routed:a:/sync park:a:access:yes:answer"), "refuse:a:BadAnswer done:a");
}

#[test]
fn nothing_is_left_of_a_visit() {
    let ends = ["left:a", "answer:a", "error:a", "wait:10s", "exited:1", "operator:a", "park:a:access:no:answer"];
    let permitted = ["park:a:access:yes:answer found:a:missing", "park:a:access:yes:answer left:a found:a:ended"];
    for end in ends.into_iter().chain(permitted) {
        let script = Script::run(config(), &format!("{ASKED} {end}"));
        let status = script.core.status(script.now);
        let left = (status.jobs_visited, status.jobs_watched, status.jobs_looked_up, status.job_results_held);
        assert_eq!(left, (0, 0, 0, 0), "{end}");
        assert!(matches!(script.state("a"), Some(State::Done | State::Cancelled)));
    }
    let waits = Script::run(config(), &format!("{} found:a:pending", "ready:1 arrive:a:/visit/next"));
    assert_eq!(waits.core.status(waits.now).jobs_visited, 0, "it may wait for long");
    let asked = Script::run(config(), ASKED);
    assert_eq!(asked.core.status(asked.now + Duration::from_secs(1)).jobs_visited, 1);
}
