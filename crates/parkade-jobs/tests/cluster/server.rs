//! One server: its membership, and what it runs. It drives the membership as `PostgresStore` does.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use parkade_jobs::cluster::{ClaimId, InstanceId, Member, MemberStep, Timing};

use super::database::{Answer, DEAD_AFTER_MS, Ending, Job, Model, Statement};

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
    Claim(ClaimId),
    End(Outcome),
}

impl Purpose {
    pub fn kind(&self) -> StatementKind {
        match self {
            Self::Step(MemberStep::Heartbeat { .. }) => StatementKind::Heartbeat,
            Self::Step(_) => StatementKind::Step,
            Self::Claim(_) => StatementKind::Claim,
            Self::End(_) => StatementKind::End,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    pub job: Job,
    claim: ClaimId,
    ending: Ending,
    is_again: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub claim: ClaimId,
    ends_at: u64,
    ending: Ending,
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
            let Run { claim, ending, .. } = self.runs.remove(&job).unwrap();
            self.outcomes.push_back(Outcome { job, claim, ending, is_again: false });
        }
        let clock = self.clock(now);
        let mut asked = Vec::new();
        if let Some(step) = self.member.next_heartbeat(clock) {
            // In the place of one that hangs.
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
            let claim = self.member.begin_claim();
            asked.push((Purpose::Claim(claim), Statement::Claim { claim, free, own }));
        }
        if !self.under_way.contains_key(&StatementKind::End)
            && let Some(outcome) = self.outcomes.pop_front()
        {
            let Outcome { job, claim, ending, is_again } = outcome;
            asked.push((Purpose::End(outcome), Statement::End { job, claim, ending, is_again }));
        }
        asked
    }

    fn statement(&self, step: MemberStep) -> Statement {
        let instance = self.member.instance();
        match step {
            MemberStep::Join => Statement::Join(instance),
            MemberStep::Heartbeat { instance, judges_after } => Statement::Heartbeat { instance, judges_after },
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
        let (was_joined, before) = (self.member.is_joined(), self.member.instance());
        match (purpose, answer) {
            (Purpose::Step(MemberStep::Heartbeat { instance, .. }), Answer::Heartbeat(answer)) => {
                if *instance != before && was_joined {
                    model.saw("heartbeat of a dead instance answered after the next had joined");
                }
                self.member.heartbeat_answered(clock, *instance, *answer);
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
            (Purpose::Claim(claim), Answer::Claimed(taken)) if taken.is_none() || claim.instance != before => {
                self.member.declared_dead(claim.instance);
            }
            (Purpose::Claim(claim), Answer::Claimed(Some(jobs))) => {
                if jobs.is_empty() {
                    self.claims_at = now + 300;
                }
                for job in jobs {
                    assert!(model.begun.insert((*job, *claim)), "no attempt is begun twice");
                    if model.is_out(claim.instance) {
                        model.saw("begun under a dead instance");
                    }
                    // Claimed while it leaves: nothing is begun any more, and the farewell hands it over.
                    if !self.member.is_ending() {
                        let length = if random.u8(..6) == 0 { 5_000..20_000 } else { 20..3_000 };
                        let ending = match random.u8(..10) {
                            0 => Ending::Retry,
                            1 => Ending::HandedBack,
                            _ => Ending::Completed,
                        };
                        let run = Run { claim: *claim, ends_at: now + random.u64(length), ending };
                        if let Some(other) = self.runs.insert(*job, run) {
                            assert!(model.is_out(other.claim.instance), "a server runs a job once at a time");
                        }
                    }
                }
            }
            (Purpose::End(outcome), Answer::Ended(true)) => {
                let Outcome { job, claim, ending, .. } = *outcome;
                assert!(!model.rescued.contains(&(job, claim)), "what was taken from a server is not its to report");
                assert!(ending != Ending::Completed || model.reported.insert(job), "a job has one outcome");
            }
            (Purpose::End(outcome), Answer::Ended(false)) => {
                assert!(
                    model.is_out(outcome.claim.instance),
                    "an outcome is stale only where its server was declared dead"
                );
                model.saw("stale outcome noticed");
            }
            (Purpose::Claim(_) | Purpose::End(_), _) => unreachable!("an answer of another kind"),
        }
        if self.member.instance() != before {
            assert!(model.is_out(before), "a server gives up only an instance that is dead");
        }
    }

    /// `is_certain`: it has not been carried out and will not be.
    pub fn failed(&mut self, now: u64, purpose: Purpose, is_certain: bool) {
        match purpose {
            Purpose::Step(step) => self.member.failed(self.clock(now), step),
            Purpose::Claim(_) if is_certain => {}
            Purpose::Claim(claim) => self.member.claim_unanswered(claim),
            Purpose::End(outcome) => {
                self.outcomes.push_front(Outcome { is_again: outcome.is_again || !is_certain, ..outcome });
            }
        }
    }
}
