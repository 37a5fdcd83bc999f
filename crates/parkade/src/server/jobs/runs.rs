//! Runs of jobs: claimed, given to workers, their ends noted.

use bytes::Bytes;
use parkade_core::{
    Allowance, ClaimedJob, Event, Failure, JobPolicy, Moment, QueryId, QueueId, RequestId, Verdict as CoreVerdict,
    WorkerId,
};
use parkade_jobs::{AttemptEnd, Claimed, Command, Reply};

use super::asked::{Question, RunEnd};
use super::{Server, until};
use crate::clients::{self, exchange::Exchange};
use crate::seconds::duration;
use crate::statistics::RunOutcome;
use crate::store::wall;
use crate::upstream::RunParts;

/// What the shell keeps for a run, beside the life that the core keeps.
#[derive(Debug)]
pub struct RunKept {
    pub job: Claimed,
    pub deadline: Option<std::time::Duration>,
    /// What it returned, or said when it failed.
    pub result: Option<Bytes>,
    pub error: Option<Box<str>>,
    pub progress: Option<Progress>,
    /// When a worker was first given it.
    began: Option<Moment>,
}

/// How far it says that it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub fraction: Option<f64>,
    pub text: Box<str>,
}

/// What is kept of an error's text; the log has it whole.
const ERROR_BYTES_MAX: usize = 4096;

impl Server {
    pub(in crate::server) fn claim_jobs(&mut self, count: u32, limited: &[Allowance<QueueId>]) {
        if !self.jobs.store.is_open() {
            return self.tell(Event::JobsNotClaimed);
        }
        let named = |&Allowance { queue, count, places, rate }: &Allowance<QueueId>| Allowance {
            queue: self.jobs.queues.name(queue).into(),
            count,
            places,
            rate,
        };
        let limited = limited.iter().map(named).collect();
        self.jobs.ask(Question::Claim, |tag| Command::Claim { tag, count, limited });
    }

    pub(super) fn hear_claimed(&mut self, reply: Reply) {
        match reply {
            Reply::Claimed { jobs, more, next, .. } => {
                let claimed = jobs.into_iter().map(|job| self.begin_run(job)).collect();
                self.tell(Event::JobsClaimed { jobs: claimed, more, next: next.map(until) });
            }
            _ => self.tell(Event::JobsNotClaimed),
        }
    }

    fn begin_run(&mut self, job: Claimed) -> ClaimedJob {
        let request = self.clients.http.insert_clientless();
        let queue = self.jobs.queues.number(&job.queue);
        let standard = self.jobs.deadline;
        let policy = self.jobs.specs.get(&job.name).map(|spec| JobPolicy {
            concurrent: spec.concurrent,
            retries: spec.retries,
            deadline: match spec.deadline {
                Some(seconds) => (seconds > 0.0).then(|| duration(seconds)),
                None => standard,
            },
        });
        let claimed = ClaimedJob { request, job: job.id, attempt: job.attempt, queue, policy };
        let deadline = policy.and_then(|policy| policy.deadline);
        self.clients.exchanges.insert(request, Exchange::of_run());
        self.jobs
            .runs
            .insert(request, RunKept { job, deadline, result: None, error: None, progress: None, began: None });
        claimed
    }

    pub(in crate::server) fn run_job(&mut self, request: RequestId, worker: WorkerId) {
        let Some(run) = self.jobs.runs.get_mut(&request) else { return };
        run.began.get_or_insert(self.now);
        let parts = RunParts {
            id: run.job.id,
            name: &run.job.name,
            attempt: run.job.attempt,
            deadline: run.deadline.map(|deadline| deadline.as_secs_f64()),
            arguments: &run.job.arguments,
        };
        self.upstream.run(worker, request, &parts);
    }

    /// `RESULT`.
    pub(in crate::server) fn worker_returned(&mut self, worker: WorkerId, request: RequestId, result: &Bytes) {
        if let Some(run) = self.jobs.runs.get_mut(&request) {
            run.result = Some(Bytes::copy_from_slice(result));
        } else {
            tracing::error!(worker = worker.0, "a worker sent a job's result for a request; the request fails");
        }
        self.tell(Event::JobReturned { worker, request });
    }

    /// What the code said when it failed.
    pub(in crate::server) fn run_said(&mut self, request: RequestId, text: &str) {
        if let Some(run) = self.jobs.runs.get_mut(&request) {
            run.error = Some(shortened(text).into());
        }
    }

    /// What it waited for failed, and nobody goes on with that.
    pub(in crate::server) fn run_lost_its_query(&mut self, request: RequestId, query: QueryId) {
        let text = match self.queries.failure(query) {
            Some(failure) => failure.message.clone(),
            None => "its query was cancelled".into(),
        };
        self.run_said(request, &text);
    }

