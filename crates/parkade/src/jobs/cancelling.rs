//! Replies of the store about jobs that are to be cancelled. The core decides what follows.

use parkade_core::{CancelAnswer, CancelEvent, Event};
use parkade_jobs::{EndedJob, Fault, JobEnding, JobState, Reply};
use parkade_model::JobId;

use super::context::JobContext;
use super::observers::Observers;

/// The store could not cancel a job.
#[derive(Debug)]
pub struct CancelFailed {
    pub job: JobId,
    pub fault: Fault,
}

/// The store has cancelled the job, if it was waiting there.
pub fn cancelled(cx: &mut JobContext<'_>, observers: &mut Observers, job: JobId, reply: Reply) -> Option<CancelFailed> {
    let answer = match reply {
        Reply::Changed { changed: true, .. } => {
            observers.ended(cx, EndedJob { id: job, ending: JobEnding::Cancelled });
            CancelAnswer::Ended
        }
        Reply::Asked { .. } => CancelAnswer::AskedElsewhere,
        Reply::Refused { fault, .. } => return Some(CancelFailed { job, fault }),
        _ => CancelAnswer::NotWaiting,
    };
    cx.tell(Event::Cancel(CancelEvent::Answered { job, answer }));
    None
}

/// The store has looked up a job that is to be cancelled, but neither waits there nor runs here.
pub fn found(cx: &mut JobContext<'_>, job: JobId, reply: Reply) -> Option<CancelFailed> {
    let found = match reply {
        Reply::Found { job, .. } => job,
        Reply::Refused { fault, .. } => return Some(CancelFailed { job, fault }),
        _ => None,
    };
    let is_over = match found.map(|job| job.state) {
        None | Some(JobState::Completed | JobState::Dead | JobState::Cancelled) => true,
        Some(JobState::Scheduled | JobState::Ready | JobState::Running | JobState::Unknown) => false,
    };
    cx.tell(Event::Cancel(CancelEvent::Found { job, is_over }));
    None
}
