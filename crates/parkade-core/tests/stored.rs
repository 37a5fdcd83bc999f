//! Answers that wait until what their requests have enqueued is stored. The words are explained in `script` and `script::jobs`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use std::time::Duration;

use parkade_core::{Config, Output, WaitKind, WorkerId};
use script::{Script, check_quietly as check, check_with, of_jobs, quiet as config};

/// It has enqueued one job.
const ONE: &str = "ready:1:sync:1 arrive:a enqueue:a";
/// Its answer is here, its job is not stored.
const HELD: &str = "ready:1:sync:1 arrive:a enqueue:a answer:a";
const TWO: &str = "ready:1 arrive:a enqueue:a enqueue:a answer:a";
const AWAIT: &str = "ready:1:concurrent arrive:a:/async enqueue:a park:a:stored:all:await";

#[test]
fn an_answer_is_held_until_the_job_is_stored() {
    check(ONE, "");
    check(HELD, "keep:a");
    check(&format!("{HELD} stored:a"), "release:a done:a");
    check(&format!("{ONE} stored:a"), "");
    check(&format!("{ONE} stored:a answer:a"), "relay:a done:a");
    check(&format!("{ONE} stored:a begin:a"), "begin:a");
    check("ready:1 arrive:a answer:a stored:a", "");
}

#[test]
fn an_answer_is_held_until_all_jobs_are_stored() {
    check(&format!("{TWO} stored:a"), "");
    check(&format!("{TWO} stored:a stored:a"), "release:a done:a");
    check("ready:1 arrive:a enqueue:a stored:a enqueue:a answer:a", "keep:a");
    check("ready:1 arrive:a enqueue:a enqueue:a stored:a", "");
    check("ready:1 arrive:a enqueue:a enqueue:a stored:a stored:a", "");
}

#[test]
fn what_a_background_task_enqueues_while_its_coroutine_waits_counts_as_well() {
    let waited = "ready:1:concurrent arrive:a:/async park:a:timer:1s:await enqueue:a wait:1s";
    check(&format!("{waited} enqueue:a answer:a stored:a"), "");
    check(&format!("{waited} enqueue:a answer:a stored:a stored:a"), "release:a done:a");
    check(&format!("{waited} answer:a"), "keep:a");
    check(&format!("{AWAIT} enqueue:a stored:a"), "");
    check(&format!("{AWAIT} enqueue:a stored:a stored:a"), "resume:1:stored:a");
    check(&format!("{waited} full:a answer:a"), "refuse:a:StoreFull done:a");
}

#[test]
fn the_worker_is_free_while_its_answer_is_held() {
    check("ready:1:sync:1 arrive:a arrive:b enqueue:a answer:a", "keep:a assign:b:1");
    check(&format!("{HELD} exited:1"), "start:2");
    check(&format!("{HELD} exited:1 stored:a"), "release:a done:a");
}

#[test]
fn what_cannot_be_stored_is_no_success() {
    check(&format!("{HELD} full:a"), "refuse:a:StoreFull done:a");
    check(&format!("{HELD} broken:a"), "refuse:a:StoreUnavailable done:a");
    check(&format!("{ONE} full:a answer:a"), "refuse:a:StoreFull done:a");
    check(&format!("{ONE} full:a error:a"), "refuse:a:ApplicationFailed done:a");
    check(&format!("{TWO} full:a"), "");
    check(&format!("{TWO} full:a stored:a"), "refuse:a:StoreFull done:a");
    check(&format!("{TWO} stored:a broken:a"), "refuse:a:StoreUnavailable done:a");
    check(&format!("{TWO} full:a broken:a"), "refuse:a:StoreFull done:a");
    check("ready:1 arrive:a enqueue:a full:a enqueue:a stored:a answer:a", "refuse:a:StoreFull done:a");
}

#[test]
fn what_cannot_be_stored_is_no_success_of_an_answer_in_pieces_either() {
    let refused = format!("{ONE} full:a begin:a");
    check(&refused, "refuse:a:StoreFull recall:a:1:ClientLeft done:a");
    check(&format!("{refused} end:a"), "");
    check(&format!("{refused} arrive:b end:a"), "assign:b:1");
    check(&format!("{refused} wait:10s"), "dump:1:Deadline:a");
    let begun = "ready:1 arrive:a begin:a enqueue:a";
    check(&format!("{begun} full:a end:a"), "abort:a done:a");
    check(&format!("{begun} enqueue:a broken:a stored:a end:a"), "abort:a done:a");
    check(&format!("{begun} stored:a end:a"), "end:a done:a");
}

