//! Clients at the addresses of jobs: of some jobs the application says who may have them.

use parkade_core::{Errand, Event, JobCaller, JobId, JobLookup, RequestId, RouteId, Then, Wait};

use crate::model::{Model, Place, Waiting};
use crate::process::{Process, Stream};
use crate::queries::Asked;
use crate::settings::is_guarded;
use crate::world::World;

/// What a client wants of a job, and what is known of whether it may.
#[derive(Debug, Clone, PartialEq)]
pub struct Visit {
    job: JobId,
    wait: Wait,
    route: RouteId,
    /// A worker is asked, or is to be.
    is_asked: bool,
    /// A worker that was asked has said so.
    is_let_in: bool,
    pub is_turned_away: bool,
}

impl Visit {
    pub fn of(route: RouteId, wait: &Wait) -> Option<Self> {
        let Wait::Visit { job, .. } = wait else { return None };
        let wait = wait.clone();
        Some(Self { job: *job, wait, route, is_asked: false, is_let_in: false, is_turned_away: false })
    }

    /// Nothing is told about a job, and nothing done to it, before that.
    pub fn may_be_told(&self) -> bool {
        self.is_let_in || !is_guarded(self.job)
    }
}

impl Model {
    /// A guest is told all, and the shell ends the job for it when that is what it wants.
    pub(crate) fn check_asker(&mut self, id: RequestId, job: JobId, asker: JobCaller) {
        let request = self.request(id);
        let is_visit = request.waiting().is_some_and(|waiting| matches!(waiting.wait, Wait::Visit { .. }));
        assert_eq!(asker != JobCaller::Application, is_visit, "looked up for somebody else");
        let Some(visit) = request.visit.as_ref().filter(|_| is_visit) else { return };
        assert_eq!(visit.job, job, "it came for another");
        let is_cancelling = matches!(visit.wait, Wait::Visit { errand: Errand::Cancel, .. });
        if is_cancelling && !visit.is_let_in {
            // How it stands is asked for once more when it is known whether the job will end.
            return assert!(asker == JobCaller::Visitor || visit.may_be_told(), "let in by nobody");
        }
        assert_eq!(asker == JobCaller::Guest, visit.is_let_in, "let in by nobody, or asked about again");
    }

    /// Of which it is not known whether they may.
    pub(crate) fn undecided_visits(&self) -> usize {
        let looked_up = |id| self.jobs.looked_up.get(id).is_some_and(|asked| asked.asker == JobCaller::Visitor);
        let undecided = self.requests.iter().filter(|(id, request)| {
            let Some(visit) = &request.visit else { return false };
            let waits = matches!(&request.place, Place::Waiting(Waiting { wait: Wait::Visit { .. }, .. }));
            visit.is_asked || waits && looked_up(id)
        });
        undecided.count()
    }

    /// What it waits for now.
    fn decide(&mut self, id: RequestId, granted: bool) -> Wait {
        let Some(visit) = self.request(id).visit.as_mut().filter(|visit| visit.is_asked) else {
            return Wait::Access { granted };
        };
        (visit.is_asked, visit.is_let_in, visit.is_turned_away) = (false, granted, !granted);
        let wait = visit.wait.clone();
        if granted {
            self.seen.insert("let in");
        }
        wait
    }

    /// What the store says of a job is told only to those who may have it.
    pub(crate) fn may_know(&self, id: RequestId, waiting: &Waiting, standing: JobLookup) -> bool {
        let is_visit = matches!(waiting.wait, Wait::Visit { .. });
        !is_visit || standing == JobLookup::Missing || self.requests[&id].visit.as_ref().is_none_or(Visit::may_be_told)
    }
}

impl World {
    /// The store knows the job, and the shell knows that the application is to be asked.
    pub(crate) fn hears_that_it_is_guarded(&mut self, id: RequestId) {
        let (now, concurrent) = (self.now, self.random.below(2) == 0);
        let known = self.model.requests.get_mut(&id).filter(|request| request.waiting().is_some());
        let route = known.and_then(|request| {
            let visit = request.visit.as_mut()?;
            visit.is_asked = true;
            (request.place, request.spell, request.coroutine) = (Place::Queue, now, concurrent);
            Some(visit.route)
        });
        // To one that has left meanwhile it is said, too.
        let route = route.unwrap_or(RouteId { table: parkade_core::TableId(1), index: 0 });
        self.model.seen.insert("asked about");
        self.tell(Event::JobGuarded { request: id, route, concurrent });
    }

    pub(crate) fn is_about_a_job(&self, stream: Stream) -> bool {
        let visit = self.model.requests.get(&stream.request).and_then(|request| request.visit.as_ref());
        !stream.ghost && visit.is_some_and(|visit| visit.is_asked)
    }

    /// A worker says whether a client may have a job: also one that was not asked, or about somebody who is gone.
    pub(crate) fn says_who_may(&mut self, process: &Process, stream: Stream) {
        let (worker, request, now) = (process.id, stream.request, self.now);
        let is_open = self.model.databases.lease_of(request).is_some();
        if stream.begun || is_open || self.model.is_unstored(request) {
            return self.time_passes();
        }
        let granted = self.random.below(3) > 0;
        let is_asked = self.is_about_a_job(stream);
        self.model.close(now, worker, request);
        if !stream.ghost {
            let wait = self.model.decide(request, granted);
            let parked = self.model.request(request);
            (parked.kept, parked.holds, parked.holds_job) = (false, None, None);
            parked.place = Place::Waiting(Waiting::new(wait, Then::Answer, Some(worker), now, Asked::default()));
            let seen = if is_asked { "told who may" } else { "may without being asked about" };
            self.model.seen.insert(seen);
        }
        self.tell(Event::Parked {
            worker,
            request,
            wait: Wait::Access { granted },
            then: Then::Answer,
            payload: self.payload(),
        });
        if !is_asked && !stream.ghost {
            assert!(!self.model.requests.contains_key(&request), "let in by a worker that nobody has asked");
        }
    }
}
