//! Runs of jobs, by the name of the job.

use std::collections::HashMap;
use std::time::Duration;

use super::Histogram;
use super::limits::JOBS_COUNT_MAX;

/// What became of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOutcome {
    Completed,
    Retried,
    Dead,
    Cancelled,
    HandedBack,
    Unknown,
}

/// Runs of one job that have ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunCounts {
    by_outcome: [u64; RunOutcome::ALL.len()],
    /// From the beginning of its code to the end of the run, waits included.
    pub seconds: Histogram,
}

/// All of them, by the name of the job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunStatistics {
    by_name: HashMap<Box<str>, RunCounts>,
    /// Of jobs that the application does not declare, and beyond the bound.
    other: RunCounts,
}

impl RunOutcome {
    pub const ALL: [Self; 6] =
        [Self::Completed, Self::Retried, Self::Dead, Self::Cancelled, Self::HandedBack, Self::Unknown];

    pub const fn words(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Retried => "retried",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
            Self::HandedBack => "handed back",
            Self::Unknown => "unknown",
        }
    }
}

impl RunCounts {
    pub fn count(&self) -> u64 {
        self.by_outcome.iter().sum()
    }

    pub fn of(&self, outcome: RunOutcome) -> u64 {
        self.by_outcome[outcome as usize]
    }
}

impl RunStatistics {
    /// `declared`: the name of the job, if the application that serves declares it. `took`: `None` if its code did not
    /// begin.
    pub fn record(&mut self, declared: Option<&str>, outcome: RunOutcome, took: Option<Duration>) {
        let has_room = self.by_name.len() < JOBS_COUNT_MAX;
        let counts = match declared {
            Some(name) if self.by_name.contains_key(name) || has_room => self.by_name.entry(name.into()).or_default(),
            Some(_) | None => &mut self.other,
        };
        counts.by_outcome[outcome as usize] += 1;
        if let Some(took) = took {
            counts.seconds.observe(took);
        }
    }

    /// By name, in alphabetical order.
    pub fn named(&self) -> Vec<(&str, &RunCounts)> {
        let mut named: Vec<_> = self.by_name.iter().map(|(name, counts)| (&**name, counts)).collect();
        named.sort_unstable_by_key(|(name, _)| *name);
        named.extend((self.other.count() > 0).then_some(("other", &self.other)));
        named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_by_declared_names_up_to_a_bound() {
        let mut runs = RunStatistics::default();
        runs.record(Some("mail"), RunOutcome::Completed, Some(Duration::from_millis(20)));
        runs.record(Some("mail"), RunOutcome::Dead, None);
        runs.record(None, RunOutcome::Unknown, None);
        let named = runs.named();
        let (name, mail) = named[0];
        assert_eq!((name, mail.count(), mail.of(RunOutcome::Dead)), ("mail", 2, 1));
        assert_eq!(mail.seconds.sum(), Duration::from_millis(20));
        assert_eq!((named[1].0, named[1].1.of(RunOutcome::Unknown)), ("other", 1));
        for number in 0..2 * JOBS_COUNT_MAX {
            runs.record(Some(&format!("job {number}")), RunOutcome::Completed, None);
        }
        assert_eq!(runs.named().len(), JOBS_COUNT_MAX + 1);
    }
}
