//! When a place may be free again in a queue whose limit all servers share: how many of its jobs run at a time.

/// A claim returns what it saw; an attempt may have ended in the meantime.
#[derive(Debug, Default)]
pub struct SharedLimits {
    /// Other servers had the last places at the time of the last claim.
    are_taken: bool,
    /// A place has become free since that claim began, here or elsewhere.
    is_vacated: bool,
}

impl SharedLimits {
    /// A claim begins: it sees all ends until now.
    pub fn asked(&mut self) {
        self.is_vacated = false;
    }

    /// What the claim saw. Returns whether it has to be repeated.
    pub fn found(&mut self, are_taken: bool) -> bool {
        self.are_taken = are_taken;
        are_taken && self.is_vacated
    }

    /// An attempt with a place has ended. Returns whether a claim here waits for that.
    pub fn vacated(&mut self) -> bool {
        self.is_vacated = true;
        self.are_taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_heard_by_those_who_met_a_full_queue_and_by_nobody_else() {
        let mut limits = SharedLimits::default();
        assert!(!limits.vacated(), "nothing was claimed");
        limits.asked();
        assert!(!limits.found(false) && !limits.vacated(), "there was room");
        limits.asked();
        assert!(!limits.found(true) && limits.vacated() && limits.vacated());
    }

    #[test]
    fn an_end_that_overtakes_the_answer_of_a_claim_is_not_lost() {
        let mut limits = SharedLimits::default();
        limits.asked();
        assert!(!limits.vacated() && limits.found(true));
        limits.asked();
        assert!(!limits.found(true), "the next has seen it");
    }
}
