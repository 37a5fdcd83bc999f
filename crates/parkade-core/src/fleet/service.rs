//! Whether the server serves, drains, or ends.

use std::time::Duration;

use crate::effect::ExitReason;
use crate::moment::Moment;
use parkade_model::Refusal;

#[derive(Debug)]
pub struct Service {
    state: ServiceState,
    /// Why the server ends, if not because it was asked to.
    fault: Option<ExitReason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceState {
    Open,
    Draining {
        since: Moment,
        until: Moment,
    },
    /// Everything has been cancelled and killed: only the exits are awaited.
    Ending(ExitReason),
    Ended,
}

/// What it means that the server is asked to drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainStep {
    Begins,
    /// The grace may be shorter now.
    GoesOn,
    /// The grace is over already, and the server waits for nothing any more.
    AtOnce,
    IsOver,
}

impl Default for Service {
    fn default() -> Self {
        Self { state: ServiceState::Open, fault: None }
    }
}

impl Service {
    pub fn state(&self) -> ServiceState {
        self.state
    }

    pub fn is_open(&self) -> bool {
        self.state == ServiceState::Open
    }

    /// Whether it ends without having been asked to.
    pub fn has_failed(&self) -> bool {
        self.fault.is_some()
    }

    /// Why nothing new is taken in.
    pub fn refusal(&self) -> Option<Refusal> {
        match self.state {
            ServiceState::Open => None,
            _ if self.has_failed() => Some(Refusal::NoApplication),
            // The request had begun to arrive before.
            ServiceState::Draining { .. } => None,
            ServiceState::Ending(_) | ServiceState::Ended => Some(Refusal::Stopping),
        }
    }

    pub fn drain(&mut self, now: Moment, grace: Duration) -> DrainStep {
        match &mut self.state {
            ServiceState::Open => {
                self.state = ServiceState::Draining { since: now, until: now + grace };
                DrainStep::Begins
            }
            ServiceState::Draining { since, until } => {
                *until = (*until).min(now + grace);
                *since = (*since).max(*until - grace);
                DrainStep::GoesOn
            }
            ServiceState::Ending(_) if grace.is_zero() => DrainStep::AtOnce,
            ServiceState::Ending(_) | ServiceState::Ended => DrainStep::IsOver,
        }
    }

    /// There is nothing to serve with: it ends without a grace.
    pub fn fail(&mut self, now: Moment, why: ExitReason) {
        self.state = ServiceState::Draining { since: now, until: now };
        self.fault = Some(why);
    }

    /// The grace is over, and `is_cut_short`: not everything had ended by then.
    pub fn force(&mut self, is_cut_short: bool) {
        let reason = if is_cut_short { ExitReason::GraceOver } else { ExitReason::Drained };
        self.state = ServiceState::Ending(self.fault.unwrap_or(reason));
    }

    /// Everything has ended: the reason, if it was to end and has not done so before.
    pub fn end(&mut self) -> Option<ExitReason> {
        let reason = match self.state {
            ServiceState::Open | ServiceState::Ended => return None,
            ServiceState::Draining { .. } => self.fault.unwrap_or(ExitReason::Drained),
            ServiceState::Ending(reason) => reason,
        };
        self.state = ServiceState::Ended;
        Some(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Moment {
        Moment::from_nanos(second * 1_000_000_000)
    }

    #[test]
    fn a_second_stop_can_only_shorten_the_grace() {
        let mut service = Service::default();
        assert_eq!(service.drain(at(10), Duration::from_secs(20)), DrainStep::Begins);
        assert_eq!(service.drain(at(15), Duration::from_secs(60)), DrainStep::GoesOn);
        assert_eq!(service.state(), ServiceState::Draining { since: at(10), until: at(30) });
        service.drain(at(16), Duration::from_secs(4));
        assert_eq!(service.state(), ServiceState::Draining { since: at(16), until: at(20) });
        service.force(true);
        assert_eq!(service.drain(at(21), Duration::from_secs(4)), DrainStep::IsOver);
        assert_eq!(service.drain(at(21), Duration::ZERO), DrainStep::AtOnce);
        assert_eq!((service.end(), service.end()), (Some(ExitReason::GraceOver), None));
    }

    #[test]
    fn a_server_without_an_application_says_so() {
        let mut service = Service::default();
        assert_eq!((service.refusal(), service.end()), (None, None));
        service.fail(at(1), ExitReason::ApplicationFailed);
        assert_eq!(service.refusal(), Some(Refusal::NoApplication));
        service.force(true);
        assert_eq!(service.end(), Some(ExitReason::ApplicationFailed));
    }
}
