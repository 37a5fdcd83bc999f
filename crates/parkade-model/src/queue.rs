//! Bounds of queues of jobs: how many of their jobs run at a time, how many begin in a second.

use std::time::Duration;

use crate::id::QueueId;

/// What bounds a queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueBounds {
    pub queue: QueueId,
    /// How many of its jobs run at a time at most.
    pub concurrency: Option<u32>,
    /// How many of its jobs begin in a second at most.
    pub rate: Option<f64>,
}

/// How many more jobs of a queue may be claimed now, for all that this server knows. The core numbers its queues, a store names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance<Queue = Box<str>> {
    pub queue: Queue,
    pub count: u32,
    /// Places of this queue that are free here. Other servers that share the queue may have some of them. `None`: any number may run.
    pub places: Option<u32>,
    /// The bucket that all servers that share the queue fill and empty. `None`: any number may begin.
    pub rate: Option<Rate>,
}

/// How fast jobs may begin, at whichever servers: each takes a token out of the queue's bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Between two tokens.
    pub period: Duration,
    /// Tokens that the bucket holds: a second's worth, at least one.
    pub capacity: u32,
}
