//! Limits of job queues: how many jobs run at a time, and how many begin per second.

use std::time::Duration;

use crate::id::QueueId;

/// The limits of a queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueBounds {
    pub queue: QueueId,
    /// Maximum number of its jobs that run at a time.
    pub concurrency: Option<u32>,
    /// Maximum number of its jobs that begin in a second.
    pub rate: Option<f64>,
}

/// How many more jobs of a queue may be claimed now, as far as this server knows. The core identifies queues by number,
/// a store by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance<Queue = Box<str>> {
    pub queue: Queue,
    pub count: u32,
    /// Free places of this queue. Other servers that share the queue may take some of them. `None`: no limit.
    pub places: Option<u32>,
    /// The token bucket that all servers share for this queue. `None`: no limit.
    pub rate: Option<Rate>,
}

/// How fast jobs may begin, on all servers together: each takes a token from the queue's bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Time between two tokens.
    pub period: Duration,
    /// Tokens in a full bucket: those of one second, at least one.
    pub capacity: u32,
}
