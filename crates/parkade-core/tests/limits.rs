//! Every bound, met. Those of time are met in `fleet` and `channels`, those of queries in `queries` and `sharing`, those of jobs in `jobs` and
//! `claims`, the pace of workers beside `pace`, pauses beside `verdict`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use parkade_core::limits::{
    CHANNEL_RULES_COUNT_MAX, CLOSE_CALLS_QUEUED_COUNT_MAX, CREDIT_MAX, REQUESTS_COUNT_MAX, STATUS_CHANNELS_COUNT_MAX,
};
use parkade_core::{
    AppId, ChannelName, Config, Core, Destination, Effect, Event, HistoryLimits, HttpEffect, MessageId, Moment,
    PayloadId, Refusal, RequestId, ServerEffect, Wait, WorkerId,
};
use script::{Script, check_with, config, quiet};

#[test]
fn a_full_queue_refuses_who_needs_a_worker_and_nobody_else() {
    let config = || Config { queued_count_max: 2, ..config() };
    check_with(config(), "arrive:a arrive:b arrive:c", "refuse:c:QueueFull done:c");
    check_with(config(), "ready:1:sync:1 arrive:x arrive:a arrive:b arrive:c", "refuse:c:QueueFull done:c");
    check_with(config(), "ready:1:sync:1 arrive:x arrive:a arrive:b arrive:c:/constant", "constant:c done:c");
    check_with(config(), "ready:1:sync:1 arrive:x arrive:a arrive:b arrive:c:/preflight", "preflight:c done:c");
    check_with(config(), "ready:1:sync:1 arrive:x arrive:a arrive:b left:a arrive:c", "");
}

#[test]
fn calls_that_were_accepted_before_are_never_refused_by_a_full_queue() {
    let config = Config { queued_count_max: 1, ..config() };
    let parked = "ready:1:sync:1 arrive:a park:a:next:bids:call arrive:b park:b:next:bids:call arrive:x";
    check_with(config.clone(), &format!("{parked} publish:bids"), "");
    check_with(config, &format!("{parked} publish:bids arrive:c"), "refuse:c:QueueFull done:c");
}

#[test]
fn of_a_crowd_of_websockets_that_end_a_few_calls_are_queued_at_a_time() {
    let (names, few): (Vec<String>, _) =
        ((0..40).map(|number| format!("s{number}")).collect(), CLOSE_CALLS_QUEUED_COUNT_MAX);
    let open: Vec<String> = names.iter().map(|name| format!("arrive:{name} park:{name}:closing:room:call")).collect();
    let left: Vec<String> = names.iter().map(|name| format!("left:{name}")).collect();
    let mut script = Script::run(quiet(), &format!("ready:1:sync:1 {} {}", open.join(" "), left.join(" ")));
    let count = |script: &Script| {
        let lives = script.core.lives();
        (lives.running, lives.routed, lives.parked)
    };
    assert_eq!(count(&script), (1, few, 39 - few));
    script.go_on("answer:s0");
    assert_eq!(count(&script), (1, few, 38 - few));
    let calls: Vec<String> = names[1..].iter().map(|name| format!("answer:{name}")).collect();
    script.go_on(&calls.join(" "));
    assert_eq!(count(&script), (0, 0, 0));
    let config = Config { queued_count_max: 2, ..quiet() };
    let script = Script::run(config, &format!("ready:1:sync:1 {} {}", open.join(" "), left.join(" ")));
    assert_eq!(count(&script), (1, 2, 37));
}

#[test]
fn no_more_run_than_may() {
    let config = Config { running_count_max: 2, ..config() };
    let three = "ready:1:concurrent:9 arrive:a:/async arrive:b:/async arrive:c:/async";
    check_with(config.clone(), three, "");
    check_with(config, &format!("{three} answer:a"), "relay:a done:a assign:c:1");
}

#[test]
fn no_more_are_parked_than_may() {
    let config = || Config { parked_count_max: 1, ..config() };
    let parked = "ready:1:concurrent:9 arrive:a:/next arrive:b:/async";
    check_with(config(), &format!("{parked} park:b:timer:1s:answer"), "keep:b refuse:b:ParkedFull done:b");
    check_with(config(), &format!("{parked} park:b:next:bids:call"), "keep:b refuse:b:ParkedFull done:b");
    check_with(config(), &format!("{parked} park:b:stream:bids:answer"), "refuse:b:ParkedFull done:b");
    check_with(config(), &format!("{parked} park:b:timer:1s:await"), "resume:1:ParkedFull:b");
    check_with(config(), &format!("{parked} left:a park:b:timer:1s:answer"), "keep:b");
}

