//! Ends attempts: all waiting ones in one statement. Only the claim that currently has the job can end it.

use std::collections::HashMap;

use parkade_sql::Parameter;
use serde::Deserialize;

use super::clocks::Clocks;
use super::command_queue::PendingCommand;
use super::rows::{self, array, blob, instance, number, text, uuid};
use super::statement::StoreStatement;
use super::texts;
use crate::cluster::{ClaimId, Member};
use crate::{AttemptEnd, Command, EndedJob, JobEnding, JobId, JobState, Reply, Wall};

#[derive(Deserialize)]
struct EndRow {
    place: usize,
    /// It held a place of its queue.
    is_counted: bool,
    /// Another claim took the job while the statement waited for it. Which one can only be seen afterwards.
    is_unclear: bool,
}

pub struct EndReplies {
    /// One for each command of the batch; `None`: the outcome is unclear, so the command has to be repeated.
    pub replies: Vec<Option<Reply>>,
    /// Some held a place of a queue with a limit on running jobs.
    pub is_vacated: bool,
}

pub fn prepare(clocks: &Clocks, member: &Member, batch: &[PendingCommand]) -> StoreStatement {
    let ends: Vec<_> = batch.iter().filter_map(end).collect();
    let column = |of: &dyn Fn(&EndedAttempt<'_>) -> Parameter| array(ends.iter().map(of));
    let parameters = vec![
        clocks.parameter(),
        column(&|end| uuid(end.job)),
        column(&|end| instance(end.claim.instance)),
        column(&|end| Parameter::Int(end.claim.number.0)),
        column(&|end| Parameter::Int(code(end.verdict))),
        column(&wait),
        column(&result),
        column(&error),
        column(&|end| Parameter::Bool(end.is_again)),
        instance(member.instance()),
    ];
    StoreStatement::new(&texts::END, parameters)
}

pub fn read(rows: &[u8], batch: &[PendingCommand]) -> Result<EndReplies, serde_json::Error> {
    let rows = rows::read::<EndRow>(rows)?;
    let is_vacated = rows.iter().any(|row| row.is_counted);
    let ended: HashMap<usize, bool> = rows.into_iter().map(|row| (rows::place(row.place), row.is_unclear)).collect();
    let reply = |(place, waiting): (usize, &PendingCommand)| {
        let tag = waiting.command.tag();
        match (end(waiting), ended.get(&place)) {
            (_, Some(true)) => None,
            (Some(end), Some(false)) => Some(Reply::AttemptEnded {
                tag,
                ended: ending(end.verdict).map(|ending| EndedJob { id: end.job, ending }),
                is_stale: false,
                due: if let AttemptEnd::Retry { due, .. } = end.verdict { Some(*due) } else { None },
            }),
            _ => Some(Reply::AttemptEnded { tag, ended: None, is_stale: true, due: None }),
        }
    };
    Ok(EndReplies { replies: batch.iter().enumerate().map(reply).collect(), is_vacated })
}

struct EndedAttempt<'a> {
    now: Wall,
    job: JobId,
    claim: ClaimId,
    verdict: &'a AttemptEnd,
    is_again: bool,
}

fn end(waiting: &PendingCommand) -> Option<EndedAttempt<'_>> {
    match &waiting.command {
        Command::End { job, claim, verdict, is_again, .. } => Some(EndedAttempt {
            now: waiting.now,
            job: *job,
            claim: *claim,
            verdict,
            is_again: *is_again || waiting.tries > 0,
        }),
        _ => None,
    }
}

/// The number of the state in which the job ends, or cannot run.
fn code(verdict: &AttemptEnd) -> i64 {
    match verdict {
        AttemptEnd::Retry { .. } => 0,
        AttemptEnd::HandedBack => 1,
        AttemptEnd::Unknown => number(JobState::Unknown),
        AttemptEnd::Completed { .. } => number(JobState::Completed),
        AttemptEnd::Cancelled => number(JobState::Cancelled),
        AttemptEnd::Dead { .. } => number(JobState::Dead),
    }
}

fn wait(end: &EndedAttempt<'_>) -> Parameter {
    match end.verdict {
        AttemptEnd::Retry { due, .. } => Parameter::Int(rows::pause(end.now, *due)),
        _ => Parameter::Null,
    }
}

fn result(end: &EndedAttempt<'_>) -> Parameter {
    match end.verdict {
        AttemptEnd::Completed { result } => blob(result),
        _ => Parameter::Null,
    }
}

fn error(end: &EndedAttempt<'_>) -> Parameter {
    match end.verdict {
        AttemptEnd::Retry { error, .. } | AttemptEnd::Dead { error } => text(error),
        _ => Parameter::Null,
    }
}

fn ending(verdict: &AttemptEnd) -> Option<JobEnding> {
    match verdict {
        AttemptEnd::Completed { result } => Some(JobEnding::Completed { result: result.clone() }),
        AttemptEnd::Dead { error } => Some(JobEnding::Dead { error: error.clone() }),
        AttemptEnd::Cancelled => Some(JobEnding::Cancelled),
        AttemptEnd::Retry { .. } | AttemptEnd::HandedBack | AttemptEnd::Unknown => None,
    }
}
