//! A store that is not open. If it cannot be opened now, because the disk is full or must not be written to, everything
//! but jobs is served meanwhile, and opening it is tried again until it succeeds.

use std::time::Duration;

use parkade_core::{Moment, WorkerId};
use parkade_jobs::Fault;
use parkade_jobs::sqlite::OpenError;
use parkade_wire::Application;

/// The first pause; it doubles.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// An operator who has made room does not want to wait long.
const PAUSE_MAX: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct StoreOpening {
    outage: Option<Outage>,
    waiting: Vec<WaitingWorker>,
}

/// The store could not be opened.
#[derive(Debug)]
struct Outage {
    fault: Fault,
    pause: Duration,
    due: Moment,
}

/// A worker that is ready, except that the store for its jobs is not open.
#[derive(Debug)]
pub struct WaitingWorker {
    pub worker: WorkerId,
    pub credit: u32,
    pub application: Application,
}

impl StoreOpening {
    /// Whether the last attempt to open the store failed.
    pub fn has_failed(&self) -> bool {
        self.outage.is_some()
    }

    /// Why the store is not open, and whether it is time to try again.
    pub fn fault(&self, now: Moment) -> Option<(Fault, bool)> {
        self.outage.as_ref().map(|outage| (outage.fault.clone(), now >= outage.due))
    }

    /// The store cannot be opened now. The first failure is logged.
    pub fn fail(&mut self, error: &OpenError, now: Moment) -> Fault {
        let before = self.outage.as_ref().map(|outage| outage.pause);
        if before.is_none() {
            tracing::error!("the job store cannot be opened; serving everything but jobs, and retrying: {error}");
        }
        let pause = before.map_or(PAUSE_MIN, |pause| (2 * pause).min(PAUSE_MAX));
        let fault = error.fault();
        self.outage = Some(Outage { fault: fault.clone(), pause, due: now + pause });
        fault
    }

    /// The store is open.
    pub fn succeed(&mut self) {
        self.outage = None;
    }

    /// The worker is ready when the store is open.
    pub fn wait(&mut self, waiting: WaitingWorker) {
        self.waiting.push(waiting);
    }

    pub fn take_waiting(&mut self) -> Vec<WaitingWorker> {
        std::mem::take(&mut self.waiting)
    }
}
