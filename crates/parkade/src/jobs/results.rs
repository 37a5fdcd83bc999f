//! How jobs ended, for those who wait for them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

use parkade_core::JobLookup;
use parkade_jobs::{JobEnding, JobRecord, JobState};
use parkade_model::JobId;
use parkade_wire::WaitOutcome;

use super::response;
use crate::job_values::Made;

/// Kept until the core says that they are not needed.
#[derive(Debug, Default)]
pub struct Results {
    ended: HashMap<JobId, KeptEnding>,
}

#[derive(Debug)]
struct KeptEnding {
    ending: JobEnding,
    /// The response to clients. The first one that needs it makes it, and all get the same bytes.
    response: Option<Result<Rc<Made>, Rc<str>>>,
}

impl Results {
    pub fn of(&self, job: JobId) -> Option<&JobEnding> {
        self.ended.get(&job).map(|kept| &kept.ending)
    }

    pub fn drop(&mut self, job: JobId) {
        self.ended.remove(&job);
    }

    pub fn keep(&mut self, job: JobId, ending: JobEnding) {
        match self.ended.entry(job) {
            Entry::Occupied(kept) if kept.get().ending == ending => {}
            Entry::Occupied(mut kept) => drop(kept.insert(KeptEnding { ending, response: None })),
            Entry::Vacant(place) => drop(place.insert(KeptEnding { ending, response: None })),
        }
    }

    /// The result as a response; `None` if the job has not completed.
    pub fn response(&mut self, job: JobId) -> Option<Result<Rc<Made>, Rc<str>>> {
        let kept = self.ended.get_mut(&job)?;
        let JobEnding::Completed { result } = &kept.ending else { return None };
        let response = kept.response.get_or_insert_with(|| Ok(Rc::new(response::response(result)?)));
        Some(response.clone())
    }

    /// The outcome for a function or a coroutine that has waited for the job.
    pub fn wire_outcome(&self, job: JobId, standing: JobLookup) -> WaitOutcome<'_> {
        let id = job;
        let none = |reason: &'static str, text: &str| WaitOutcome::NoResult {
            id,
            reason: reason.into(),
            text: text.to_owned().into(),
        };
        match (standing, self.of(job)) {
            (JobLookup::Pending, _) => WaitOutcome::Pending { id },
            (JobLookup::Missing, _) | (JobLookup::Ended, None) => {
                none("missing", "no such job; it may have been deleted")
            }
            (JobLookup::Ended, Some(JobEnding::Completed { result })) => {
                WaitOutcome::Result { id, result: result.as_ref().into() }
            }
            (JobLookup::Ended, Some(JobEnding::Dead { error })) => none("dead", error),
            (JobLookup::Ended, Some(JobEnding::Cancelled)) => none("cancelled", "the job was cancelled"),
        }
    }
}

/// How the job ended, or the job if it has not.
pub fn ending(job: JobRecord) -> Result<JobEnding, Box<JobRecord>> {
    match job.state {
        JobState::Completed => Ok(JobEnding::Completed { result: job.result.unwrap_or_default() }),
        JobState::Dead => Ok(JobEnding::Dead { error: job.error.unwrap_or_default() }),
        JobState::Cancelled => Ok(JobEnding::Cancelled),
        JobState::Scheduled | JobState::Ready | JobState::Running | JobState::Unknown => Err(Box::new(job)),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_result_is_written_once_for_all_who_wait_for_it() {
        let (job, mut results) = (JobId::new(7), Results::default());
        let completed = |result| JobEnding::Completed { result: Bytes::from_static(result) };
        results.keep(job, completed(b"\x91\x01"));
        let first = results.response(job).unwrap().unwrap();
        assert_eq!(&first.body[..], b"[1]");
        results.keep(job, completed(b"\x91\x01"));
        assert!(Rc::ptr_eq(&first, &results.response(job).unwrap().unwrap()));
        results.keep(job, completed(b"\x91\x02"));
        assert_eq!(&results.response(job).unwrap().unwrap().body[..], b"[2]", "it was run again");
        results.keep(job, completed(b"\xc1"));
        assert!(results.response(job).unwrap().is_err());
        results.keep(job, JobEnding::Cancelled);
        assert!(results.response(job).is_none());
        results.drop(job);
        assert!(results.of(job).is_none() && results.response(job).is_none());
    }
}
