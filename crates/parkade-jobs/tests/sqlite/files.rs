//! Which files are opened, and which are left as they are.

use std::fs;

use parkade_jobs::sqlite::{OpenError, SqliteStoreOptions, has_unfinished};
use parkade_jobs::{Command, Correlation, Fault, JobId, JobState, Reply};

use crate::owner::{Folder, Owner, options};

/// A file with some jobs, closed.
fn filled() -> Folder {
    let folder = Folder::new();
    let mut owner = Owner::open(&folder, options()).unwrap();
    for number in 1..=100 {
        owner.enqueue(number, 1_000);
    }
    folder
}

fn refusal(folder: &Folder) -> OpenError {
    let before = fs::read(folder.file()).unwrap();
    let error = Owner::open(folder, options()).map(|_| ()).unwrap_err();
    assert_eq!(fs::read(folder.file()).unwrap(), before, "it is left as it is");
    error
}

#[test]
fn nothing_is_opened_before_it_is_said() {
    let folder = Folder::new();
    let _owner = Owner::shut(&folder, options());
    assert!(!folder.file().exists());
}

#[test]
fn one_folder_is_made_and_not_two() {
    let folder = Folder::new();
    let mut near = Owner::of(folder.0.join("near"), options());
    near.store.open().unwrap();
    let mut far = Owner::of(folder.0.join("far/away"), options());
    assert!(matches!(far.store.open(), Err(OpenError::Unreachable { .. })));
    assert!(!folder.0.join("far").exists());
}

#[test]
fn a_file_holds_unfinished_jobs_until_they_have_ended_or_a_server_has_it() {
    let folder = Folder::new();
    assert!(!has_unfinished(&folder.file()), "there is none");
    let mut owner = Owner::open(&folder, options()).unwrap();
    owner.store.end();
    assert!(!has_unfinished(&folder.file()), "it is empty");
    let mut owner = Owner::open(&folder, options()).unwrap();
    owner.enqueue(1, 1);
    assert!(!has_unfinished(&folder.file()), "a server has it");
    owner.store.end();
    assert!(has_unfinished(&folder.file()));
    let mut owner = Owner::open(&folder, options()).unwrap();
    let claimed = owner.claim(1);
    owner.complete(1, claimed[0].1, 1);
    owner.store.end();
    assert!(!has_unfinished(&folder.file()), "it has ended");
}

#[test]
fn a_second_server_is_refused_until_the_first_has_ended() {
    let folder = Folder::new();
    let mut first = Owner::open(&folder, options()).unwrap();
    let error = Owner::open(&folder, SqliteStoreOptions::default()).map(|_| ()).unwrap_err();
    assert_eq!(error, OpenError::InUse(folder.file()));
    assert!(error.to_string().contains("Stop that one"), "{error}");
    first.enqueue(1, 1);
    first.store.end();
    assert_eq!(Owner::open(&folder, options()).unwrap().state(1), Some(JobState::Ready));
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let folder = Folder::new();
    fs::write(folder.file(), "This is a letter, of more than one hundred bytes. ".repeat(40)).unwrap();
    assert_eq!(refusal(&folder), OpenError::NotADatabase(folder.file()));
    fs::write(folder.file(), "short").unwrap();
    assert_eq!(refusal(&folder), OpenError::NotADatabase(folder.file()));
}

#[test]
fn a_database_of_another_program_is_refused() {
    let folder = Folder::new();
    let foreign = rusqlite::Connection::open(folder.file()).unwrap();
    foreign.execute_batch("CREATE TABLE jobs (mine)").unwrap();
    drop(foreign);
    assert_eq!(refusal(&folder), OpenError::Foreign(folder.file()));
}

#[test]
fn a_newer_file_is_refused() {
    let folder = filled();
    let newer = rusqlite::Connection::open(folder.file()).unwrap();
    newer.execute_batch("PRAGMA user_version = 77").unwrap();
    drop(newer);
    assert_eq!(refusal(&folder), OpenError::Newer { file: folder.file(), version: 77, known: 2 });
}

