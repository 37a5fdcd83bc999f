//! The end of a store.

use parkade_jobs::sqlite::OpenError;
use parkade_jobs::{Fault, JobState, Reply};

use crate::owner::{Folder, Owner, enqueue, options};

#[test]
fn what_was_submitted_is_carried_out_and_answered() {
    let folder = Folder::new();
    let mut owner = Owner::open(&folder, options()).unwrap();
    for number in 1..=5_000 {
        owner.submit(enqueue(number, 10));
    }
    owner.store.end();
    let mut replies = Vec::new();
    owner.store.turn(&mut replies);
    assert_eq!(replies.len(), 5_000);
    assert!(replies.iter().all(|reply| matches!(reply, Reply::Enqueued { .. })));
    assert!(!folder.0.join("jobs.db-wal").exists(), "the log has been written into the file");
    assert_eq!(Owner::open(&folder, options()).unwrap().state(5_000), Some(JobState::Ready));
}

#[test]
fn dropping_it_is_its_end() {
    let folder = Folder::new();
    let mut owner = Owner::open(&folder, options()).unwrap();
    owner.submit(enqueue(1, 10));
    drop(owner);
    assert_eq!(Owner::open(&folder, options()).unwrap().state(1), Some(JobState::Ready));
}

#[test]
fn before_it_is_open_and_behind_its_end_all_is_refused() {
    let folder = Folder::new();
    let mut owner = Owner::shut(&folder, options());
    let unavailable = |reply: Reply| matches!(reply, Reply::Refused { fault: Fault::Unavailable(_), .. });
    assert!(unavailable(owner.enqueue(1, 1)));
    owner.store.open().unwrap();
    assert!(!unavailable(owner.enqueue(1, 1)));
    owner.store.end();
    assert!(unavailable(owner.enqueue(2, 1)));
}

fn opened(owner: &mut Owner) -> Result<(), OpenError> {
    loop {
        if let Some(opened) = owner.store.take_opened() {
            return opened;
        }
        std::thread::yield_now();
    }
}

#[test]
fn what_is_submitted_while_it_is_being_opened_waits_for_that() {
    let folder = Folder::new();
    let mut owner = Owner::shut(&folder, options());
    owner.store.begin_to_open();
    assert!(matches!(owner.enqueue(1, 1), Reply::Enqueued { .. }));
    assert_eq!(opened(&mut owner), Ok(()));
    assert_eq!(owner.state(1), Some(JobState::Ready));
}

#[test]
fn and_is_refused_when_it_cannot_be_opened() {
    let folder = Folder::new();
    std::fs::write(folder.file(), "no database, and longer than the header of one: ".repeat(100)).unwrap();
    let mut owner = Owner::shut(&folder, options());
    owner.store.begin_to_open();
    let refused = owner.enqueue(1, 1);
    assert!(matches!(refused, Reply::Refused { fault: Fault::Unavailable(_), .. }), "{refused:?}");
    std::fs::remove_file(folder.file()).unwrap();
    assert!(matches!(opened(&mut owner), Err(OpenError::NotADatabase(_))));
    owner.store.begin_to_open();
    assert!(matches!(owner.enqueue(1, 1), Reply::Enqueued { .. }));
}

#[test]
fn an_end_does_not_wait_for_a_file_that_is_being_opened() {
    let folder = Folder::new();
    let mut owner = Owner::shut(&folder, options());
    // Opening it waits for somebody who reads.
    let made = std::process::Command::new("mkfifo").arg(folder.file()).status().unwrap();
    assert!(made.success());
    owner.store.begin_to_open();
    owner.submit(enqueue(1, 1));
    owner.store.end();
    let mut replies = Vec::new();
    owner.store.turn(&mut replies);
    assert!(matches!(replies[..], [Reply::Refused { fault: Fault::Unavailable(_), .. }]), "{replies:?}");
}
