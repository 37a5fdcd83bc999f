//! Clients that ask for a job, before it is known whether they may: until then they get no answer.

use parkade_model::{Errand, IdMap, JobId, RequestId};

/// Each is here until it may have what it wants, or may not, or has ended.
#[derive(Debug, Default)]
pub struct Visitors {
    visits: IdMap<RequestId, Visit>,
}

#[derive(Debug)]
struct Visit {
    job: JobId,
    errand: Errand,
    /// It goes to a worker, or is there: the application is asked whether it may.
    is_asked: bool,
}

impl Visitors {
    pub fn count(&self) -> usize {
        self.visits.len()
    }

    pub fn add(&mut self, request: RequestId, job: JobId, errand: Errand) {
        self.visits.insert(request, Visit { job, errand, is_asked: false });
    }

    /// The application is asked from now on.
    pub fn ask(&mut self, request: RequestId) {
        if let Some(visit) = self.visits.get_mut(&request) {
            visit.is_asked = true;
        }
    }

    /// Whether it is not known yet that the application is to be asked.
    fn is_looked_up(&self, request: RequestId) -> bool {
        self.visits.get(&request).is_some_and(|visit| !visit.is_asked)
    }

    /// The application has said something: about what? It is asked once.
    pub fn answered(&mut self, request: RequestId) -> Option<(JobId, Errand)> {
        let visit = self.visits.remove(&request)?;
        visit.is_asked.then_some((visit.job, visit.errand))
    }

    /// Nobody has to be asked. One about whom the application is asked is still here: what asks may wait for another job.
    pub fn let_in(&mut self, request: RequestId) {
        if self.is_looked_up(request) {
            self.visits.remove(&request);
        }
    }

    pub fn remove(&mut self, request: RequestId) {
        if !self.visits.is_empty() {
            self.visits.remove(&request);
        }
    }
}
