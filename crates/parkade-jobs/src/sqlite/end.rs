//! Ends attempts. Only the claim that currently has the job can end it: the outcome of an earlier one changes nothing.

use rusqlite::{OptionalExtension, Result, named_params};

use super::running::RunningJob;
use super::schema::number;
use super::schema::rank::rank;
use super::tables::JobTables;
use crate::cluster::ClaimId;
use crate::{AttemptEnd, EndedJob, JobEnding, JobId, JobState, Reply, Tag};

pub fn end(
    tables: &mut JobTables,
    tag: Tag,
    job: JobId,
    claim: ClaimId,
    verdict: &AttemptEnd,
    is_again: bool,
) -> Result<Reply> {
    if let Some(run) = tables.running.end(job, claim) {
        let state = apply(tables, &run, verdict)?;
        tables.counters.moved(&run.queue, Some(JobState::Running), Some(state));
    } else if !is_again || !was_recorded(tables, job, claim, verdict)? {
        return Ok(Reply::AttemptEnded { tag, ended: None, is_stale: true, due: None });
    }
    let ending = match verdict {
        AttemptEnd::Completed { result } => Some(JobEnding::Completed { result: result.clone() }),
        AttemptEnd::Dead { error } => Some(JobEnding::Dead { error: error.clone() }),
        AttemptEnd::Cancelled => Some(JobEnding::Cancelled),
        AttemptEnd::Retry { .. } | AttemptEnd::HandedBack | AttemptEnd::Unknown => None,
    };
    let due = if let AttemptEnd::Retry { due, .. } = verdict { Some(*due) } else { None };
    Ok(Reply::AttemptEnded { tag, ended: ending.map(|ending| EndedJob { id: job, ending }), is_stale: false, due })
}

/// Whether the outcome of this claim, which no longer has the job, was recorded before. While the file is open, a claim
/// loses a job in no other way. Only a cancellation may have replaced another outcome, so that one is looked up.
fn was_recorded(tables: &JobTables, job: JobId, claim: ClaimId, verdict: &AttemptEnd) -> Result<bool> {
    if !matches!(verdict, AttemptEnd::Cancelled) || !tables.running.has_made(claim) {
        return Ok(tables.running.has_made(claim));
    }
    let mut statement = tables.connection.prepare_cached("SELECT state FROM jobs WHERE id = ?")?;
    let state: Option<u8> = statement.query_row([job.bytes()], |row| row.get(0)).optional()?;
    Ok(state == Some(number(JobState::Cancelled)))
}

/// The current state of the job.
fn apply(tables: &mut JobTables, run: &RunningJob, verdict: &AttemptEnd) -> Result<JobState> {
    match verdict {
        AttemptEnd::Completed { result } => over(tables, run, JobState::Completed, Some(result), None),
        AttemptEnd::Dead { error } => over(tables, run, JobState::Dead, None, Some(error)),
        AttemptEnd::Cancelled => over(tables, run, JobState::Cancelled, None, None),
        AttemptEnd::Unknown => {
            // Nothing ran, so the attempt does not count.
            let run = RunningJob { attempt: run.attempt - 1, ..run.clone() };
            over(tables, &run, JobState::Unknown, None, None)
        }
        AttemptEnd::Retry { due, error } => {
            let state = if *due > tables.now { JobState::Scheduled } else { JobState::Ready };
            let rank = rank((*due).max(tables.now), run.priority);
            let text = "UPDATE jobs SET state = :state, due = :due, rank = :rank, attempt = :attempt, started = :started, error = :error \
                        WHERE job = :job";
            tables.connection.prepare_cached(text)?.execute(named_params! {
                ":state": number(state), ":due": due.0, ":rank": rank, ":attempt": run.attempt, ":started": run.started.0,
                ":error": error, ":job": run.job,
            })?;
            if state == JobState::Ready {
                tables.ready.offer(&run.queue, run.priority, (rank, run.job));
            }
            Ok(state)
        }
        AttemptEnd::HandedBack => {
            let text = "UPDATE jobs SET started = ? WHERE job = ?";
            tables.connection.prepare_cached(text)?.execute((run.started.0, run.job))?;
            tables.ready.offer(&run.queue, run.priority, (run.rank, run.job));
            Ok(JobState::Ready)
        }
    }
}

/// The job will not run again by itself. An error of an earlier attempt is kept.
fn over(
    tables: &JobTables,
    run: &RunningJob,
    state: JobState,
    result: Option<&[u8]>,
    error: Option<&str>,
) -> Result<JobState> {
    let text = "UPDATE jobs SET state = ?1, attempt = ?2, started = ?3, ended = ?4, error = ifnull(?5, error), result = ?6 WHERE job = ?7";
    let values = (number(state), run.attempt, run.started.0, tables.now.0, error, result, run.job);
    tables.connection.prepare_cached(text)?.execute(values)?;
    Ok(state)
}
