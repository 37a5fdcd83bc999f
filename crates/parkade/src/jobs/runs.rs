//! Runs of jobs: their data while the core keeps their lives, and how they end.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use parkade_core::{Failure, Moment, RequestId, Verdict};
use parkade_jobs::{AttemptEnd, ClaimId, Claimed};
use parkade_model::{JobId, Wall};
use parkade_wire::encode::RunParts;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::clients;
use crate::statistics::{RunOutcome, RunStatistics};
use crate::store::wall;
use crate::traces::TracedRunEnd;

/// How much of an error's text is kept; the log has all of it.
const ERROR_BYTES_MAX: usize = 4096;
/// The pause between two attempts of a stopping server to have the store record what it has refused.
const RECORD_AGAIN_PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub struct Runs {
    running: HashMap<RequestId, RunData>,
    /// What the store could not record, until the core has it sent again.
    unrecorded: HashMap<RequestId, AttemptRecord>,
    /// When a stopping server last sent them again.
    sent_again: Option<Instant>,
    statistics: RunStatistics,
}

#[derive(Debug)]
struct RunData {
    job: Claimed,
    deadline: Option<Duration>,
    result: Option<Bytes>,
    /// Why it failed.
    error: Option<Box<str>>,
    progress: Option<Progress>,
    /// When a worker was first given it.
    began: Option<Moment>,
}

/// The progress that the run has reported.
#[derive(Debug, Clone, PartialEq)]
struct Progress {
    fraction: Option<f64>,
    text: Box<str>,
}

/// How an attempt of a job ended.
#[derive(Debug, Clone)]
pub struct AttemptRecord {
    pub job: JobId,
    pub claim: ClaimId,
    pub end: AttemptEnd,
    /// It was sent to the store before, which may have recorded it.
    pub is_again: bool,
}

impl Runs {
    /// The job of which this is a run: its name and its id.
    pub fn job(&self, request: RequestId) -> Option<(&str, JobId)> {
        self.running.get(&request).map(|run| (&*run.job.name, run.job.id))
    }

    pub fn contains(&self, request: RequestId) -> bool {
        !self.running.is_empty() && self.running.contains_key(&request)
    }

    pub fn begin(&mut self, request: RequestId, job: Claimed, deadline: Option<Duration>) {
        let run = RunData { job, deadline, result: None, error: None, progress: None, began: None };
        self.running.insert(request, run);
    }

