//! Which chore is next, and who this server is among the others.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::chores::Chore;
use super::faults;
use super::limits::{BOOTS_KEPT_MAX, DEAF_MS_MAX, REST};
use super::options::Pace;
use crate::{Fault, JobId};

#[derive(Debug)]
pub struct Upkeep {
    phase: Phase,
    /// The present one first. Attempts that were claimed under an earlier one may still end.
    boots: VecDeque<JobId>,
    claims: i64,
    /// A claim of which nobody knows what it took.
    unsure: Option<Unsure>,
    /// Functions that the application has.
    pub names: Vec<Box<str>>,
    /// What is to be done of that which is not done by the clock alone.
    due: Vec<Chore>,
    /// The database's time at the last heartbeat, in ms.
    beaten: i64,
    beat_at: Option<Instant>,
    /// When it went through, and since when it has without a gap.
    beat_seen: Option<Instant>,
    steady_since: Option<Instant>,
    poll_at: Option<Instant>,
    tidy_at: Option<Instant>,
    /// Another server was claiming: look again.
    look_at: Option<Instant>,
    /// A chore has failed: no other before.
    rests_until: Option<Instant>,
    pace: Pace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Shut,
    /// Why it could not yet.
    Preparing(Option<Fault>),
    Arriving(Option<Fault>),
    Open,
    Leaving,
    /// It is gone; what it ran is not for the others yet.
    Bequeathing,
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unsure {
    Of(i64),
    Fenced(i64),
}

impl Upkeep {
    pub fn new() -> Self {
        Self {
            phase: Phase::Shut,
            boots: VecDeque::from([minted()]),
            claims: 0,
            unsure: None,
            names: Vec::new(),
            due: Vec::new(),
            beaten: 0,
            beat_at: None,
            beat_seen: None,
            steady_since: None,
            poll_at: None,
            tidy_at: None,
            look_at: None,
            rests_until: None,
            pace: Pace::default(),
        }
    }

    pub fn open(&mut self, now: Instant, pace: &Pace) {
        self.pace = *pace;
        self.phase = Phase::Preparing(None);
        self.beat_at = Some(now + pace.beat);
        self.poll_at = Some(now + pace.poll);
        self.tidy_at = Some(now + pace.tidy);
    }

    /// Why nothing is taken.
    pub fn refusal(&self) -> Option<Fault> {
        match &self.phase {
            Phase::Shut => Some(Fault::Unavailable("it is not open".into())),
            Phase::Preparing(fault) | Phase::Arriving(fault) => fault.clone(),
            Phase::Open => None,
            Phase::Leaving | Phase::Bequeathing | Phase::Ended => Some(faults::stopping()),
        }
    }

    /// Why the tables cannot be had, where that will not pass by itself.
    pub fn unusable(&self) -> Option<&str> {
        match &self.phase {
            Phase::Preparing(Some(Fault::Failed(why))) => Some(why),
            _ => None,
        }
    }

