//! Attempts end: all that wait in one statement. Only the present attempt of a job does, and only in the server that claimed it.

use std::collections::HashSet;
use std::time::Instant;

use parkade_sql::Parameter;
use serde::Deserialize;

use super::flight::Carried;
use super::lanes::Waiting;
use super::rows::{self, array, blob, instance, number, text, uuid};
use super::store::PostgresStore;
use super::texts;
use crate::{Command, Ended, Ending, JobId, Reply, State, Verdict, Wall};

#[derive(Deserialize)]
struct Row {
    place: usize,
    /// It held one of the places of its queue.
    is_counted: bool,
}

impl PostgresStore {
    pub(super) fn end_attempts(&mut self, now: Instant, batch: Vec<Waiting>) {
        let ends: Vec<_> = batch.iter().filter_map(end).collect();
        let is_again = batch.iter().any(|waiting| waiting.tries > 0);
        let column = |of: &dyn Fn(&End<'_>) -> Parameter| array(ends.iter().map(of));
        let parameters = vec![
            self.clock(),
            column(&|end| uuid(end.job)),
            column(&|end| Parameter::Int(end.attempt.into())),
            column(&|end| Parameter::Int(code(end.verdict))),
            column(&wait),
            column(&result),
            column(&error),
            array(self.member.instances().map(instance)),
            instance(self.member.instance()),
            Parameter::Bool(is_again),
        ];
        self.launch(now, Carried::End(batch), &texts::END, parameters);
    }

    pub(super) fn attempts_ended(&mut self, batch: &[Waiting], rows: &[u8]) {
        let rows = match rows::read::<Row>(rows) {
            Ok(rows) => rows,
            Err(why) => return self.garbled(batch, &why),
        };
        if rows.iter().any(|row| row.is_counted) {
            self.has_hint |= self.limits.vacated();
        }
        let ended: HashSet<usize> = rows.into_iter().map(|row| rows::place(row.place)).collect();
        for (place, waiting) in batch.iter().enumerate() {
            let tag = waiting.command.tag();
            let reply = match end(waiting) {
                Some(end) if ended.contains(&place) => Reply::AttemptEnded {
                    tag,
                    ended: ending(end.verdict).map(|ending| Ended { id: end.job, ending }),
                    is_stale: false,
                    due: if let Verdict::Retry { due, .. } = end.verdict { Some(*due) } else { None },
                },
                _ => Reply::AttemptEnded { tag, ended: None, is_stale: true, due: None },
            };
            self.answer(waiting, reply);
        }
    }
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
