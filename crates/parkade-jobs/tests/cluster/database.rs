//! The database as far as servers share it: members, and where each job is. Each statement does what its SQL does, at one moment.

use std::collections::{BTreeMap, BTreeSet};

use parkade_jobs::cluster::{ClaimId, ClaimNumber, HeartbeatAnswer, InstanceId};

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
        claim: ClaimId,
        free: usize,
        own: Vec<InstanceId>,
    },
    End {
        job: Job,
        claim: ClaimId,
        ending: Ending,
        is_again: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Completed,
    Retry,
    /// The attempt does not count.
    HandedBack,
}

#[derive(Debug, Clone)]
pub enum Answer {
    Done,
    Joined,
    Heartbeat(HeartbeatAnswer),
    /// `None`: the instance is no member, or the claim is fenced off.
    Claimed(Option<Vec<Job>>),
    /// Whether the outcome counts.
    Ended(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Ready { attempt: u32 },
    Running { attempt: u32, claim: ClaimId },
    Ended { instance: InstanceId },
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
    pub rescued: BTreeSet<(Job, ClaimId)>,
    /// Attempts that a server has begun, ever.
    pub begun: BTreeSet<(Job, ClaimId)>,
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
                    if let Place::Running { attempt, claim: of } = *place
                        && of == (ClaimId { instance: *instance, number: *claim })
                    {
                        assert!(!model.begun.contains(&(*job, of)), "what is handed back nobody has begun");
                        *place = Place::Ready { attempt: attempt - 1 };
                        model.saw("handed back");
                    }
                }
                Answer::Done
            }
            Statement::Rescue { .. } => {
                for (job, place) in &mut self.jobs {
                    if let Place::Running { attempt, claim } = *place
                        && !self.rows.contains_key(&claim.instance)
                    {
                        assert!(
                            model.is_out(claim.instance),
                            "a job is taken only from servers that are dead or have left"
                        );
                        model.rescued.insert((*job, claim));
                        model.saw(if model.left.contains(&claim.instance) { "handed over" } else { "rescued" });
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
            Statement::Claim { claim, free, own } => self.claim(*claim, *free, own, model),
            Statement::End { job, claim, ending, is_again } => self.end(*job, *claim, *ending, *is_again, model),
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
                        .any(|place| matches!(place, Place::Running { claim, .. } if claim.instance == instance))
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
    fn claim(&mut self, by: ClaimId, free: usize, own: &[InstanceId], model: &mut Model) -> Answer {
        let Some(row) = self.rows.get(&by.instance) else {
            model.saw("claim refused: its instance is dead");
            return Answer::Claimed(None);
        };
        if row.fence >= by.number.0 {
            model.saw("claim carried out after it was fenced");
            return Answer::Claimed(None);
        }
        let is_others =
            |place: &&Place| matches!(place, Place::Running { claim, .. } if !own.contains(&claim.instance));
        let others = self.jobs.values().filter(is_others).count();
        if free > 0 && others >= free {
            model.saw("limit reached by others");
        }
        let mut taken = Vec::new();
        for (job, place) in &mut self.jobs {
            if let Place::Ready { attempt } = *place
                && taken.len() < free.saturating_sub(others)
            {
                *place = Place::Running { attempt: attempt + 1, claim: by };
                taken.push(*job);
            }
        }
        Answer::Claimed(Some(taken))
    }

    /// `sql/end.sql`
    fn end(&mut self, job: Job, by: ClaimId, ending: Ending, is_again: bool, model: &mut Model) -> Answer {
        let place = self.jobs.get_mut(&job).unwrap();
        if let Place::Running { attempt, claim } = *place
            && claim == by
        {
            *place = match ending {
                Ending::Completed => Place::Ended { instance: by.instance },
                Ending::Retry => Place::Ready { attempt },
                Ending::HandedBack => Place::Ready { attempt: attempt - 1 },
            };
            if model.dead.contains(&by.instance) {
                model.saw("outcome counted before a dead server's jobs were rescued");
            }
            return Answer::Ended(true);
        }
        if matches!(*place, Place::Running { claim, .. } if claim.instance == by.instance) {
            model.saw("outcome of a claim reported while the next claim of its server has the job");
        }
        let is_in_ended = ending == Ending::Completed && *place == Place::Ended { instance: by.instance };
        let counts = is_again && (is_in_ended || self.rows.contains_key(&by.instance));
        if counts {
            model.saw("outcome counted though it was reported twice");
            if ending != Ending::Completed {
                model.saw("outcome of a job that goes on counted though it was reported twice");
            }
        }
        Answer::Ended(counts)
    }
}
