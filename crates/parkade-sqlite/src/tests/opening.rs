//! How a file is opened, and what happens if it cannot be.

use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use parkade_sql::{Availability, FailureKind};

use super::owner::{Folder, Owner, failed, options};

#[test]
fn nothing_is_opened_before_the_first_query() {
    let mut owner = Owner::new(options());
    let status = owner.database.status(Instant::now());
    assert_eq!((status.reach, status.slots.len()), (Availability::Untried, 0));
    assert!(!owner.folder.file().exists());
    owner.run("SELECT 1").unwrap();
    let status = owner.database.status(Instant::now());
    assert_eq!((status.reach, status.slots.len()), (Availability::Up, 3));
    assert!(status.product.starts_with("SQLite 3."), "{}", status.product);
    assert_eq!(status.counts.connects, 1);
}

#[test]
fn a_file_that_is_made_is_for_its_user_alone() {
    let folder = Folder::new();
    std::fs::set_permissions(&folder.0, std::fs::Permissions::from_mode(0o755)).unwrap();
    let file = folder.file();
    let mut owner = Owner::of(file.clone(), folder, options());
    owner.run("CREATE TABLE t (n)").unwrap();
    for found in std::fs::read_dir(file.parent().unwrap()).unwrap().map(Result::unwrap) {
        assert_eq!(found.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{found:?}");
    }
}

#[test]
fn one_folder_is_made_and_not_two() {
    let folder = Folder::new();
    let near = folder.0.join("new/test.db");
    let far = folder.0.join("newer/and/newer/test.db");
    let mut owner = Owner::of(near, folder, options());
    owner.run("SELECT 1").unwrap();
    let mut owner = Owner::of(far, Folder::new(), options());
    assert_eq!(owner.run("SELECT 1"), failed(FailureKind::Unreachable));
}

#[test]
fn a_file_that_is_no_database_is_tried_again_at_the_next_query() {
    let mut owner = Owner::new(options());
    std::fs::write(owner.folder.file(), "This is a letter, of more than one hundred bytes. ".repeat(40)).unwrap();
    for text in ["SELECT 1", "CREATE TABLE t (a)"] {
        let query = owner.ask(text);
        let message = owner.message(query);
        assert!(message.contains("it is not a SQLite database"), "{message}");
    }
    let (lease, begin) = owner.begin(false);
    assert_eq!(owner.answer(begin), failed(FailureKind::Unreachable));
    assert_eq!(owner.within(lease, "SELECT 1"), failed(FailureKind::NoTransaction));
    let status = owner.database.status(Instant::now());
    assert!(matches!(status.reach, Availability::Down { .. }), "{:?}", status.reach);
    std::fs::remove_file(owner.folder.file()).unwrap();
    owner.run("CREATE TABLE t (a)").unwrap();
    assert_eq!(owner.database.status(Instant::now()).reach, Availability::Up);
}

#[test]
fn a_database_in_memory_is_one_for_all() {
    let mut owner = Owner::of(":memory:".into(), Folder::new(), options());
    owner.run("CREATE TABLE t (a)").unwrap();
    owner.run("INSERT INTO t VALUES (1)").unwrap();
    assert_eq!(owner.run("SELECT a FROM t"), Ok("[{\"a\":1}]".into()));
    assert_eq!(owner.states().len(), 1);
}
