//! What is kept in memory is what the file says: a store that forgets it again and again, since its commits fail, answers as one that never does.

use parkade_jobs::cluster::{ClaimNumber, InstanceId};
use parkade_jobs::sqlite::{Injected, SqliteStoreOptions};
use parkade_jobs::{
    Allowance, AttemptEnd, ClaimId, Claimed, Command, Correlation, Fault, Filter, JobId, JobState, NewJob, Reply, Tag,
    Wall,
};

use crate::owner::{Folder, Owner, options};

const TAG: Tag = Tag(0);
const STEPS: usize = 2_000;

/// More than are kept of one queue and priority.
const FIRST: u128 = 1_500;

#[test]
fn a_store_whose_commits_fail_answers_in_the_end_as_one_whose_commits_do_not() {
    let folders = [Folder::new(), Folder::new()];
    let injected = Some(Injected { fail_every: Some(3), ..Injected::default() });
    let faulty = SqliteStoreOptions { injected, ..options() };
    let mut random = fastrand::Rng::with_seed(7);
    let mut stores = [Owner::open(&folders[0], options()).unwrap(), Owner::open(&folders[1], faulty.clone()).unwrap()];
    let mut running = Vec::new();
    for step in 0..STEPS {
        if random.u32(..200) == 0 {
            for owner in &mut stores {
                owner.store.end();
            }
            stores = [Owner::open(&folders[0], options()).unwrap(), Owner::open(&folders[1], faulty.clone()).unwrap()];
            running.clear();
        }
        let now = Wall(i64::try_from(step).unwrap());
        let commands = if step == 0 { first() } else { vec![command(&mut random, now, &mut running)] };
        for [command, same] in commands {
            let mut told = [ask(&mut stores[0], now, &command), ask(&mut stores[1], now, &same)];
            let [claims, others] = told.each_mut().map(take_claims);
            assert_eq!(told[0], told[1], "step {step}: {command:?}");
            running.extend(claims.into_iter().zip(others).map(|((job, claim), (_, other))| (job, [claim, other])));
        }
    }
}

/// They have names of their own in each store.
fn take_claims(reply: &mut Reply) -> Vec<(JobId, ClaimId)> {
    const NONE: ClaimId = ClaimId { instance: InstanceId(0), number: ClaimNumber(0) };
    let Reply::Claimed { jobs, .. } = reply else { return Vec::new() };
    jobs.iter_mut().map(|Claimed { id, claim, .. }| (*id, std::mem::replace(claim, NONE))).collect()
}

/// Until it is not refused.
fn ask(owner: &mut Owner, now: Wall, command: &Command) -> Reply {
    loop {
        owner.store.submit(now, command.clone());
        let reply = owner.replies(1).remove(0);
        if !matches!(reply, Reply::Refused { fault: Fault::Unavailable(_), .. }) {
            return reply;
        }
    }
}

fn first() -> Vec<[Command; 2]> {
    let job = |number| both(Command::Enqueue { tag: TAG, job: NewJob { priority: 0, ..job(number, "a") } });
    (10_000..10_000 + FIRST).map(job).collect()
}

fn job(number: u128, queue: &str) -> NewJob {
    NewJob {
        id: JobId::new(number),
        name: if number.is_multiple_of(3) { "play" } else { "work" }.into(),
        queue: queue.into(),
        arguments: vec![1; if number.is_multiple_of(5) { 1_000 } else { 10 }].into(),
        priority: i16::try_from(number % 3).unwrap() - 1,
        due: None,
        key: number.is_multiple_of(7).then(|| "key".into()),
        correlation: Correlation::default(),
    }
}

fn both(command: Command) -> [Command; 2] {
    [command.clone(), command]
}

/// One for each store.
fn command(random: &mut fastrand::Rng, now: Wall, running: &mut Vec<(JobId, [ClaimId; 2])>) -> [Command; 2] {
    let soon = Wall(now.0 + random.i64(-5..50));
    let number = if random.bool() { random.u128(..300) } else { 10_000 + random.u128(..FIRST) };
    let some = JobId::new(number);
    both(match random.u32(..22) {
        0..=5 => {
            let queue = ["a", "b", "c"][random.usize(..3)];
            let due = (random.u32(..4) == 0).then_some(soon);
            Command::Enqueue { tag: TAG, job: NewJob { due, ..job(random.u128(..300), queue) } }
        }
        6..=8 => {
            let limited = vec![Allowance { queue: "b".into(), count: random.u32(..3), places: None, rate: None }];
            Command::Claim { tag: TAG, count: random.u32(..20), limited }
        }
        9..=14 if !running.is_empty() => {
            let (job, claims) = running.swap_remove(random.usize(..running.len()));
            let verdict = match random.u32(..7) {
                0 | 1 => AttemptEnd::Completed { result: vec![2; 10].into() },
                2 => AttemptEnd::Retry { due: soon, error: "oops".into() },
                3 => AttemptEnd::Dead { error: "broken".into() },
                4 => AttemptEnd::Cancelled,
                5 => AttemptEnd::HandedBack,
                _ => AttemptEnd::Unknown,
            };
            return claims.map(|claim| Command::End {
                tag: TAG,
                job,
                claim,
                verdict: verdict.clone(),
                is_again: false,
            });
        }
        15 => Command::Cancel { tag: TAG, job: some },
        16 => Command::Retry { tag: TAG, job: some },
        17 => Command::Drop { tag: TAG, job: some },
        18 => Command::Recognise { tag: TAG, names: vec!["play".into()] },
        19 => {
            let state = Some(JobState::ALL[random.usize(..JobState::ALL.len())]);
            Command::List { tag: TAG, filter: Filter { state, count: 50, ..Filter::default() } }
        }
        20 => Command::Find { tag: TAG, job: some },
        _ => Command::Count { tag: TAG },
    })
}
