//! Attempts end. Only the present attempt of a job that runs does: what an earlier one says later changes nothing.

use rusqlite::{OptionalExtension, Params, Result, named_params};

use super::enqueue::rank;
use super::ledger::Ledger;
use super::schema::number;
use crate::{Ended, Ending, JobId, Reply, State, Tag, Verdict};

pub fn end(ledger: &mut Ledger, tag: Tag, job: JobId, attempt: u32, verdict: &Verdict) -> Result<Reply> {
    let Some((row, queue, priority)) = present(ledger, job, attempt)? else {
        return Ok(Reply::AttemptEnded { tag, ended: None, is_stale: true, due: None });
    };
    let state = apply(ledger, row, priority, verdict)?;
    ledger.tally.moved(&queue, Some(State::Running), Some(state));
    let ending = match verdict {
        Verdict::Completed { result } => Some(Ending::Completed { result: result.clone() }),
        Verdict::Dead { error } => Some(Ending::Dead { error: error.clone() }),
        Verdict::Cancelled => Some(Ending::Cancelled),
        Verdict::Retry { .. } | Verdict::HandedBack | Verdict::Unknown => None,
    };
    let due = if let Verdict::Retry { due, .. } = verdict { Some(*due) } else { None };
    Ok(Reply::AttemptEnded { tag, ended: ending.map(|ending| Ended { id: job, ending }), is_stale: false, due })
}

fn present(ledger: &Ledger, job: JobId, attempt: u32) -> Result<Option<(i64, Box<str>, i16)>> {
    let text = "SELECT job, queue, priority FROM jobs INDEXED BY jobs_id WHERE id = ? AND state = 2 AND attempt = ?";
    let mut statement = ledger.connection.prepare_cached(text)?;
    statement.query_row((job.bytes(), attempt), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
}

/// Where the job is now.
fn apply(ledger: &Ledger, job: i64, priority: i16, verdict: &Verdict) -> Result<State> {
    let now = ledger.now;
    match verdict {
        Verdict::Completed { result } => {
            over(ledger, job, State::Completed)?;
            let text = "INSERT INTO results (job, result) VALUES (:job, :result) ON CONFLICT (job) DO UPDATE SET result = excluded.result";
            run(ledger, text, named_params! {":job": job, ":result": &**result})?;
            Ok(State::Completed)
        }
        Verdict::Dead { error } => {
            over(ledger, job, State::Dead)?;
            note(ledger, job, error)?;
            Ok(State::Dead)
        }
        Verdict::Cancelled => over(ledger, job, State::Cancelled),
        Verdict::Unknown => {
            let text = "UPDATE jobs SET attempt = attempt - 1 WHERE job = :job";
            run(ledger, text, named_params! {":job": job})?;
            over(ledger, job, State::Unknown)
        }
        Verdict::Retry { due, error } => {
            let state = if *due > now { State::Scheduled } else { State::Ready };
            let text = "UPDATE jobs SET state = :state, due = :due, rank = :rank WHERE job = :job";
            let rank = rank((*due).max(now), priority);
            run(ledger, text, named_params! {":state": number(state), ":due": due.0, ":rank": rank, ":job": job})?;
            note(ledger, job, error)?;
            Ok(state)
        }
        Verdict::HandedBack => {
            let text = "UPDATE jobs SET state = 1, attempt = attempt - 1 WHERE job = :job";
            run(ledger, text, named_params! {":job": job})?;
            Ok(State::Ready)
        }
    }
}

/// Nothing runs it any more by itself.
pub fn over(ledger: &Ledger, job: i64, state: State) -> Result<State> {
    let text = "UPDATE jobs SET state = :state, ended = :now WHERE job = :job";
    run(ledger, text, named_params! {":state": number(state), ":now": ledger.now.0, ":job": job})?;
    Ok(state)
}

fn note(ledger: &Ledger, job: i64, error: &str) -> Result<()> {
    let text =
        "INSERT INTO results (job, error) VALUES (:job, :error) ON CONFLICT (job) DO UPDATE SET error = excluded.error";
    run(ledger, text, named_params! {":job": job, ":error": error})
}

fn run(ledger: &Ledger, text: &str, parameters: impl Params) -> Result<()> {
    ledger.connection.prepare_cached(text)?.execute(parameters).map(|_| ())
}

/// All that run are ready again, where they were in their queue. Their attempt has been counted when they were claimed.
pub fn rescue(ledger: &mut Ledger) -> Result<()> {
    let running: Vec<(i64, Box<str>)> = {
        let mut statement =
            ledger.connection.prepare("SELECT job, queue FROM jobs INDEXED BY jobs_running WHERE state = 2")?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_>>()?
    };
    for (job, queue) in running {
        run(ledger, "UPDATE jobs SET state = 1 WHERE job = :job", named_params! {":job": job})?;
        ledger.tally.moved(&queue, Some(State::Running), Some(State::Ready));
    }
    Ok(())
}
