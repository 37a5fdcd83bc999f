//! One server: its membership, and what it runs. It drives the membership as `PostgresStore` does.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use parkade_jobs::cluster::{ClaimNumber, InstanceId, Member, MemberStep, Timing};

use super::database::{Answer, DEAD_AFTER_MS, Job, Model, Statement};

/// All servers together run at most so many jobs at a time.
pub const LIMIT: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatementKind {
    Heartbeat,
    Step,
    Claim,
    End,
}

/// Who waits for a statement.
#[derive(Debug, Clone, Copy)]
pub enum Purpose {
    Step(MemberStep),
    Claim(ClaimNumber, InstanceId),
    End(Outcome),
}

impl Purpose {
    pub fn kind(&self) -> StatementKind {
        match self {
            Self::Step(MemberStep::Heartbeat { .. }) => StatementKind::Heartbeat,
            Self::Step(_) => StatementKind::Step,
            Self::Claim(..) => StatementKind::Claim,
            Self::End(_) => StatementKind::End,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    pub job: Job,
    pub attempt: u32,
    instance: InstanceId,
    is_final: bool,
    is_again: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub attempt: u32,
    /// Under which it was claimed.
    pub instance: InstanceId,
    ends_at: u64,
    is_final: bool,
}

/// From its start to its end or its death.
pub struct Process {
    pub member: Member,
    pub runs: BTreeMap<Job, Run>,
    outcomes: VecDeque<Outcome>,
    pub under_way: BTreeMap<StatementKind, u64>,
    /// Its clock: when it started, and how much faster than the true time it goes, in thousandths.
    epoch: Instant,
    drift: i64,
    /// It claims no earlier: the last claim found nothing.
    claims_at: u64,
    number: usize,
}

impl Process {
    pub fn new(random: &mut fastrand::Rng, epoch: Instant, number: usize) -> Self {
        let timing = Timing {
            heartbeat: Duration::from_secs(2),
            dead_after: Duration::from_millis(DEAD_AFTER_MS),
            rescue: Duration::from_secs(5),
        };
        let drift = random.i64(-20..=20);
        let mut process = Self {
            member: Member::new(random.fork(), timing),
            runs: BTreeMap::new(),
            outcomes: VecDeque::new(),
            under_way: BTreeMap::new(),
            epoch,
            drift,
            claims_at: 0,
            number,
        };
        process.member.join(process.clock(0));
        process
    }

    pub fn clock(&self, now: u64) -> Instant {
        let now = i64::try_from(now).unwrap();
        self.epoch + Duration::from_millis((now + now * self.drift / 1_000).unsigned_abs())
    }

    pub fn leave(&mut self) {
        // Their code is killed; the others have them after the farewell.
        self.runs.clear();
        self.member.leave();
    }

    /// What it asks the database now.
    pub fn wake(&mut self, now: u64) -> Vec<(Purpose, Statement)> {
        let ended: Vec<Job> = self.runs.iter().filter(|(_, run)| run.ends_at <= now).map(|(job, _)| *job).collect();
        for job in ended {
            let Run { attempt, instance, is_final, .. } = self.runs.remove(&job).unwrap();
            self.outcomes.push_back(Outcome { job, attempt, instance, is_final, is_again: false });
        }
        let clock = self.clock(now);
        let mut asked = Vec::new();
        if !self.under_way.contains_key(&StatementKind::Heartbeat)
            && let Some(step) = self.member.next_heartbeat(clock)
        {
            asked.push((Purpose::Step(step), self.statement(step)));
        }
        let is_settled = self.outcomes.is_empty()
            && !self.under_way.contains_key(&StatementKind::Claim)
            && !self.under_way.contains_key(&StatementKind::End);
        if !self.under_way.contains_key(&StatementKind::Step)
            && let Some(step) = self.member.next_step(clock, is_settled)
        {
            asked.push((Purpose::Step(step), self.statement(step)));
        }
        if !self.member.is_joined() {
            return asked;
        }
        let own: Vec<InstanceId> = self.member.instances().collect();
        let free = LIMIT.saturating_sub(self.runs.len());
        if !self.under_way.contains_key(&StatementKind::Claim)
            && self.claims_at <= now
            && self.member.may_claim()
            && !self.member.is_ending()
            && free > 0
        {
            let (instance, claim) = (self.member.instance(), self.member.begin_claim());
            asked.push((Purpose::Claim(claim, instance), Statement::Claim { instance, claim, free, own: own.clone() }));
        }
        if !self.under_way.contains_key(&StatementKind::End)
            && let Some(outcome) = self.outcomes.pop_front()
        {
            let Outcome { job, attempt, is_final, is_again, .. } = outcome;
            asked.push((Purpose::End(outcome), Statement::End { job, attempt, own, is_final, is_again }));
        }
        asked
    }

    fn statement(&self, step: MemberStep) -> Statement {
        let instance = self.member.instance();
        match step {
            MemberStep::Join => Statement::Join(instance),
            MemberStep::Heartbeat { judges_after } => Statement::Heartbeat { instance, judges_after },
            MemberStep::Fence(claim) => Statement::Fence(instance, claim),
            MemberStep::HandBack(claim) => Statement::HandBack(instance, claim),
            MemberStep::Rescue | MemberStep::HandOver => Statement::Rescue { by: self.number },
            MemberStep::Leave => Statement::Leave(self.member.instances().collect()),
        }
    }

    pub fn answered(
        &mut self,
        now: u64,
        purpose: &Purpose,
        answer: &Answer,
        random: &mut fastrand::Rng,
        model: &mut Model,
    ) {
        let clock = self.clock(now);
        let was_joined = self.member.is_joined();
        match (purpose, answer) {
            (Purpose::Step(_), Answer::Heartbeat(answer)) => {
                self.member.heartbeat_answered(clock, *answer);
                if was_joined && !self.member.is_joined() {
                    model.saw("noticed its death by a heartbeat");
                }
            }
            (Purpose::Step(step), _) => {
                if *step == MemberStep::Join && self.member.instances().count() > 1 {
                    model.saw("rejoined as a new instance");
                }
                self.member.done(clock, *step);
            }
            (Purpose::Claim(..), Answer::Claimed(None)) => self.member.declared_dead(),
            (Purpose::Claim(_, instance), Answer::Claimed(Some(jobs))) => {
                if jobs.is_empty() {
                    self.claims_at = now + 300;
                }
                for (job, attempt) in jobs {
                    assert!(model.begun.insert((*job, *attempt)), "no attempt is begun twice");
                    if model.is_out(*instance) {
                        model.saw("begun under a dead instance");
                    }
                    // Claimed while it leaves: nothing is begun any more, and the farewell hands it over.
                    if !self.member.is_ending() {
                        let length = if random.u8(..6) == 0 { 5_000..20_000 } else { 20..3_000 };
                        let run = Run {
                            attempt: *attempt,
                            instance: *instance,
                            ends_at: now + random.u64(length),
                            is_final: random.u8(..10) > 0,
                        };
                        self.runs.insert(*job, run);
                    }
                }
            }
            (Purpose::End(outcome), Answer::Ended(true)) => {
                let Outcome { job, attempt, is_final, .. } = *outcome;
                assert!(!model.rescued.contains(&(job, attempt)), "what was taken from a server is not its to report");
                assert!(!is_final || model.reported.insert(job), "a job has one outcome");
            }
            (Purpose::End(outcome), Answer::Ended(false)) => {
                assert!(
                    outcome.is_again || model.is_out(outcome.instance),
                    "an outcome is stale only where its server was declared dead"
                );
                model.saw("stale outcome noticed");
            }
            (Purpose::Claim(..) | Purpose::End(_), _) => unreachable!("an answer of another kind"),
        }
    }

    /// `is_certain`: it has not been carried out and will not be.
    pub fn failed(&mut self, now: u64, purpose: Purpose, is_certain: bool) {
        match purpose {
            Purpose::Step(step) => self.member.failed(self.clock(now), step),
            Purpose::Claim(..) if is_certain => {}
            // One under an earlier instance took nothing that is not rescued.
            Purpose::Claim(claim, _) => self.member.claim_unanswered(claim),
            Purpose::End(outcome) => {
                self.outcomes.push_front(Outcome { is_again: outcome.is_again || !is_certain, ..outcome });
            }
        }
    }
}
