//! Clients at the addresses of jobs: what they want waits until it is known whether they may.
//!
//! The store is asked what kind of job it is. If the application is to be asked, the request goes to a worker as any other does. What a client
//! wants is kept here meanwhile, so what a worker permits can be nothing else, and nobody else's.

use crate::core::Core;
use crate::life::happening::Happening;
use crate::life::{Life, Parked, Routed, Work};
use crate::routes::RouteId;
use parkade_model::RequestId;

impl Core {
    /// The store knows the job, and the application says who may have it.
    pub(crate) fn job_guarded(&mut self, request: RequestId, route: RouteId, concurrent: bool) {
        if self.waits.jobs.guarded(&mut self.cx, request) {
            self.turn(request, Happening::Guarded { route, concurrent });
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
        self.waits.leave(&mut self.cx, request, life.watch);
        let (mut journey, _) = self.unpark(life);
        let work = Work::Handler { route, concurrent };
        let queued_before = self.queue.count() + self.unrouted.count();
        if let Some(refusal) = self.no_room(queued_before, &work, journey.patience().duration()) {
            self.refuse(request, refusal);
            return self.done(request, journey);
        }
        self.waits.jobs.ask(request);
        self.start_spell(request, &mut journey);
        let place = self.queue_of(request, &work).push_back(request);
        Life::Routed(Routed { journey, place, work })
    }
}
