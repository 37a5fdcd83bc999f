//! The commands and replies of a store.

use crate::cluster::ClaimId;
use crate::job::{AttemptEnd, Claimed, EndedJob, JobCounts, JobRecord, JobState, NewJob, ScheduleProgress};
use parkade_model::{Allowance, JobId, Wall};

/// Identifies a command in its reply. Minted by the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// A command to a store. Many are carried out in one transaction; none is answered before it is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Answered by `Enqueued` or `Refused`.
    Enqueue { tag: Tag, job: NewJob },
    /// Claims this many ready jobs, best first. `limited` has the maximum for the queues that it names; other queues
    /// have none. A store that several servers share also respects the limits of these queues for all servers together.
    /// Answered by `Claimed` or `Refused`.
    Claim { tag: Tag, count: u32, limited: Vec<Allowance> },
    /// The attempt that this claim began has ended. If the job no longer runs because of this claim, nothing changes.
    /// `is_again`: this is a repetition, and it is unknown whether the first command was carried out; if it was, the
    /// answer is the same. Answered by `AttemptEnded` or `Refused`.
    End { tag: Tag, job: JobId, claim: ClaimId, verdict: AttemptEnd, is_again: bool },
    /// Cancels a job that is not running. Answered by `Changed`: `false` if it is running, has ended, or does not
    /// exist.
    Cancel { tag: Tag, job: JobId },
    /// Makes a dead, cancelled, completed or unknown job ready again, and resets its attempts. Answered by `Changed`.
    Retry { tag: Tag, job: JobId },
    /// Removes a job that is not running. Answered by `Changed`.
    Drop { tag: Tag, job: JobId },
    /// Answered by `Found`.
    Find { tag: Tag, job: JobId },
    /// Answered by `Listed`, newest first, without arguments and results, which may be long.
    List { tag: Tag, filter: Filter },
    /// Answered by `Counted`.
    Count { tag: Tag },
    /// Every `Unknown` job whose name is among these becomes ready. Answered by `Changed`.
    Recognise { tag: Tag, names: Vec<Box<str>> },
    /// Up to which time recurring jobs have been enqueued. Answered by `Schedules`.
    Schedules { tag: Tag },
    /// The recurring job `name` is due at `due`: enqueues `job` (`None`: only records the time as skipped), unless that
    /// has been done for this time or a later one. Answered by `Changed`: whether this command has done it.
    Recur { tag: Tag, name: Box<str>, due: Wall, job: Option<NewJob> },
}

impl Command {
    /// Identifies its reply.
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

    /// Size of its contents that only workers understand.
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
    /// The job is durable. `job`: its id, or that of another job if one had its key. `due`: if it is not ready at once.
    Enqueued {
        tag: Tag,
        job: JobId,
        due: Option<Wall>,
    },
    /// `more`: other jobs can be claimed at once. `next`: when others can be claimed, because they are scheduled for
    /// then, or may begin then.
    Claimed {
        tag: Tag,
        jobs: Vec<Claimed>,
        more: bool,
        next: Option<Wall>,
    },
    /// `ended`: how the job ended for good. `is_stale`: the job no longer runs because of that claim, and nothing
    /// changed. `due`: when it is retried.
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
    /// In reply to `Cancel`: it runs at another server, which has been asked to end it.
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
    /// The command was not carried out, and had no effect.
    Refused {
        tag: Tag,
        fault: Fault,
    },
}

impl Reply {
    /// Identifies the command.
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

/// Why a store could not carry out a command.
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
