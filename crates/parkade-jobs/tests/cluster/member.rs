//! One server's membership, step by step.

use std::time::{Duration, Instant};

use parkade_jobs::cluster::{HeartbeatAnswer, InstanceId, Member, MemberStep, Timing};

const HEARTBEAT: Duration = Duration::from_secs(2);
const DEAD_AFTER: Duration = Duration::from_secs(10);
const MOMENT: Duration = Duration::from_millis(1);
const IS_MEMBER: HeartbeatAnswer = HeartbeatAnswer { is_member: true, declared_dead: 0, now_ms: 0 };
const IS_DEAD: HeartbeatAnswer = HeartbeatAnswer { is_member: false, ..IS_MEMBER };

/// It joined at this moment.
fn joined() -> (Member, Instant) {
    let timing = Timing { heartbeat: HEARTBEAT, dead_after: DEAD_AFTER, rescue: Duration::from_secs(5) };
    let mut member = Member::new(fastrand::Rng::with_seed(7), timing);
    let now = Instant::now();
    member.join(now);
    join(&mut member, now);
    (member, now)
}

fn join(member: &mut Member, now: Instant) {
    assert_eq!(member.next_step(now, true), Some(MemberStep::Join));
    member.done(now, MemberStep::Join);
    assert!(member.is_joined());
}

/// The instance whose heartbeat is sent.
fn heartbeat(member: &mut Member, now: Instant) -> Option<InstanceId> {
    match member.next_heartbeat(now) {
        Some(MemberStep::Heartbeat { instance, .. }) => Some(instance),
        Some(other) => panic!("{other:?}"),
        None => None,
    }
}

#[test]
fn a_heartbeat_that_hangs_is_sent_again_while_the_lease_lasts() {
    let (mut member, began) = joined();
    let first = began + HEARTBEAT;
    assert_eq!(heartbeat(&mut member, first), Some(member.instance()));
    let again = first + DEAD_AFTER / 2;
    assert_eq!((member.heartbeat_due(), heartbeat(&mut member, first + HEARTBEAT)), (Some(again), None));
    assert_eq!(heartbeat(&mut member, again), Some(member.instance()));
    assert!(again + HEARTBEAT < began + DEAD_AFTER, "there is time for it");
    let instance = member.instance();
    assert!(!member.heartbeat_answered(again + MOMENT, instance, IS_MEMBER));
    assert_eq!(member.heartbeat_due(), Some(again + HEARTBEAT), "one that is answered is followed as ever");
}

#[test]
fn a_new_instance_does_not_wait_for_the_heartbeat_of_the_last_one_nor_listen_to_it() {
    let (mut member, began) = joined();
    let now = began + HEARTBEAT;
    let old = heartbeat(&mut member, now).unwrap();
    assert!(member.declared_dead(old), "a claim has noticed it");
    join(&mut member, now);
    let new = member.instance();
    assert!(!member.heartbeat_answered(now + MOMENT, old, IS_DEAD) && member.is_joined());
    assert!(!member.declared_dead(old), "nor to a claim");
    member.failed(now + MOMENT, MemberStep::Heartbeat { instance: old, judges_after: None });
    assert_eq!((member.instance(), member.heartbeat_due()), (new, Some(now + HEARTBEAT)));
    assert_eq!(heartbeat(&mut member, now + HEARTBEAT), Some(new));
    assert!(member.heartbeat_answered(now + HEARTBEAT, new, IS_DEAD), "its own it does");
}

#[test]
fn a_claim_of_an_earlier_instance_is_not_fenced_under_the_present_one() {
    let (mut member, now) = joined();
    let claim = member.begin_claim();
    assert!(member.declared_dead(claim.instance));
    join(&mut member, now);
    member.claim_unanswered(claim);
    assert!(member.may_claim());
    assert_ne!(member.begin_claim().number, claim.number);
}

#[test]
fn a_server_that_is_told_to_stop_before_it_has_joined_again_still_reports_its_outcomes() {
    let (mut member, now) = joined();
    let old = member.instance();
    assert!(member.declared_dead(old));
    member.leave();
    assert!(member.is_joined() && !member.is_gone(), "statements for commands are begun");
    assert_ne!(member.next_step(now, false), Some(MemberStep::Leave), "an outcome waits");
    member.done(now, MemberStep::Join);
    assert!(member.is_ending(), "a join that was under way does not bring it back");
    assert_eq!(member.next_step(now, true), Some(MemberStep::Leave));
    assert!(member.instances().any(|instance| instance == old));
}

#[test]
fn a_server_that_never_joined_is_gone_at_once() {
    let timing = Timing { heartbeat: HEARTBEAT, dead_after: DEAD_AFTER, rescue: DEAD_AFTER };
    let mut member = Member::new(fastrand::Rng::with_seed(7), timing);
    member.join(Instant::now());
    member.leave();
    assert!(member.is_gone());
}
