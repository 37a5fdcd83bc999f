//! New jobs that are claimed without being read: a claim says the same of them as of those that are read.

use parkade_jobs::{Claimed, Command, Correlation, JobId, NewJob, Reply, Tag};
use parkade_model::{RequestIdText, TraceParent};

use crate::owner::{Folder, Owner, end, enqueue, options};

/// Arguments up to this size are stored with the rest of a job, and kept in memory.
const BESIDE_BYTES: usize = 256;
/// More than are kept in memory.
const MANY: u128 = 2_500;

fn claimed(owner: &mut Owner, count: u32) -> Vec<Claimed> {
    match owner.ask(|tag| Command::Claim { tag, count, limited: Vec::new() }) {
        Reply::Claimed { jobs, .. } => jobs,
        other => panic!("{other:?}"),
    }
}

fn new(number: u128, bytes: usize) -> NewJob {
    let trace = TraceParent { trace: [3; 16], span: [4; 8], flags: 1 };
    NewJob {
        id: JobId::new(number),
        name: format!("work {number}").into(),
        queue: "mail".into(),
        arguments: (0..bytes).map(|at| u8::try_from(at % 251).unwrap()).collect::<Vec<_>>().into(),
        priority: 3,
        due: None,
        key: Some(format!("key {number}").into()),
        correlation: Correlation { request_id: Some(RequestIdText::Given("the first".into())), trace: Some(trace) },
    }
}

#[test]
fn a_claim_says_the_same_of_a_job_that_is_known_and_of_one_that_is_read() {
    for bytes in [0, 1, BESIDE_BYTES, BESIDE_BYTES + 1] {
        let folder = Folder::new();
        let mut owner = Owner::open(&folder, options()).unwrap();
        // From the first claim on, the ready jobs are in memory.
        assert!(claimed(&mut owner, 1).is_empty());
        owner.ask(|tag: Tag| Command::Enqueue { tag, job: new(1, bytes) });
        owner.ask(|tag: Tag| Command::Enqueue { tag, job: new(2, bytes) });
        let known = claimed(&mut owner, 1).remove(0);
        let reopened = || {
            drop(owner);
            Owner::open(&folder, options()).unwrap()
        };
        let mut owner = reopened();
        let read = claimed(&mut owner, 10);
        let of = |number: u128| read.iter().find(|job| job.id.number() == number).unwrap().clone();
        // The restart cost the first job an attempt.
        let mut rescued = of(1);
        assert_eq!((known.attempt, rescued.attempt), (1, 2));
        (rescued.attempt, rescued.claim) = (known.attempt, known.claim);
        assert_eq!(rescued, known);
        assert_eq!((of(2).attempt, of(2).arguments, of(2).correlation), (1, known.arguments, known.correlation));
    }
}

#[test]
fn one_that_is_cancelled_or_dropped_is_not_claimed() {
    let folder = Folder::new();
    let mut owner = Owner::open(&folder, options()).unwrap();
    assert!(claimed(&mut owner, 1).is_empty());
    for number in 1..=3 {
        owner.enqueue(number, 10);
    }
    owner.ask(|tag| Command::Cancel { tag, job: JobId::new(1) });
    owner.ask(|tag| Command::Drop { tag, job: JobId::new(2) });
    assert_eq!(owner.claim(10).iter().map(|(number, _)| *number).collect::<Vec<_>>(), [3]);
}

#[test]
fn a_second_attempt_is_counted() {
    let folder = Folder::new();
    let mut owner = Owner::open(&folder, options()).unwrap();
    assert!(claimed(&mut owner, 1).is_empty());
    owner.enqueue(1, 10);
    let first = claimed(&mut owner, 1).remove(0);
    let verdict = parkade_jobs::AttemptEnd::Retry { due: parkade_jobs::Wall(0), error: "once more".into() };
    owner.ask(end(1, first.claim, verdict));
    let second = claimed(&mut owner, 1).remove(0);
    assert_eq!((first.attempt, second.attempt), (1, 2));
    assert_eq!((second.arguments, second.name), (first.arguments, first.name));
}

#[test]
fn more_than_are_kept_in_memory_come_in_their_order() {
    let folder = Folder::new();
    let mut owner = Owner::open(&folder, options()).unwrap();
    assert!(claimed(&mut owner, 1).is_empty());
    for number in 1..=MANY {
        owner.submit(enqueue(number, 10));
    }
    owner.replies(usize::try_from(MANY).unwrap());
    let mut numbers = Vec::new();
    loop {
        let jobs = claimed(&mut owner, 100);
        if jobs.is_empty() {
            break;
        }
        assert!(jobs.iter().all(|job| job.arguments.len() == 10 && &*job.name == "work"));
        numbers.extend(jobs.iter().map(|job| job.id.number()));
    }
    assert!(numbers.iter().copied().eq(1..=MANY), "{numbers:?}");
}
