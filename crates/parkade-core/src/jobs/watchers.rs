//! Who waits for which job to end.

use std::collections::HashMap;

use parkade_model::{ChannelName, Cursor, JobCaller, JobId, RequestId};

#[derive(Debug, Default)]
pub(crate) struct Watchers {
    jobs: HashMap<RequestId, Watched>,
    requests: HashMap<JobId, Vec<RequestId>>,
    /// About which jobs the store is being asked: once at a time for each request, so that an answer is never taken for that to a later question.
    looked_up: HashMap<RequestId, Asked>,
}

#[derive(Debug)]
struct Watched {
    asked: Asked,
    wants: Wants,
    /// It has ended since the store was asked, which may not have known that.
    has_ended: bool,
}

/// About which job somebody wants to know, and who that is: what one is told is no answer to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) job: JobId,
    pub(crate) asker: JobCaller,
}

/// What somebody wants of a job.
#[derive(Debug)]
pub(crate) enum Wants {
    /// To be told when it has ended.
    End,
    /// Only to be told how it stands.
    Standing,
    /// What is said of it on this channel, if there is such a job.
    Stream { channel: ChannelName, since: Option<Cursor> },
}

impl Watchers {
    pub(crate) fn count(&self) -> usize {
        self.jobs.len()
    }

    pub(crate) fn add(&mut self, request: RequestId, asked: Asked, wants: Wants) {
        self.jobs.insert(request, Watched { asked, wants, has_ended: false });
        self.requests.entry(asked.job).or_default().push(request);
    }

    /// Whether the store is to be asked now: else it has been, and the answer will do, or it is asked behind that answer.
    pub(crate) fn look_up(&mut self, request: RequestId, asked: Asked) -> bool {
        let is_new = !self.looked_up.contains_key(&request);
        self.looked_up.entry(request).or_insert(asked);
        is_new
    }

    /// The store has answered: what?
    pub(crate) fn looked_up(&mut self, request: RequestId) -> Option<Asked> {
        self.looked_up.remove(&request)
    }

    /// Whether the store has not answered yet.
    pub(crate) fn is_looked_up(&self, request: RequestId) -> bool {
        self.looked_up.contains_key(&request)
    }

    /// It has ended while the store is being asked.
    pub(crate) fn note_end(&mut self, request: RequestId) {
        if let Some(watched) = self.jobs.get_mut(&request) {
            watched.has_ended = true;
        }
    }

    /// Whether that was noted; it is, once.
    pub(crate) fn take_end(&mut self, request: RequestId) -> bool {
        self.jobs.get_mut(&request).is_some_and(|watched| std::mem::take(&mut watched.has_ended))
    }

    pub(crate) fn looked_up_count(&self) -> usize {
        self.looked_up.len()
    }

    pub(crate) fn remove(&mut self, request: RequestId) -> Option<JobId> {
        let job = self.jobs.remove(&request)?.asked.job;
        if let Some(requests) = self.requests.get_mut(&job) {
            requests.retain(|other| *other != request);
            if requests.is_empty() {
                self.requests.remove(&job);
            }
        }
        Some(job)
    }

    pub(crate) fn job_of(&self, request: RequestId) -> Option<JobId> {
        self.asked(request).map(|asked| asked.job)
    }

    pub(crate) fn asked(&self, request: RequestId) -> Option<Asked> {
        self.jobs.get(&request).map(|watched| watched.asked)
    }

    pub(crate) fn hurry(&mut self, request: RequestId) {
        if let Some(Watched { wants: wants @ Wants::End, .. }) = self.jobs.get_mut(&request) {
            *wants = Wants::Standing;
        }
    }

    pub(crate) fn is_in_a_hurry(&self, request: RequestId) -> bool {
        self.jobs.get(&request).is_some_and(|watched| !matches!(watched.wants, Wants::End))
    }

    pub(crate) fn follows(&self, request: RequestId) -> bool {
        self.stream_of(request).is_some()
    }

    /// The channel on which it follows the job.
    pub(crate) fn stream_of(&self, request: RequestId) -> Option<(ChannelName, Option<Cursor>)> {
        match &self.jobs.get(&request)?.wants {
            Wants::Stream { channel, since } => Some((channel.clone(), *since)),
            Wants::End | Wants::Standing => None,
        }
    }

    /// Those who wait for this job, in the order in which they came.
    pub(crate) fn of(&self, job: JobId) -> Vec<RequestId> {
        self.requests.get(&job).cloned().unwrap_or_default()
    }

    pub(crate) fn are_there(&self, job: JobId) -> bool {
        self.requests.contains_key(&job)
    }

    pub(crate) fn all(&self) -> Vec<(RequestId, JobId)> {
        let mut all: Vec<_> = self.jobs.iter().map(|(request, watched)| (*request, watched.asked.job)).collect();
        all.sort_unstable();
        all
    }
}
