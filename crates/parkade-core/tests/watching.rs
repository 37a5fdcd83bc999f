//! Waiting for a job to end. The words are explained in `script` and `script::jobs`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use std::time::Duration;

use parkade_core::{Config, State, WaitKind};
use script::{Script, check_quietly as check, check_with, of_jobs, quiet as config};

/// The client of a waits for job x.
const ANSWER: &str = "ready:1 arrive:a park:a:job:x:answer";
const CALL: &str = "ready:1 arrive:a park:a:job:x:call";
const AWAIT: &str = "ready:1:concurrent arrive:a:/async park:a:job:x:await";
const SOON: &str = "ready:1 arrive:a park:a:job:x@5s:answer";

#[test]
fn the_store_is_asked_and_the_worker_is_free() {
    check("ready:1:sync:1 arrive:a arrive:b park:a:job:x:answer", "lookup:a:x assign:b:1");
    check(CALL, "keep:a lookup:a:x");
    check(AWAIT, "lookup:a:x");
    check(&format!("{ANSWER} found:a:pending"), "");
    check(&format!("{ANSWER} found:a:pending wait:3600s"), "");
}

#[test]
fn a_job_that_ends_is_told_in_each_of_three_ways() {
    check(&format!("{ANSWER} found:a:pending over:x"), "told:a:x-ended done:a dropjob:x");
    check(&format!("{CALL} found:a:pending over:x"), "call:a:1:x-ended");
    check(&format!("{CALL} found:a:pending over:x answer:a"), "relay:a done:a dropjob:x");
    check(&format!("{AWAIT} found:a:pending over:x"), "resume:1:x-ended:a dropjob:x");
    check(&format!("{AWAIT} found:a:pending over:x answer:a"), "relay:a done:a");
    check(&format!("{ANSWER} found:a:pending over:y"), "dropjob:y");
}

#[test]
fn a_job_that_had_ended_is_told_in_each_of_three_ways() {
    check(&format!("{ANSWER} found:a:ended"), "told:a:x-ended done:a dropjob:x");
    check(&format!("{CALL} found:a:ended"), "call:a:1:x-ended");
    check(&format!("{CALL} found:a:ended left:a"), "recall:a:1:ClientLeft cancelled:a:ClientLeft dropjob:x");
    check(&format!("{AWAIT} found:a:ended"), "resume:1:x-ended:a dropjob:x");
}

#[test]
fn an_end_that_falls_between_the_question_and_its_answer_is_told_once() {
    check(&format!("{CALL} over:x"), "call:a:1:x-ended");
    check(&format!("{CALL} over:x found:a:pending"), "");
    check(&format!("{CALL} over:x found:a:ended"), "");
    check(&format!("{CALL} over:x found:a:ended answer:a"), "relay:a done:a dropjob:x");
}

#[test]
fn a_client_is_told_of_an_end_only_when_the_store_has_said_that_there_is_such_a_job_for_it() {
    for asks in [ANSWER, "ready:1 arrive:a park:a:job:x@0s:answer", "ready:1 arrive:a park:a:follow:x:answer"] {
        check(&format!("{asks} over:x"), "dropjob:x");
        check(&format!("{asks} over:x found:a:missing"), "told:a:x-missing done:a");
        let asker = if asks.contains("follow") { ":visitor" } else { "" };
        check(&format!("{asks} over:x found:a:pending"), &format!("lookup:a:x{asker}"));
        check(&format!("{asks} over:x found:a:pending found:a:missing"), "told:a:x-missing done:a");
    }
    check(&format!("{ANSWER} over:x found:a:ended"), "told:a:x-ended done:a dropjob:x");
    check(&format!("{ANSWER} over:x found:a:pending found:a:ended"), "told:a:x-ended done:a dropjob:x");
    check(&format!("{ANSWER} over:x found:a:pending found:a:pending"), "");
    check(&format!("{ANSWER} over:x found:a:pending over:x found:a:pending"), "lookup:a:x");
    check(&format!("{ANSWER} over:x found:a:pending found:a:pending over:x"), "told:a:x-ended done:a dropjob:x");
}

#[test]
fn a_job_that_is_not_there_is_told_in_each_of_three_ways() {
    check(&format!("{ANSWER} found:a:missing"), "told:a:x-missing done:a");
    check(&format!("{CALL} found:a:missing"), "call:a:1:x-missing");
    check(&format!("{CALL} found:a:missing answer:a"), "relay:a done:a");
    check(&format!("{AWAIT} found:a:missing"), "resume:1:x-missing:a");
}

