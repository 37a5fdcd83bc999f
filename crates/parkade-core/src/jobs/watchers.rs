//! Who waits for which job to end.

use std::collections::HashMap;

use crate::id::{JobId, RequestId};

#[derive(Debug, Default)]
pub(crate) struct Watchers {
    jobs: HashMap<RequestId, Watched>,
    requests: HashMap<JobId, Vec<RequestId>>,
    /// About which jobs the store is being asked: once at a time for each request, so that an answer is never taken for that to a later question.
    looked_up: HashMap<RequestId, JobId>,
}

#[derive(Debug, Clone, Copy)]
struct Watched {
    job: JobId,
    /// It does not wait: it only wants to know how it stands.
    is_in_a_hurry: bool,
}

impl Watchers {
    pub(crate) fn count(&self) -> usize {
        self.jobs.len()
    }

    pub(crate) fn add(&mut self, request: RequestId, job: JobId) {
        self.jobs.insert(request, Watched { job, is_in_a_hurry: false });
        self.requests.entry(job).or_default().push(request);
    }

    /// Whether the store is to be asked now: else it has been, and the answer will do, or it is asked behind that answer.
    pub(crate) fn look_up(&mut self, request: RequestId, job: JobId) -> bool {
        let is_new = !self.looked_up.contains_key(&request);
        self.looked_up.entry(request).or_insert(job);
        is_new
    }

    /// The store has answered: about which job?
    pub(crate) fn looked_up(&mut self, request: RequestId) -> Option<JobId> {
        self.looked_up.remove(&request)
    }

    pub(crate) fn looked_up_count(&self) -> usize {
        self.looked_up.len()
    }

    pub(crate) fn remove(&mut self, request: RequestId) -> Option<JobId> {
        let Watched { job, .. } = self.jobs.remove(&request)?;
        if let Some(requests) = self.requests.get_mut(&job) {
            requests.retain(|other| *other != request);
            if requests.is_empty() {
                self.requests.remove(&job);
            }
        }
        Some(job)
    }

    pub(crate) fn job_of(&self, request: RequestId) -> Option<JobId> {
        self.jobs.get(&request).map(|watched| watched.job)
    }

    pub(crate) fn hurry(&mut self, request: RequestId) {
        if let Some(watched) = self.jobs.get_mut(&request) {
            watched.is_in_a_hurry = true;
        }
    }

    pub(crate) fn is_in_a_hurry(&self, request: RequestId) -> bool {
        self.jobs.get(&request).is_some_and(|watched| watched.is_in_a_hurry)
    }

    /// Those who wait for this job, in the order in which they came.
    pub(crate) fn of(&self, job: JobId) -> Vec<RequestId> {
        self.requests.get(&job).cloned().unwrap_or_default()
    }

    pub(crate) fn are_there(&self, job: JobId) -> bool {
        self.requests.contains_key(&job)
    }

    pub(crate) fn all(&self) -> Vec<(RequestId, JobId)> {
        let mut all: Vec<_> = self.jobs.iter().map(|(request, watched)| (*request, watched.job)).collect();
        all.sort_unstable();
        all
    }
}
