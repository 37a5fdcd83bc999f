//! A worker process as the world knows it.

use std::collections::VecDeque;

use parkade_core::{AppId, Moment, QueueId, RequestId, Role, TableId, WorkerId};

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
    pub app: AppId,
    pub phase: Phase,
    pub temper: Temper,
    pub concurrent: bool,
    /// Plain functions that run at a time, where it is concurrent.
    pub threads: usize,
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
    /// Since when it does nothing any more.
    pub stuck_since: Moment,
    /// More clients than can be told at once are to be told what it has published.
    pub clients_behind: bool,
    /// Since when its pipe is not read.
    pub held_up: Option<Moment>,
    /// When WebSockets are closed because it is replaced.
    pub sockets_end: Option<Moment>,
}

#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "a model says what it sees")]
pub struct Stream {
    pub request: RequestId,
    pub ghost: bool,
    pub begun: bool,
    pub coroutine: bool,
    /// Its code has begun, as far as the core can know.
    pub told: bool,
    /// A run of a job: its queue.
    pub queue: Option<QueueId>,
    pub deadline_at: Option<Moment>,
    pub since: Moment,
    /// Its code never ends: since when it runs.
    pub hangs: Option<Moment>,
    /// It is that of a WebSocket that was accepted.
    pub socket: bool,
}

impl Process {
    pub fn new(id: WorkerId, app: AppId, now: Moment) -> Self {
        Self {
            id,
            app,
            phase: Phase::Starting,
            temper: Temper::Quick,
            concurrent: false,
            threads: 1,
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
            stuck_since: now,
            clients_behind: false,
            held_up: None,
            sockets_end: None,
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

    /// Plain functions that it holds, but for those that it has put aside.
    pub fn plain(&self) -> usize {
        let plain = self.streams.iter().filter(|stream| !stream.coroutine).count();
        plain.saturating_sub(usize::try_from(self.granted.max(0)).unwrap())
    }

    /// Those that begin because it is their turn, where nobody says so.
    pub fn begin_next(&mut self) -> Vec<RequestId> {
        let turns = if self.concurrent { 0 } else { self.touched() };
        let next = self.streams.iter_mut().take(turns).filter(|stream| !stream.told);
        let begin = |stream: &mut Stream| {
            stream.told = true;
            stream.request
        };
        next.map(begin).collect()
    }

    pub fn hold(
        &mut self,
        now: Moment,
        request: RequestId,
        queue: Option<QueueId>,
        deadline_at: Option<Moment>,
        coroutine: bool,
        begins: bool,
    ) {
        let told = self.concurrent && begins;
        if self.busy() == 0 {
            self.front_since = now;
        }
        self.credit -= 1;
        self.streams.push_back(Stream {
            request,
            ghost: false,
            begun: false,
            coroutine,
            told,
            queue,
            deadline_at,
            since: now,
            hangs: None,
            socket: false,
        });
    }

    /// Its closing frame for this request is written.
    pub fn close(&mut self, now: Moment, request: RequestId) {
        let place = self.streams.iter().position(|stream| stream.request == request).expect("it holds what it closes");
        let closed = self.streams.remove(place).expect("it was just found");
        self.credit += i64::from(!closed.socket);
        self.front_since = now;
    }
}