#[test]
fn a_job_that_is_dropped_is_told_in_each_of_three_ways() {
    check(&format!("{ANSWER} found:a:pending drop:x"), "told:a:x-missing done:a");
    check(&format!("{CALL} found:a:pending drop:x"), "call:a:1:x-missing");
    check(&format!("{AWAIT} found:a:pending drop:x"), "resume:1:x-missing:a");
    check(&format!("{ANSWER} found:a:pending drop:y"), "");
    check(&format!("{ANSWER} drop:x"), "told:a:x-missing done:a");
    check(&format!("{ANSWER} drop:x found:a:missing"), "");
    check(&format!("{ANSWER} drop:x found:a:ended"), "dropjob:x");
    check("ready:1 arrive:a park:a:follow:x:answer drop:x", "told:a:x-missing done:a");
    assert!(!Script::run(config(), &format!("{ANSWER} drop:x")).watches("x"));
    assert_eq!(Script::run(config(), &format!("{SOON} drop:x")).alarms(), 0);
}

#[test]
fn a_store_that_cannot_say_it_is_told_in_each_of_three_ways() {
    check(&format!("{ANSWER} unfound:a"), "refuse:a:StoreUnreadable done:a");
    check(&format!("{CALL} unfound:a"), "refuse:a:StoreUnreadable done:a");
    check(&format!("{AWAIT} unfound:a"), "resume:1:StoreUnreadable:a");
    check(&format!("{AWAIT} unfound:a unfound:a"), "");
    check(&format!("{ANSWER} over:x unfound:a"), "refuse:a:StoreUnreadable done:a");
    let again = "ready:1:concurrent arrive:a:/async park:a:job:x@1s:await wait:1s park:a:job:y:await";
    check(&format!("{again} unfound:a"), "lookup:a:y");
    let run = "ready:1 jobs claimed:r park:r:job:x:call unfound:r";
    check_with(of_jobs(1), run, "verdict:r:retry:Refused(StoreUnreadable) done:r");
    for events in [ANSWER, CALL, AWAIT] {
        let script = Script::run(config(), &format!("{events} unfound:a"));
        assert_eq!(
            (script.core.status(script.now).jobs_looked_up, script.core.status(script.now).jobs_watched),
            (0, 0)
        );
    }
}

#[test]
fn when_the_time_is_up_it_is_pending() {
    check(&format!("{SOON} found:a:pending wait:4999ms"), "");
    check(&format!("{SOON} found:a:pending wait:5s"), "told:a:x-pending done:a");
    check(&format!("{SOON} wait:5s found:a:ended"), "dropjob:x");
    check("ready:1 arrive:a park:a:job:x@5s:call wait:5s", "call:a:1:x-pending");
    check("ready:1 arrive:a park:a:job:x@5s:call wait:5s answer:a", "relay:a done:a");
    check("ready:1:concurrent arrive:a:/async park:a:job:x@5s:await wait:5s", "resume:1:x-pending:a");
    assert_eq!(Script::run(config(), &format!("{SOON} found:a:pending over:x")).alarms(), 0);
}

#[test]
fn of_a_job_that_the_store_has_said_nothing_of_nobody_is_told_that_it_is_on_its_way() {
    check(&format!("{SOON} wait:5s"), "refuse:a:StoreUnreadable done:a");
    let asks = "ready:1 arrive:a park:a:job:x@0s:answer";
    check(&format!("{asks} wait:10s"), "refuse:a:StoreUnreadable done:a");
    check(&format!("{asks} wait:10s found:a:pending"), "");
    check("ready:1 arrive:a:/endless park:a:job:x@0s:answer wait:3600s", "");
    check("ready:1 arrive:a park:a:job:x@0s:call wait:10s", "call:a:1:x-pending");
    check("ready:1:concurrent arrive:a:/async park:a:job:x@0s:await wait:10s", "resume:1:x-pending:a");
    assert_eq!(Script::run(config(), &format!("{asks} found:a:pending")).alarms(), 0);
}

