//! The commands and replies of a store.

use crate::cluster::ClaimId;
use crate::job::{AttemptEnd, Claimed, EndedJob, JobCounts, JobRecord, JobState, NewJob, ScheduleProgress};
use parkade_model::{Allowance, JobId, Wall};

/// Whose answer it is. Minted by the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// A command to a store. Many are carried out in one transaction; none is answered before it is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Answered by `Enqueued` or `Refused`.
    Enqueue { tag: Tag, job: NewJob },
    /// Claims this many ready jobs, best first. `limited` gives the maximum for the queues that it names; other queues have none.
    /// A store that several servers share allows of those no more than their bounds leave to all of them together. Answered by `Claimed` or `Refused`.
    Claim { tag: Tag, count: u32, limited: Vec<Allowance> },
    /// The attempt that this claim began has ended. If the job does not run as taken by this claim, nothing changes. `is_again`: the same was said before,
    /// and it is unknown whether it was carried out; if it was, it is answered as it was then. Answered by `AttemptEnded` or `Refused`.
    End { tag: Tag, job: JobId, claim: ClaimId, verdict: AttemptEnd, is_again: bool },
    /// One that does not run: it will not. Answered by `Changed`: `false` for one that runs, has ended, or is none.
    Cancel { tag: Tag, job: JobId },
    /// A dead, cancelled, completed or unknown one becomes ready again, its attempts counted anew. Answered by `Changed`.
    Retry { tag: Tag, job: JobId },
    /// Removes a job that is not running. Answered by `Changed`.
    Drop { tag: Tag, job: JobId },
    /// Answered by `Found`.
    Find { tag: Tag, job: JobId },
    /// Answered by `Listed`, newest first; their arguments and results are left out: a list is short, and they may be long.
    List { tag: Tag, filter: Filter },
    /// Answered by `Counted`.
    Count { tag: Tag },
    /// Every `Unknown` job whose name is among these becomes ready. Answered by `Changed`.
    Recognise { tag: Tag, names: Vec<Box<str>> },
    /// How far recurring jobs have been enqueued. Answered by `Schedules`.
    Schedules { tag: Tag },
    /// The recurring job `name` is due at `due`: `job` is enqueued (`None`: it is only noted, as skipped), unless that has been done for this time
    /// or a later one. Answered by `Changed`: whether it was done by this.
    Recur { tag: Tag, name: Box<str>, due: Wall, job: Option<NewJob> },
}

impl Command {
    /// Whose answer it will be.
    #[must_use]
    pub const fn tag(&self) -> Tag {
        match self {
            Self::Enqueue { tag, .. }
            | Self::Claim { tag, .. }
            | Self::End { tag, .. }
            | Self::Cancel { tag, .. }
            | Self::Retry { tag, .. }
            | Self::Drop { tag, .. }
            | Self::Find { tag, .. }
            | Self::List { tag, .. }
            | Self::Count { tag }
            | Self::Recognise { tag, .. }
            | Self::Schedules { tag }
            | Self::Recur { tag, .. } => *tag,
        }
    }

    /// Bytes that it holds and that only workers understand.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        match self {
            Self::Enqueue { job, .. } | Self::Recur { job: Some(job), .. } => job.arguments.len(),
            Self::End { verdict: AttemptEnd::Completed { result }, .. } => result.len(),
            _ => 0,
        }
    }
}

/// Which jobs are listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    pub state: Option<JobState>,
    pub name: Option<Box<str>>,
    pub queue: Option<Box<str>>,
    pub count: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// It is durable. `job`: the id that it has: another's when there was one with its key. `due`: when it is not ready at once.
    Enqueued {
        tag: Tag,
        job: JobId,
        due: Option<Wall>,
    },
    /// `more`: others could be claimed at once. `next`: when others can be, because they are scheduled for then, or may begin then.
    Claimed {
        tag: Tag,
        jobs: Vec<Claimed>,
        more: bool,
        next: Option<Wall>,
    },
    /// `ended`: what has become of it for good. `is_stale`: the job did not run as taken by that claim, and nothing changed. `due`: when it is tried again.
    AttemptEnded {
        tag: Tag,
        ended: Option<EndedJob>,
        is_stale: bool,
        due: Option<Wall>,
    },
    Changed {
        tag: Tag,
        changed: bool,
    },
    /// To `Cancel`: it runs at another server, which gets a request to end it.
    Asked {
        tag: Tag,
    },
    Found {
        tag: Tag,
        job: Option<Box<JobRecord>>,
    },
    Listed {
        tag: Tag,
        jobs: Vec<JobRecord>,
    },
    Counted {
        tag: Tag,
        counts: JobCounts,
    },
    Schedules {
        tag: Tag,
        schedules: Vec<ScheduleProgress>,
    },
    /// It was not done, and nothing of it has happened.
    Refused {
        tag: Tag,
        fault: Fault,
    },
}

impl Reply {
    /// Whose answer it is.
    #[must_use]
    pub const fn tag(&self) -> Tag {
        match self {
            Self::Enqueued { tag, .. }
            | Self::Claimed { tag, .. }
            | Self::AttemptEnded { tag, .. }
            | Self::Changed { tag, .. }
            | Self::Asked { tag }
            | Self::Found { tag, .. }
            | Self::Listed { tag, .. }
            | Self::Counted { tag, .. }
            | Self::Schedules { tag, .. }
            | Self::Refused { tag, .. } => *tag,
        }
    }
}

/// Why a store could not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The disk is full, or the store's limit is reached.
    #[error("storage full: {0}")]
    Full(Box<str>),
    #[error("the store cannot be reached: {0}")]
    Unavailable(Box<str>),
    #[error("the job store's queue is full")]
    QueueFull,
    #[error("the store failed: {0}")]
    Failed(Box<str>),
}
