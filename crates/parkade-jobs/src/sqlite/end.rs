//! Attempts end. Only the present attempt of a job that runs does: what an earlier one says later changes nothing.

use rusqlite::{Result, named_params};

use super::enqueue::rank;
use super::ledger::Ledger;
use super::running::Run;
use super::schema::number;
use crate::{Ended, Ending, JobId, Reply, State, Tag, Verdict};

pub fn end(ledger: &mut Ledger, tag: Tag, job: JobId, attempt: u32, verdict: &Verdict) -> Result<Reply> {
    let Some(run) = ledger.running.end(job, attempt) else {
        return Ok(Reply::AttemptEnded { tag, ended: None, is_stale: true, due: None });
    };
    let state = apply(ledger, &run, verdict)?;
    ledger.tally.moved(&run.queue, Some(State::Running), Some(state));
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
fn apply(ledger: &mut Ledger, run: &Run, verdict: &Verdict) -> Result<State> {
    match verdict {
        Verdict::Completed { result } => over(ledger, run, State::Completed, Some(result), None),
        Verdict::Dead { error } => over(ledger, run, State::Dead, None, Some(error)),
        Verdict::Cancelled => over(ledger, run, State::Cancelled, None, None),
        Verdict::Unknown => {
            // Nothing has run: it does not count.
            let run = Run { attempt: run.attempt - 1, ..run.clone() };
            over(ledger, &run, State::Unknown, None, None)
        }
        Verdict::Retry { due, error } => {
            let state = if *due > ledger.now { State::Scheduled } else { State::Ready };
            let rank = rank((*due).max(ledger.now), run.priority);
            let text = "UPDATE jobs SET state = :state, due = :due, rank = :rank, attempt = :attempt, started = :started, error = :error \
                        WHERE job = :job";
            ledger.connection.prepare_cached(text)?.execute(named_params! {
                ":state": number(state), ":due": due.0, ":rank": rank, ":attempt": run.attempt, ":started": run.started.0,
                ":error": error, ":job": run.job,
            })?;
            if state == State::Ready {
                ledger.lanes.offer(&run.queue, run.priority, (rank, run.job));
            }
            Ok(state)
        }
        Verdict::HandedBack => {
            let text = "UPDATE jobs SET started = ? WHERE job = ?";
            ledger.connection.prepare_cached(text)?.execute((run.started.0, run.job))?;
            ledger.lanes.offer(&run.queue, run.priority, (run.rank, run.job));
            Ok(State::Ready)
        }
    }
}

/// Nothing runs it any more by itself. An error of an earlier attempt stays.
fn over(ledger: &Ledger, run: &Run, state: State, result: Option<&[u8]>, error: Option<&str>) -> Result<State> {
    let text = "UPDATE jobs SET state = ?1, attempt = ?2, started = ?3, ended = ?4, error = ifnull(?5, error), result = ?6 WHERE job = ?7";
    let values = (number(state), run.attempt, run.started.0, ledger.now.0, error, result, run.job);
    ledger.connection.prepare_cached(text)?.execute(values)?;
    Ok(state)
}
