//! What happens at each limit, and that nothing is lost there.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parkade_jobs::sqlite::{Injected, SqliteStoreOptions};
use parkade_jobs::{AttemptEnd, Command, Fault, JobId, JobState, Reply, Tag};

use crate::owner::{Folder, Owner, end, enqueue, options};

const LIMIT: u64 = 1024 * 1024;

/// More transactions than any chore of these tests takes.
const ROUNDS: usize = 50;

fn limited() -> SqliteStoreOptions {
    SqliteStoreOptions { file_bytes_max: Some(LIMIT), ..options() }
}

fn is_full(reply: &Reply) -> bool {
    matches!(reply, Reply::Refused { fault: Fault::Full(_), .. })
}

#[test]
fn a_full_file_refuses_new_jobs_and_lets_those_that_are_there_end() {
    let folder = Folder::new();
    let mut owner = Owner::open(&folder, limited()).unwrap();
    let many = (1..=200).map(|number| Box::new(enqueue(number, 10_000)) as Box<dyn Fn(Tag) -> Command>);
    let stored: Vec<u128> =
        (1..).zip(owner.ask_all(many)).filter(|(_, reply)| !is_full(reply)).map(|(number, _)| number).collect();
    assert!((20..100).contains(&stored.len()), "{}", stored.len());
    for number in 1..=200 {
        assert_eq!(owner.state(number).is_some(), stored.contains(&number), "{number}");
    }
    assert!(is_full(&owner.enqueue(201, 1)));
    let claimed = owner.claim(10);
    assert_eq!(claimed.len(), 10);
    for (number, claim) in &claimed {
        let reply = owner.complete(*number, *claim, 100);
        assert!(matches!(reply, Reply::AttemptEnded { is_stale: false, .. }), "{reply:?}");
    }
    for (number, _) in claimed {
        owner.ask(|tag| Command::Drop { tag, job: JobId::new(number) });
    }
    assert!(!is_full(&owner.enqueue(201, 1)), "there is room again");
}

#[test]
fn a_job_that_has_no_room_undoes_none_of_those_beside_it() {
    let folder = Folder::new();
    let mut owner = Owner::open(&folder, limited()).unwrap();
    let sizes: BTreeMap<u128, usize> = [(1, 100), (2, 500_000), (3, 500_000), (4, 100), (5, 500_000), (6, 100)].into();
    let all = sizes.iter().map(|(number, bytes)| Box::new(enqueue(*number, *bytes)) as Box<dyn Fn(Tag) -> Command>);
    let replies = owner.ask_all(all);
    let full: Vec<bool> = replies.iter().map(is_full).collect();
    assert_eq!(full, [false, false, true, false, true, false]);
    let states: Vec<_> = (1..=6).map(|number| owner.state(number).is_some()).collect();
    assert_eq!(states, [true, true, false, true, false, true]);
    let counts = owner.ask(|tag| Command::Count { tag });
    assert!(matches!(&counts, Reply::Counted { counts, .. } if counts.ready == 4), "{counts:?}");
}

const SIZE_LIMITED: &str = "PARKADE_JOBS_SIZE_LIMITED";

/// The one that may write no large files. Only with its folder in the environment.
#[test]
fn works_until_its_file_may_not_grow() {
    let Some(folder) = std::env::var_os(SIZE_LIMITED) else { return };
    let mut owner = Owner::of(folder.into(), options());
    owner.store.open().unwrap();
    let refused =
        (1..=1_000).map(|number| owner.enqueue(number, 10_000)).find(|reply| matches!(reply, Reply::Refused { .. }));
    assert!(refused.as_ref().is_some_and(is_full), "{refused:?}");
}

