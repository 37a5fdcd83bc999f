//! Which requests wait for which job to end.

use std::collections::HashMap;

use parkade_model::{ChannelName, Cursor, IdMap, JobCaller, JobId, RequestId};

#[derive(Debug, Default)]
pub struct Watchers {
    jobs: IdMap<RequestId, JobWatch>,
    /// Clients name these ids.
    requests: HashMap<JobId, Vec<RequestId>>,
    /// About which jobs the store is being asked: once at a time for each request, so that an answer is never taken for that to a later question.
    looked_up: IdMap<RequestId, JobQuestion>,
}

#[derive(Debug)]
struct JobWatch {
    asked: JobQuestion,
    wants: Wants,
    /// A client waits for it, not code of the application.
    is_client: bool,
    /// It has ended since the store was asked, which may not have known that.
    has_ended: bool,
}

/// The job that a request asks about, and the request: an answer for one of them is no answer for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobQuestion {
    pub job: JobId,
    pub asker: JobCaller,
}

/// What a request wants to know about a job.
#[derive(Debug)]
pub enum Wants {
    /// To be told when it has ended.
    End,
    /// Only to be told how it stands.
    Standing,
    /// What is said of it on this channel, if there is such a job.
    Stream { channel: ChannelName, since: Option<Cursor> },
    /// That it ends.
    Cancel(Cancelling),
}

/// How far that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelling {
    /// It is not known yet whether there is such a job for this client.
    Wanted,
    /// It is not known yet whether it will end.
    Begun,
    Known {
        will_end: bool,
    },
}

impl Watchers {
    pub fn count(&self) -> usize {
        self.jobs.len()
    }

    pub fn add(&mut self, request: RequestId, asked: JobQuestion, wants: Wants, is_client: bool) {
        self.jobs.insert(request, JobWatch { asked, wants, is_client, has_ended: false });
        self.requests.entry(asked.job).or_default().push(request);
    }

    /// Whether the store is to be asked now: else it has been, and the answer will do, or it is asked after that answer.
    pub fn look_up(&mut self, request: RequestId, asked: JobQuestion) -> bool {
        let is_new = !self.looked_up.contains_key(&request);
        self.looked_up.entry(request).or_insert(asked);
        is_new
    }

    /// The store has answered: what?
    pub fn looked_up(&mut self, request: RequestId) -> Option<JobQuestion> {
        self.looked_up.remove(&request)
    }

    /// Whether a client is to be told, and the store has not said yet what.
    pub fn is_client_asking(&self, request: RequestId) -> bool {
        let Some(watched) = self.jobs.get(&request).filter(|watched| watched.is_client) else { return false };
        self.looked_up.contains_key(&request) || matches!(watched.wants, Wants::Cancel(Cancelling::Begun))
    }

    /// How far the end of the job is that the request wants. `None`: it wants something else.
    pub fn cancelling(&self, request: RequestId) -> Option<Cancelling> {
        match self.jobs.get(&request)?.wants {
            Wants::Cancel(cancelling) => Some(cancelling),
            Wants::End | Wants::Standing | Wants::Stream { .. } => None,
        }
    }

    /// It is let in, and what it wants has begun.
    pub fn begin_cancelling(&mut self, request: RequestId) {
        if let Some(watched) = self.jobs.get_mut(&request) {
            watched.asked.asker = JobCaller::Guest;
            watched.wants = Wants::Cancel(Cancelling::Begun);
        }
    }

    /// It is known whether the job will end. Returns what is to be asked for the answer, unless the request has ended meanwhile.
    pub fn end_cancelling(&mut self, request: RequestId, will_end: bool) -> Option<JobQuestion> {
        let watched = self.jobs.get_mut(&request)?;
        if !matches!(watched.wants, Wants::Cancel(Cancelling::Begun)) {
            return None;
        }
        watched.wants = Wants::Cancel(Cancelling::Known { will_end });
        Some(watched.asked)
    }

    /// It has ended while the store is being asked.
    pub fn note_end(&mut self, request: RequestId) {
        if let Some(watched) = self.jobs.get_mut(&request) {
            watched.has_ended = true;
        }
    }

    /// Whether that was noted; it is, once.
    pub fn take_end(&mut self, request: RequestId) -> bool {
        self.jobs.get_mut(&request).is_some_and(|watched| std::mem::take(&mut watched.has_ended))
    }

    pub fn looked_up_count(&self) -> usize {
        self.looked_up.len()
    }

    pub fn remove(&mut self, request: RequestId) {
        let Some(JobWatch { asked: JobQuestion { job, .. }, .. }) = self.jobs.remove(&request) else { return };
        if let Some(requests) = self.requests.get_mut(&job) {
            requests.retain(|other| *other != request);
            if requests.is_empty() {
                self.requests.remove(&job);
            }
        }
    }

    pub fn job_of(&self, request: RequestId) -> Option<JobId> {
        self.asked(request).map(|asked| asked.job)
    }

    pub fn asked(&self, request: RequestId) -> Option<JobQuestion> {
        self.jobs.get(&request).map(|watched| watched.asked)
    }

    pub fn hurry(&mut self, request: RequestId) {
        if let Some(JobWatch { wants: wants @ Wants::End, .. }) = self.jobs.get_mut(&request) {
            *wants = Wants::Standing;
        }
    }

    pub fn is_in_a_hurry(&self, request: RequestId) -> bool {
        self.jobs.get(&request).is_some_and(|watched| !matches!(watched.wants, Wants::End))
    }

    /// The channel on which it follows the job.
    pub fn stream_of(&self, request: RequestId) -> Option<(ChannelName, Option<Cursor>)> {
        match &self.jobs.get(&request)?.wants {
            Wants::Stream { channel, since } => Some((channel.clone(), *since)),
            Wants::End | Wants::Standing | Wants::Cancel(_) => None,
        }
    }

    /// Those who wait for this job, in the order in which they came.
    pub fn of(&self, job: JobId) -> Vec<RequestId> {
        self.requests.get(&job).cloned().unwrap_or_default()
    }

    pub fn are_there(&self, job: JobId) -> bool {
        self.requests.contains_key(&job)
    }

    pub fn all(&self) -> Vec<(RequestId, JobId)> {
        let mut all: Vec<_> = self.jobs.iter().map(|(request, watched)| (*request, watched.asked.job)).collect();
        all.sort_unstable();
        all
    }
}
