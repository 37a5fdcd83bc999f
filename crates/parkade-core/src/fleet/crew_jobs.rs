//! The jobs of an application, as its workers can run them.

use std::time::Duration;

use crate::config::Config;
use crate::fleet::crew::Crew;
use crate::fleet::pool::WorkerPool;
use crate::fleet::roles::workers_wanted;
use crate::moment::Moment;
use parkade_model::{DeclaredJobs, Role};

/// Looks only at what is asked for.
#[derive(Debug, Clone, Copy)]
pub struct CrewJobs<'a> {
    crew: &'a Crew,
    workers: &'a WorkerPool,
}

impl<'a> CrewJobs<'a> {
    pub fn of(crew: &'a Crew, workers: &'a WorkerPool) -> Self {
        Self { crew, workers }
    }

    /// Those of the code that serves.
    pub fn declared(self) -> DeclaredJobs {
        self.crew.code.declared()
    }

    /// Whether there should be workers that run them.
    pub fn are_run(self, config: &Config) -> bool {
        workers_wanted(config, self.crew.app, Role::Jobs, self.declared()) > 0
    }

    /// How many workers could take now; `None` when no worker of jobs is ready.
    pub fn room(self, now: Moment) -> Option<u32> {
        self.workers.room_for_jobs(now, self.crew.code.serving(), self.declared())
    }

    /// How long none begins here because workers of jobs keep dying and none is left.
    pub fn put_off(self, now: Moment) -> Option<Duration> {
        self.crew.jobs_put_off(now, self.workers)
    }
}