#[test]
fn a_file_that_may_not_grow_is_as_full_as_a_disk() {
    let folder = Folder::new();
    let status = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 2048; exec \"$0\" --exact limits::works_until_its_file_may_not_grow"])
        .arg(std::env::current_exe().unwrap())
        .env(SIZE_LIMITED, &folder.0)
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn more_commands_than_may_wait_are_refused_at_once() {
    let folder = Folder::new();
    for options in [
        SqliteStoreOptions { commands_count_max: 0, ..options() },
        SqliteStoreOptions { commands_bytes_max: 99, ..options() },
    ] {
        let mut owner = Owner::open(&folder, options).unwrap();
        let reply = owner.enqueue(1, 100);
        assert!(matches!(reply, Reply::Refused { fault: Fault::QueueFull, .. }), "{reply:?}");
    }
}

#[test]
fn nothing_is_answered_before_its_commit() {
    let folder = Folder::new();
    let delay = Duration::from_millis(50);
    let injected = Some(Injected { delay, fail_every: None });
    let mut owner = Owner::open(&folder, SqliteStoreOptions { injected, ..options() }).unwrap();
    let asked = Instant::now();
    owner.enqueue(1, 1);
    assert!(asked.elapsed() >= delay);
}

#[test]
fn what_was_not_acknowledged_has_not_happened_and_what_was_is_kept() {
    let folder = Folder::new();
    let injected = Some(Injected { fail_every: Some(3), ..Injected::default() });
    let mut owner = Owner::open(&folder, SqliteStoreOptions { injected, ..options() }).unwrap();
    let stored: Vec<bool> = (1..=60).map(|number| matches!(owner.enqueue(number, 1), Reply::Enqueued { .. })).collect();
    owner.store.end();
    let mut owner = Owner::open(&folder, options()).unwrap();
    let found: Vec<bool> = (1..=60).map(|number| owner.state(number) == Some(JobState::Ready)).collect();
    assert_eq!(stored, found);
    assert_eq!(stored.iter().filter(|is_stored| !**is_stored).count(), 20);
}

#[test]
fn what_is_to_be_forgotten_goes_little_by_little_and_all_of_it() {
    let folder = Folder::new();
    let mut owner = Owner::open(&folder, options()).unwrap();
    let many = (1..=3_000).map(|number| Box::new(enqueue(number, 1)) as Box<dyn Fn(Tag) -> Command>);
    owner.ask_all(many);
    let all = (1..=3_000).map(|number| {
        Box::new(move |tag| Command::Cancel { tag, job: JobId::new(number) }) as Box<dyn Fn(Tag) -> Command>
    });
    owner.ask_all(all);
    owner.store.end();
    let mut owner = Owner::open(&folder, SqliteStoreOptions { keep_completed_count_max: 5, ..options() }).unwrap();
    // Reads alone set it going; how many transactions it takes is not of interest.
    let cancelled = |owner: &mut Owner| match owner.ask(|tag| Command::Count { tag }) {
        Reply::Counted { counts, .. } => counts.cancelled,
        other => panic!("{other:?}"),
    };
    let counts: Vec<u64> = (0..ROUNDS).map(|_| cancelled(&mut owner)).collect();
    assert!(counts.is_sorted_by(|before, after| before >= after), "{counts:?}");
    assert_eq!(counts.last(), Some(&5));
}

#[test]
fn very_many_unknown_jobs_become_ready_little_by_little_and_all_of_them() {
    let folder = Folder::new();
    let mut owner = Owner::open(&folder, options()).unwrap();
    owner.ask_all((1..=2_000).map(|number| Box::new(enqueue(number, 1)) as Box<dyn Fn(Tag) -> Command>));
    for _ in 0..2 {
        for (number, claim) in owner.claim(1_000) {
            owner.submit(end(number, claim, AttemptEnd::Unknown));
        }
        owner.replies(1_000);
    }
    owner.ask(|tag| Command::Recognise { tag, names: vec!["other".into(), "work".into()] });
    let claimed: usize = (0..ROUNDS).map(|_| owner.claim(1_000).len()).sum();
    assert_eq!(claimed, 2_000);
}
