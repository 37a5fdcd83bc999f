//! The database as far as servers share it: members, and where each job is. Each statement does what its SQL does, at one moment.

use std::collections::{BTreeMap, BTreeSet};

use parkade_jobs::cluster::{ClaimNumber, HeartbeatAnswer, InstanceId};

pub const DEAD_AFTER_MS: u64 = 10_000;
/// A jump of the clock shorter than the lease counts as silence, so a server may be declared dead so much earlier.
pub const SMALL_JUMP_MS_MAX: u64 = 1_000;

pub type Job = u32;

#[derive(Debug, Clone)]
pub enum Statement {
    Join(InstanceId),
    Heartbeat {
        instance: InstanceId,
        judges_after: Option<i64>,
    },
    Fence(InstanceId, ClaimNumber),
    HandBack(InstanceId, ClaimNumber),
    Rescue {
        by: usize,
    },
    Leave(Vec<InstanceId>),
    /// `free`: of those that may run at a time so many do not run at this server.
    Claim {
        instance: InstanceId,
        claim: ClaimNumber,
        free: usize,
        own: Vec<InstanceId>,
    },
    End {
        job: Job,
        attempt: u32,
        own: Vec<InstanceId>,
        is_final: bool,
        is_again: bool,
    },
}

#[derive(Debug, Clone)]
pub enum Answer {
    Done,
    Joined,
    Heartbeat(HeartbeatAnswer),
    /// `None`: the instance is no member, or the claim is fenced off.
    Claimed(Option<Vec<(Job, u32)>>),
    /// Whether the outcome counts.
    Ended(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Ready { attempt: u32 },
    Running { attempt: u32, instance: InstanceId, claim: ClaimNumber },
    Ended { attempt: u32, instance: InstanceId },
}

struct Row {
    /// By the database's clock.
    seen: i64,
    fence: i64,
    /// By a clock that never jumps.
    truly_seen: u64,
}

#[derive(Default)]
pub struct Database {
    rows: BTreeMap<InstanceId, Row>,
    pub jobs: BTreeMap<Job, Place>,
    /// By how much its clock is ahead of the true time.
    pub ahead_ms: i64,
}

/// What has happened, told to nobody but the test.
#[derive(Default)]
pub struct Model {
    pub seen: BTreeSet<&'static str>,
    pub dead: BTreeSet<InstanceId>,
    pub left: BTreeSet<InstanceId>,
    /// Attempts that were taken from their server.
    pub rescued: BTreeSet<(Job, u32)>,
    /// Attempts that a server has begun, ever.
    pub begun: BTreeSet<(Job, u32)>,
    /// Jobs whose outcome a server was told is its own.
    pub reported: BTreeSet<Job>,
    pub trace: Vec<String>,
    pub is_traced: bool,
}

impl Model {
    pub fn saw(&mut self, what: &'static str) {
        self.seen.insert(what);
    }

    pub fn note(&mut self, line: impl FnOnce() -> String) {
        if self.is_traced {
            self.trace.push(line());
        }
    }

    /// Whether an instance has lost what it runs.
    pub fn is_out(&self, instance: InstanceId) -> bool {
        self.dead.contains(&instance) || self.left.contains(&instance)
    }
}

impl Database {
    pub fn is_member(&self, instance: InstanceId) -> bool {
        self.rows.contains_key(&instance)
    }

    pub fn run(&mut self, now: u64, statement: &Statement, model: &mut Model) -> Answer {
        let clock = i64::try_from(now).unwrap() + self.ahead_ms;
        match statement {
            Statement::Join(instance) => {
                let row = self.rows.entry(*instance).or_insert(Row { seen: 0, fence: 0, truly_seen: 0 });
                (row.seen, row.truly_seen) = (clock, now);
                Answer::Joined
            }
            Statement::Heartbeat { instance, judges_after } => {
                self.heartbeat(now, clock, *instance, *judges_after, model)
            }
            Statement::Fence(instance, claim) => {
                if let Some(row) = self.rows.get_mut(instance) {
                    row.fence = row.fence.max(claim.0);
                }
                Answer::Done
            }
            Statement::HandBack(instance, claim) => {
                for (job, place) in &mut self.jobs {
                    if let Place::Running { attempt, instance: by, claim: of } = *place
                        && (by, of) == (*instance, *claim)
                    {
                        assert!(!model.begun.contains(&(*job, attempt)), "what is handed back nobody has begun");
                        *place = Place::Ready { attempt: attempt - 1 };
                        model.saw("handed back");
                    }
                }
                Answer::Done
            }
            Statement::Rescue { .. } => {
                for (job, place) in &mut self.jobs {
                    if let Place::Running { attempt, instance, .. } = *place
                        && !self.rows.contains_key(&instance)
                    {
                        assert!(model.is_out(instance), "a job is taken only from servers that are dead or have left");
                        model.rescued.insert((*job, attempt));
                        model.saw(if model.left.contains(&instance) { "handed over" } else { "rescued" });
                        *place = Place::Ready { attempt };
                    }
                }
                Answer::Done
            }
            Statement::Leave(instances) => {
                for instance in instances {
                    self.rows.remove(instance);
                    model.left.insert(*instance);
                }
                Answer::Done
            }
            Statement::Claim { instance, claim, free, own } => self.claim(*instance, *claim, *free, own, model),
            Statement::End { job, attempt, own, is_final, is_again } => {
                self.end(*job, *attempt, own, *is_final, *is_again, model)
            }
        }
    }

