//! How jobs ended, for those who wait for them.

use std::collections::HashMap;

use parkade_core::{Event, JobId, Refusal, RequestId, Standing};
use parkade_jobs::{Ended, Ending, Job, Reply, State};
use parkade_wire::Outcome as WireOutcome;
use serde_json::json;

use super::answers;
use super::{Server, core, stored};
use crate::http::answer::Field;
use crate::http::error_body;

/// Kept until the core says that nobody is to be told any more.
#[derive(Debug, Default)]
pub struct Results {
    ended: HashMap<JobId, Ending>,
}

impl Results {
    pub fn of(&self, job: JobId) -> Option<&Ending> {
        self.ended.get(&job)
    }

    pub fn drop(&mut self, job: JobId) {
        self.ended.remove(&job);
    }
}

impl Server {
    /// For good; the store has it.
    pub(super) fn job_has_ended(&mut self, ended: Ended) {
        let job = core(ended.id);
        self.tell_ending(job, &ended.ending);
        if self.core.is_watched(job) {
            self.jobs.results.ended.insert(job, ended.ending);
            self.tell(Event::JobEnded { job });
        }
    }

    /// In another server, for good. Only those that somebody here waits for or follows are looked up.
    pub(super) fn job_has_ended_elsewhere(&mut self, job: JobId) {
        let channel = super::progress::channel(job);
        let is_followed = channel.is_some_and(|channel| self.core.cursor(&channel).is_some());
        if is_followed || self.core.is_watched(job) {
            let find = |tag| parkade_jobs::Command::Find { tag, job: stored(job) };
            self.jobs.ask(super::Question::EndedElsewhere, find);
        }
    }

    pub(super) fn hear_ended_elsewhere(&mut self, reply: Reply) {
        if let Reply::Found { job: Some(job), .. } = reply {
            let id = job.id;
            if let Ok(ending) = ending(*job) {
                self.job_has_ended(Ended { id, ending });
            }
        }
    }

    pub(in crate::server) fn look_up_job(&mut self, request: RequestId, job: JobId) {
        if self.cancels(request) && self.jobs.cancelling.hold(job, request) {
            return;
        }
        if self.jobs.store.is_open() {
            let question = super::Question::LookUp { request };
            self.jobs.ask(question, |tag| parkade_jobs::Command::Find { tag, job: stored(job) });
        } else {
            // Told in the next turn: the core is in the middle of something.
            self.jobs.never_stored.push(request);
        }
    }

    pub(super) fn hear_found(&mut self, request: RequestId, reply: Reply) {
        let Reply::Found { job, .. } = reply else {
            return self.tell(Event::JobNotLookedUp { request });
        };
        let standing = match job.map(|job| (core(job.id), ending(*job))) {
            None => Standing::Missing,
            Some((_, Err(pending))) => {
                let told = self.described(&pending);
                if let Some(exchange) = self.exchanges.of(request) {
                    exchange.jobs.get_or_insert_default().pending = Some(told);
                }
                Standing::Pending
            }
            Some((job, Ok(ending))) => {
                self.jobs.results.ended.insert(job, ending);
                Standing::Ended
            }
        };
        self.tell(Event::JobFound { request, standing });
    }

    /// How it stands with a job is the answer.
    pub(in crate::server) fn answer_job(&mut self, request: RequestId, job: JobId, standing: Standing) {
        let cancels = self.cancels(request);
        match (standing, self.jobs.results.of(job)) {
            (Standing::Ended, Some(Ending::Completed { result })) if !cancels => match answers::response(result) {
                Ok(made) => {
                    let fields: Vec<Field<'_>> =
                        made.fields.iter().map(|(name, value)| (&name[..], &value[..])).collect();
                    self.exchanges.note_answer(request, Some(made.status), made.body.len());
                    let outcome = self.http_answer(request, made.status, &fields, &made.body);
                    super::super::replies::sent(outcome);
                }
                Err(why) => {
                    tracing::error!(job = %stored(job), "the result of a job cannot be sent: {why}");
                    self.refuse(request, Refusal::BadAnswer);
                }
            },
            (Standing::Ended, Some(Ending::Completed { .. })) => {
                self.say(request, 409, "client", "the job has completed");
            }
            (Standing::Ended, Some(Ending::Dead { .. })) => {
                self.say(request, 500, "application", "the job failed; the log says why");
            }
            (Standing::Ended, Some(Ending::Cancelled)) if cancels => {
                let body = json!({ "id": stored(job).to_string(), "state": State::Cancelled.word() });
                self.say_json(request, 200, &[], &body);
            }
            (Standing::Ended, Some(Ending::Cancelled)) => self.say(request, 410, "client", "the job was cancelled"),
            (Standing::Pending, _) if cancels && !self.is_being_cancelled(job) => {
                self.say(request, 409, "client", "the job cannot be ended any more, or another server runs it");
            }
            (Standing::Pending, _) => self.answer_pending(request, job),
            (Standing::Missing, _) => self.say(request, 404, "client", "there is no such job, or no more"),
            (Standing::Ended, None) => {
                tracing::error!("a bug in parkade: the result of a job was dropped before it was told");
                self.refuse(request, Refusal::BadAnswer);
            }
        }
    }

