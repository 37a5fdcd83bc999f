//! The end of a store.

use parkade_jobs::{Fault, Reply, State};

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
    assert_eq!(Owner::open(&folder, options()).unwrap().state(5_000), Some(State::Ready));
}

#[test]
fn dropping_it_is_its_end() {
    let folder = Folder::new();
    let mut owner = Owner::open(&folder, options()).unwrap();
    owner.submit(enqueue(1, 10));
    drop(owner);
    assert_eq!(Owner::open(&folder, options()).unwrap().state(1), Some(State::Ready));
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
