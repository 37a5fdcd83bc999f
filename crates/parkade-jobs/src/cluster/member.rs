//! One server among those that share a store: its next step, and what it knows about itself.

use std::time::{Duration, Instant};

use super::claims::{ClaimId, ClaimNumber, Claims, Unanswered};
use super::heartbeat::{Heartbeat, HeartbeatAnswer};
use super::instance::{InstanceId, Instances};
use super::limits::RETRY_PAUSE;

#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Between two heartbeats.
    pub heartbeat: Duration,
    /// A server that has been silent for this long may be declared dead.
    pub dead_after: Duration,
    /// The pause between two searches for jobs of dead servers that have not been rescued.
    pub rescue: Duration,
}

/// A statement that the membership needs. It is carried out once, completely or not at all; its answer may get lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberStep {
    /// Adds the current instance to the members.
    Join,
    /// Reports that this instance lives. Only the current instance uses the answer, and only that to its last
    /// heartbeat. `judges_after`: it also declares dead every other member that has been silent for too long, provided
    /// that the last heartbeat of this instance was at this moment by the store's clock, and not too long ago. So a
    /// statement that is carried out late declares no server dead.
    Heartbeat { instance: InstanceId, judges_after: Option<i64> },
    /// The claims of this instance up to this one can take nothing from now on.
    Fence(ClaimNumber),
    /// Makes ready again what this claim took.
    HandBack(ClaimNumber),
    /// Makes all jobs ready again that run at instances which are not members.
    Rescue,
    /// Removes all instances of this process from the members.
    Leave,
    /// A last rescue: the jobs of this process are for the others.
    HandOver,
}

/// A server's membership. Steps are carried out one at a time, except heartbeats, which wait for no other step.
#[derive(Debug)]
pub struct Member {
    state: MemberState,
    instances: Instances,
    claims: Claims,
    heartbeat: Heartbeat,
    needs_rescue: bool,
    rescue_at: Option<Instant>,
    /// A step has failed: no other begins before this moment.
    retry_at: Option<Instant>,
    timing: Timing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemberState {
    Outside,
    Joining,
    Joined,
    /// It is ending: steps that have begun are completed.
    Leaving,
    /// It is no longer a member; the others do not have its jobs yet.
    HandingOver,
    Gone,
}

impl Member {
    /// Does nothing before it joins. `random` names its instances.
    #[must_use]
    pub fn new(random: fastrand::Rng, timing: Timing) -> Self {
        Self {
            state: MemberState::Outside,
            instances: Instances::new(random),
            claims: Claims::default(),
            heartbeat: Heartbeat::new(),
            needs_rescue: false,
            rescue_at: None,
            retry_at: None,
            timing,
        }
    }

    /// The store exists: from now on this server is a member, or tries to become one.
    pub fn join(&mut self, now: Instant) {
        if self.state == MemberState::Outside {
            self.state = MemberState::Joining;
            self.rescue_at = Some(now + self.timing.rescue);
        }
    }

    /// Whether it may use the store: it is a member, as far as it knows.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        matches!(self.state, MemberState::Joined | MemberState::Leaving)
    }

