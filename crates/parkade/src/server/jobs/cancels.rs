//! Operators who end jobs: whoever waits outside is told what the core says. The store is asked here, and answers.

use std::collections::HashMap;

use parkade_core::{CancelAnswer, CancelEffect, CancelEvent, CancelId, CancelOutcome, Event};
use parkade_jobs::{Command, EndedJob, Fault, JobEnding, JobState, Reply};
use parkade_model::JobId;

use super::Server;
use super::asked::{Back, Question};
use crate::admin::JobAnswer;
use crate::server::payloads::Payload;

/// Those who wait to be told whether a job will end.
#[derive(Debug, Default)]
pub struct Operators {
    minted: u64,
    waiting: HashMap<CancelId, Back>,
}

impl Operators {
    fn wait(&mut self, back: Back) -> CancelId {
        self.minted += 1;
        let id = CancelId(self.minted);
        self.waiting.insert(id, back);
        id
    }
}

impl Server {
    pub(super) fn cancel_job(&mut self, job: JobId, back: Back) {
        let by = self.jobs.operators.wait(back);
        self.tell(Event::Cancel(CancelEvent::Wanted { job, by }));
    }

    pub(in crate::server) fn act_on_cancels(&mut self, effect: CancelEffect) {
        match effect {
            CancelEffect::Ask { job } => self.jobs.ask(Question::Cancel { job }, |tag| Command::Cancel { tag, job }),
            CancelEffect::LookUp { job } => {
                self.jobs.ask(Question::Cancelled { job }, |tag| Command::Find { tag, job });
            }
            CancelEffect::Tell { operators, outcome } => self.tell_operators(operators, outcome),
        }
    }

    pub(super) fn hear_cancelled(&mut self, job: JobId, reply: Reply) {
        let answer = match reply {
            Reply::Changed { changed: true, .. } => {
                self.job_has_ended(EndedJob { id: job, ending: JobEnding::Cancelled });
                CancelAnswer::Ended
            }
            Reply::Asked { .. } => CancelAnswer::AskedElsewhere,
            Reply::Refused { fault, .. } => return self.cancelling_refused(job, fault),
            _ => CancelAnswer::NotWaiting,
        };
        self.tell(Event::Cancel(CancelEvent::Answered { job, answer }));
    }

    /// How it stands with a job that nobody here has, and that does not wait.
    pub(super) fn hear_of_cancelled(&mut self, job: JobId, reply: Reply) {
        let found = match reply {
            Reply::Found { job, .. } => job,
            Reply::Refused { fault, .. } => return self.cancelling_refused(job, fault),
            _ => None,
        };
        let is_over = match found.map(|job| job.state) {
            None | Some(JobState::Completed | JobState::Dead | JobState::Cancelled) => true,
            Some(JobState::Scheduled | JobState::Ready | JobState::Running | JobState::Unknown) => false,
        };
        self.tell(Event::Cancel(CancelEvent::Found { job, is_over }));
    }

    fn cancelling_refused(&mut self, job: JobId, fault: Fault) {
        self.tell_with(Payload::Fault(fault), |payload| Event::Cancel(CancelEvent::Refused { job, payload }));
    }

    fn tell_operators(&mut self, operators: Vec<CancelId>, outcome: CancelOutcome) {
        let answer = match outcome {
            CancelOutcome::Ends(will_end) => JobAnswer::Changed(will_end),
            CancelOutcome::TooMany => JobAnswer::Refused(Fault::QueueFull),
            CancelOutcome::Refused(payload) => match self.payloads.take_fault(payload) {
                Some(fault) => JobAnswer::Refused(fault),
                None => return,
            },
        };
        for operator in operators {
            if let Some(back) = self.jobs.operators.waiting.remove(&operator) {
                // Whoever asked may have given up: then there is nobody to tell.
                let _ = back.send(answer.clone());
            }
        }
    }
}
