//! What can be seen of requests.

use super::Requests;
use super::life::{Life, State};
use crate::jobs::Jobs;
use crate::moment::Moment;
use crate::report::status::{LivesStatus, WaitKind, WaitStatus};

pub struct RequestsStatus {
    /// Requests, and runs of jobs.
    pub lives: LivesStatus,
    /// Of these the runs of jobs.
    pub runs: LivesStatus,
    /// What parked requests wait for.
    pub waits: Vec<WaitStatus>,
}

/// Looks at every request.
pub fn status(requests: &Requests, jobs: &Jobs, now: Moment) -> RequestsStatus {
    let count = |state| requests.lives.count_of(state);
    let lives = LivesStatus {
        accepted: count(State::Accepted),
        routed: count(State::Routed),
        running: count(State::Running),
        parked: count(State::Parked),
    };
    RequestsStatus { lives, runs: runs(requests, jobs), waits: waits(requests, jobs, now) }
}

fn runs(requests: &Requests, jobs: &Jobs) -> LivesStatus {
    let mut runs = LivesStatus::default();
    for request in jobs.runs() {
        match requests.lives.state(request) {
            Some(State::Accepted) => runs.accepted += 1,
            Some(State::Routed) => runs.routed += 1,
            Some(State::Running) => runs.running += 1,
            Some(State::Parked) => runs.parked += 1,
            Some(State::Done | State::Cancelled) | None => {}
        }
    }
    runs
}

/// Of requests alone.
fn waits(requests: &Requests, jobs: &Jobs, now: Moment) -> Vec<WaitStatus> {
    let mut waits = WaitKind::ALL.map(|kind| WaitStatus { kind, count: 0, oldest: None });
    for (request, life) in requests.lives.iter() {
        let Life::Parked(life) = life else { continue };
        if jobs.is_run(request) {
            continue;
        }
        let wait = &mut waits[life.watch.kind() as usize];
        wait.count += 1;
        wait.oldest = wait.oldest.max(Some(now - life.journey.since()));
    }
    waits.into()
}
