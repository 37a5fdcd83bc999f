//! How jobs ended, for those who wait for them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

use parkade_core::{Event, JobCaller, JobLookup, Refusal, RequestId};
use parkade_jobs::{EndedJob, JobEnding, JobRecord, JobState, Reply};
use parkade_model::JobId;
use parkade_wire::WaitOutcome;
use serde_json::json;

use super::Server;
use super::answers;
use super::asked::Question;
use super::visits::Door;
use crate::clients::exchange::Pending;
use crate::http::answer::HeaderField;
use crate::http::error_body;
use crate::job_values::Made;

/// Kept until the core says that nobody is to be told any more.
#[derive(Debug, Default)]
pub struct Results {
    ended: HashMap<JobId, Held>,
}

#[derive(Debug)]
struct Held {
    ending: JobEnding,
    /// What clients get for it: written for the first of them, and the same bytes for all.
    answer: Option<Result<Rc<Made>, Rc<str>>>,
}

impl Results {
    pub fn of(&self, job: JobId) -> Option<&JobEnding> {
        self.ended.get(&job).map(|held| &held.ending)
    }

    pub fn drop(&mut self, job: JobId) {
        self.ended.remove(&job);
    }

    fn keep(&mut self, job: JobId, ending: JobEnding) {
        match self.ended.entry(job) {
            Entry::Occupied(held) if held.get().ending == ending => {}
            Entry::Occupied(mut held) => drop(held.insert(Held { ending, answer: None })),
            Entry::Vacant(place) => drop(place.insert(Held { ending, answer: None })),
        }
    }

    /// `None`: it has not completed.
    fn answer(&mut self, job: JobId) -> Option<Result<Rc<Made>, Rc<str>>> {
        let held = self.ended.get_mut(&job)?;
        let JobEnding::Completed { result } = &held.ending else { return None };
        let answer = held.answer.get_or_insert_with(|| Ok(Rc::new(answers::response(result)?)));
        Some(answer.clone())
    }
}

impl Server {
    /// For good; the store has it.
    pub(super) fn job_has_ended(&mut self, ended: EndedJob) {
        let job = ended.id;
        self.tell_ending(job, &ended.ending);
        if self.core.is_watched(job) {
            self.jobs.results.keep(job, ended.ending);
            self.tell(Event::JobEnded { job });
        }
    }

    /// In another server, for good, or it was dropped there. Only those that somebody here waits for or follows are looked up.
    pub(super) fn job_has_ended_elsewhere(&mut self, job: JobId) {
        if self.is_followed(job) || self.core.is_watched(job) {
            let find = |tag| parkade_jobs::Command::Find { tag, job };
            self.jobs.ask(Question::EndedElsewhere { job }, find);
        }
    }

    pub(super) fn hear_ended_elsewhere(&mut self, job: JobId, reply: Reply) {
        match reply {
            Reply::Found { job: Some(found), .. } => {
                let id = found.id;
                if let Ok(ending) = ending(*found) {
                    self.job_has_ended(EndedJob { id, ending });
                }
            }
            Reply::Found { job: None, .. } => self.job_is_no_more(job),
            Reply::Refused { .. } => {
                self.jobs.unheard.insert(job);
            }
            _ => {}
        }
    }

    /// Somebody has dropped it: whoever waits for it would wait for ever.
    pub(super) fn job_is_no_more(&mut self, job: JobId) {
        self.tell_missing(job);
        self.tell(Event::JobDropped { job });
    }

    pub(in crate::server) fn look_up_job(&mut self, request: RequestId, job: JobId, asker: JobCaller) {
        if self.jobs.takes_questions() {
            self.find_job(request, job, asker);
        } else {
            // Told in the next turn: the core is in the middle of something.
            self.jobs.never_stored.push(request);
        }
    }

    fn find_job(&mut self, request: RequestId, job: JobId, asker: JobCaller) {
        let question = Question::LookUp { request, asker };
        self.jobs.ask(question, |tag| parkade_jobs::Command::Find { tag, job });
    }

