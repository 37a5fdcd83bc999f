//! Jobs: what a run needs to know of one, how it went, and what becomes of the job.

use std::time::Duration;

use crate::ending::Refusal;
use crate::id::{JobId, QueueId, RequestId};

/// A job that the store gave to be run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedJob {
    /// The request that its run is.
    pub request: RequestId,
    pub job: JobId,
    /// 1 the first time.
    pub attempt: u32,
    pub queue: QueueId,
    /// `None`: the application has no such function.
    pub policy: Option<JobPolicy>,
}

/// What the application says of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobPolicy {
    /// A coroutine.
    pub concurrent: bool,
    /// How often it is tried again at most.
    pub retries: u32,
    /// As a route's. `None`: for ever.
    pub deadline: Option<Duration>,
}

/// Which kinds of jobs an application declares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeclaredJobs {
    /// Plain functions.
    pub plain: bool,
    pub coroutines: bool,
}

/// What becomes of a job when a run of it has ended: the store notes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    Completed,
    /// It failed, and is tried again.
    Retry {
        after: Duration,
        why: Failure,
    },
    /// It failed, and is not tried again.
    Dead {
        why: Failure,
    },
    Cancelled,
    /// The server stops: this attempt does not count.
    HandedBack,
    /// The application has no such function: this attempt does not count.
    Unknown,
}

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// Its code raised; the server has the error.
    Raised,
    WorkerDied,
    /// The server died while it ran, again and again.
    ServerDied,
    DeadlinePassed,
    /// The core could not give it what it asked for.
    Refused(Refusal),
}

/// Why a job is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreFault {
    /// There is no room for it.
    Full,
    /// The store cannot be reached, or failed.
    Unavailable,
}

/// What is known of a job that a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobLookup {
    /// For good; the server has its result, or why there is none.
    Ended,
    Pending,
    /// There is no such job, or no more.
    Missing,
}

/// On whose behalf a job is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobCaller {
    /// A handler, or another job: all jobs are its own.
    Application,
    /// A client at the address of the job. If the application says itself who may have that job, it is asked first,
    /// and nothing else happens.
    Visitor,
    /// A client that the application has let in.
    Guest,
}

/// What is done about the times of a recurring job that passed while no server ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Missed {
    /// One run for all of them.
    #[default]
    Once,
    /// Only a time of the last minute runs.
    Skip,
    /// Each has its run.
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

    /// The word that applications write.
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
