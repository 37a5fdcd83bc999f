//! A worker process as the world knows it.

use std::collections::VecDeque;

use parkade_core::{Moment, QueueId, RequestId, Role, TableId, WorkerId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Starting,
    Ready,
    /// It said that it cannot load.
    Failed,
    Dismissed,
    Killed,
    /// Its link is closed for a violation.
    Cut,
}

/// How it behaves towards its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Temper {
    Quick,
    /// Never faster than two milliseconds.
    Slow,
    /// It does nothing any more, not even answer pings.
    Stuck,
}

#[derive(Debug, Clone)]
pub struct Process {
    pub id: WorkerId,
    pub phase: Phase,
    pub temper: Temper,
    pub concurrent: bool,
    /// Known when the step in which it is started is over.
    pub role: Option<Role>,
    pub table: Option<TableId>,
    pub credit: i64,
    pub granted: i64,
    /// In the order in which it got them.
    pub streams: VecDeque<Stream>,
    pub awaiting: Vec<RequestId>,
    /// Given notice because it is replaced: nothing new for it.
    pub replaced: bool,
    /// When its grace is over.
    pub drained_at: Option<Moment>,
    /// When the first of the streams became the first.
    pub front_since: Moment,
    pub ping: Option<(u64, Moment)>,
    /// Since when nobody hears it: the store is behind with what it has enqueued.
    pub held_up: Option<Moment>,
}

#[derive(Debug, Clone, Copy)]
pub struct Stream {
    pub request: RequestId,
    pub ghost: bool,
    pub begun: bool,
    /// A run of a job: its queue.
    pub queue: Option<QueueId>,
    pub deadline_at: Option<Moment>,
    pub since: Moment,
}

impl Process {
    pub fn new(id: WorkerId, now: Moment) -> Self {
        Self {
            id,
            phase: Phase::Starting,
            temper: Temper::Quick,
            concurrent: false,
            role: None,
            table: None,
            credit: 0,
            granted: 0,
            streams: VecDeque::new(),
            awaiting: Vec::new(),
            replaced: false,
            drained_at: None,
            front_since: now,
            ping: None,
            held_up: None,
        }
    }

    /// Its frames are still read.
    pub fn speaks(&self) -> bool {
        matches!(self.phase, Phase::Ready | Phase::Killed) && self.table.is_some()
    }

    pub fn touched(&self) -> usize {
        if self.concurrent { usize::MAX } else { usize::try_from(1 + self.granted.max(0)).unwrap() }
    }

    /// What keeps it busy; a credit granted on top says that it has put one aside.
    pub fn busy(&self) -> usize {
        self.streams.len().saturating_sub(usize::try_from(self.granted.max(0)).unwrap())
    }

    pub fn stream(&mut self, request: RequestId) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.request == request)
    }

    pub fn hold(&mut self, now: Moment, request: RequestId, queue: Option<QueueId>, deadline_at: Option<Moment>) {
        if self.busy() == 0 {
            self.front_since = now;
        }
        self.credit -= 1;
        self.streams.push_back(Stream { request, ghost: false, begun: false, queue, deadline_at, since: now });
    }

    /// Its closing frame for this request is written.
    pub fn close(&mut self, now: Moment, request: RequestId) {
        let place = self.streams.iter().position(|stream| stream.request == request).expect("it holds what it closes");
        self.streams.remove(place);
        self.credit += 1;
        self.front_since = now;
    }
}
