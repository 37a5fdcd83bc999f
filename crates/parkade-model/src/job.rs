//! Jobs: what a run needs to know about one, how it ended, and what becomes of the job.

use std::time::Duration;

use crate::ending::Refusal;
use crate::id::{AppId, JobId, QueueId, RequestId};

/// A job that the store has handed out to be run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedJob {
    /// The request that represents its run.
    pub request: RequestId,
    pub job: JobId,
    /// 1 for the first attempt.
    pub attempt: u32,
    pub queue: QueueId,
    /// `None`: no application has such a job.
    pub policy: Option<JobPolicy>,
}

/// The application's declaration of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobPolicy {
    /// The application that declares it, whose workers run it.
    pub app: AppId,
    /// A coroutine.
    pub concurrent: bool,
    /// Maximum number of retries.
    pub retries: u32,
    /// As a route's. `None`: no deadline.
    pub deadline: Option<Duration>,
}

/// Which kinds of jobs an application declares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeclaredJobs {
    /// Plain functions.
    pub plain: bool,
    pub coroutines: bool,
}

/// What becomes of a job when a run of it has ended. The store records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    Completed,
    /// It failed, and will be retried.
    Retry {
        after: Duration,
        why: Failure,
    },
    /// It failed, and will not be retried.
    Dead {
        why: Failure,
    },
    Cancelled,
    /// The server is stopping: this attempt does not count.
    HandedBack,
    /// The application has no such job: this attempt does not count.
    Unknown,
}

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// Its code raised an exception; the server has the error.
    Raised,
    WorkerDied,
    /// The server died during the run, repeatedly.
    ServerDied,
    DeadlinePassed,
    /// The core refused something that it needed.
    Refused(Refusal),
}

/// Why a job was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreFault {
    /// The store is full.
    Full,
    /// The store cannot be reached, or has failed.
    Unavailable,
}

/// The state of a job that a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobLookup {
    /// It will not run again; the server has its result, or the reason why there is none.
    Ended,
    Pending,
    /// There is no such job, or it has been deleted.
    Missing,
}

/// For whom a job is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobCaller {
    /// For a handler, or another job: they may access all jobs.
    Application,
    /// For a client at the address of the job. If the application controls access to that job, it is asked first, and
    /// nothing else happens.
    Visitor,
    /// For a client that the application has granted access.
    Guest,
}

/// What to do about the times of a recurring job that passed while no server was running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Missed {
    /// One run for all of them together.
    #[default]
    Once,
    /// A run only for a time within the last minute.
    Skip,
    /// A run for each.
    All,
}

impl DeclaredJobs {
    #[must_use]
    pub fn any(self) -> bool {
        self.plain || self.coroutines
    }

    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { plain: self.plain || other.plain, coroutines: self.coroutines || other.coroutines }
    }
}

impl Missed {
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        [Self::Once, Self::Skip, Self::All].into_iter().find(|missed| missed.word() == word)
    }

    /// The word in the application's declaration.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Skip => "skip",
            Self::All => "all",
        }
    }
}

impl From<StoreFault> for Refusal {
    fn from(fault: StoreFault) -> Self {
        match fault {
            StoreFault::Full => Refusal::StoreFull,
            StoreFault::Unavailable => Refusal::StoreUnavailable,
        }
    }
}
