//! A case's script, a line for a step: `<now> <command> => <answer>`.
//!
//! `reopen` is a step without either.

use std::collections::HashMap;

use parkade_jobs::cluster::{ClaimId, ClaimNumber, InstanceId};
use parkade_jobs::{Allowance, AttemptEnd, Command, Correlation, Filter, JobId, JobState, NewJob, Reply, Tag, Wall};

use super::Subject;
use super::words::{self, id};

/// The claims that took each attempt.
type Claims = HashMap<(JobId, u32), Vec<ClaimId>>;

/// What did not come out as it is written.
pub fn run(subject: &mut impl Subject, script: &str) -> Result<(), String> {
    let mut failures = Vec::new();
    let mut claims = Claims::new();
    let lines = script.lines().map(str::trim).filter(|line| !line.is_empty());
    for (number, line) in lines.enumerate() {
        if line == "reopen" {
            subject.reopen();
            continue;
        }
        let (step, expected) = line.split_once("=>").expect("a step has an answer");
        let (now, step) = step.trim().split_once(' ').expect("a step has a time");
        let commands: Vec<Command> = step
            .split('|')
            .zip(0..)
            .map(|(step, place)| command(Tag(number as u64 * 100 + place), step, &claims))
            .collect();
        let replies = ask(subject, Wall(now.parse().unwrap()), commands);
        for reply in &replies {
            if let Reply::Claimed { jobs, .. } = reply {
                for job in jobs {
                    claims.entry((job.id, job.attempt)).or_default().push(job.claim);
                }
            }
        }
        let told = replies.iter().map(words::reply).collect::<Vec<_>>().join(" | ");
        if told != expected.trim() {
            failures.push(format!("    {line}\n        was: {told}"));
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// All at once; the answers in the order of the commands.
fn ask<S: Subject>(subject: &mut S, now: Wall, commands: Vec<Command>) -> Vec<Reply> {
    let tags: Vec<Tag> = commands.iter().map(Command::tag).collect();
    for command in commands {
        subject.submit(now, command);
    }
    let mut replies: Vec<Reply> = Vec::new();
    while replies.len() < tags.len() {
        subject.turn(&mut replies);
    }
    if !S::IN_ORDER {
        replies.sort_by_key(Reply::tag);
    }
    assert!(replies.iter().map(Reply::tag).eq(tags), "each is answered once, in order");
    replies
}

fn command(tag: Tag, step: &str, claims: &Claims) -> Command {
    let mut parts = step.split_whitespace();
    let verb = parts.next().expect("a step has a verb");
    let rest: Vec<&str> = parts.collect();
    let option = |name: &str| rest.iter().find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    match verb {
        "enqueue" => Command::Enqueue { tag, job: job(rest[0], option) },
        "claim" => {
            let limited = rest[1..].iter().map(|part| part.split_once('=').expect("a queue and its limit"));
            let allowance = |(queue, count): (&str, &str)| Allowance {
                queue: queue.into(),
                count: count.parse().unwrap(),
                places: None,
                rate: None,
            };
            Command::Claim { tag, count: rest[0].parse().unwrap(), limited: limited.map(allowance).collect() }
        }
        "end" | "end-again" => {
            let (job, claim) = claimed(rest[0], claims);
            Command::End { tag, job, claim, verdict: verdict(&rest[1..]), is_again: verb == "end-again" }
        }
        "cancel" => Command::Cancel { tag, job: id(rest[0]) },
        "retry" => Command::Retry { tag, job: id(rest[0]) },
        "drop" => Command::Drop { tag, job: id(rest[0]) },
        "find" => Command::Find { tag, job: id(rest[0]) },
        "list" => {
            let state = option("state").map(|word| JobState::of(word).expect("a state"));
            let count = option("count").map_or(100, |count| count.parse().unwrap());
            let filter =
                Filter { state, name: option("name").map(Into::into), queue: option("queue").map(Into::into), count };
            Command::List { tag, filter }
        }
        "count" => Command::Count { tag },
        "recognise" => Command::Recognise { tag, names: rest.iter().map(|name| (*name).into()).collect() },
        "schedules" => Command::Schedules { tag },
        "recur" => {
            let new = rest.get(2).map(|name| job(name, option));
            Command::Recur { tag, name: rest[0].into(), due: Wall(rest[1].parse().unwrap()), job: new }
        }
        other => panic!("there is no step {other}"),
    }
}

/// `a2` is the last claim that took the second attempt of `a`, `a2#1` the first.
fn claimed(word: &str, claims: &Claims) -> (JobId, ClaimId) {
    const NONE: ClaimId = ClaimId { instance: InstanceId(0), number: ClaimNumber(0) };
    let (name, rest) = word.split_at(word.find(|letter: char| letter.is_ascii_digit()).unwrap());
    let (attempt, which) = rest.split_once('#').map_or((rest, None), |(attempt, which)| (attempt, Some(which)));
    let job = id(name);
    let taken = claims.get(&(job, attempt.parse().unwrap())).map_or(&[][..], Vec::as_slice);
    let claim = which.map_or(taken.last(), |which| taken.get(which.parse::<usize>().unwrap() - 1));
    (job, claim.copied().unwrap_or(NONE))
}

/// Scripts give the last digit of its trace.
fn traceparent(digit: &str) -> String {
    format!("00-{digit:0>32}-{digit:0>16}-01")
}

fn job<'a>(name: &str, option: impl Fn(&str) -> Option<&'a str>) -> NewJob {
    NewJob {
        id: id(name),
        name: option("name").unwrap_or("work").into(),
        queue: option("queue").unwrap_or("default").into(),
        arguments: format!("of {name}").into_bytes().into(),
        priority: option("priority").map_or(0, |number| number.parse().unwrap()),
        due: option("due").map(|ms| Wall(ms.parse().unwrap())),
        key: option("key").map(Into::into),
        correlation: Correlation::of_texts(option("request"), option("trace").map(traceparent).as_deref()),
    }
}

fn verdict(words: &[&str]) -> AttemptEnd {
    match *words {
        ["completed", result] => AttemptEnd::Completed { result: result.as_bytes().to_vec().into() },
        ["retry", due, error] => AttemptEnd::Retry { due: Wall(due.parse().unwrap()), error: error.into() },
        ["dead", error] => AttemptEnd::Dead { error: error.into() },
        ["cancelled"] => AttemptEnd::Cancelled,
        ["handed-back"] => AttemptEnd::HandedBack,
        ["unknown"] => AttemptEnd::Unknown,
        _ => panic!("there is no verdict {words:?}"),
    }
}