#[test]
fn a_request_may_wait_for_its_branches_however_many_are_parked() {
    let config = || Config { parked_count_max: 2, ..quiet() };
    let full =
        "ready:1:concurrent:9 arrive:a:/async park:a:timer:1s:await branch:a:b:timer:9s wait:1s arrive:c:/stream";
    check_with(config(), &format!("{full} park:a:timer:1s:await"), "resume:1:ParkedFull:a");
    check_with(config(), &format!("{full} park:a:branches:x:await"), "");
    check_with(config(), &format!("{full} park:a:branches:x:await wait:8s"), "resume:1:elapsed:b,a done:b");
    let script = Script::run(config(), &format!("{full} park:a:branches:x:await"));
    assert_eq!(script.core.counts().parked, 2, "its wait for its branches is none of its own");
}

#[test]
fn no_more_channels_than_may_be() {
    let config = || Config { channels_count_max: 2, ..config() };
    let both = "ready:1:concurrent:9 arrive:a park:a:next:one:answer arrive:b park:b:next:two:answer arrive:c";
    check_with(config(), &format!("{both} park:c:next:three:answer"), "refuse:c:ChannelsFull done:c");
    check_with(config(), &format!("{both} park:c:next:three:await"), "resume:1:ChannelsFull:c");
    check_with(config(), &format!("{both} park:c:stream:three:answer"), "refuse:c:ChannelsFull done:c");
    check_with(config(), &format!("{both} publish:three"), "unpublished:m1 drop:m1");
    check_with(config(), &format!("{both} left:a park:c:stream:three:answer"), "open:c:3.0");
}

#[test]
fn a_credit_has_a_bound_whatever_is_granted() {
    let mut script = Script::run(config(), "ready:1:concurrent:70000 credit:1:60000 credit:1:60000");
    assert_eq!(script.core.status(script.now).workers[0].credit, CREDIT_MAX);
    script.go_on("credit:1:-9223372036854775808 credit:1:-9223372036854775808");
    assert_eq!(script.core.status(script.now).workers[0].credit, -CREDIT_MAX);
}

#[test]
fn a_slot_beyond_all_bounds_is_refused_and_costs_nothing() {
    let mut core = Core::new(Config::default());
    let request = RequestId { slot: u32::try_from(REQUESTS_COUNT_MAX).unwrap(), generation: 1 };
    let mut effects = Vec::new();
    core.handle(
        Moment::default(),
        Event::Arrived { request, app: AppId(0), destination: Destination::Unknown },
        &mut effects,
    );
    assert_eq!(effects[0], Effect::Http(HttpEffect::Refuse { request, refusal: Refusal::QueueFull }));
    assert!(matches!(effects[1], Effect::Server(ServerEffect::Forget { .. })) && effects.len() == 2 && core.is_idle());
}

#[test]
fn a_coroutine_is_told_that_there_is_no_slot_for_one_more_wait() {
    let mut script = Script::run(config(), "ready:1:concurrent arrive:a:/async");
    let (owner, slot) = (script.request("a"), u32::try_from(REQUESTS_COUNT_MAX).unwrap());
    let (branch, wait) = (RequestId { slot, generation: 1 }, Wait::Branches);
    script.told.clear();
    script.tell(Event::Branched { worker: WorkerId(1), owner, branch, wait, payload: PayloadId(0) });
    assert_eq!(script.told.join(" "), "resume:1:ParkedFull:? done:?");
}

#[test]
fn rules_of_channels_beyond_the_bound_are_ignored() {
    let mut script = Script::run(config(), "");
    let limits = HistoryLimits { count: 1, ..HistoryLimits::default() };
    for nth in 0..=CHANNEL_RULES_COUNT_MAX {
        script.tell(Event::ChannelConfigured { pattern: format!("c{nth}"), limits });
    }
    script.go_on(&format!("publish:c{CHANNEL_RULES_COUNT_MAX} publish:c{CHANNEL_RULES_COUNT_MAX}"));
    assert_eq!(script.core.status(script.now).channels[0].history_count, 2);
}

#[test]
fn the_status_page_shows_the_busiest_channels() {
    let mut script = Script::run(config(), "ready:1 arrive:a:/next");
    for nth in 0..STATUS_CHANNELS_COUNT_MAX as u64 {
        let channel = ChannelName::parse(&format!("c{nth}")).unwrap();
        script.tell(Event::Published { channel, message: MessageId(nth), bytes: 1, by: None });
    }
    let status = script.core.status(script.now);
    assert_eq!(
        (status.channels.len(), status.channels_count),
        (STATUS_CHANNELS_COUNT_MAX, STATUS_CHANNELS_COUNT_MAX + 1)
    );
    assert_eq!(status.channels[0].name.as_str(), "bids");
}
