//! Commands that the store has not answered, and whom each answer concerns.

use parkade_core::{JobCaller, RequestId, Wall, WorkerId};
use parkade_jobs::Reply;
use parkade_model::JobId;

use super::operators::Back;
use super::runs::AttemptRecord;

/// What a command was for.
#[derive(Debug)]
pub enum Question {
    /// `id`: the id under which the job was enqueued; `request`: for which, and whether that waits for it.
    Enqueue {
        id: JobId,
        request: Option<(RequestId, bool)>,
        by: Enqueuer,
    },
    Claim,
    /// An attempt has ended. The record is kept, to be sent again if the store cannot write it now.
    End {
        request: RequestId,
        record: Box<AttemptRecord>,
    },
    LookUp {
        request: RequestId,
        caller: JobCaller,
    },
    /// How a job ended in another server. A request here waits for it or follows it.
    EndedElsewhere {
        job: JobId,
    },
    /// The state of a job for a request that has begun to follow it.
    Announce {
        job: JobId,
        request: RequestId,
    },
    Cancel {
        job: JobId,
    },
    /// The state of a job that is to be cancelled, but is not waiting in the store.
    Cancelled {
        job: JobId,
    },
    Operator(Back),
    Retry(Back),
    Drop {
        job: JobId,
        back: Back,
    },
    Recognise,
    Schedules,
    /// `is_skipped`: only the time is recorded; no job is enqueued.
    Recur {
        name: Box<str>,
        at: Wall,
        is_skipped: bool,
    },
    Count,
}

/// Who enqueued a job.
#[derive(Debug)]
pub enum Enqueuer {
    /// `bytes`: the size of the arguments.
    Worker { worker: WorkerId, bytes: usize },
    /// A script, in a transaction that has committed.
    Script,
    /// A script without one, or the command line.
    Operator(Back),
}

impl Question {
    /// Whether this reply means that the store has one job more. There is none if the job was enqueued before, or
    /// another one has its key.
    pub fn has_added(&self, reply: &Reply) -> bool {
        match (self, reply) {
            (Self::Enqueue { id, .. }, Reply::Enqueued { job, .. }) => id == job,
            (Self::Recur { is_skipped, .. }, Reply::Changed { changed, .. }) => *changed && !is_skipped,
            _ => false,
        }
    }
}
