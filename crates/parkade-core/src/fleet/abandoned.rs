//! What is remembered of an abandoned stream: its request is over, and its worker still holds it.

use std::time::Duration;

use crate::moment::Moment;
use crate::structures::timers::Alarm;
use parkade_model::{QueueId, Reason};

/// A stream whose closing frame has not come, though its request has been cancelled.
#[derive(Debug, Clone, Copy)]
pub struct Abandoned {
    pub alarm: Option<Alarm>,
    /// The queue in which it keeps its place, since its code may go on.
    pub queue: Option<QueueId>,
    /// When its deadline passed.
    pub overdue: Option<Moment>,
    /// It was in doubt then whether its code ran. If the worker still holds it after a while, the log shows the worker's stack.
    pub is_unshown: bool,
}

/// What a cancelled request leaves with its worker.
#[derive(Debug)]
pub struct Abandonment {
    pub reason: Reason,
    /// That of its deadline, if it has begun to count.
    pub alarm: Option<Alarm>,
    /// How long it may run, if anything bounds that.
    pub patience: Option<Duration>,
    pub queue: Option<QueueId>,
}

impl Abandoned {
    /// Its deadline has passed, and it does not wait for its client.
    pub fn is_in_the_way(&self) -> bool {
        self.overdue.is_some() && !self.is_unshown
    }
}
