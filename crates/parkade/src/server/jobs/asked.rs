//! What the store has been asked, and for whom.

use parkade_core::{JobCaller, RequestId, Wall, WorkerId};
use parkade_jobs::{AttemptEnd, ClaimId, Command, Reply};
use parkade_model::JobId;
use tokio::sync::oneshot;

use super::Server;
use crate::admin::{JobAnswer, JobAsk};

/// Where an answer goes that somebody outside waits for.
pub type Back = oneshot::Sender<JobAnswer>;

/// Whose answer it will be.
#[derive(Debug)]
pub enum Question {
    /// `id`: under which it was enqueued.
    Enqueue {
        id: JobId,
        request: Option<RequestId>,
        asked: Asking,
    },
    Claim,
    /// How an attempt ended, to be said again when the store cannot note it now.
    End {
        request: RequestId,
        end: Box<RunEnd>,
    },
    LookUp {
        request: RequestId,
        asker: JobCaller,
    },
    /// A job that somebody here waits for has ended in another server: how?
    EndedElsewhere {
        job: JobId,
    },
    /// The request has begun to follow the job: how it stands is said to it.
    Announce {
        job: JobId,
        request: RequestId,
    },
    Cancel {
        job: JobId,
    },
    /// One that is to end does not wait: how does it stand?
    Cancelled {
        job: JobId,
    },
    Asked(Back),
    Retried(Back),
    Dropped {
        job: JobId,
        back: Back,
    },
    Recognise,
    Schedules,
    /// `is_skipped`: its time is noted, and nothing is enqueued.
    Recur {
        name: Box<str>,
        at: Wall,
        is_skipped: bool,
    },
    Count,
}

/// How an attempt of a job ended.
#[derive(Debug, Clone)]
pub struct RunEnd {
    pub job: JobId,
    pub claim: ClaimId,
    pub verdict: AttemptEnd,
    /// The store was told before, and may have it.
    pub is_again: bool,
}

/// Who enqueued a job.
#[derive(Debug)]
pub enum Asking {
    /// `bytes`: of the arguments.
    Worker { worker: WorkerId, bytes: usize },
    /// A script, or the command line.
    Script(Back),
}

pub fn answer(back: Back, reply: Reply) {
    let answer = match reply {
        Reply::Enqueued { job, due, .. } => JobAnswer::Enqueued { job, is_scheduled: due.is_some() },
        Reply::Changed { changed, .. } => JobAnswer::Changed(changed),
        Reply::Asked { .. } => JobAnswer::Changed(true),
        Reply::Found { job, .. } => JobAnswer::Shown(job),
        Reply::Listed { jobs, .. } => JobAnswer::Listed(jobs),
        Reply::Refused { fault, .. } => JobAnswer::Refused(fault),
        Reply::Claimed { .. } | Reply::AttemptEnded { .. } | Reply::Counted { .. } | Reply::Schedules { .. } => return,
    };
    // Whoever asked may have given up: then there is nobody to tell.
    let _ = back.send(answer);
}

impl Server {
    /// What operators and scripts ask; the store answers.
    pub(in crate::server) fn reply_about_jobs(&mut self, ask: JobAsk, back: Back) {
        let ask = match ask {
            JobAsk::EnqueueKnown(job) => {
                if let Some(declared) = self.jobs.declared_without(&job.name) {
                    let _ = back.send(JobAnswer::Undeclared(declared));
                    return;
                }
                JobAsk::Enqueue(job)
            }
            ask => ask,
        };
        if !self.jobs.takes_questions() {
            // There never was a job, or the start would have opened the file; only the first makes it.
            let answer = match &ask {
                JobAsk::Enqueue(_) | JobAsk::EnqueueKnown(_) => self.opened().err().map(JobAnswer::Refused),
                _ if self.jobs.shut.is_some() => self.opened().err().map(JobAnswer::Refused),
                JobAsk::List(_) => Some(JobAnswer::Listed(Vec::new())),
                JobAsk::Show(_) => Some(JobAnswer::Shown(None)),
                JobAsk::Cancel(_) | JobAsk::Retry(_) | JobAsk::Drop(_) => Some(JobAnswer::Changed(false)),
            };
            if let Some(answer) = answer {
                let _ = back.send(answer);
                return;
            }
        }
        match ask {
            JobAsk::Enqueue(job) | JobAsk::EnqueueKnown(job) => self.enqueue_for(*job, back),
            JobAsk::Cancel(job) => self.cancel_job(job, back),
            JobAsk::Retry(job) => self.jobs.ask(Question::Retried(back), |tag| Command::Retry { tag, job }),
            JobAsk::Drop(job) => {
                self.jobs.ask(Question::Dropped { job, back }, |tag| Command::Drop { tag, job });
            }
            JobAsk::Show(job) => self.jobs.ask(Question::Asked(back), |tag| Command::Find { tag, job }),
            JobAsk::List(filter) => self.jobs.ask(Question::Asked(back), |tag| Command::List { tag, filter }),
        }
    }
}
