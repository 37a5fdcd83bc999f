//! Attempts end: all that wait in one statement. Only the present attempt of a job does, and only in the server that claimed it.

use std::collections::HashSet;

use parkade_sql::Parameter;
use serde::Deserialize;

use super::clocks::Clocks;
use super::command_queue::Waiting;
use super::rows::{self, array, blob, instance, number, text, uuid};
use super::statement::Statement;
use super::texts;
use crate::cluster::Member;
use crate::{Command, Ended, Ending, JobId, Reply, State, Verdict, Wall};

#[derive(Deserialize)]
struct Row {
    place: usize,
    /// It held one of the places of its queue.
    is_counted: bool,
}

pub struct Ends {
    /// One for each of the batch.
    pub replies: Vec<Reply>,
    /// Some held a place of a queue that bounds how many of its jobs run at a time.
    pub is_vacated: bool,
}

pub fn prepare(clocks: &Clocks, member: &Member, batch: &[Waiting]) -> Statement {
    let ends: Vec<_> = batch.iter().filter_map(end).collect();
    let is_again = batch.iter().any(|waiting| waiting.tries > 0);
    let column = |of: &dyn Fn(&End<'_>) -> Parameter| array(ends.iter().map(of));
    let parameters = vec![
        clocks.parameter(),
        column(&|end| uuid(end.job)),
        column(&|end| Parameter::Int(end.attempt.into())),
        column(&|end| Parameter::Int(code(end.verdict))),
        column(&wait),
        column(&result),
        column(&error),
        array(member.instances().map(instance)),
        instance(member.instance()),
        Parameter::Bool(is_again),
    ];
    Statement::new(&texts::END, parameters)
}

pub fn read(rows: &[u8], batch: &[Waiting]) -> Result<Ends, serde_json::Error> {
    let rows = rows::read::<Row>(rows)?;
    let is_vacated = rows.iter().any(|row| row.is_counted);
    let ended: HashSet<usize> = rows.into_iter().map(|row| rows::place(row.place)).collect();
    let reply = |(place, waiting): (usize, &Waiting)| {
        let tag = waiting.command.tag();
        match end(waiting) {
            Some(end) if ended.contains(&place) => Reply::AttemptEnded {
                tag,
                ended: ending(end.verdict).map(|ending| Ended { id: end.job, ending }),
                is_stale: false,
                due: if let Verdict::Retry { due, .. } = end.verdict { Some(*due) } else { None },
            },
            _ => Reply::AttemptEnded { tag, ended: None, is_stale: true, due: None },
        }
    };
    Ok(Ends { replies: batch.iter().enumerate().map(reply).collect(), is_vacated })
}

struct End<'a> {
    now: Wall,
    job: JobId,
    attempt: u32,
    verdict: &'a Verdict,
}

fn end(waiting: &Waiting) -> Option<End<'_>> {
    match &waiting.command {
        Command::End { job, attempt, verdict, .. } => {
            Some(End { now: waiting.now, job: *job, attempt: *attempt, verdict })
        }
        _ => None,
    }
}

/// The state's number where it ends, or cannot run.
fn code(verdict: &Verdict) -> i64 {
    match verdict {
        Verdict::Retry { .. } => 0,
        Verdict::HandedBack => 1,
        Verdict::Unknown => number(State::Unknown),
        Verdict::Completed { .. } => number(State::Completed),
        Verdict::Cancelled => number(State::Cancelled),
        Verdict::Dead { .. } => number(State::Dead),
    }
}

fn wait(end: &End<'_>) -> Parameter {
    match end.verdict {
        Verdict::Retry { due, .. } => Parameter::Int(rows::pause(end.now, *due)),
        _ => Parameter::Null,
    }
}

fn result(end: &End<'_>) -> Parameter {
    match end.verdict {
        Verdict::Completed { result } => blob(result),
        _ => Parameter::Null,
    }
}

fn error(end: &End<'_>) -> Parameter {
    match end.verdict {
        Verdict::Retry { error, .. } | Verdict::Dead { error } => text(error),
        _ => Parameter::Null,
    }
}

fn ending(verdict: &Verdict) -> Option<Ending> {
    match verdict {
        Verdict::Completed { result } => Some(Ending::Completed { result: result.clone() }),
        Verdict::Dead { error } => Some(Ending::Dead { error: error.clone() }),
        Verdict::Cancelled => Some(Ending::Cancelled),
        Verdict::Retry { .. } | Verdict::HandedBack | Verdict::Unknown => None,
    }
}
