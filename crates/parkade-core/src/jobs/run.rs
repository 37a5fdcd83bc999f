//! A run of a job, and what becomes of the job when it has ended.

use std::time::Duration;

use crate::limits::{JOB_RETRY_MAX, JOB_RETRY_MIN};
use crate::structures::random::Random;
use parkade_model::{Ending, Failure, JobId, QueueId, Reason, Refusal, Verdict};

/// A job that is being run, or is about to be.
#[derive(Debug)]
pub struct Run {
    pub job: JobId,
    pub attempt: u32,
    /// The queue in which it has a place, until an abandoned stream keeps that.
    pub place: Option<QueueId>,
    pub retries: u32,
    /// How it went, as soon as that is known.
    pub fate: Option<Fate>,
}

/// How a run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Returned,
    /// `after`: when the code wants to be tried again.
    Failed {
        why: Failure,
        after: Option<Duration>,
    },
    /// The code does not want to be tried again.
    Discarded,
    Unknown,
}

impl Run {
    pub fn verdict(&self, ending: Ending, random: &mut Random) -> Verdict {
        match (ending, self.fate) {
            (Ending::Done, Some(Fate::Returned)) => Verdict::Completed,
            (Ending::Done, Some(Fate::Unknown)) => Verdict::Unknown,
            (Ending::Done, Some(Fate::Discarded)) => Verdict::Dead { why: Failure::Raised },
            (Ending::Done, Some(Fate::Failed { why, after })) => self.failed(why, after, random),
            (Ending::Done, None) => self.failed(Failure::Refused(Refusal::BadAnswer), None, random),
            (Ending::Cancelled(Reason::Operator), _) => Verdict::Cancelled,
            // It has no client. The server could not continue it.
            (Ending::Cancelled(Reason::ClientLeft), _) => {
                self.failed(Failure::Refused(Refusal::StoreUnavailable), None, random)
            }
            (Ending::Cancelled(Reason::Stopping), _) => Verdict::HandedBack,
            (Ending::Cancelled(Reason::Deadline), _) => self.failed(Failure::DeadlinePassed, None, random),
            (Ending::Cancelled(Reason::WorkerDied), _) => self.failed(Failure::WorkerDied, None, random),
        }
    }

    fn failed(&self, why: Failure, after: Option<Duration>, random: &mut Random) -> Verdict {
        if self.attempt > self.retries {
            return Verdict::Dead { why };
        }
        Verdict::Retry { after: after.unwrap_or_else(|| pause(self.attempt, random)), why }
    }
}

/// Exponential, with full jitter: jobs that failed together do not come back together.
fn pause(attempt: u32, random: &mut Random) -> Duration {
    let most = JOB_RETRY_MIN.saturating_mul(1 << attempt.saturating_sub(1).min(20)).min(JOB_RETRY_MAX);
    Duration::from_millis(random.below(u64::try_from(most.as_millis()).unwrap_or(u64::MAX) + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(attempt: u32, retries: u32, fate: Option<Fate>) -> Run {
        Run { job: JobId::new(1), attempt, place: Some(QueueId(0)), retries, fate }
    }

    #[test]
    fn so_often_is_it_tried_again() {
        let raised = Some(Fate::Failed { why: Failure::Raised, after: None });
        let verdict = |attempt, retries| run(attempt, retries, raised).verdict(Ending::Done, &mut Random::new(7));
        assert_eq!(verdict(1, 0), Verdict::Dead { why: Failure::Raised });
        assert!(matches!(verdict(1, 1), Verdict::Retry { why: Failure::Raised, .. }));
        assert_eq!(verdict(2, 1), Verdict::Dead { why: Failure::Raised });
    }

    #[test]
    fn pauses_grow_and_are_drawn_from_the_whole_range() {
        let mut random = Random::new(1);
        for attempt in 1..=40 {
            let most = JOB_RETRY_MIN.saturating_mul(1 << (attempt - 1).min(20)).min(JOB_RETRY_MAX);
            let drawn: Vec<Duration> = (0..200).map(|_| pause(attempt, &mut random)).collect();
            assert!(drawn.iter().all(|pause| *pause <= most), "{attempt}");
            assert!(drawn.iter().any(|pause| *pause < most / 4), "{attempt}");
            assert!(drawn.iter().any(|pause| *pause > most / 4 * 3), "{attempt}");
        }
    }

    #[test]
    fn a_server_that_stops_does_not_use_up_an_attempt() {
        let verdict = run(1, 0, None).verdict(Ending::Cancelled(Reason::Stopping), &mut Random::new(1));
        assert_eq!(verdict, Verdict::HandedBack);
    }
}