    /// Whether commands are carried out.
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Leaving)
    }

    pub fn is_idle(&self) -> bool {
        let is_quiet = self.due.is_empty() && self.unsure.is_none();
        self.phase == Phase::Ended || self.phase == Phase::Open && is_quiet
    }

    pub fn is_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    pub fn ended(&mut self) {
        self.phase = Phase::Ended;
    }

    /// Whether there is nothing to be left behind.
    pub fn leave(&mut self) -> bool {
        match self.phase {
            Phase::Open => self.phase = Phase::Leaving,
            Phase::Leaving | Phase::Bequeathing | Phase::Ended => {}
            Phase::Shut | Phase::Preparing(_) | Phase::Arriving(_) => return true,
        }
        false
    }

    pub fn boot(&self) -> JobId {
        *self.boots.front().expect("a server has had a boot since it was made")
    }

    pub fn boots(&self) -> impl Iterator<Item = JobId> {
        self.boots.iter().copied()
    }

    pub fn is_own(&self, boot: JobId) -> bool {
        self.boots.contains(&boot)
    }

    pub fn next_claim(&mut self) -> i64 {
        self.claims += 1;
        self.claims
    }

    pub fn unsure_of(&mut self, claim: i64) {
        self.unsure = Some(Unsure::Of(claim));
    }

    pub fn is_unsure(&self) -> bool {
        self.unsure.is_some()
    }

    /// The others have taken what it ran; it goes on as a new one.
    pub fn is_lost(&mut self) {
        if self.phase == Phase::Open {
            tracing::warn!("the other servers have taken this one for lost, and run again what it runs");
            self.phase = Phase::Arriving(None);
            self.boots.push_front(minted());
            self.boots.truncate(BOOTS_KEPT_MAX);
            // What an unsure claim took they have too.
            self.unsure = None;
        }
    }

    pub fn wants(&mut self, chore: Chore) {
        if !self.due.contains(&chore) {
            self.due.push(chore);
        }
    }

    /// From when on it is not known what has ended, in ms.
    pub fn heard_since(&self) -> i64 {
        self.beaten - DEAF_MS_MAX
    }

    pub fn look_again(&mut self, at: Instant) {
        self.look_at = Some(self.look_at.map_or(at, |already| already.min(at)));
    }

    /// Whether there may be jobs to claim, for all that is known.
    pub fn poll_is_due(&mut self, now: Instant, pace: &Pace) -> bool {
        let looks = self.look_at.take_if(|at| *at <= now).is_some();
        if self.phase != Phase::Open {
            return false;
        }
        if self.tidy_at.take_if(|at| *at <= now).is_some() {
            self.wants(Chore::Tidy);
        }
        if self.poll_at.is_some_and(|at| at <= now) {
            self.poll_at = Some(now + pace.poll);
            self.wants(Chore::Rescue);
            if !self.names.is_empty() {
                self.wants(Chore::Recognise);
            }
            return true;
        }
        looks
    }

    /// `is_settled`: no command waits.
    pub fn next(&mut self, now: Instant, is_settled: bool) -> Option<Chore> {
        if self.rests_until.is_some_and(|until| until > now) {
            return None;
        }
        self.rests_until = None;
        match self.phase {
            Phase::Shut | Phase::Ended => None,
            Phase::Preparing(_) => Some(Chore::Prepare),
            Phase::Arriving(_) => Some(Chore::Arrive),
            Phase::Bequeathing => Some(Chore::Bequeath),
            Phase::Leaving if is_settled && self.unsure.is_none() => Some(Chore::Leave),
            Phase::Open | Phase::Leaving => self.next_of_many(),
        }
    }

    fn next_of_many(&mut self) -> Option<Chore> {
        if let Some(unsure) = self.unsure {
            return Some(match unsure {
                Unsure::Of(claim) => Chore::Fence(claim),
                Unsure::Fenced(claim) => Chore::HandBack(claim),
            });
        }
        if self.due.is_empty() { None } else { Some(self.due.remove(0)) }
    }

    /// Said once.
    pub fn beat_is_due(&mut self, now: Instant) -> bool {
        let is_due = matches!(self.phase, Phase::Open | Phase::Leaving)
            && self.rests_until.is_none_or(|until| until <= now)
            && self.beat_at.is_some_and(|at| at <= now);
        if is_due {
            self.beat_at = Some(now + self.pace.beat);
        }
        is_due
    }

    pub fn beat_due(&self) -> Option<Instant> {
        matches!(self.phase, Phase::Open | Phase::Leaving).then_some(self.beat_at)?.max(self.rests_until)
    }

    /// Whether it may say of others that they are lost: behind an outage of the database all have been silent, and the first to be back knows
    /// nothing of the others.
    pub fn is_steady(&self, now: Instant) -> bool {
        self.steady_since.is_some_and(|since| now.duration_since(since) >= self.pace.lost)
    }

    /// `told`: what the database's clock said, in ms.
    fn beats(&mut self, now: Instant, told: i64) {
        let passed = self.beat_seen.map(|seen| now.duration_since(seen));
        let is_gapless = passed.is_some_and(|passed| {
            let told = Duration::from_millis(told.saturating_sub(self.beaten).unsigned_abs());
            passed < self.pace.lost / 2 && told.abs_diff(passed) < self.pace.lost / 2
        });
        if !is_gapless {
            self.steady_since = Some(now);
        }
        (self.beat_seen, self.beaten) = (Some(now), told);
    }

    pub fn next_due(&self) -> Option<Instant> {
        let timers = [self.beat_at, self.poll_at, self.tidy_at, self.look_at];
        match self.phase {
            Phase::Shut | Phase::Ended => None,
            Phase::Open if self.rests_until.is_none() => timers.into_iter().flatten().min(),
            Phase::Leaving if self.rests_until.is_none() => self.beat_at,
            _ => self.rests_until,
        }
    }

    /// `is_known`: the others have not taken this server for lost. `lost`: it has done so with others.
    pub fn beaten(&mut self, now: Instant, is_known: bool, lost: bool, told: i64) {
        self.beats(now, told);
        if lost {
            self.wants(Chore::Rescue);
        }
        if !is_known {
            self.is_lost();
        }
    }

    pub fn tidied(&mut self, now: Instant, pace: &Pace, more: bool) {
        if more {
            self.wants(Chore::Tidy);
        } else if !pace.tidy.is_zero() {
            self.tidy_at = Some(now + pace.tidy);
        }
    }

    /// Whether it was the last.
    pub fn done(&mut self, now: Instant, chore: Chore) -> bool {
        match chore {
            Chore::Prepare => self.phase = Phase::Arriving(None),
            Chore::Arrive => {
                self.phase = Phase::Open;
                self.steady_since = Some(now);
                self.wants(Chore::Rescue);
                self.beat_at = Some(now + self.pace.beat);
            }
            Chore::Fence(claim) => self.unsure = Some(Unsure::Fenced(claim)),
            Chore::HandBack(_) => self.unsure = None,
            Chore::Leave => self.phase = Phase::Bequeathing,
            Chore::Bequeath => return true,
            Chore::Beat | Chore::Rescue | Chore::CatchUp | Chore::Recognise | Chore::Tidy => {}
        }
        false
    }

    /// Whether there is no use in going on.
    pub fn failed(&mut self, now: Instant, chore: Chore, fault: &Fault) -> bool {
        self.rests_until = Some(now + REST);
        match chore {
            Chore::Prepare => self.phase = Phase::Preparing(Some(fault.clone())),
            Chore::Arrive => self.phase = Phase::Arriving(Some(fault.clone())),
            Chore::Fence(_) | Chore::HandBack(_) => {}
            Chore::Beat => self.beat_at = Some(now),
            Chore::Rescue | Chore::CatchUp | Chore::Recognise | Chore::Tidy => self.wants(chore),
            // The others find out.
            Chore::Leave | Chore::Bequeath => return true,
        }
        self.phase == Phase::Leaving
    }

    /// A pace that tidies without a pause does so behind each command.
    pub fn carried_out(&mut self) {
        if self.pace.tidy.is_zero() {
            self.wants(Chore::Tidy);
        }
    }
}

fn minted() -> JobId {
    JobId(fastrand::u128(..))
}
