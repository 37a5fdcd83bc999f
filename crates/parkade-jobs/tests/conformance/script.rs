//! A case's script, a line for a step: `<now> <command> => <answer>`.
//!
//! `reopen` is a step without either.

use parkade_jobs::{Allowance, AttemptEnd, Command, Filter, JobState, NewJob, Reply, Tag, Wall};

use super::Subject;
use super::words::{self, id};

/// What did not come out as it is written.
pub fn run(subject: &mut impl Subject, script: &str) -> Result<(), String> {
    let mut failures = Vec::new();
    let lines = script.lines().map(str::trim).filter(|line| !line.is_empty());
    for (number, line) in lines.enumerate() {
        if line == "reopen" {
            subject.reopen();
            continue;
        }
        let (step, expected) = line.split_once("=>").expect("a step has an answer");
        let (now, step) = step.trim().split_once(' ').expect("a step has a time");
        let commands: Vec<Command> =
            step.split('|').zip(0..).map(|(step, place)| command(Tag(number as u64 * 100 + place), step)).collect();
        let told = ask(subject, Wall(now.parse().unwrap()), commands);
        if told != expected.trim() {
            failures.push(format!("    {line}\n        was: {told}"));
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// All at once; the answers in the order of the commands.
fn ask<S: Subject>(subject: &mut S, now: Wall, commands: Vec<Command>) -> String {
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
    replies.iter().map(words::reply).collect::<Vec<_>>().join(" | ")
}

fn command(tag: Tag, step: &str) -> Command {
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
        "end" => {
            let (name, attempt) = rest[0].split_at(rest[0].find(|letter: char| letter.is_ascii_digit()).unwrap());
            Command::End { tag, job: id(name), attempt: attempt.parse().unwrap(), verdict: verdict(&rest[1..]) }
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

fn job<'a>(name: &str, option: impl Fn(&str) -> Option<&'a str>) -> NewJob {
    NewJob {
        id: id(name),
        name: option("name").unwrap_or("work").into(),
        queue: option("queue").unwrap_or("default").into(),
        arguments: format!("of {name}").into_bytes().into(),
        priority: option("priority").map_or(0, |number| number.parse().unwrap()),
        due: option("due").map(|ms| Wall(ms.parse().unwrap())),
        key: option("key").map(Into::into),
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
