//! The role of a worker.

/// The role of a worker, which never changes. No request waits for a job, because no worker runs both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    Requests,
    /// Runs of jobs, from the beginning and after each wait.
    Jobs,
}
