//! A server that is killed in the middle of its work: what it acknowledged is there.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use parkade_jobs::sqlite::OpenError;
use parkade_jobs::{JobState, Reply, Tag};

use crate::owner::{Folder, Owner, enqueue, options};

const FOLDER: &str = "PARKADE_JOBS_KILLED";

/// Acknowledgements behind which it is killed.
const ACKNOWLEDGED: usize = 2_000;

/// The one that is killed: says what has been acknowledged, line by line, and never ends by itself. Only with its folder in the environment.
#[test]
fn works_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let mut owner = Owner::of(folder.into(), options());
    owner.store.open().unwrap();
    println!();
    for batch in 0.. {
        let numbers = batch * 20 + 1..batch * 20 + 21;
        let commands = numbers.map(|number| Box::new(enqueue(number, 50)) as Box<dyn Fn(Tag) -> _>);
        for reply in owner.ask_all(commands) {
            let Reply::Enqueued { job, .. } = reply else { panic!("{reply:?}") };
            println!("enqueued {}", job.number());
        }
        for (number, claim) in owner.claim(7) {
            owner.complete(number, claim, 50);
            println!("completed {number}");
        }
    }
}

#[test]
fn what_was_acknowledged_is_there_when_the_process_is_killed() {
    let folder = Folder::new();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::works_until_it_is_killed", "--nocapture"])
        .env(FOLDER, &folder.0)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut acknowledged = Vec::new();
    let mut line = String::new();
    while output.read_line(&mut line).unwrap() > 0 {
        // The last one may be cut off.
        if let Some((word, number)) = line.strip_suffix('\n').and_then(|line| line.split_once(' '))
            && let Ok(number) = number.parse::<u128>()
        {
            acknowledged.push((word.to_owned(), number));
        }
        if acknowledged.len() == ACKNOWLEDGED {
            let second = Owner::open(&folder, options()).map(|_| ()).unwrap_err();
            assert_eq!(second, OpenError::InUse(folder.file()), "it has the file while it lives");
            child.kill().unwrap();
        }
        line.clear();
    }
    child.wait().unwrap();
    assert!(acknowledged.len() >= ACKNOWLEDGED);

    let mut owner = Owner::open(&folder, options()).unwrap();
    for (word, number) in acknowledged {
        let state = owner.state(number);
        match &*word {
            "enqueued" => assert!(matches!(state, Some(JobState::Ready | JobState::Completed)), "{number}: {state:?}"),
            _ => assert_eq!(state, Some(JobState::Completed), "{number}"),
        }
    }
}