#[test]
fn who_follows_a_job_hears_what_is_said_of_it_until_it_has_ended() {
    let follow = "ready:1 arrive:a park:a:follow:x:answer";
    check(follow, "lookup:a:x:visitor");
    check(&format!("{follow} found:a:missing"), "told:a:x-missing done:a");
    check(&format!("{follow} unfound:a"), "refuse:a:StoreUnreadable done:a");
    check(&format!("{follow} wait:10s"), "refuse:a:StoreUnreadable done:a");
    check(&format!("{follow} left:a found:a:pending"), "");
    check(&format!("{follow} found:a:pending"), "open:a:1.0");
    check(&format!("{follow} found:a:ended"), "open:a:1.0 dropjob:x");
    check(&format!("{follow} over:x"), "dropjob:x");
    check(&format!("{follow} drain:5s found:a:pending"), "open:a:1.0 end_stream:a cancelled:a:Stopping dismiss:1");
    let follows = format!("{follow} found:a:pending");
    check(&format!("{follows} publish:jobs/x"), "feed:m1:a");
    check(&format!("{follows} wait:3600s publish:jobs/x"), "feed:m1:a");
    check(&format!("{follows} publish:jobs/x over:channel:jobs/x"), "end_stream:a done:a");
    check(&format!("{follows} over:channel:jobs/y"), "");
    check(&format!("{follows} over:channel:jobs/x publish:jobs/x"), "");
    let script = Script::run(config(), &follows);
    assert_eq!((script.alarms(), script.watches("x")), (0, false));
    check("ready:1:concurrent arrive:a:/async park:a:follow:x:await", "resume:1:BadAnswer:a");
}

#[test]
fn without_any_time_the_store_is_only_asked() {
    let asks = "ready:1 arrive:a park:a:job:x@0s:answer";
    check(asks, "lookup:a:x");
    check(&format!("{asks} wait:9999ms"), "");
    check(&format!("{asks} found:a:pending"), "told:a:x-pending done:a");
    check(&format!("{asks} found:a:ended"), "told:a:x-ended done:a dropjob:x");
    check(&format!("{asks} found:a:missing"), "told:a:x-missing done:a");
}

#[test]
fn all_who_wait_for_one_job_are_told_together() {
    let three = "ready:1:concurrent:9 arrive:a park:a:job:x:answer arrive:b:/async park:b:job:x:await \
                 arrive:c park:c:job:x:call arrive:d park:d:job:y:answer found:a:pending";
    let told = "told:a:x-ended done:a call:c:1:x-ended resume:1:x-ended:b";
    check(&format!("{three} over:x"), told);
    check(&format!("{three} over:x answer:c"), "relay:c done:c dropjob:x");
    check(&format!("{three} left:a over:x"), "call:c:1:x-ended resume:1:x-ended:b");
    let script = Script::run(config(), three);
    assert!(script.watches("x") && script.watches("y") && !script.watches("z"));
    let script = Script::run(config(), &format!("{three} over:x left:d"));
    assert!(!script.watches("x") && !script.watches("y"));
}

#[test]
fn what_a_call_is_to_be_told_is_kept_until_it_has_ended() {
    let both = "ready:1:sync:1 arrive:a park:a:job:x:call arrive:b park:b:job:x:call arrive:c:/endless over:x";
    check(both, "");
    check(&format!("{both} left:a"), "cancelled:a:ClientLeft");
    check(&format!("{both} left:a left:b"), "cancelled:b:ClientLeft dropjob:x");
    check(&format!("{both} over:x"), "");
    check(&format!("{both} answer:c answer:a"), "relay:a done:a call:b:1:x-ended");
}

#[test]
fn an_answer_of_the_store_is_never_taken_for_that_to_a_later_question() {
    let again = "ready:1:concurrent arrive:a:/async park:a:job:x@1s:await wait:1s park:a:job:y:await";
    check(again, "");
    check(&format!("{again} found:a:pending"), "lookup:a:y");
    check(&format!("{again} found:a:missing"), "lookup:a:y");
    check(&format!("{again} found:a:ended"), "lookup:a:y dropjob:x");
    check(&format!("{again} found:a:ended found:a:missing"), "resume:1:y-missing:a");
    check(&format!("{again} over:y found:a:ended"), "dropjob:x");
    let same = "ready:1:concurrent arrive:a:/async park:a:job:x@1s:await wait:1s park:a:job:x:await";
    check(same, "");
    check(&format!("{same} found:a:ended"), "resume:1:x-ended:a dropjob:x");
    check(&format!("{ANSWER} found:a:pending found:a:missing"), "");
    check("ready:1 arrive:a found:a:ended", "");
}

