//! Claims by number, and the one whose result is unknown.

use super::instance::InstanceId;

/// Identifies the claim that took a job. No two claims have the same id, so the outcome of one attempt cannot end what
/// another claim took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimId {
    pub instance: InstanceId,
    pub number: ClaimNumber,
}

/// The number of a claim within its process, by which abandoned claims are fenced off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimNumber(pub i64);

#[derive(Debug, Default)]
pub(super) struct Claims {
    last: i64,
    unanswered: Option<Unanswered>,
}

/// What to do about a claim whose answer was lost: first it must be prevented from starting, then the jobs that it took
/// are handed back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    Open(ClaimNumber),
    Fenced(ClaimNumber),
}

impl Claims {
    pub fn begin(&mut self) -> ClaimNumber {
        self.last += 1;
        ClaimNumber(self.last)
    }

    pub fn answer_lost(&mut self, claim: ClaimNumber) {
        self.unanswered = Some(Unanswered::Open(claim));
    }

    pub fn unanswered(&self) -> Option<Unanswered> {
        self.unanswered
    }

    pub fn fenced(&mut self, claim: ClaimNumber) {
        if self.unanswered == Some(Unanswered::Open(claim)) {
            self.unanswered = Some(Unanswered::Fenced(claim));
        }
    }

    pub fn handed_back(&mut self, claim: ClaimNumber) {
        self.unanswered.take_if(|unanswered| *unanswered == Unanswered::Fenced(claim));
    }

    /// The instance is dead: the jobs of the claim are rescued with all others.
    pub fn forget(&mut self) {
        self.unanswered = None;
    }
}