    /// Whether the request ends a job rather than waiting for it.
    fn cancels(&self, request: RequestId) -> bool {
        self.exchanges.peek(request).and_then(|exchange| exchange.jobs.as_ref()).is_some_and(|jobs| jobs.cancels)
    }

    fn answer_pending(&mut self, request: RequestId, job: JobId) {
        let known = self.exchanges.of(request).and_then(|exchange| exchange.jobs.as_mut()?.pending.take());
        let running = self.jobs.runs.values().find(|run| core(run.job.id) == job);
        let mut body = match (running, known) {
            (Some(run), _) => super::progress::told_of_run(run.job.attempt, run.progress.as_ref()),
            (None, Some(known)) => known,
            (None, None) => json!({ "state": State::Ready.word() }),
        };
        body["id"] = stored(job).to_string().into();
        let location = self.jobs.location(job);
        let mut fields: Vec<Field<'_>> = vec![(b"cache-control", b"no-store"), (b"retry-after", b"1")];
        fields.extend(location.as_ref().map(|location| (&b"location"[..], location.as_bytes())));
        self.say_json(request, 202, &fields, &body);
    }

    fn say(&mut self, request: RequestId, status: u16, fault: &str, detail: &str) {
        self.answer_with_json(request, status, &[], error_body(status, fault, detail));
    }

    fn say_json(&mut self, request: RequestId, status: u16, fields: &[Field<'_>], body: &serde_json::Value) {
        self.answer_with_json(request, status, fields, body.to_string().into_bytes());
    }

    fn answer_with_json(&mut self, request: RequestId, status: u16, fields: &[Field<'_>], body: Vec<u8>) {
        let mut all: Vec<Field<'_>> = vec![(b"content-type", b"application/json")];
        all.extend(fields);
        self.exchanges.note_answer(request, Some(status), body.len());
        let outcome = self.http_answer(request, status, &all, &body.into());
        super::super::replies::sent(outcome);
    }
}

/// How it ended, or the job when it has not.
fn ending(job: Job) -> Result<Ending, Box<Job>> {
    match job.state {
        State::Completed => Ok(Ending::Completed { result: job.result.unwrap_or_default() }),
        State::Dead => Ok(Ending::Dead { error: job.error.unwrap_or_default() }),
        State::Cancelled => Ok(Ending::Cancelled),
        State::Scheduled | State::Ready | State::Running | State::Unknown => Err(Box::new(job)),
    }
}

/// What a function or a coroutine is told.
pub fn wire_outcome(results: &Results, job: JobId, standing: Standing) -> WireOutcome<'_> {
    let id = stored(job).bytes();
    let none = |reason: &'static str, text: &str| WireOutcome::NoResult {
        id,
        reason: reason.into(),
        text: text.to_owned().into(),
    };
    match (standing, results.of(job)) {
        (Standing::Pending, _) => WireOutcome::Pending { id },
        (Standing::Missing, _) | (Standing::Ended, None) => none("missing", "there is no such job, or no more"),
        (Standing::Ended, Some(Ending::Completed { result })) => {
            WireOutcome::Result { id, result: result.as_ref().into() }
        }
        (Standing::Ended, Some(Ending::Dead { error })) => none("dead", error),
        (Standing::Ended, Some(Ending::Cancelled)) => none("cancelled", "the job was cancelled"),
    }
}
