//! Attempts end. Only the present attempt of a job that runs does: what an earlier one says later changes nothing.

use rusqlite::{Result, named_params};

use super::running::Run;
use super::schema::number;
use super::schema::rank::rank;
use super::tables::Tables;
use crate::{Ended, Ending, JobId, Reply, State, Tag, Verdict};

pub fn end(tables: &mut Tables, tag: Tag, job: JobId, attempt: u32, verdict: &Verdict) -> Result<Reply> {
    let Some(run) = tables.running.end(job, attempt) else {
        return Ok(Reply::AttemptEnded { tag, ended: None, is_stale: true, due: None });
    };
    let state = apply(tables, &run, verdict)?;
    tables.counters.moved(&run.queue, Some(State::Running), Some(state));
    let ending = match verdict {
        Verdict::Completed { result } => Some(Ending::Completed { result: result.clone() }),
        Verdict::Dead { error } => Some(Ending::Dead { error: error.clone() }),
        Verdict::Cancelled => Some(Ending::Cancelled),
        Verdict::Retry { .. } | Verdict::HandedBack | Verdict::Unknown => None,
    };
    let due = if let Verdict::Retry { due, .. } = verdict { Some(*due) } else { None };
    Ok(Reply::AttemptEnded { tag, ended: ending.map(|ending| Ended { id: job, ending }), is_stale: false, due })
}

/// Where the job is now.
fn apply(tables: &mut Tables, run: &Run, verdict: &Verdict) -> Result<State> {
    match verdict {
        Verdict::Completed { result } => over(tables, run, State::Completed, Some(result), None),
        Verdict::Dead { error } => over(tables, run, State::Dead, None, Some(error)),
        Verdict::Cancelled => over(tables, run, State::Cancelled, None, None),
        Verdict::Unknown => {
            // Nothing has run: it does not count.
            let run = Run { attempt: run.attempt - 1, ..run.clone() };
            over(tables, &run, State::Unknown, None, None)
        }
        Verdict::Retry { due, error } => {
            let state = if *due > tables.now { State::Scheduled } else { State::Ready };
            let rank = rank((*due).max(tables.now), run.priority);
            let text = "UPDATE jobs SET state = :state, due = :due, rank = :rank, attempt = :attempt, started = :started, error = :error \
                        WHERE job = :job";
            tables.connection.prepare_cached(text)?.execute(named_params! {
                ":state": number(state), ":due": due.0, ":rank": rank, ":attempt": run.attempt, ":started": run.started.0,
                ":error": error, ":job": run.job,
            })?;
            if state == State::Ready {
                tables.ready.offer(&run.queue, run.priority, (rank, run.job));
            }
            Ok(state)
        }
        Verdict::HandedBack => {
            let text = "UPDATE jobs SET started = ? WHERE job = ?";
            tables.connection.prepare_cached(text)?.execute((run.started.0, run.job))?;
            tables.ready.offer(&run.queue, run.priority, (run.rank, run.job));
            Ok(State::Ready)
        }
    }
}

/// Nothing runs it any more by itself. An error of an earlier attempt stays.
fn over(tables: &Tables, run: &Run, state: State, result: Option<&[u8]>, error: Option<&str>) -> Result<State> {
    let text = "UPDATE jobs SET state = ?1, attempt = ?2, started = ?3, ended = ?4, error = ifnull(?5, error), result = ?6 WHERE job = ?7";
    let values = (number(state), run.attempt, run.started.0, tables.now.0, error, result, run.job);
    tables.connection.prepare_cached(text)?.execute(values)?;
    Ok(state)
}