    /// The attempt, for the worker that is given it now.
    pub fn assign(&mut self, request: RequestId, now: Moment) -> Option<RunParts<'_>> {
        let run = self.running.get_mut(&request)?;
        run.began.get_or_insert(now);
        Some(RunParts {
            id: run.job.id,
            name: &run.job.name,
            attempt: run.job.attempt,
            deadline: run.deadline.map(|deadline| deadline.as_secs_f64()),
            arguments: &run.job.arguments,
            correlation: &run.job.correlation,
        })
    }

    /// The run has returned this. Returns whether there is such a run.
    pub fn keep_result(&mut self, request: RequestId, result: &Bytes) -> bool {
        let run = self.running.get_mut(&request);
        run.map(|run| run.result = Some(Bytes::copy_from_slice(result))).is_some()
    }

    /// Why the run failed.
    pub fn keep_error(&mut self, request: RequestId, text: &str) {
        if let Some(run) = self.running.get_mut(&request) {
            run.error = Some(end_of(text).into());
        }
    }

    /// The run has reported its progress. Returns its job, and its state for clients.
    pub fn keep_progress(&mut self, request: RequestId, fraction: Option<f64>, text: &str) -> Option<(JobId, Value)> {
        let run = self.running.get_mut(&request)?;
        let fraction = fraction.map(|fraction| fraction.clamp(0.0, 1.0));
        run.progress = Some(Progress { fraction, text: text.into() });
        Some((run.job.id, run.state()))
    }

    /// The state of a job that runs here, for clients.
    pub fn state_of(&self, job: JobId) -> Option<Value> {
        self.running.values().find(|run| run.job.id == job).map(RunData::state)
    }

    /// How the run ends, for its span.
    pub fn ending(&self, request: RequestId, verdict: Verdict) -> TracedRunEnd<'_> {
        let error = self.running.get(&request).and_then(|run| run.error.as_deref());
        let has_failed = !matches!(verdict, Verdict::Completed | Verdict::HandedBack | Verdict::Cancelled);
        TracedRunEnd { outcome: outcome(verdict).words(), error: has_failed.then_some(error.unwrap_or_default()) }
    }

    /// The run is over: what the store is to record. `is_declared`: whether the application declares a job.
    pub fn end(
        &mut self,
        request: RequestId,
        verdict: Verdict,
        now: Moment,
        is_declared: impl FnOnce(&str) -> bool,
    ) -> Option<AttemptRecord> {
        let run = self.running.remove(&request)?;
        let Claimed { id: job, attempt, claim, name, correlation, .. } = run.job;
        let request_id = correlation.request_id();
        let took = run.began.map(|began| now.since(began));
        self.statistics.record(is_declared(&name).then_some(&*name), outcome(verdict), took);
        let end = match verdict {
            Verdict::Completed => AttemptEnd::Completed { result: run.result.unwrap_or_default() },
            Verdict::Retry { after, why } => {
                let error = error(why, run.error);
                tracing::warn!(job = %job, name = &*name, request_id, attempt, retry_in = ?after, "a job failed and will be retried: {error}");
                let after = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
                AttemptEnd::Retry { due: Wall(wall().0.saturating_add(after)), error }
            }
            Verdict::Dead { why } => {
                let error = error(why, run.error);
                tracing::error!(job = %job, name = &*name, request_id, attempt, "a job failed for good; `parkade jobs retry {job}` runs it again: {error}");
                AttemptEnd::Dead { error }
            }
            Verdict::Cancelled => AttemptEnd::Cancelled,
            Verdict::HandedBack => AttemptEnd::HandedBack,
            Verdict::Unknown => {
                tracing::error!(job = %job, name = &*name, request_id, "the application has no job of this name; the job is kept, and runs once the application has one");
                AttemptEnd::Unknown
            }
        };
        Some(AttemptRecord { job, claim, end, is_again: false })
    }

    /// The store could not record it. If it were forgotten, the job would count as running until the next start.
    pub fn keep_unrecorded(&mut self, request: RequestId, record: AttemptRecord) {
        self.unrecorded.insert(request, AttemptRecord { is_again: true, ..record });
    }

    pub fn take_unrecorded(&mut self, request: RequestId) -> Option<AttemptRecord> {
        self.unrecorded.remove(&request)
    }

    /// For a stopping server: all that the store could not record, but not in every step.
    pub fn take_all_unrecorded(&mut self) -> HashMap<RequestId, AttemptRecord> {
        if self.sent_again.is_some_and(|sent| sent.elapsed() < RECORD_AGAIN_PAUSE) {
            return HashMap::new();
        }
        self.sent_again = Some(Instant::now());
        std::mem::take(&mut self.unrecorded)
    }

    pub fn are_recorded(&self) -> bool {
        self.unrecorded.is_empty()
    }

    pub fn statistics(&self) -> &RunStatistics {
        &self.statistics
    }
}

impl RunData {
    fn state(&self) -> Value {
        let attempt = self.job.attempt;
        match &self.progress {
            Some(Progress { fraction, text }) => {
                json!({ "state": "running", "attempt": attempt, "fraction": fraction, "text": text })
            }
            None => json!({ "state": "running", "attempt": attempt }),
        }
    }
}

fn outcome(verdict: Verdict) -> RunOutcome {
    match verdict {
        Verdict::Completed => RunOutcome::Completed,
        Verdict::Retry { .. } => RunOutcome::Retried,
        Verdict::Dead { .. } => RunOutcome::Dead,
        Verdict::Cancelled => RunOutcome::Cancelled,
        Verdict::HandedBack => RunOutcome::HandedBack,
        Verdict::Unknown => RunOutcome::Unknown,
    }
}

fn error(why: Failure, text: Option<Box<str>>) -> Box<str> {
    match (why, text) {
        (Failure::Raised, Some(text)) => text,
        (Failure::Raised, None) => "it failed without giving a reason".into(),
        (Failure::WorkerDied, _) => "the worker that ran it died".into(),
        (Failure::ServerDied, _) => "servers that ran it died repeatedly".into(),
        (Failure::DeadlinePassed, _) => "its deadline passed".into(),
        (Failure::Refused(refused), text) => text.unwrap_or_else(|| clients::explain(refused).2.into()),
    }
}

/// The end of a traceback says what happened.
fn end_of(text: &str) -> &str {
    let text = text.trim_end();
    let begin = text.len().saturating_sub(ERROR_BYTES_MAX);
    let begin = (begin..text.len()).find(|place| text.is_char_boundary(*place)).unwrap_or(text.len());
    if begin == 0 { text } else { &text[begin..] }
}
