//! What an operator is shown of requests: the oldest of each group. The words are explained in `script`.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod script;

use parkade_core::{RequestStage, WaitKind, WaitTarget};
use script::{Script, quiet};

#[test]
fn the_oldest_of_each_group_are_listed_with_what_they_wait_for() {
    let mut script = Script::run(
        quiet(),
        "ready:1:sync:1 arrive:a:/next wait:1s arrive:b:/next wait:1s arrive:c:/next arrive:d:/query arrive:e arrive:f \
         wait:1s",
    );
    let requests = ["a", "b", "d", "f", "e"].map(|name| script.request(name));
    let listed = script.core.oldest(script.now, 2);
    let found: Vec<_> = listed.iter().map(|status| (status.request, status.age.as_secs())).collect();
    assert_eq!(found, requests.into_iter().zip([3, 2, 1, 1, 1]).collect::<Vec<_>>());
    let RequestStage::Parked { kind: WaitKind::Next, target: Some(WaitTarget::Channel(channel)) } = &listed[0].stage
    else {
        panic!("{:?}", listed[0]);
    };
    assert_eq!(channel.as_str(), "bids");
    let query = script.query("d");
    let parked = RequestStage::Parked { kind: WaitKind::Query, target: Some(WaitTarget::Query(query)) };
    assert_eq!(listed[2].stage, parked);
    assert_eq!(listed[3].stage, RequestStage::Queued);
    assert!(matches!(listed[4].stage, RequestStage::Running { .. }));
    assert!(listed.iter().all(|status| !status.is_run));
}

#[test]
fn runs_of_jobs_are_a_group_of_their_own() {
    let mut script = Script::run(script::of_jobs(1), "ready:1 arrive:a jobs claimed:r");
    let [a, run] = ["a", "r"].map(|name| script.request(name));
    let listed = script.core.oldest(script.now, 9);
    let found: Vec<_> = listed.iter().map(|status| (status.request, status.is_run)).collect();
    assert!(found.contains(&(run, true)), "{listed:?}");
    assert!(!found.contains(&(a, true)), "{listed:?}");
}
