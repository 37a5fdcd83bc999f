//! A store that cannot be opened now: the disk is full, or may not be written. All but jobs is served meanwhile, and it is opened as soon as that
//! is possible.

use std::time::Duration;

use parkade_core::Moment;
use parkade_jobs::Fault;
use parkade_jobs::sqlite::OpenError;

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

    /// The store is open from now on, or this is why not. A disk is asked again after a while, not by each that enqueues; and by a thread: one that
    /// has failed may take as long as it likes to answer.
    pub(super) fn opened(&mut self) -> Result<(), Fault> {
        if self.jobs.store.is_open() {
            return Ok(());
        }
        let Some(shut) = &self.jobs.shut else { return self.open_jobs().map_err(|error| self.shut(&error)) };
        if self.now >= shut.due {
            self.jobs.store.begin_to_open();
        }
        Err(shut.fault.clone())
    }

    /// What came of it.
    pub(super) fn hear_opened(&mut self, opened: Result<(), OpenError>) {
        if let Err(error) = opened {
            self.shut(&error);
            return;
        }
        self.jobs.shut = None;
        self.begin_with_jobs();
        tracing::info!("the store of jobs is open: jobs are taken and run again");
        self.recognise();
    }

    fn shut(&mut self, error: &OpenError) -> Fault {
        let before = self.jobs.shut.as_ref().map(|shut| shut.pause);
        if before.is_none() {
            tracing::error!("no job is taken or run, everything else is served: {error}. It is tried again by itself");
        }
        let pause = before.map_or(PAUSE_MIN, |pause| (2 * pause).min(PAUSE_MAX));
        let why = error.to_string().into();
        let fault = if error.is_full() { Fault::Full(why) } else { Fault::Unavailable(why) };
        self.jobs.shut = Some(Shut { fault: fault.clone(), pause, due: self.now + pause });
        fault
    }
}
