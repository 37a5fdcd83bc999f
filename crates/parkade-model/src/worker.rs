//! What a worker is for.

/// What a worker is for, from its start to its end: no request waits for a job, because none ever runs where requests do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    Requests,
    /// Runs of jobs, from their beginning and after each wait.
    Jobs,
}
