//! Jobs that somebody ends: the store ends those that wait, the core those that run, and here nobody is told that one will end
//! while it is on its way between the two.

use std::collections::HashMap;

use parkade_core::{Event, JobCaller, RequestId};
use parkade_jobs::{AttemptEnd, Command, EndedJob, Fault, JobEnding, Reply};
use parkade_model::JobId;

use super::Server;
use super::asked::{Back, Question};
use crate::admin::JobAnswer;

/// Each has somebody who waits, and is answered within a claim. Then: nobody can end another.
const CANCELLING_COUNT_MAX: usize = 10_000;

/// Those of which the store has not said that it has ended them, and that no core ran when they were to be ended.
#[derive(Debug, Default)]
pub struct Cancelling {
    jobs: HashMap<JobId, Asked>,
}

/// Who wants it to end.
#[derive(Debug, Default)]
struct Asked {
    /// The store says that it runs, and the claim that is under way may have it. If it does not: whether it ends all the same.
    awaits_claim: Option<bool>,
    backs: Vec<Back>,
    requests: Vec<RequestId>,
}

impl Cancelling {
    /// Whether the request is to wait until it is known if the job will end.
    pub fn hold(&mut self, job: JobId, request: RequestId) -> bool {
        let Some(asked) = self.jobs.get_mut(&job) else { return false };
        asked.requests.push(request);
        true
    }

    /// Each with whether it ends if the claim has not taken it.
    pub fn that_await_a_claim(&self) -> Vec<(JobId, bool)> {
        self.jobs.iter().filter_map(|(job, asked)| Some((*job, asked.awaits_claim?))).collect()
    }
}

impl Server {
    /// Ends a job, wherever it is. `back` is told whether it will end; a request is answered when that is known.
    pub(super) fn cancel_job(&mut self, job: JobId, back: Option<Back>) {
        let answer = if self.cancel_run(job) {
            JobAnswer::Changed(true)
        } else if let Some(asked) = self.jobs.cancelling.jobs.get_mut(&job) {
            return asked.backs.extend(back);
        } else if self.jobs.cancelling.jobs.len() >= CANCELLING_COUNT_MAX {
            JobAnswer::Refused(Fault::QueueFull)
        } else {
            let asked = Asked { backs: back.into_iter().collect(), ..Asked::default() };
            self.jobs.cancelling.jobs.insert(job, asked);
            return self.ask_to_cancel(job);
        };
        if let Some(back) = back {
            let _ = back.send(answer);
        }
    }

    fn ask_to_cancel(&mut self, job: JobId) {
        self.jobs.ask(Question::Cancel { job }, |tag| Command::Cancel { tag, job });
    }

    /// Whether the core had it.
    pub(super) fn cancel_run(&mut self, job: JobId) -> bool {
        let runs = self.core.runs_job(job);
        if runs {
            self.tell(Event::JobCancelled { job });
        }
        runs
    }

    pub(super) fn hear_cancelled(&mut self, job: JobId, reply: Reply) {
        match reply {
            Reply::Changed { changed: true, .. } => {
                self.job_has_ended(EndedJob { id: job, ending: JobEnding::Cancelled });
                self.settle_cancelling(job, true);
            }
            Reply::Changed { changed: false, .. } => self.cancel_on_its_way(job, false),
            Reply::Asked { .. } => self.cancel_on_its_way(job, true),
            Reply::Refused { fault, .. } => self.cancelling_refused(job, &fault),
            _ => self.settle_cancelling(job, false),
        }
    }

    /// For the store it does not wait: then it runs, is about to, or has run and the store does not have that yet. `is_asked`: whoever runs it
    /// has been asked to end it, which may be another server.
    fn cancel_on_its_way(&mut self, job: JobId, is_asked: bool) {
        if self.cancel_run(job) {
            return self.settle_cancelling(job, true);
        }
        if let Some(end) = self.jobs.unnoted.iter_mut().find(|end| end.job == job) {
            if goes_on(&end.verdict) {
                end.verdict = AttemptEnd::Cancelled;
            }
            let is_cancelled = matches!(end.verdict, AttemptEnd::Cancelled);
            return self.settle_cancelling(job, is_cancelled);
        }
        match self.end_under_way(job).map(|verdict| (goes_on(verdict), matches!(verdict, AttemptEnd::Cancelled))) {
            // It waits in the store again when that is noted, or is among the unnoted.
            Some((true, _)) => self.ask_to_cancel(job),
            Some((false, is_cancelled)) => self.settle_cancelling(job, is_cancelled),
            None if self.jobs.is_asked(|question| matches!(question, Question::Claim)) => {
                if let Some(asked) = self.jobs.cancelling.jobs.get_mut(&job) {
                    asked.awaits_claim = Some(is_asked);
                }
            }
            None => self.settle_cancelling(job, is_asked),
        }
    }

    /// What the store is being told of how an attempt ended.
    fn end_under_way(&self, job: JobId) -> Option<&AttemptEnd> {
        self.jobs.questions.values().find_map(|question| match question {
            Question::End(end) if end.job == job => Some(&end.verdict),
            _ => None,
        })
    }

    /// Whether the store will have it as cancelled, though it has not said so.
    pub(super) fn is_being_cancelled(&self, job: JobId) -> bool {
        let unnoted = self.jobs.unnoted.iter().find(|end| end.job == job).map(|end| &end.verdict);
        matches!(unnoted.or_else(|| self.end_under_way(job)), Some(AttemptEnd::Cancelled))
    }

    /// It is known whether it will end.
    pub(super) fn settle_cancelling(&mut self, job: JobId, will_end: bool) {
        let Some(Asked { backs, requests, .. }) = self.jobs.cancelling.jobs.remove(&job) else { return };
        for back in backs {
            let _ = back.send(JobAnswer::Changed(will_end));
        }
        for request in requests {
            if let Some(exchange) = self.clients.exchanges.of(request) {
                exchange.jobs.get_or_insert_default().will_end = will_end;
            }
            self.find_job(request, job, JobCaller::Guest);
        }
    }

    fn cancelling_refused(&mut self, job: JobId, fault: &Fault) {
        let Some(Asked { backs, requests, .. }) = self.jobs.cancelling.jobs.remove(&job) else { return };
        for back in backs {
            let _ = back.send(JobAnswer::Refused(fault.clone()));
        }
        for request in requests {
            self.tell(Event::JobNotLookedUp { request });
        }
    }

    /// Whether the job that this request ends has been told so, or the store will have it.
    pub(super) fn will_end(&self, request: RequestId, job: JobId) -> bool {
        let jobs = self.clients.exchanges.peek(request).and_then(|exchange| exchange.jobs.as_ref());
        jobs.is_some_and(|jobs| jobs.will_end) || self.is_being_cancelled(job)
    }
}

/// Whether the job is run again by itself.
const fn goes_on(verdict: &AttemptEnd) -> bool {
    match verdict {
        AttemptEnd::Retry { .. } | AttemptEnd::HandedBack | AttemptEnd::Unknown => true,
        AttemptEnd::Completed { .. } | AttemptEnd::Dead { .. } | AttemptEnd::Cancelled => false,
    }
}
