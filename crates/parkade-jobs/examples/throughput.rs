//! How quick the store is here: jobs through their whole life, and the start with a million of them.
//!
//! `cargo run --release -p parkade-jobs --example throughput [FOLDER] [--cpu]`; the folder is made and has to be on the disk that is to be
//! measured. `--cpu` tells only what each step of a job costs the store's thread, which a busy machine changes less than it does the time.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parkade_jobs::sqlite::{Durability, SqliteStoreOptions};
use parkade_jobs::{AttemptEnd, Claimed, Command, Correlation, JobId, NewJob, Reply, SqliteStore, Tag, Wall};

const BATCH: u32 = 200;
const LIVES: u32 = 100_000;
/// Enqueued, claimed and ended one after the other.
const STAGED: u32 = 40_000;
const WAITING: u32 = 1_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder =
        std::env::args_os().nth(1).map_or_else(|| std::env::temp_dir().join("parkade-throughput"), PathBuf::from);
    for batch in [20, 200] {
        let mut owner = Owner::open(&folder, Durability::Power)?;
        let [enqueue, claim, end] = owner.stages(batch)?;
        println!(
            "CPU of the store's thread for each job, {batch} in a transaction: enqueue {enqueue:.1} \u{b5}s, claim {claim:.1} \u{b5}s, end {end:.1} \u{b5}s"
        );
        drop(owner);
        std::fs::remove_dir_all(&folder)?;
    }
    if std::env::args_os().any(|argument| argument == "--cpu") {
        return Ok(());
    }
    for durability in [Durability::Power, Durability::Process] {
        let mut owner = Owner::open(&folder, durability)?;
        let took = owner.lives()?;
        println!(
            "{durability:?}: {LIVES} jobs enqueued, claimed and ended in {took:.2?}: {:.0} a second",
            rate(LIVES, took)
        );
        drop(owner);
        std::fs::remove_dir_all(&folder)?;
    }
    let mut owner = Owner::open(&folder, Durability::Process)?;
    let began = Instant::now();
    for batch in 0..WAITING / BATCH {
        owner.all((0..BATCH).map(|place| enqueue(batch * BATCH + place)))?;
    }
    println!("{WAITING} jobs enqueued: {:.0} a second", rate(WAITING, began.elapsed()));
    drop(owner);
    let began = Instant::now();
    let mut owner = Owner::open(&folder, Durability::Power)?;
    println!("opened with {WAITING} ready jobs in {:.2?}", began.elapsed());
    let began = Instant::now();
    owner.all([claim()])?;
    println!("{BATCH} of them claimed in {:.2?}; resident {}", began.elapsed(), resident());
    let began = Instant::now();
    owner.all([Command::Count { tag: Tag(0) }])?;
    println!("counted in {:.2?}", began.elapsed());
    let took = owner.lives()?;
    println!("beside them {:.0} lives a second", rate(LIVES, took));
    drop(owner);
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

fn rate(count: u32, took: Duration) -> f64 {
    f64::from(count) / took.as_secs_f64()
}

struct Owner {
    store: SqliteStore,
    rung: mpsc::Receiver<()>,
}

impl Owner {
    fn open(folder: &Path, durability: Durability) -> Result<Self, Box<dyn Error>> {
        let (bell, rung) = mpsc::channel();
        let wake = Arc::new(move || {
            let _heard = bell.send(());
        });
        let mut store = SqliteStore::new(
            folder.to_owned(),
            SqliteStoreOptions { durability, ..SqliteStoreOptions::default() },
            wake,
        );
        store.open()?;
        Ok(Self { store, rung })
    }

    /// Jobs are enqueued, then all of them claimed, then all ended: microseconds of CPU for each.
    fn stages(&mut self, batch: u32) -> Result<[f64; 3], Box<dyn Error>> {
        let mut claimed = Vec::new();
        // Its thread is there when it has answered.
        self.all([Command::Count { tag: Tag(0) }])?;
        let mut spent = [cpu_time()?; 4];
        for first in (0..STAGED).step_by(batch as usize) {
            self.all((0..batch).map(|place| enqueue(first + place)))?;
        }
        spent[1] = cpu_time()?;
        while claimed.len() < STAGED as usize {
            let asked = Command::Claim { tag: Tag(0), count: batch, limited: Vec::new() };
            for reply in self.all([asked])? {
                let Reply::Claimed { jobs, .. } = reply else { return Err(format!("{reply:?}").into()) };
                claimed.extend(jobs.iter().map(completed));
            }
        }
        spent[2] = cpu_time()?;
        while !claimed.is_empty() {
            let count = claimed.len().min(batch as usize);
            self.all(claimed.drain(..count))?;
        }
        spent[3] = cpu_time()?;
        Ok([0, 1, 2].map(|stage| spent[stage + 1].saturating_sub(spent[stage]).as_secs_f64() * 1e6 / f64::from(STAGED)))
    }

    /// Each batch through its whole life, as a busy server would ask: what has been claimed ends while the next comes.
    fn lives(&mut self) -> Result<Duration, Box<dyn Error>> {
        let began = Instant::now();
        let mut ended = 0;
        let mut ends: Vec<Command> = Vec::new();
        let mut next = 2 * WAITING;
        while ended < LIVES {
            let batch = (0..BATCH).map(|place| enqueue(next + place)).chain(ends.drain(..)).chain([claim()]);
            for reply in self.all(batch)? {
                match reply {
                    Reply::Claimed { jobs, .. } => ends.extend(jobs.iter().map(completed)),
                    Reply::AttemptEnded { is_stale: false, .. } => ended += 1,
                    Reply::Refused { fault, .. } => return Err(fault.into()),
                    _ => {}
                }
            }
            next += BATCH;
        }
        Ok(began.elapsed())
    }

    fn all(&mut self, commands: impl IntoIterator<Item = Command>) -> Result<Vec<Reply>, Box<dyn Error>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
        let now = Wall(i64::try_from(now)?);
        let mut count = 0;
        for command in commands {
            self.store.submit(now, command);
            count += 1;
        }
        let mut replies = Vec::with_capacity(count);
        while replies.len() < count {
            self.rung.recv()?;
            self.store.turn(&mut replies);
        }
        Ok(replies)
    }
}

/// Ids grow with time, as those of version 7 do.
fn enqueue(number: u32) -> Command {
    let job = NewJob {
        id: JobId::new(u128::from(number) << 64 | u128::from(number.wrapping_mul(2_654_435_769))),
        name: "write_log".into(),
        queue: "default".into(),
        arguments: Bytes::from_static(&[7; 100]),
        priority: 0,
        due: None,
        key: None,
        correlation: Correlation::default(),
    };
    Command::Enqueue { tag: Tag(0), job }
}

fn claim() -> Command {
    Command::Claim { tag: Tag(0), count: BATCH, limited: Vec::new() }
}

fn completed(job: &Claimed) -> Command {
    let verdict = AttemptEnd::Completed { result: Bytes::from_static(b"\xc0") };
    Command::End { tag: Tag(0), job: job.id, claim: job.claim, verdict, is_again: false }
}

/// What the store's thread has used so far: Linux tells it for each thread, in nanoseconds.
fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    for task in std::fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if std::fs::read_to_string(task.join("comm"))?.trim() == "jobs" {
            let told = std::fs::read_to_string(task.join("schedstat"))?;
            let spent = told.split_whitespace().next().ok_or("it is told first")?;
            return Ok(Duration::from_nanos(spent.parse()?));
        }
    }
    Err("the store has no thread".into())
}

fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("VmRSS:")).map_or("unknown".into(), |kib| kib.trim().to_owned())
}