    /// `sql/heartbeat.sql`
    fn heartbeat(
        &mut self,
        now: u64,
        clock: i64,
        own: InstanceId,
        judges_after: Option<i64>,
        model: &mut Model,
    ) -> Answer {
        let is_silent = |seen: i64| clock.abs_diff(seen) > DEAD_AFTER_MS;
        let before = self.rows.get(&own).map(|row| row.seen);
        let silent: Vec<InstanceId> =
            self.rows.iter().filter(|(id, row)| **id != own && is_silent(row.seen)).map(|(id, _)| *id).collect();
        let mut declared_dead = 0;
        if !silent.is_empty() {
            if judges_after.is_none() {
                model.saw("not judged: this server is not steady");
            } else if before.is_none_or(is_silent) {
                model.saw("not judged: this server has been silent itself");
            } else if before != judges_after {
                model.saw("not judged: its last heartbeat may not be the last");
            } else {
                for instance in silent {
                    let row = self.rows.remove(&instance).unwrap();
                    let silence = now - row.truly_seen;
                    model.note(|| format!("{now} {own:?} declares {instance:?} dead, silent for {silence} ms"));
                    assert!(
                        silence >= DEAD_AFTER_MS - SMALL_JUMP_MS_MAX,
                        "a server is dead only after it was silent: {silence} ms"
                    );
                    model.dead.insert(instance);
                    model.saw("declared dead");
                    if self
                        .jobs
                        .values()
                        .any(|place| matches!(place, Place::Running { instance: by, .. } if *by == instance))
                    {
                        model.saw("declared dead while it runs jobs");
                    }
                    declared_dead += 1;
                }
            }
        }
        if let Some(row) = self.rows.get_mut(&own) {
            (row.seen, row.truly_seen) = (clock, now);
        }
        Answer::Heartbeat(HeartbeatAnswer { is_member: before.is_some(), declared_dead, now_ms: clock })
    }

    /// `sql/claim.sql`, and `parkade.room` of `sql/schema.sql`
    fn claim(
        &mut self,
        by: InstanceId,
        claim: ClaimNumber,
        free: usize,
        own: &[InstanceId],
        model: &mut Model,
    ) -> Answer {
        let Some(row) = self.rows.get(&by) else {
            model.saw("claim refused: its instance is dead");
            return Answer::Claimed(None);
        };
        if row.fence >= claim.0 {
            model.saw("claim carried out after it was fenced");
            return Answer::Claimed(None);
        }
        let is_others = |place: &&Place| matches!(place, Place::Running { instance, .. } if !own.contains(instance));
        let others = self.jobs.values().filter(is_others).count();
        if free > 0 && others >= free {
            model.saw("limit reached by others");
        }
        let mut taken = Vec::new();
        for (job, place) in &mut self.jobs {
            if let Place::Ready { attempt } = *place
                && taken.len() < free.saturating_sub(others)
            {
                *place = Place::Running { attempt: attempt + 1, instance: by, claim };
                taken.push((*job, attempt + 1));
            }
        }
        Answer::Claimed(Some(taken))
    }

    /// `sql/end.sql`
    fn end(
        &mut self,
        job: Job,
        attempt: u32,
        own: &[InstanceId],
        is_final: bool,
        is_again: bool,
        model: &mut Model,
    ) -> Answer {
        let place = self.jobs.get_mut(&job).unwrap();
        let counts = match *place {
            Place::Running { attempt: of, instance, .. } if of == attempt && own.contains(&instance) => {
                *place = if is_final { Place::Ended { attempt, instance } } else { Place::Ready { attempt } };
                if model.dead.contains(&instance) {
                    model.saw("outcome counted before a dead server's jobs were rescued");
                }
                true
            }
            Place::Ended { attempt: of, instance } if is_again && of == attempt && own.contains(&instance) => {
                model.saw("outcome counted though it was reported twice");
                true
            }
            Place::Ready { .. } | Place::Running { .. } | Place::Ended { .. } => false,
        };
        Answer::Ended(counts)
    }
}
