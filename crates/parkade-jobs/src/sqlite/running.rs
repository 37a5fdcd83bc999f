//! Which jobs are running. In the file their rows stay those of ready jobs, and a claim is a row that lists the jobs
//! that it took. Jobs that end are removed from the list, so the jobs on a list when the file is opened were running
//! when the last server ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Result, params};

use super::limits::CLAIM_ROW_COUNT_MAX;
use crate::cluster::{ClaimId, ClaimNumber, InstanceId};
use crate::{IdMap, JobId, Wall};

pub struct RunningJobs {
    /// One opening of the file. Jobs claimed in another one are not running any more.
    instance: InstanceId,
    /// By order of insertion, each with its claim.
    runs: BTreeMap<i64, (i64, RunningJob)>,
    jobs: IdMap<JobId, i64>,
    /// The jobs of each claim that have not ended.
    claims: IdMap<i64, BTreeSet<i64>>,
    /// Claims whose rows have to be written.
    changed: BTreeSet<i64>,
    last_claim: i64,
    /// Uncommitted changes, to be undone.
    changes: Vec<Change>,
}

#[derive(Debug, Clone)]
pub struct RunningJob {
    pub id: JobId,
    pub job: i64,
    pub queue: Arc<str>,
    pub priority: i16,
    pub rank: i64,
    pub attempt: u32,
    pub started: Wall,
}

enum Change {
    Began { job: i64 },
    Ended { claim: i64, run: RunningJob },
}

impl RunningJobs {
    pub fn new() -> Self {
        Self {
            instance: InstanceId(fastrand::u128(..)),
            runs: BTreeMap::new(),
            jobs: IdMap::default(),
            claims: IdMap::default(),
            changed: BTreeSet::new(),
            last_claim: 0,
            changes: Vec::new(),
        }
    }

    /// Replaces the contents of the memory. Claims keep their ids, and no id is reused.
    pub fn replace(&mut self, read: Self) {
        *self = Self { instance: self.instance, last_claim: self.last_claim.max(read.last_claim), ..read };
    }

    /// The claims in the file.
    pub fn read(connection: &Connection) -> Result<Self> {
        let mut running = Self::new();
        let mut statement = connection.prepare("SELECT claim, started, jobs FROM claims")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (claim, started) = (row.get(0)?, Wall(row.get(1)?));
            for job in listed(row.get_ref(2)?.as_blob()?) {
                if let Some(run) = run(connection, job, started)? {
                    running.put(claim, run);
                }
            }
            running.last_claim = running.last_claim.max(claim);
        }
        Ok(running)
    }

    pub fn has(&self, job: i64) -> bool {
        self.runs.contains_key(&job)
    }

    pub fn of(&self, job: i64) -> Option<&RunningJob> {
        self.runs.get(&job).map(|(_, run)| run)
    }

    pub fn each(&self) -> impl DoubleEndedIterator<Item = &RunningJob> {
        self.runs.values().map(|(_, run)| run)
    }

    /// The claim for the next job that is taken, after this many by the same command.
    pub fn next_claim(&self, taken: usize) -> ClaimId {
        self.claim_id(self.last_claim + 1 + i64::try_from(taken / CLAIM_ROW_COUNT_MAX).unwrap_or(0))
    }

    /// Whether the claim was made since the file was opened.
    pub fn has_made(&self, claim: ClaimId) -> bool {
        claim.instance == self.instance && claim.number.0 <= self.last_claim
    }

    /// The jobs that one claim has taken.
    pub fn begin(&mut self, runs: Vec<RunningJob>) {
        for (place, run) in runs.into_iter().enumerate() {
            if place % CLAIM_ROW_COUNT_MAX == 0 {
                self.last_claim += 1;
                self.changed.insert(self.last_claim);
            }
            self.changes.push(Change::Began { job: run.job });
            self.put(self.last_claim, run);
        }
    }

    /// `None`: the job no longer runs because of this claim.
    pub fn end(&mut self, id: JobId, claim: ClaimId) -> Option<RunningJob> {
        let job = *self.jobs.get(&id)?;
        if self.claim_id(self.runs.get(&job)?.0) != claim {
            return None;
        }
        let (claim, run) = self.take(job)?;
        self.changed.insert(claim);
        self.changes.push(Change::Ended { claim, run: run.clone() });
        Some(run)
    }

    pub fn write(&mut self, connection: &Connection) -> Result<()> {
        for claim in std::mem::take(&mut self.changed) {
            let jobs = self.claims.get(&claim).filter(|jobs| !jobs.is_empty());
            let started = jobs.and_then(|jobs| self.of(*jobs.first()?)).map(|run| run.started);
            if let (Some(jobs), Some(started)) = (jobs, started) {
                let list: Vec<u8> = jobs.iter().flat_map(|job| job.to_be_bytes()).collect();
                let text = "INSERT OR REPLACE INTO claims (claim, started, jobs) VALUES (?, ?, ?)";
                connection.prepare_cached(text)?.execute(params![claim, started.0, list])?;
            } else {
                connection.prepare_cached("DELETE FROM claims WHERE claim = ?")?.execute([claim])?;
            }
        }
        Ok(())
    }

    pub fn committed(&mut self) {
        self.changes.clear();
    }

    pub fn mark(&self) -> usize {
        self.changes.len()
    }

    /// Undoes all changes since the mark.
    pub fn back_to(&mut self, mark: usize) {
        for change in self.changes.split_off(mark).into_iter().rev() {
            match change {
                Change::Began { job } => {
                    self.take(job);
                }
                Change::Ended { claim, run } => self.put(claim, run),
            }
        }
        if mark == 0 {
            // Nothing of the transaction is in the file.
            self.changed.clear();
        }
    }

    fn claim_id(&self, claim: i64) -> ClaimId {
        ClaimId { instance: self.instance, number: ClaimNumber(claim) }
    }

    fn put(&mut self, claim: i64, run: RunningJob) {
        self.jobs.insert(run.id, run.job);
        self.claims.entry(claim).or_default().insert(run.job);
        self.runs.insert(run.job, (claim, run));
    }

    fn take(&mut self, job: i64) -> Option<(i64, RunningJob)> {
        let (claim, run) = self.runs.remove(&job)?;
        self.jobs.remove(&run.id);
        if let Some(jobs) = self.claims.get_mut(&claim) {
            jobs.remove(&job);
            if jobs.is_empty() {
                self.claims.remove(&claim);
            }
        }
        Some((claim, run))
    }
}

fn listed(list: &[u8]) -> impl Iterator<Item = i64> {
    list.as_chunks().0.iter().map(|job| i64::from_be_bytes(*job))
}

fn run(connection: &Connection, job: i64, started: Wall) -> Result<Option<RunningJob>> {
    let text = "SELECT id, queue, priority, rank, attempt FROM jobs WHERE job = ?";
    let found = connection.prepare_cached(text)?.query_row([job], |row| {
        let id = JobId::from_bytes(row.get(0)?);
        let attempt = row.get::<_, u32>(4)? + 1;
        Ok(RunningJob { id, job, queue: row.get(1)?, priority: row.get(2)?, rank: row.get(3)?, attempt, started })
    });
    found.optional()
}
