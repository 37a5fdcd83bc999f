//! A store that cannot be opened now: the disk is full, or may not be written. All but jobs is served meanwhile, and it is opened as soon as that
//! is possible.

use std::time::Duration;

use parkade_core::{Moment, WorkerId};
use parkade_jobs::Fault;
use parkade_jobs::sqlite::OpenError;
use parkade_wire::Application;

use super::Server;

/// The first pause; it doubles.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Whoever has made room does not want to wait long.
const PAUSE_MAX: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Shut {
    fault: Fault,
    pause: Duration,
    due: Moment,
}

/// A worker that is ready but for the store of its jobs.
#[derive(Debug)]
pub struct Held {
    worker: WorkerId,
    credit: u32,
    application: Application,
}

impl Server {
    /// At the start, when there are jobs already, or may be: what may pass does not end it.
    /// A store that is shut is opened by [`Self::opened`] alone, which says so, and remembers when it was tried.
    pub fn begin_jobs(&mut self) -> Result<(), OpenError> {
        if self.jobs.shut.is_some() {
            return Ok(());
        }
        match self.open_jobs() {
            Err(error) if error.may_pass() => {
                self.shut(&error);
                Ok(())
            }
            opened => opened,
        }
    }

    /// The store is open from now on, or is being opened: what is asked of it meanwhile waits. Or this is why not. A disk is asked again after a
    /// while, not by each that enqueues; and by a thread: it may take as long as it likes to answer.
    pub(super) fn opened(&mut self) -> Result<(), Fault> {
        if self.jobs.takes_questions() {
            return Ok(());
        }
        let Some(shut) = &self.jobs.shut else {
            if self.jobs.store.needs_a_disk() {
                self.jobs.store.begin_to_open();
                return Ok(());
            }
            return self.open_jobs().map_err(|error| self.shut(&error));
        };
        if self.now >= shut.due {
            self.jobs.store.begin_to_open();
        }
        Err(shut.fault.clone())
    }

    /// While others are served nobody waits for a disk: a worker whose code brings the first jobs is ready when their store is open. Gives the
    /// application back if it need not wait.
    pub(in crate::server) fn held_until_open(
        &mut self,
        worker: WorkerId,
        credit: u32,
        application: Application,
    ) -> Option<Application> {
        let has_jobs =
            !(application.jobs.is_empty() && application.queues.is_empty() && application.recurring.is_empty());
        let store = &mut self.jobs.store;
        let waits = store.is_opening() || self.core.ready() && store.needs_a_disk();
        if !has_jobs || store.is_open() || self.jobs.shut.is_some() || !waits {
            return Some(application);
        }
        store.begin_to_open();
        self.jobs.held.push(Held { worker, credit, application });
        None
    }

    /// What came of it.
    pub(super) fn hear_opened(&mut self, opened: Result<(), OpenError>) {
        let mut held = std::mem::take(&mut self.jobs.held);
        held.retain(|held| self.core.role(held.worker).is_some());
        match opened {
            Ok(()) => {
                let was_shut = self.jobs.shut.take().is_some();
                self.begin_with_jobs();
                if was_shut {
                    tracing::info!("the job store is open: accepting and running jobs again");
                    self.recognise();
                }
            }
            Err(error) if held.is_empty() || error.may_pass() => {
                self.shut(&error);
            }
            Err(error) => return held.iter().for_each(|held| self.unfit(held.worker, &error.to_string())),
        }
        for Held { worker, credit, application } in held {
            self.worker_ready(worker, credit, application);
        }
    }

    fn shut(&mut self, error: &OpenError) -> Fault {
        let before = self.jobs.shut.as_ref().map(|shut| shut.pause);
        if before.is_none() {
            tracing::error!("jobs are neither accepted nor run, everything else is served; retrying: {error}");
        }
        let pause = before.map_or(PAUSE_MIN, |pause| (2 * pause).min(PAUSE_MAX));
        let fault = error.fault();
        self.jobs.shut = Some(Shut { fault: fault.clone(), pause, due: self.now + pause });
        fault
    }
}
