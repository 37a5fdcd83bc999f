//! How far a job is, for those who follow it: messages on a channel that is the job's.

use parkade_core::{ChannelName, Event, RequestId};
use parkade_jobs::{JobEnding, JobRecord, JobState, Reply};
use parkade_model::JobId;
use serde_json::{Value, json};

use super::Server;
use super::asked::Question;
use super::runs::Progress;
use crate::clients::exchange::{Exchange, JobAsked};

impl Server {
    /// `PROGRESS`.
    pub(in crate::server) fn worker_progressed(&mut self, request: RequestId, fraction: Option<f64>, text: &str) {
        let Some(run) = self.jobs.runs.get_mut(&request) else { return };
        run.progress =
            Some(Progress { fraction: fraction.map(|fraction| fraction.clamp(0.0, 1.0)), text: text.into() });
        let (job, told) = (run.job.id, told_of_run(run.job.attempt, run.progress.as_ref()));
        self.tell_followers(job, &told);
    }

    pub(super) fn is_followed(&self, job: JobId) -> bool {
        self.core.cursor(&channel(job)).is_some()
    }

    /// Whether what happens to the job is told to the request.
    pub(super) fn follows(&self, request: RequestId, job: JobId) -> bool {
        self.clients.exchanges.is_open(request)
            && self.clients.exchanges.peek(request).map(Exchange::job_asked) == Some(JobAsked::Events(job))
    }

    /// The request follows the job from now on: what is known of it is said, for nobody knows when it will say more.
    pub(in crate::server) fn announce(&mut self, job: JobId, request: RequestId) {
        let question = Question::Announce { job, request };
        self.jobs.ask(question, |tag| parkade_jobs::Command::Find { tag, job });
    }

    pub(super) fn hear_announced(&mut self, job: JobId, request: RequestId, reply: Reply) {
        // Who has left, or was told of the end meanwhile, is told nothing more.
        if !self.follows(request, job) {
            return;
        }
        match reply {
            Reply::Found { job: Some(found), .. } if has_ended(found.state) => {
                self.tell_followers(job, &self.described(&found));
                self.end_followers(job);
            }
            Reply::Found { job: Some(found), .. } => self.tell_follower(request, job, &self.described(&found)),
            Reply::Found { job: None, .. } => self.tell_missing(job),
            _ => {
                self.jobs.unannounced.insert(request, job);
            }
        }
    }

    pub(super) fn tell_ending(&mut self, job: JobId, ending: &JobEnding) {
        let state = match ending {
            JobEnding::Completed { .. } => JobState::Completed,
            JobEnding::Dead { .. } => JobState::Dead,
            JobEnding::Cancelled => JobState::Cancelled,
        };
        self.tell_followers(job, &json!({ "state": state.word() }));
        self.end_followers(job);
    }

    pub(super) fn tell_missing(&mut self, job: JobId) {
        self.tell_followers(job, &json!({ "state": "missing" }));
        self.end_followers(job);
    }

    /// There is no more to be told.
    fn end_followers(&mut self, job: JobId) {
        let channel = channel(job);
        if self.core.cursor(&channel).is_some() {
            self.tell(Event::ChannelEnded { channel });
        }
    }

    /// What a client may know of a job that has not ended.
    pub(super) fn described(&self, job: &JobRecord) -> Value {
        let run = self.jobs.runs.values().find(|run| run.job.id == job.id);
        match run {
            Some(run) => told_of_run(run.job.attempt, run.progress.as_ref()),
            None => json!({ "state": job.state.word(), "attempt": job.attempt }),
        }
    }

    /// Only this one: the others know it.
    fn tell_follower(&mut self, request: RequestId, job: JobId, told: &Value) {
        if let Some(cursor) = self.core.cursor(&channel(job)) {
            self.clients.feed_alone(request, cursor, told.to_string().as_bytes());
        }
    }

    fn tell_followers(&mut self, job: JobId, told: &Value) {
        let channel = channel(job);
        // A channel that nobody has asked for is not made for it.
        if self.core.cursor(&channel).is_some()
            && let Err(refused) = self.publish(&channel, "application/json", told.to_string().as_bytes(), None)
        {
            tracing::debug!("the progress of a job was not published: {refused}");
        }
    }
}

fn has_ended(state: JobState) -> bool {
    match state {
        JobState::Completed | JobState::Dead | JobState::Cancelled => true,
        JobState::Scheduled | JobState::Ready | JobState::Running | JobState::Unknown => false,
    }
}

pub fn told_of_run(attempt: u32, progress: Option<&Progress>) -> Value {
    match progress {
        Some(Progress { fraction, text }) => {
            json!({ "state": "running", "attempt": attempt, "fraction": fraction, "text": text })
        }
        None => json!({ "state": "running", "attempt": attempt }),
    }
}

/// Where what happens to a job is told.
pub fn channel(job: JobId) -> ChannelName {
    ChannelName::own(&format!("jobs/{job}"))
}
