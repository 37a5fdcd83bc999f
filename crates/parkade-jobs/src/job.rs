//! A job, and its states.

use bytes::Bytes;

use crate::cluster::ClaimId;
use parkade_model::{Correlation, JobId, Wall};

/// A job as it is enqueued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    pub id: JobId,
    /// The name of the function, as registered by the application. 1 to 200 bytes.
    pub name: Box<str>,
    pub queue: Box<str>,
    /// Only workers understand them.
    pub arguments: Bytes,
    /// In a queue, higher priorities go first, but each step is worth only half a minute of waiting, so no job starves.
    pub priority: i16,
    /// The earliest time; `None`: at once, whatever the clock does.
    pub due: Option<Wall>,
    /// While a job of this name with this key has not ended, no other is stored: that one is returned.
    pub key: Option<Box<str>>,
    /// The request that enqueues it.
    pub correlation: Correlation,
}

/// A job that has been claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    pub id: JobId,
    pub name: Box<str>,
    pub queue: Box<str>,
    pub arguments: Bytes,
    /// 1 for the first attempt. A rescue counts; being handed back, or unknown, does not.
    pub attempt: u32,
    /// Its outcome counts only for this claim: the next one may have the same attempt.
    pub claim: ClaimId,
    /// The request that enqueued it.
    pub correlation: Correlation,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptEnd {
    /// It returned; the result is kept for some time.
    Completed { result: Bytes },
    /// It failed and will be retried at that time.
    Retry { due: Wall, error: Box<str> },
    /// It failed and will not be retried: dead, and kept until an operator retries or drops it.
    Dead { error: Box<str> },
    /// It was cancelled.
    Cancelled,
    /// The server stops: the job waits again, and this attempt does not count.
    HandedBack,
    /// The application has no such function, or not any more. The job is kept until an operator retries it, or the
    /// application has the function again. This attempt does not count.
    Unknown,
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobState {
    /// Not due yet: delayed, or waiting for a retry.
    Scheduled,
    /// Waits to be claimed.
    Ready,
    Running,
    Completed,
    Dead,
    Cancelled,
    Unknown,
}

/// How a job ended for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnding {
    Completed { result: Bytes },
    Dead { error: Box<str> },
    Cancelled,
}

/// A job and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedJob {
    pub id: JobId,
    pub ending: JobEnding,
}

/// Everything that is known about a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecord {
    pub id: JobId,
    pub name: Box<str>,
    pub queue: Box<str>,
    pub key: Option<Box<str>>,
    pub priority: i16,
    pub state: JobState,
    pub attempt: u32,
    pub arguments: Bytes,
    pub enqueued: Wall,
    pub due: Option<Wall>,
    /// When its current or last attempt began.
    pub started: Option<Wall>,
    pub ended: Option<Wall>,
    /// Of a completed job.
    pub result: Option<Bytes>,
    /// Of the last attempt that failed.
    pub error: Option<Box<str>>,
    /// The request that enqueued it.
    pub correlation: Correlation,
}

/// How many jobs there are in each state, and how long the oldest has been ready.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobCounts {
    pub scheduled: u64,
    pub ready: u64,
    pub running: u64,
    pub completed: u64,
    pub dead: u64,
    pub cancelled: u64,
    pub unknown: u64,
    /// When the oldest ready job became ready.
    pub oldest_ready: Option<Wall>,
    /// Depth of each queue: scheduled and ready.
    pub queues: Vec<(Box<str>, u64)>,
}

/// Up to which time a recurring job has been enqueued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleProgress {
    pub name: Box<str>,
    /// The last time for which it was enqueued (or skipped).
    pub last: Wall,
}

impl JobState {
    /// The word for people and pages.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }

    pub const ALL: [Self; 7] =
        [Self::Scheduled, Self::Ready, Self::Running, Self::Completed, Self::Dead, Self::Cancelled, Self::Unknown];

    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}