    /// Whether it has begun to end.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        matches!(self.state, MemberState::Leaving | MemberState::HandingOver | MemberState::Gone)
    }

    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.state == MemberState::Gone
    }

    /// Whether it is a member and only its timers remain.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.state == MemberState::Joined && !self.needs_rescue && self.claims.unanswered().is_none()
    }

    /// The name for its claims.
    #[must_use]
    pub fn instance(&self) -> InstanceId {
        self.instances.present()
    }

    /// The names under which it may have claimed the jobs that it runs; the current one first.
    pub fn instances(&self) -> impl Iterator<Item = InstanceId> {
        self.instances.all()
    }

    #[must_use]
    pub fn is_own(&self, instance: InstanceId) -> bool {
        self.instances.contains(instance)
    }

    /// The store's clock at the last heartbeat that was answered, in ms since 1970.
    #[must_use]
    pub fn heard_ms(&self) -> i64 {
        self.heartbeat.answered_ms()
    }

    /// Whether a claim may begin. Not while the result of the last one is unknown.
    #[must_use]
    pub fn may_claim(&self) -> bool {
        self.is_joined() && self.claims.unanswered().is_none()
    }

    pub fn begin_claim(&mut self) -> ClaimId {
        ClaimId { instance: self.instance(), number: self.claims.begin() }
    }

    /// It is unknown whether that claim took anything, or whether it still will.
    pub fn claim_unanswered(&mut self, claim: ClaimId) {
        // Jobs of an earlier instance are rescued.
        if claim.instance == self.instance() {
            self.claims.answer_lost(claim.number);
        }
    }

    /// The others have declared this instance dead and run its jobs again. If it is the current one, this server
    /// continues as a new one. Returns whether it does.
    pub fn declared_dead(&mut self, instance: InstanceId) -> bool {
        let is_news = self.state == MemberState::Joined && instance == self.instance();
        if is_news {
            tracing::warn!(
                "this server was declared dead by its peers; its jobs are being run again. It rejoins as a new instance"
            );
            self.state = MemberState::Joining;
            self.instances.renew();
            self.claims.forget();
        }
        is_news
    }

    /// The next step that is due. `is_settled`: no command waits for the store.
    pub fn next_step(&mut self, now: Instant, is_settled: bool) -> Option<MemberStep> {
        if self.retry_at.is_some_and(|at| at > now) {
            return None;
        }
        self.retry_at = None;
        match self.state {
            MemberState::Outside | MemberState::Gone => None,
            MemberState::Joining => Some(MemberStep::Join),
            MemberState::HandingOver => Some(MemberStep::HandOver),
            MemberState::Leaving if is_settled && self.claims.unanswered().is_none() => Some(MemberStep::Leave),
            MemberState::Joined | MemberState::Leaving => self.next_of_joined(now),
        }
    }

    fn next_of_joined(&mut self, now: Instant) -> Option<MemberStep> {
        match self.claims.unanswered() {
            Some(Unanswered::Open(claim)) => return Some(MemberStep::Fence(claim)),
            Some(Unanswered::Fenced(claim)) => return Some(MemberStep::HandBack(claim)),
            None => {}
        }
        if self.state == MemberState::Joined && self.rescue_at.is_some_and(|at| at <= now) {
            self.rescue_at = Some(now + self.timing.rescue);
            self.needs_rescue = true;
        }
        std::mem::take(&mut self.needs_rescue).then_some(MemberStep::Rescue)
    }

    /// The heartbeat, if it is due. Returned once. An unanswered one is abandoned: this one replaces it.
    pub fn next_heartbeat(&mut self, now: Instant) -> Option<MemberStep> {
        if self.heartbeat_due().is_none_or(|due| due > now) {
            return None;
        }
        self.heartbeat.sent(now, now + self.timing.heartbeat);
        let judges_after = self.heartbeat.judges_after(now, self.timing.dead_after);
        Some(MemberStep::Heartbeat { instance: self.instance(), judges_after })
    }

    #[must_use]
    pub fn heartbeat_due(&self) -> Option<Instant> {
        // Half of the lease is left for the one that replaces a hanging one.
        let patience = self.timing.dead_after / 2;
        if self.is_joined() { self.heartbeat.due(patience).max(self.retry_at) } else { None }
    }

    /// When the next step other than a heartbeat is due.
    #[must_use]
    pub fn step_due(&self) -> Option<Instant> {
        match self.state {
            MemberState::Outside | MemberState::Gone => None,
            MemberState::Joined if self.retry_at.is_none() => self.rescue_at,
            MemberState::Leaving if self.retry_at.is_none() => None,
            MemberState::Joining | MemberState::Joined | MemberState::Leaving | MemberState::HandingOver => {
                self.retry_at
            }
        }
    }

    /// A step other than a heartbeat was carried out.
    pub fn done(&mut self, now: Instant, step: MemberStep) {
        match step {
            MemberStep::Join if self.state == MemberState::Joining => {
                self.state = MemberState::Joined;
                self.needs_rescue = true;
                self.heartbeat.joined(now, now + self.timing.heartbeat);
            }
            MemberStep::Fence(claim) => self.claims.fenced(claim),
            MemberStep::HandBack(claim) => self.claims.handed_back(claim),
            MemberStep::Leave => self.state = MemberState::HandingOver,
            MemberStep::HandOver => self.state = MemberState::Gone,
            // It has joined while it ends: it leaves under this name, too.
            MemberStep::Join | MemberStep::Rescue | MemberStep::Heartbeat { .. } => {}
        }
    }

    /// The heartbeat of this instance was answered. Returns whether this server continues as a new one.
    pub fn heartbeat_answered(&mut self, now: Instant, instance: InstanceId, answer: HeartbeatAnswer) -> bool {
        if answer.declared_dead > 0 {
            self.needs_rescue = true;
        }
        if instance != self.instance() {
            return false;
        }
        self.heartbeat.answered(now, answer.now_ms, self.timing.dead_after);
        !answer.is_member && self.declared_dead(instance)
    }

    /// A step failed, or it is unknown whether it was carried out. Every step may be carried out twice.
    pub fn failed(&mut self, now: Instant, step: MemberStep) {
        if matches!(step, MemberStep::Heartbeat { instance, .. } if instance != self.instance()) {
            return;
        }
        self.retry_at = Some(now + RETRY_PAUSE);
        match step {
            MemberStep::Join | MemberStep::Fence(_) | MemberStep::HandBack(_) => {}
            MemberStep::Heartbeat { .. } => self.heartbeat.failed(now),
            MemberStep::Rescue => self.needs_rescue = true,
            // The others find out by themselves.
            MemberStep::Leave | MemberStep::HandOver => self.state = MemberState::Gone,
        }
        self.give_up_leaving();
    }

    /// Completes what has begun, and leaves.
    pub fn leave(&mut self) {
        match self.state {
            MemberState::Joined => self.state = MemberState::Leaving,
            // Ends of jobs that earlier instances claimed are still reported.
            MemberState::Joining if self.instances.has_earlier() => self.state = MemberState::Leaving,
            MemberState::Outside | MemberState::Joining => self.state = MemberState::Gone,
            MemberState::Leaving | MemberState::HandingOver | MemberState::Gone => {}
        }
    }

    /// The store fails while this server ends: it does not wait for the store.
    pub fn give_up_leaving(&mut self) {
        if self.state == MemberState::Leaving {
            self.state = MemberState::Gone;
        }
    }
}
