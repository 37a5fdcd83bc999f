//! Waiting for a job to end.
//!
//! Who waits is put down first, then the store is asked how it stands: an end that falls between the two is told all the same.

use std::time::Duration;

use crate::core::Core;
use crate::effect::{Effect, Outcome, Refusal};
use crate::id::{JobId, RequestId};
use crate::jobs::Standing;
use crate::life::machine::Happening;
use crate::life::{Bell, Life, Parked, Refused, Watch};
use crate::moves::parking::Parking;

impl Core {
    pub(crate) fn park_job(&mut self, parking: Parking, job: JobId, timeout: Option<Duration>) -> Life {
        let request = parking.request;
        self.jobs.watchers.add(request, job);
        self.look_up(request, job);
        let alarm = timeout
            .filter(|timeout| !timeout.is_zero())
            .map(|timeout| self.timers.set(self.now + timeout, Bell::Life(request)));
        let parked = parking.park(Watch::Job, alarm);
        // A server that stops does not wait for it either; how it stands is told all the same.
        if timeout.is_some_and(|timeout| timeout.is_zero()) || !self.staff.is_open() {
            self.jobs.watchers.hurry(request);
        }
        Life::Parked(parked)
    }

    fn look_up(&mut self, request: RequestId, job: JobId) {
        if self.jobs.watchers.look_up(request, job) {
            self.effects.push(Effect::LookUpJob { request, job });
        }
    }

    /// The store has said how it stands.
    pub(crate) fn job_found(&mut self, request: RequestId, standing: Standing) {
        let Some(asked) = self.jobs.watchers.looked_up(request) else {
            return self.counts.refused_events.add(Refused::Unknown);
        };
        if standing == Standing::Ended {
            self.jobs.results.hold(asked);
            self.dropped_job_results.push(asked);
        }
        if standing == Standing::Pending && !self.jobs.watchers.is_in_a_hurry(request) && self.waits_for(request, asked)
        {
            return;
        }
        self.tell_standing(request, asked, Outcome::Job { job: asked, standing });
    }

    /// The store could not say it.
    pub(crate) fn job_not_looked_up(&mut self, request: RequestId) {
        match self.jobs.watchers.looked_up(request) {
            Some(asked) => {
                self.tell_standing(request, asked, Outcome::Refused { refusal: Refusal::StoreUnavailable });
            }
            None => self.counts.refused_events.add(Refused::Unknown),
        }
    }

    fn tell_standing(&mut self, request: RequestId, asked: JobId, outcome: Outcome) {
        match self.jobs.watchers.job_of(request) {
            Some(job) if job == asked => self.turn(request, Happening::Woken(outcome)),
            // It waits for another one meanwhile.
            Some(job) => self.look_up(request, job),
            None => {}
        }
    }

    fn waits_for(&self, request: RequestId, job: JobId) -> bool {
        self.jobs.watchers.job_of(request) == Some(job)
    }

    /// Everybody who waited for it goes on.
    pub(crate) fn job_ended(&mut self, job: JobId) {
        self.jobs.results.hold(job);
        self.dropped_job_results.push(job);
        for request in self.jobs.watchers.of(job) {
            self.turn(request, Happening::Woken(Outcome::Job { job, standing: Standing::Ended }));
        }
    }

    /// Whether somebody waits for it here.
    #[must_use]
    pub fn is_watched(&self, job: JobId) -> bool {
        self.jobs.watchers.are_there(job)
    }

    /// The time is up.
    pub(crate) fn job_still_pending(&mut self, request: RequestId, life: Parked) -> Life {
        match self.jobs.watchers.job_of(request) {
            Some(job) => self.wake(request, life, Outcome::Job { job, standing: Standing::Pending }),
            None => Life::Parked(life),
        }
    }

    /// The server stops: who waits comes back for the result.
    pub(crate) fn end_job_waits(&mut self) {
        for (request, job) in self.jobs.watchers.all() {
            self.turn(request, Happening::Woken(Outcome::Job { job, standing: Standing::Pending }));
        }
    }
}
