//! Periodic maintenance: which task is next, and why the store cannot be used yet.

use std::time::Instant;

use super::limits::RETRY_PAUSE;
use super::options::Intervals;
use crate::Fault;

/// What the store does without a command, one task at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaintenanceTask {
    /// Creates or upgrades the tables.
    PrepareTables,
    /// Reads which jobs ended while no notifications were received.
    CatchUp,
    /// Makes jobs ready whose function was unknown and is now known.
    Recognise,
    /// Deletes jobs whose retention time is over.
    Tidy,
}

#[derive(Debug)]
pub struct MaintenanceSchedule {
    tables: TablesState,
    /// Why the last attempt to create the tables, or to join the other servers, failed.
    fault: Option<Fault>,
    /// Functions that the application has.
    names: Vec<Box<str>>,
    /// Tasks that are not triggered by a timer.
    due: Vec<MaintenanceTask>,
    poll_at: Option<Instant>,
    tidy_at: Option<Instant>,
    /// Another server was claiming: when to try again.
    look_at: Option<Instant>,
    /// A task has failed: no other begins before this moment.
    retry_at: Option<Instant>,
    intervals: Intervals,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TablesState {
    NotAsked,
    Missing,
    There,
}

impl MaintenanceSchedule {
    pub fn new(intervals: Intervals) -> Self {
        Self {
            tables: TablesState::NotAsked,
            fault: None,
            names: Vec::new(),
            due: Vec::new(),
            poll_at: None,
            tidy_at: None,
            look_at: None,
            retry_at: None,
            intervals,
        }
    }

    pub fn open(&mut self, now: Instant) {
        self.tables = TablesState::Missing;
        self.poll_at = Some(now + self.intervals.poll);
        self.tidy_at = Some(now + self.intervals.tidy);
    }

    /// Why no command is accepted while this server has not joined. `None`: commands wait until it has tried to.
    pub fn refusal(&self) -> Option<Fault> {
        match self.tables {
            TablesState::NotAsked => Some(Fault::Unavailable("it is not open".into())),
            TablesState::Missing | TablesState::There => self.fault.clone(),
        }
    }

    /// Why the tables cannot be created or used, if that will not change by itself.
    pub fn unusable(&self) -> Option<&str> {
        match (self.tables, &self.fault) {
            (TablesState::Missing, Some(Fault::Failed(why))) => Some(why),
            _ => None,
        }
    }

    /// Until this server has joined, commands are refused with this error; `None`: they wait.
    pub fn refuse_with(&mut self, fault: Option<Fault>) {
        self.fault = fault;
    }

    pub fn is_idle(&self) -> bool {
        self.due.is_empty()
    }

    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// Servers with an older application may find them unknown again, so they are kept.
    pub fn recognises(&mut self, names: &[Box<str>]) {
        names.clone_into(&mut self.names);
    }

    pub fn wants(&mut self, task: MaintenanceTask) {
        if !self.due.contains(&task) {
            self.due.push(task);
        }
    }

    pub fn look_again(&mut self, at: Instant) {
        self.look_at = Some(self.look_at.map_or(at, |already| already.min(at)));
    }

    /// Whether there may be jobs to claim without a notification. `is_open`: this server is a member and is not ending.
    pub fn poll_is_due(&mut self, now: Instant, is_open: bool) -> bool {
        let looks = self.look_at.take_if(|at| *at <= now).is_some();
        if !is_open {
            return false;
        }
        if self.tidy_at.take_if(|at| *at <= now).is_some() {
            self.wants(MaintenanceTask::Tidy);
        }
        if self.poll_at.is_none_or(|at| at > now) {
            return looks;
        }
        self.poll_at = Some(now + self.intervals.poll);
        if !self.names.is_empty() {
            self.wants(MaintenanceTask::Recognise);
        }
        true
    }

    /// `is_joined`: this server is a member. Until then only the tables are handled.
    pub fn next(&mut self, now: Instant, is_joined: bool) -> Option<MaintenanceTask> {
        if self.retry_at.is_some_and(|at| at > now) {
            return None;
        }
        self.retry_at = None;
        match self.tables {
            TablesState::NotAsked => None,
            TablesState::Missing => Some(MaintenanceTask::PrepareTables),
            TablesState::There if !is_joined || self.due.is_empty() => None,
            TablesState::There => Some(self.due.remove(0)),
        }
    }

    pub fn next_due(&self, is_open: bool) -> Option<Instant> {
        match self.tables {
            TablesState::NotAsked => None,
            TablesState::There if is_open && self.retry_at.is_none() => {
                [self.poll_at, self.tidy_at, self.look_at].into_iter().flatten().min()
            }
            TablesState::Missing | TablesState::There => self.retry_at,
        }
    }

    pub fn tables_are_there(&mut self) {
        self.tables = TablesState::There;
        self.fault = None;
    }

    pub fn tidied(&mut self, now: Instant, more: bool) {
        if more {
            self.wants(MaintenanceTask::Tidy);
        } else if !self.intervals.tidy.is_zero() {
            self.tidy_at = Some(now + self.intervals.tidy);
        }
    }

    pub fn failed(&mut self, now: Instant, task: MaintenanceTask, fault: &Fault) {
        self.retry_at = Some(now + RETRY_PAUSE);
        match task {
            MaintenanceTask::PrepareTables => self.fault = Some(fault.clone()),
            MaintenanceTask::CatchUp | MaintenanceTask::Recognise | MaintenanceTask::Tidy => self.wants(task),
        }
    }

    /// With intervals that tidy without a pause, tidying follows each command.
    pub fn carried_out(&mut self) {
        if self.intervals.tidy.is_zero() {
            self.wants(MaintenanceTask::Tidy);
        }
    }
}
