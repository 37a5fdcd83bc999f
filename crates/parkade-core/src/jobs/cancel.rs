//! Cancelling jobs: the events and the effects.

use parkade_model::{JobId, PayloadId};

/// Who outside waits to be told whether a job will end. Minted by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CancelId(pub u64);

/// Events about jobs that are to be cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelEvent {
    /// An operator wants the job to end, whether or not there is one.
    Wanted { job: JobId, by: CancelId },
    /// The answer to [`CancelEffect::Ask`].
    Answered { job: JobId, answer: CancelAnswer },
    /// The answer to [`CancelEffect::LookUp`]. `is_over`: it has ended for good, or there is no such job.
    Found { job: JobId, is_over: bool },
    /// The other answer to either: the store could not. The payload says why.
    Refused { job: JobId, payload: PayloadId },
}

/// What the store says of a job that is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelAnswer {
    /// It waited, and has ended.
    Ended,
    /// It does not wait: it runs, has ended, or is none.
    NotWaiting,
    /// Another server runs it, and has been asked to end it.
    AskedElsewhere,
}

/// Effects for jobs that are to be cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelEffect {
    /// Have the store end the job if it waits there.
    Ask { job: JobId },
    /// Say how it stands with the job.
    LookUp { job: JobId },
    /// Tell these operators.
    Tell { operators: Vec<CancelId>, outcome: CancelOutcome },
}

/// What becomes of the wish that a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// Whether it will end because of this. If not, it has ended already, or could not be reached.
    Ends(bool),
    /// As many want jobs to end as may.
    TooMany,
    /// The store could not; the payload of the present event says why.
    Refused(PayloadId),
}