#[test]
fn a_file_of_version_1_is_upgraded_with_the_jobs_in_it() {
    let folder = Folder::new();
    let older = rusqlite::Connection::open(folder.file()).unwrap();
    older.execute_batch(include_str!("schema_1.sql")).unwrap();
    let text = "INSERT INTO jobs (id, state, queue, priority, rank, attempt, enqueued, name, arguments)
                VALUES (?, 1, 'default', 0, 5, 0, 5, 'work', x'07')";
    older.execute(text, [JobId::new(1).bytes()]).unwrap();
    older.execute_batch("INSERT INTO counts VALUES ('default', 1, 1)").unwrap();
    drop(older);

    let mut owner = Owner::open(&folder, options()).unwrap();
    let Reply::Found { job: Some(found), .. } = owner.ask(|tag| Command::Find { tag, job: JobId::new(1) }) else {
        panic!("it is there")
    };
    assert_eq!(
        (found.state, &found.arguments[..], found.correlation),
        (JobState::Ready, &b"\x07"[..], Correlation::default())
    );
    owner.enqueue(2, 10);
    let claimed = owner.claim(9);
    assert_eq!(claimed.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2]);
    drop(owner);
    assert_eq!(
        Owner::open(&folder, options()).unwrap().state(2),
        Some(JobState::Ready),
        "the file is of this version now"
    );
}

#[test]
fn a_file_without_its_tables_is_refused() {
    let folder = filled();
    let other = rusqlite::Connection::open(folder.file()).unwrap();
    other.execute_batch("DROP TABLE schedules").unwrap();
    drop(other);
    assert!(matches!(refusal(&folder), OpenError::Damaged { .. }));
}

#[test]
fn a_file_that_was_cut_off_or_overwritten_is_refused() {
    let folder = filled();
    let whole = fs::read(folder.file()).unwrap();
    fs::write(folder.file(), &whole[..whole.len() / 2]).unwrap();
    let error = refusal(&folder);
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("Restore it and its -wal file from a backup"), "{error}");
    fs::write(folder.file(), [vec![0; 4_096], whole[4_096..].to_vec()].concat()).unwrap();
    assert_eq!(refusal(&folder), OpenError::NotADatabase(folder.file()));
    fs::write(folder.file(), &whole).unwrap();
    assert_eq!(Owner::open(&folder, options()).unwrap().state(100), Some(JobState::Ready));
}

#[test]
fn damage_that_is_met_later_is_a_fault_that_says_what_to_do() {
    let folder = filled();
    let bodies = rusqlite::Connection::open(folder.file()).unwrap();
    let page: usize =
        bodies.query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'bodies'", [], |row| row.get(0)).unwrap();
    drop(bodies);
    let mut bytes = fs::read(folder.file()).unwrap();
    bytes[(page - 1) * 4_096..page * 4_096].fill(0x55);
    fs::write(folder.file(), bytes).unwrap();
    let mut owner = Owner::open(&folder, options()).unwrap();
    let reply = format!("{:?}", owner.enqueue(101, 1_000));
    assert!(reply.contains("Refused") && reply.contains("the job file is damaged"), "{reply}");
    assert_eq!(owner.state(101), None, "nothing of it has happened");
}

#[test]
fn a_claim_that_fails_half_way_has_claimed_nothing() {
    let folder = filled();
    let other = rusqlite::Connection::open(folder.file()).unwrap();
    other.execute_batch("DELETE FROM bodies WHERE job = 50").unwrap();
    drop(other);
    let mut owner = Owner::open(&folder, options()).unwrap();
    let reply = owner.ask(|tag| Command::Claim { tag, count: 100, limited: Vec::new() });
    assert!(matches!(reply, Reply::Refused { fault: Fault::Failed(_), .. }), "{reply:?}");
    let counts = owner.ask(|tag| Command::Count { tag });
    assert!(
        matches!(&counts, Reply::Counted { counts, .. } if (counts.ready, counts.running) == (100, 0)),
        "{counts:?}"
    );
    assert_eq!(owner.claim(49).len(), 49);
}

/// SQLite itself would start anew, and throw the log away.
#[test]
fn a_log_whose_file_is_gone_is_not_thrown_away() {
    let folder = Folder::new();
    fs::write(folder.0.join("jobs.db-wal"), "jobs that were acknowledged").unwrap();
    let error = Owner::open(&folder, options()).map(|_| ()).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    assert!(!folder.file().exists());
    assert_eq!(fs::read(folder.0.join("jobs.db-wal")).unwrap(), b"jobs that were acknowledged");
}
