//! Clients at the addresses of jobs: what they want waits until it is known whether they may.
//!
//! The store is asked what kind of job it is. If the application is to be asked, the request goes to a worker as any other does. What a client
//! wants is kept here meanwhile, so what a worker permits can be nothing else, and nobody else's.

use crate::core::Core;
use crate::effect::Outcome;
use crate::life::machine::Happening;
use crate::life::{Life, Parked, Refused, Routed, Sequel, Work};
use crate::moves::parking::Parking;
use crate::routes::RouteId;
use parkade_model::{Errand, JobCaller, JobId, JobLookup, Refusal, RequestId};

impl Core {
    /// A route where clients find jobs.
    pub(crate) fn park_visit(&mut self, parking: Parking, job: JobId, errand: Errand) -> Life {
        if !matches!(parking.sequel, Sequel::Answer) {
            return self.wait_refused(parking, Refusal::BadAnswer);
        }
        self.jobs.visitors.add(parking.request, job, errand.clone());
        self.park_errand(parking, job, JobCaller::Visitor, errand)
    }

    fn park_errand(&mut self, parking: Parking, job: JobId, asker: JobCaller, errand: Errand) -> Life {
        match errand {
            Errand::Result { timeout } => self.park_job(parking, job, asker, timeout),
            Errand::Events { channel, since } => self.park_follow(parking, job, asker, channel, since),
        }
    }

    /// The store knows the job, and the application says who may have it.
    pub(crate) fn job_guarded(&mut self, request: RequestId, route: RouteId, concurrent: bool) {
        let Some(asked) = self.jobs.watchers.looked_up(request) else {
            return self.cx.counts.refused_events.add(Refused::Unknown);
        };
        match self.jobs.watchers.asked(request) {
            Some(asks) if asks != asked => self.look_up(request, asks),
            Some(_) if asked.asker == JobCaller::Visitor => {
                self.turn(request, Happening::Guarded { route, concurrent })
            }
            Some(_) => self.cx.counts.refused_events.add(Refused::OutOfTurn),
            // It has ended meanwhile.
            None => {}
        }
    }

    /// It is queued as if it had just come: the time that the store took does not count.
    pub(crate) fn ask_the_application(
        &mut self,
        request: RequestId,
        life: Parked,
        route: RouteId,
        concurrent: bool,
    ) -> Life {
        self.unwatch(request, &life);
        let (mut journey, _) = life.wake(self.cx.now);
        self.silence(&mut journey);
        let work = Work::Handler { route, concurrent };
        let queued_before = self.queue.count() + self.unrouted.count();
        if let Some(refusal) = self.no_room(queued_before, &work, journey.patience().duration()) {
            self.refuse(request, refusal);
            return self.done(request, journey);
        }
        self.jobs.visitors.ask(request);
        self.start_spell(request, &mut journey);
        let place = self.queue_of(request, &work).push_back(request);
        Life::Routed(Routed { journey, place, work })
    }

    /// `PARK` with what the application says. It means the request that the worker was asked about, and the job that this one came for.
    pub(crate) fn park_access(&mut self, parking: Parking, granted: bool) -> Life {
        let (Some((job, errand)), Sequel::Answer) = (self.jobs.visitors.answered(parking.request), parking.sequel)
        else {
            return self.wait_refused(parking, Refusal::BadAnswer);
        };
        if granted {
            return self.park_errand(parking, job, JobCaller::Guest, errand);
        }
        self.go_on(parking, Outcome::Job { job, standing: JobLookup::Missing })
    }
}