#[test]
fn who_leaves_is_forgotten_and_what_the_store_says_then_is_dropped() {
    check(&format!("{ANSWER} left:a"), "cancelled:a:ClientLeft");
    check(&format!("{ANSWER} left:a found:a:ended"), "dropjob:x");
    check(&format!("{ANSWER} left:a found:a:pending"), "");
    check(&format!("{AWAIT} left:a"), "recall:a:1:ClientLeft cancelled:a:ClientLeft");
    check(&format!("{AWAIT} unpark:a"), "resume:1:unparked:a");
    check(&format!("{AWAIT} unpark:a over:x"), "dropjob:x");
    check(&format!("{AWAIT} exited:1"), "refuse:a:WorkerDied cancelled:a:WorkerDied start:2");
    check(&format!("{ANSWER} operator:a"), "refuse:a:CancelledByOperator cancelled:a:Operator");
    for events in [ANSWER, CALL, AWAIT, SOON] {
        let script = Script::run(config(), &format!("{events} found:a:pending left:a"));
        let status = script.core.status(script.now);
        let left = (status.jobs_watched, status.jobs_looked_up, status.job_results_held, status.alarms);
        assert_eq!(left, (0, 0, 0, 0), "{events}");
    }
}

#[test]
fn a_drain_sends_those_who_wait_away() {
    check(&format!("{ANSWER} drain:30s"), "stop_accepting drain:1:30s");
    check(&format!("{ANSWER} drain:30s found:a:pending"), "told:a:x-pending done:a dismiss:1");
    check(
        &format!("{ANSWER} found:a:pending drain:30s"),
        "stop_accepting drain:1:30s told:a:x-pending done:a dismiss:1",
    );
    check(&format!("{CALL} drain:30s"), "stop_accepting drain:1:30s call:a:1:x-pending");
    check(&format!("{AWAIT} drain:30s"), "stop_accepting drain:1:30s resume:1:x-pending:a");
    let later = "ready:1:concurrent arrive:a:/async drain:30s park:a:job:x:await";
    check(later, "lookup:a:x");
    check(&format!("{later} found:a:pending"), "resume:1:x-pending:a");
    check(&format!("{later} found:a:ended"), "resume:1:x-ended:a dropjob:x");
    let soon = "ready:1:concurrent arrive:a:/async drain:30s park:a:job:x@5s:await";
    check(&format!("{soon} found:a:pending"), "resume:1:x-pending:a");
    check(&format!("{soon} wait:5s"), "resume:1:x-pending:a");
}

#[test]
fn who_waits_for_a_job_counts_as_parked() {
    let full = Config { parked_count_max: 1, ..config() };
    let two = "ready:1:concurrent:9 arrive:b:/next arrive:a:/async";
    check_with(full.clone(), &format!("{two} park:a:job:x:answer"), "refuse:a:ParkedFull done:a");
    check_with(full, &format!("{two} park:a:job:x:await"), "resume:1:ParkedFull:a");
    let script = Script::run(config(), &format!("{ANSWER} wait:3s"));
    let status = script.core.status(script.now);
    let waits = status.waits.iter().find(|wait| wait.kind == WaitKind::Job).unwrap();
    assert_eq!((waits.count, waits.oldest), (1, Some(Duration::from_secs(3))));
    assert_eq!((status.jobs_watched, status.jobs_looked_up), (1, 1));
}

#[test]
fn a_job_may_wait_for_another() {
    let check = |events: &str, effects: &str| check_with(of_jobs(1), events, effects);
    let waits = "ready:1:concurrent jobs claimed:r+async park:r:job:x:await";
    check(waits, "lookup:r:x");
    check(&format!("{waits} over:x"), "resume:1:x-ended:r dropjob:x");
    check(&format!("{waits} over:x return:r"), "verdict:r:completed done:r");
    check(&format!("{waits} stop:r"), "recall:r:1:Operator verdict:r:cancelled cancelled:r:Operator");
}

#[test]
fn end_time_and_leave_at_one_instant_end_it_once() {
    let instant = ["over:x", "left:a", "tick", "found:a:ended"];
    for first in 0..4 {
        for second in (0..4).filter(|second| *second != first) {
            for third in (0..4).filter(|third| ![first, second].contains(third)) {
                let mut script = Script::run(config(), SOON);
                script.now = script.now + Duration::from_secs(5);
                let mut told = Vec::new();
                for nth in [first, second, third, 6 - first - second - third] {
                    script.go_on(instant[nth]);
                    told.append(&mut script.told);
                }
                let count = |word: &str| told.iter().filter(|told| told.starts_with(word)).count();
                assert_eq!(count("done:a") + count("cancelled:a"), 1, "{told:?}");
                let status = script.core.status(script.now);
                assert_eq!((status.alarms, status.jobs_watched, status.job_results_held), (0, 0, 0), "{told:?}");
                assert!(matches!(script.state("a"), Some(State::Done | State::Cancelled)));
            }
        }
    }
}
