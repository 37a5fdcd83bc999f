//! Requests and runs of jobs that wait for a worker, and requests whose place is not known yet.
//!
//! Each application has lanes of its own: nothing waits behind the work of another one.
//!
//! Each lane has one line for plain functions and one for coroutines. A plain function may have to wait for a thread; a coroutine needs none, and
//! never waits behind one that does.

use super::work::Work;
use crate::jobs::Jobs;
use crate::structures::chain::{Chain, Place};
use parkade_model::{AppId, RequestId};

#[derive(Debug)]
pub struct Queue {
    apps: Vec<AppQueue>,
}

/// What waits for the workers of one application.
#[derive(Debug, Default)]
struct AppQueue {
    unrouted: Chain<RequestId>,
    requests: Lines,
    resuming: Lines,
    waiting: Lines,
}

/// Who waits together. Runs of jobs have lanes of their own, because they have workers of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    Requests,
    /// Runs that have begun, have waited, and go on with a function.
    Resuming,
    /// Runs that were claimed and have not begun.
    Waiting,
}

/// The line in which a unit of work waits.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    app: AppId,
    lane: Lane,
    is_concurrent: bool,
}

/// Which end of its line a request is put to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Last,
    /// Its turn had come, but it could not begin.
    Next,
}

/// The two lines of a lane.
#[derive(Debug, Default)]
pub struct Lines {
    plain: Chain<RequestId>,
    coroutines: Chain<RequestId>,
}

impl Line {
    pub fn of(app: AppId, request: RequestId, work: &Work, jobs: &Jobs) -> Self {
        let lane = match work {
            Work::Job { .. } => Lane::Waiting,
            Work::Call { .. } if jobs.is_run(request) => Lane::Resuming,
            Work::Handler { .. } | Work::Fallback { .. } | Work::Call { .. } | Work::Coroutine { .. } => Lane::Requests,
        };
        Self { app, lane, is_concurrent: work.is_coroutine() }
    }
}

impl Queue {
    pub fn new(apps_count: usize) -> Self {
        Self { apps: std::iter::repeat_with(AppQueue::default).take(apps_count).collect() }
    }

    pub fn enter_unrouted(&mut self, app: AppId, request: RequestId) -> Place {
        self.app_mut(app).unrouted.push_back(request)
    }

    pub fn leave_unrouted(&mut self, app: AppId, place: Place) {
        self.app_mut(app).unrouted.remove(place);
    }

    pub fn enter(&mut self, line: Line, request: RequestId, turn: Turn) -> Place {
        match turn {
            Turn::Last => self.line(line).push_back(request),
            Turn::Next => self.line(line).push_front(request),
        }
    }

    pub fn leave(&mut self, line: Line, place: Place) {
        self.line(line).remove(place);
    }

    /// In the order in which they arrived.
    pub fn unrouted(&self, app: AppId) -> impl Iterator<Item = RequestId> {
        self.app(app).unrouted.values()
    }

    pub fn lane(&self, app: AppId, lane: Lane) -> &Lines {
        let queue = self.app(app);
        match lane {
            Lane::Requests => &queue.requests,
            Lane::Resuming => &queue.resuming,
            Lane::Waiting => &queue.waiting,
        }
    }

    /// Requests of the application that wait for a worker.
    pub fn requests(&self, app: AppId) -> &Lines {
        self.lane(app, Lane::Requests)
    }

    /// Runs of its jobs that have begun, have waited, and go on with a function.
    pub fn resuming(&self, app: AppId) -> &Lines {
        self.lane(app, Lane::Resuming)
    }

    /// Runs of its jobs that wait to begin.
    pub fn waiting(&self, app: AppId) -> &Lines {
        self.lane(app, Lane::Waiting)
    }

    /// How many requests of the application wait, routed or not. Runs of jobs are not counted.
    pub fn requests_count(&self, app: AppId) -> usize {
        let queue = self.app(app);
        queue.requests.count() + queue.unrouted.count()
    }

    /// Whether no run of a job of the application waits.
    pub fn is_without_runs(&self, app: AppId) -> bool {
        let queue = self.app(app);
        queue.resuming.is_empty() && queue.waiting.is_empty()
    }

    fn line(&mut self, line: Line) -> &mut Chain<RequestId> {
        let queue = self.app_mut(line.app);
        let lines = match line.lane {
            Lane::Requests => &mut queue.requests,
            Lane::Resuming => &mut queue.resuming,
            Lane::Waiting => &mut queue.waiting,
        };
        if line.is_concurrent { &mut lines.coroutines } else { &mut lines.plain }
    }

    fn app(&self, app: AppId) -> &AppQueue {
        &self.apps[usize::from(app.0)]
    }

    fn app_mut(&mut self, app: AppId) -> &mut AppQueue {
        &mut self.apps[usize::from(app.0)]
    }
}

impl Lines {
    /// The first of each line.
    pub fn firsts(&self) -> [Option<RequestId>; 2] {
        [self.plain.first(), self.coroutines.first()]
    }

    /// How many wait in one of them.
    pub fn count_of(&self, concurrent: bool) -> usize {
        if concurrent { self.coroutines.count() } else { self.plain.count() }
    }

    pub fn count(&self) -> usize {
        self.plain.count() + self.coroutines.count()
    }

    pub fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.coroutines.is_empty()
    }

    /// Line by line, each in its order.
    pub fn values(&self) -> impl Iterator<Item = RequestId> {
        self.plain.values().chain(self.coroutines.values())
    }
}