    pub(super) fn hear_found(&mut self, request: RequestId, asker: JobCaller, reply: Reply) {
        let Reply::Found { job, .. } = reply else {
            return self.tell(Event::JobNotLookedUp { request });
        };
        let door = job.as_ref().map_or(Door::Nothing, |job| self.jobs.door(asker, &job.name));
        let job = match (door, job) {
            (Door::Asked(kind), Some(job)) => return self.ask_about(request, *job, kind),
            (Door::Open, job) => job,
            (Door::Nothing | Door::Asked(_), _) => None,
        };
        if asker != JobCaller::Application {
            self.let_in(request);
        }
        let standing = match job.map(|job| (job.id, ending(*job))) {
            None => JobLookup::Missing,
            Some((_, Err(pending))) => {
                let known =
                    Pending { told: self.described(&pending), has_address: self.jobs.has_address(&pending.name) };
                if let Some(exchange) = self.clients.exchanges.of(request) {
                    exchange.jobs.get_or_insert_default().pending = Some(known);
                }
                JobLookup::Pending
            }
            Some((job, Ok(ending))) => {
                self.jobs.results.keep(job, ending);
                JobLookup::Ended
            }
        };
        self.tell(Event::JobFound { request, standing });
    }

    /// How it stands with a job is the answer.
    pub(in crate::server) fn answer_job(&mut self, request: RequestId, job: JobId, standing: JobLookup) {
        match (standing, self.jobs.results.of(job)) {
            (JobLookup::Ended, Some(JobEnding::Completed { .. })) => self.answer_result(request, job),
            (JobLookup::Ended, Some(JobEnding::Dead { .. })) => {
                self.say(request, 500, "application", "the job failed; the log says why");
            }
            (JobLookup::Ended, Some(JobEnding::Cancelled)) => self.say(request, 410, "client", "the job was cancelled"),
            (JobLookup::Ended, None) => self.result_is_lost(request),
            (JobLookup::Pending, _) => self.answer_pending(request, job),
            (JobLookup::Missing, _) => self.job_is_missing(request),
        }
    }

    /// The same for a client that wanted the job to end.
    pub(in crate::server) fn answer_cancel(
        &mut self,
        request: RequestId,
        job: JobId,
        standing: JobLookup,
        will_end: bool,
    ) {
        match (standing, self.jobs.results.of(job)) {
            (JobLookup::Ended, Some(JobEnding::Completed { .. })) => {
                self.say(request, 409, "client", "the job has completed");
            }
            (JobLookup::Ended, Some(JobEnding::Dead { .. })) => {
                self.say(request, 409, "client", "the job has failed for good; there is nothing to cancel");
            }
            (JobLookup::Ended, Some(JobEnding::Cancelled)) => {
                let body = json!({ "id": job.to_string(), "state": JobState::Cancelled.word() });
                self.say_json(request, 200, &[], &body);
            }
            (JobLookup::Ended, None) => self.result_is_lost(request),
            (JobLookup::Pending, _) if will_end => self.answer_pending(request, job),
            (JobLookup::Pending, _) => self.say(request, 409, "client", "the job can no longer be cancelled"),
            (JobLookup::Missing, _) => self.job_is_missing(request),
        }
    }

    fn job_is_missing(&mut self, request: RequestId) {
        self.say(request, 404, "client", "no such job; it may have been deleted");
    }

    fn result_is_lost(&mut self, request: RequestId) {
        tracing::error!("a bug in parkade: the result of a job was dropped before it was delivered");
        self.refuse(request, Refusal::BadAnswer);
    }