    pub(in crate::server) fn end_run(&mut self, request: RequestId, verdict: CoreVerdict) {
        let Some(run) = self.jobs.runs.remove(&request) else { return };
        let Claimed { id: job, attempt, claim, name, .. } = run.job;
        let took = run.began.map(|began| self.now.since(began));
        self.jobs.count_run(&name, outcome(verdict), took);
        let verdict = match verdict {
            CoreVerdict::Completed => AttemptEnd::Completed { result: run.result.unwrap_or_default() },
            CoreVerdict::Retry { after, why } => {
                let error = error(why, run.error);
                tracing::warn!(job = %job, name = &*name, attempt, ?after, "a job failed and will be retried: {error}");
                let after = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
                AttemptEnd::Retry { due: parkade_jobs::Wall(wall().0.saturating_add(after)), error }
            }
            CoreVerdict::Dead { why } => {
                let error = error(why, run.error);
                tracing::error!(job = %job, name = &*name, attempt, "a job failed for good; `parkade jobs retry {job}` runs it again: {error}");
                AttemptEnd::Dead { error }
            }
            CoreVerdict::Cancelled => AttemptEnd::Cancelled,
            CoreVerdict::HandedBack => AttemptEnd::HandedBack,
            CoreVerdict::Unknown => {
                tracing::error!(job = %job, name = &*name, "the application has no job of this name; it is kept until there is one");
                AttemptEnd::Unknown
            }
        };
        self.note(request, RunEnd { job, claim, verdict, is_again: false });
    }

    pub(super) fn note(&mut self, request: RequestId, end: RunEnd) {
        let RunEnd { job, claim, verdict, is_again } = end.clone();
        let question = Question::End { request, end: Box::new(end) };
        self.jobs.ask(question, |tag| Command::End { tag, job, claim, verdict, is_again });
    }

    /// What the store could not note.
    pub(in crate::server) fn note_again(&mut self, request: RequestId) {
        if let Some(end) = self.jobs.unnoted.remove(&request) {
            self.note(request, end);
        }
    }

    pub(super) fn hear_run_noted(&mut self, request: RequestId, end: RunEnd, reply: Reply) {
        let Reply::AttemptEnded { ended, is_stale, due, .. } = reply else {
            // Forgotten, it would be taken for running until the next start.
            self.jobs.unnoted.insert(request, RunEnd { is_again: true, ..end });
            return self.tell(Event::RunNotNoted { request });
        };
        self.tell(Event::RunNoted { request, is_stale });
        if is_stale {
            tracing::warn!(job = %end.job, "a job run finished after it had been marked lost; its outcome is ignored");
        }
        match end.verdict {
            AttemptEnd::Unknown => self.jobs.are_unknown = true,
            // It is ready, for whoever is free: that of a reload's old code.
            AttemptEnd::HandedBack => self.tell(Event::JobsReady { after: None }),
            _ => {}
        }
        if let Some(due) = due {
            self.tell(Event::JobsReady { after: Some(until(due)) });
        }
        if let Some(ended) = ended {
            self.job_has_ended(ended);
        }
    }
}

fn outcome(verdict: CoreVerdict) -> RunOutcome {
    match verdict {
        CoreVerdict::Completed => RunOutcome::Completed,
        CoreVerdict::Retry { .. } => RunOutcome::Retried,
        CoreVerdict::Dead { .. } => RunOutcome::Dead,
        CoreVerdict::Cancelled => RunOutcome::Cancelled,
        CoreVerdict::HandedBack => RunOutcome::HandedBack,
        CoreVerdict::Unknown => RunOutcome::Unknown,
    }
}

fn error(why: Failure, said: Option<Box<str>>) -> Box<str> {
    match (why, said) {
        (Failure::Raised, Some(said)) => said,
        (Failure::Raised, None) => "it failed without giving a reason".into(),
        (Failure::WorkerDied, _) => "the worker that ran it died".into(),
        (Failure::ServerDied, _) => "servers that ran it died repeatedly".into(),
        (Failure::DeadlinePassed, _) => "its deadline passed".into(),
        (Failure::Refused(refused), said) => said.unwrap_or_else(|| clients::explain(refused).2.into()),
    }
}

fn shortened(text: &str) -> &str {
    let text = text.trim_end();
    let begin = text.len().saturating_sub(ERROR_BYTES_MAX);
    // The end of a traceback says what happened.
    let begin = (begin..text.len()).find(|place| text.is_char_boundary(*place)).unwrap_or(text.len());
    if begin == 0 { text } else { &text[begin..] }
}