#[test]
fn who_waits_for_something_else_is_told_that_it_cannot_be_stored() {
    let full = "ready:1:concurrent arrive:a:/async enqueue:a full:a";
    check(&format!("{full} park:a:timer:1s:answer"), "refuse:a:StoreFull done:a");
    check(&format!("{full} park:a:next:bids:answer"), "refuse:a:StoreFull done:a");
    check(&format!("{full} park:a:query:alone:answer"), "refuse:a:StoreFull done:a");
    check(&format!("{full} park:a:job:x:answer"), "refuse:a:StoreFull done:a");
    check(&format!("{full} park:a:timer:1s:call"), "refuse:a:StoreFull done:a");
    check(&format!("{full} park:a:timer:1s:await"), "");
    check(&format!("{full} park:a:timer:1s:await wait:1s answer:a"), "refuse:a:StoreFull done:a");
    let stored = "ready:1:concurrent arrive:a:/async enqueue:a stored:a";
    check(&format!("{stored} park:a:timer:1s:answer"), "keep:a");
    check(&format!("{stored} park:a:timer:1s:call wait:1s answer:a"), "relay:a done:a");
}

#[test]
fn the_shell_is_told_what_is_to_be_held_back() {
    let told = |events: &str| {
        let mut script = Script::run(config(), events);
        let request = script.request("a");
        let is_held = script.core.holds_output(WorkerId(1), request, Output::End);
        (is_held, script.core.status(script.now).jobs_unstored)
    };
    assert_eq!(told("ready:1 arrive:a"), (false, 0));
    assert_eq!(told(ONE), (true, 1));
    assert_eq!(told(HELD), (false, 1), "the worker holds it no more");
    assert_eq!(told(&format!("{ONE} stored:a")), (false, 0));
    assert_eq!(told(&format!("{ONE} full:a")), (false, 1), "until its answer is refused");
    assert_eq!(told(&format!("{ONE} enqueue:a broken:a")), (true, 1));
    assert_eq!(told(&format!("{ONE} left:a")), (false, 0));
    check(&format!("{ONE} enqueue:a broken:a stored:a answer:a"), "refuse:a:StoreUnavailable done:a");
}

#[test]
fn what_says_something_of_a_write_is_held_until_that_is_durable() {
    let held = |events: &str| {
        let mut script = Script::run(config(), events);
        let (worker, request) = (WorkerId(1), script.request("a"));
        let all = [Output::Head, Output::Piece, Output::End, Output::Wait, Output::AboutWait, Output::Error];
        all.into_iter().filter(|output| script.core.holds_output(worker, request, *output)).collect::<Vec<_>>()
    };
    let relying = [Output::Head, Output::End, Output::Wait];
    let all = [Output::Head, Output::Piece, Output::End, Output::Wait, Output::AboutWait, Output::Error];
    assert_eq!(held("ready:1 arrive:a"), []);
    assert_eq!(held(ONE), relying);
    assert_eq!(held(&format!("{ONE} stored:a")), []);
    assert_eq!(held(&format!("{ONE} full:a")), []);
    assert_eq!(held(&format!("{ONE} left:a")), []);
    assert_eq!(held(&format!("{ONE} hold:a:head")), all, "what comes after it waits, too");
    assert_eq!(held(&format!("{ONE} hold:a:wait")), all, "a coroutine no longer wants a wait that was not heard");
    assert_eq!(held(&format!("{ONE} hold:a:head stored:a")), []);
    assert_eq!(held(&format!("{ONE} hold:a:head stored:a enqueue:a")), relying);
    assert_eq!(held(&format!("{ONE} hold:a:head:2")), relying, "another worker does not hold the request");
}

#[test]
fn output_that_is_held_is_released_when_all_is_durable_or_lost() {
    check(&format!("{ONE} hold:a:head"), "");
    check(&format!("{ONE} hold:a:head stored:a"), "output:a");
    check(&format!("{ONE} hold:a:head hold:a:end stored:a"), "output:a");
    check(&format!("{ONE} hold:a:head full:a"), "output:a");
    check(&format!("{ONE} hold:a:head full:a begin:a"), "refuse:a:StoreFull recall:a:1:ClientLeft done:a");
    check(&format!("{ONE} enqueue:a hold:a:wait stored:a"), "");
    check(&format!("{ONE} enqueue:a hold:a:wait stored:a stored:a"), "output:a");
    check(&format!("{ONE} hold:a:wait stored:a park:a:timer:1s:call"), "keep:a");
    check(&format!("{ONE} hold:a:head left:a stored:a"), "");
}

