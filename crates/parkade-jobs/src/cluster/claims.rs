//! Claims by number, and the one whose result is unknown.

/// Claims of an instance are numbered, so that one that was given up can be fenced off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimNumber(pub i64);

#[derive(Debug, Default)]
pub(super) struct Claims {
    last: i64,
    unanswered: Option<Unanswered>,
}

/// What is done about a claim whose answer was lost: first it must not begin any more, then what it took is given back.
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
        self.unanswered = Some(Unanswered::Fenced(claim));
    }

    /// Also if the instance is dead: the jobs of the claim are rescued with all others.
    pub fn settled(&mut self) {
        self.unanswered = None;
    }
}