    /// What the job gave is the answer. If that says itself how it may be cached, so it may.
    fn answer_result(&mut self, request: RequestId, job: JobId) {
        match self.jobs.results.answer(job) {
            Some(Ok(made)) => {
                let mut fields: Vec<HeaderField<'_>> =
                    made.fields.iter().map(|(name, value)| (&name[..], &value[..])).collect();
                let is_said = made.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(b"cache-control"));
                let ours = self.fields_of_job(request).iter();
                fields.extend(ours.filter(|(name, _)| !is_said || *name != b"cache-control"));
                self.clients.answer(request, made.status, fields.iter().copied(), &made.body);
            }
            Some(Err(why)) => {
                tracing::error!(job = %job, "the result of a job cannot be sent: {why}");
                self.refuse(request, Refusal::BadAnswer);
            }
            None => {}
        }
    }

    fn answer_pending(&mut self, request: RequestId, job: JobId) {
        let known = self.clients.exchanges.of(request).and_then(|exchange| exchange.jobs.as_mut()?.pending.take());
        let has_address = known.as_ref().is_some_and(|known| known.has_address);
        let running = self.jobs.runs.values().find(|run| run.job.id == job);
        let mut body = match (running, known) {
            (Some(run), _) => super::progress::told_of_run(run.job.attempt, run.progress.as_ref()),
            (None, Some(known)) => known.told,
            (None, None) => json!({ "state": JobState::Ready.word() }),
        };
        body["id"] = job.to_string().into();
        let location = self.jobs.location(job).filter(|_| has_address);
        let mut fields: Vec<HeaderField<'_>> = vec![(b"retry-after", b"1")];
        if self.fields_of_job(request).is_empty() {
            fields.push((b"cache-control", b"no-store"));
        }
        fields.extend(location.as_ref().map(|location| (&b"location"[..], location.as_bytes())));
        self.say_json(request, 202, &fields, &body);
    }

    fn say(&mut self, request: RequestId, status: u16, fault: &str, detail: &str) {
        self.answer_with_json(request, status, &[], error_body(status, fault, detail));
    }

    fn say_json(&mut self, request: RequestId, status: u16, fields: &[HeaderField<'_>], body: &serde_json::Value) {
        self.answer_with_json(request, status, fields, body.to_string().into_bytes());
    }

    fn answer_with_json(&mut self, request: RequestId, status: u16, fields: &[HeaderField<'_>], body: Vec<u8>) {
        let mut all: Vec<HeaderField<'_>> = vec![(b"content-type", b"application/json")];
        all.extend(fields);
        all.extend(self.fields_of_job(request));
        self.clients.answer(request, status, all.iter().copied(), &body.into());
    }
}

/// How it ended, or the job when it has not.
fn ending(job: JobRecord) -> Result<JobEnding, Box<JobRecord>> {
    match job.state {
        JobState::Completed => Ok(JobEnding::Completed { result: job.result.unwrap_or_default() }),
        JobState::Dead => Ok(JobEnding::Dead { error: job.error.unwrap_or_default() }),
        JobState::Cancelled => Ok(JobEnding::Cancelled),
        JobState::Scheduled | JobState::Ready | JobState::Running | JobState::Unknown => Err(Box::new(job)),
    }
}

/// What a function or a coroutine is told.
pub fn wire_outcome(results: &Results, job: JobId, standing: JobLookup) -> WaitOutcome<'_> {
    let id = job;
    let none = |reason: &'static str, text: &str| WaitOutcome::NoResult {
        id,
        reason: reason.into(),
        text: text.to_owned().into(),
    };
    match (standing, results.of(job)) {
        (JobLookup::Pending, _) => WaitOutcome::Pending { id },
        (JobLookup::Missing, _) | (JobLookup::Ended, None) => none("missing", "no such job; it may have been deleted"),
        (JobLookup::Ended, Some(JobEnding::Completed { result })) => {
            WaitOutcome::Result { id, result: result.as_ref().into() }
        }
        (JobLookup::Ended, Some(JobEnding::Dead { error })) => none("dead", error),
        (JobLookup::Ended, Some(JobEnding::Cancelled)) => none("cancelled", "the job was cancelled"),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_result_is_written_once_for_all_who_wait_for_it() {
        let (job, mut results) = (JobId::new(7), Results::default());
        let completed = |result| JobEnding::Completed { result: Bytes::from_static(result) };
        results.keep(job, completed(b"\x91\x01"));
        let first = results.answer(job).unwrap().unwrap();
        assert_eq!(&first.body[..], b"[1]");
        results.keep(job, completed(b"\x91\x01"));
        assert!(Rc::ptr_eq(&first, &results.answer(job).unwrap().unwrap()));
        results.keep(job, completed(b"\x91\x02"));
        assert_eq!(&results.answer(job).unwrap().unwrap().body[..], b"[2]", "it was run again");
        results.keep(job, completed(b"\xc1"));
        assert!(results.answer(job).unwrap().is_err());
        results.keep(job, JobEnding::Cancelled);
        assert!(results.answer(job).is_none());
        results.drop(job);
        assert!(results.of(job).is_none() && results.answer(job).is_none());
    }
}