#[test]
fn a_stream_that_was_given_back_unheard_is_free_when_its_request_ends() {
    let next = "ready:1:sync:1 arrive:a arrive:b enqueue:a";
    for output in ["end", "wait", "error"] {
        let left = "recall:a:1:ClientLeft cancelled:a:ClientLeft assign:b:1";
        check(&format!("{next} hold:a:head hold:a:{output} left:a"), left);
    }
    check(&format!("{next} hold:a:head left:a"), "recall:a:1:ClientLeft cancelled:a:ClientLeft");
    check(&format!("{next} hold:a:head left:a answer:a"), "assign:b:1");
    check(&format!("{next} hold:a:wait left:a answer:a"), "");
    let over = Script::run(config(), &format!("{ONE} hold:a:wait wait:10s"));
    let status = over.core.status(over.now);
    assert_eq!((status.workers[0].held, status.alarms, status.jobs_unstored), (0, 0, 0));
}

#[test]
fn a_client_that_leaves_meanwhile_is_forgotten_and_its_jobs_are_not() {
    check(&format!("{HELD} left:a"), "cancelled:a:ClientLeft");
    check(&format!("{HELD} left:a stored:a"), "");
    check(&format!("{ONE} left:a"), "recall:a:1:ClientLeft cancelled:a:ClientLeft");
    check(&format!("{ONE} left:a enqueue:a stored:a stored:a answer:a"), "");
    for events in
        [format!("{HELD} left:a"), format!("{ONE} left:a"), format!("{HELD} stored:a"), format!("{HELD} full:a")]
    {
        let script = Script::run(config(), &events);
        assert_eq!(script.core.status(script.now).jobs_unstored, 0, "{events}");
    }
}

#[test]
fn nobody_waits_for_jobs_of_others() {
    check("ready:1 arrive:a enqueue:a:2 answer:a", "relay:a done:a");
    check("ready:1 arrive:a enqueue:b answer:a", "relay:a done:a");
    check("ready:1 arrive:a park:a:timer:1s:call enqueue:a:1 wait:1s answer:a", "relay:a done:a");
}

#[test]
fn a_store_that_does_not_answer_is_waited_for_until_the_deadline() {
    check(&format!("{HELD} wait:9999ms"), "");
    check(&format!("{HELD} wait:10s"), "refuse:a:DeadlinePassed cancelled:a:Deadline");
    check(&format!("{HELD} wait:10s stored:a"), "");
    check("ready:1 arrive:a wait:9s enqueue:a answer:a wait:1s", "refuse:a:DeadlinePassed cancelled:a:Deadline");
    check("ready:1 arrive:a:/endless enqueue:a answer:a wait:3600s", "");
    check(&format!("{HELD} operator:a"), "refuse:a:CancelledByOperator cancelled:a:Operator");
    let held = Script::run(config(), &format!("{HELD} wait:3s"));
    let status = held.core.status(held.now);
    let waits = status.waits.iter().find(|wait| wait.kind == WaitKind::Job).unwrap();
    assert_eq!((waits.count, waits.oldest, status.jobs_unstored), (1, Some(Duration::from_secs(3)), 1));
}

#[test]
fn a_drain_lets_the_store_answer() {
    check(&format!("{HELD} drain:5s"), "stop_accepting drain:1:5s");
    check(&format!("{HELD} drain:5s stored:a"), "release:a done:a dismiss:1");
    check(&format!("{HELD} drain:5s wait:5s"), "refuse:a:Stopping cancelled:a:Stopping dismiss:1");
}

#[test]
fn an_answer_is_held_however_many_are_parked() {
    let full = Config { parked_count_max: 1, ..config() };
    check_with(full, "ready:1:concurrent:9 arrive:b:/next arrive:a enqueue:a answer:a", "keep:a");
}

#[test]
fn a_coroutine_waits_until_everything_is_stored() {
    check(AWAIT, "");
    check(&format!("{AWAIT} stored:a"), "resume:1:stored:a");
    check(&format!("{AWAIT} stored:a answer:a"), "relay:a done:a");
    check("ready:1:concurrent arrive:a:/async enqueue:a stored:a park:a:stored:all:await", "resume:1:stored:a");
    check("ready:1:concurrent arrive:a:/async park:a:stored:all:await", "resume:1:stored:a");
    check(&format!("{AWAIT} full:a"), "resume:1:StoreFull:a");
    check(&format!("{AWAIT} broken:a"), "resume:1:StoreUnavailable:a");
    check("ready:1:concurrent arrive:a:/async enqueue:a full:a park:a:stored:all:await", "resume:1:StoreFull:a");
    let two = "ready:1:concurrent arrive:a:/async enqueue:a enqueue:a full:a park:a:stored:all:await";
    check(two, "");
    check(&format!("{two} stored:a"), "resume:1:StoreFull:a");
}

#[test]
fn a_coroutine_that_was_told_may_answer_what_it_likes() {
    check(&format!("{AWAIT} full:a answer:a"), "relay:a done:a");
    check(&format!("{AWAIT} full:a enqueue:a answer:a"), "keep:a");
    check(&format!("{AWAIT} full:a enqueue:a answer:a stored:a"), "release:a done:a");
}

#[test]
fn a_coroutine_that_waits_for_the_store_ends_as_others_do() {
    check(&format!("{AWAIT} unpark:a"), "resume:1:unparked:a");
    check(&format!("{AWAIT} unpark:a answer:a"), "keep:a");
    check(&format!("{AWAIT} unpark:a hold:a:head stored:a"), "output:a");
    check(&format!("{AWAIT} unpark:a stored:a answer:a"), "relay:a done:a");
    check(&format!("{AWAIT} left:a"), "recall:a:1:ClientLeft cancelled:a:ClientLeft");
    check(&format!("{AWAIT} left:a stored:a"), "");
    check(&format!("{AWAIT} exited:1"), "refuse:a:WorkerDied cancelled:a:WorkerDied start:2");
    check(&format!("{AWAIT} wait:9999ms"), "");
    check(&format!("{AWAIT} wait:10s"), "refuse:a:DeadlinePassed recall:a:1:Deadline cancelled:a:Deadline");
    check(&format!("{AWAIT} wait:9s stored:a wait:9s"), "");
    let over = format!("{AWAIT} wait:9s stored:a wait:9s wait:1s");
    check(&over, "refuse:a:DeadlinePassed recall:a:1:Deadline ping:1 cancelled:a:Deadline");
    for events in [format!("{AWAIT} stored:a answer:a"), format!("{AWAIT} wait:10s"), format!("{AWAIT} left:a")] {
        assert_eq!(Script::run(config(), &events).alarms(), 0, "{events}");
    }
}

#[test]
fn only_a_coroutine_may_wait_for_the_store() {
    check(&format!("{ONE} park:a:stored:all:answer"), "refuse:a:BadAnswer done:a");
    check(&format!("{ONE} park:a:stored:all:call"), "keep:a refuse:a:BadAnswer done:a");
    let full = Config { parked_count_max: 1, ..config() };
    let two = "ready:1:concurrent:9 arrive:b:/next arrive:a:/async enqueue:a park:a:stored:all:await";
    check_with(full.clone(), two, "resume:1:ParkedFull:a");
    check_with(full, &format!("{two} stored:a answer:a"), "relay:a done:a");
}

#[test]
fn what_a_job_enqueues_is_stored_before_it_has_ended() {
    let check = |events: &str, effects: &str| check_with(of_jobs(1), events, effects);
    let run = "ready:1:sync:1 jobs claimed:r enqueue:r return:r";
    check(run, "");
    check(&format!("{run} jobs"), "claim:1");
    check(&format!("{run} stored:r"), "verdict:r:completed done:r");
    check(&format!("{run} full:r"), "verdict:r:retry:Refused(StoreFull) done:r");
    check(&format!("{run} broken:r"), "verdict:r:retry:Refused(StoreUnavailable) done:r");
    check("ready:1 jobs claimed:r enqueue:r stored:r return:r", "verdict:r:completed done:r");
    check("ready:1 jobs claimed:r enqueue:r full:r return:r", "verdict:r:retry:Refused(StoreFull) done:r");
    check("ready:1 jobs claimed:r enqueue:r full:r park:r:timer:1s:call", "verdict:r:retry:Refused(StoreFull) done:r");
    check("ready:1 jobs claimed:r enqueue:r error:r", "verdict:r:retry:Raised done:r");
    check(&format!("{run} stop:r"), "verdict:r:cancelled cancelled:r:Operator");
    check(&format!("{run} wait:10s"), "verdict:r:retry:DeadlinePassed cancelled:r:Deadline");
    check(&format!("{run} drain:5s exited:0 wait:5s"), "verdict:r:back cancelled:r:Stopping dismiss:1");
    check(&format!("{run} drain:5s stored:r"), "verdict:r:completed done:r dismiss:1");
}

#[test]
fn store_deadline_and_leave_at_one_instant_end_it_once() {
    let instant = ["stored:a", "left:a", "tick"];
    for events in [HELD, AWAIT] {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut script = Script::run(config(), events);
            script.now = script.now + Duration::from_secs(10);
            let mut told = Vec::new();
            for nth in order {
                script.go_on(instant[nth]);
                told.append(&mut script.told);
            }
            let ends = told.iter().filter(|word| word.starts_with("done:a") || word.starts_with("cancelled:a")).count();
            let status = script.core.status(script.now);
            let ghosts = status.workers[0].held;
            assert_eq!((ends, status.alarms.saturating_sub(ghosts), status.jobs_unstored), (1, 0, 0), "{told:?}");
        }
    }
}
