//! What can be seen of requests.

use std::collections::BinaryHeap;

use super::Requests;
use super::life::{Life, Parked, State};
use crate::jobs::Jobs;
use crate::moment::Moment;
use crate::report::status::{LivesStatus, RequestStage, RequestStatus, WaitKind, WaitStatus, WaitTarget};
use crate::waits::Waits;
use parkade_model::RequestId;

pub struct RequestsStatus {
    /// Requests, and runs of jobs.
    pub lives: LivesStatus,
    /// Of these the runs of jobs.
    pub runs: LivesStatus,
    /// What parked requests wait for.
    pub waits: Vec<WaitStatus>,
}

/// Looks at every request.
pub fn status(requests: &Requests, waits: &Waits, jobs: &Jobs, now: Moment) -> RequestsStatus {
    let lives = requests.count_by_state(waits);
    RequestsStatus { lives, runs: runs(requests, jobs), waits: by_kind(requests, waits, jobs, now) }
}

impl Requests {
    /// Requests, and runs of jobs. A branch is a part of its request, which is parked or running.
    pub fn count_by_state(&self, waits: &Waits) -> LivesStatus {
        let count = |state| self.lives.count_of(state);
        LivesStatus {
            accepted: count(State::Accepted),
            routed: count(State::Routed),
            running: count(State::Running),
            parked: count(State::Parked) - waits.branches.count(),
        }
    }
}

/// The oldest in each group, the oldest first: requests that are queued, that run, and that are parked, by the kind of wait; and runs of jobs.
pub fn oldest(
    requests: &Requests,
    waits: &Waits,
    jobs: &Jobs,
    (now, count_max): (Moment, usize),
) -> Vec<RequestStatus> {
    const QUEUED: usize = WaitKind::ALL.len();
    const RUNNING: usize = QUEUED + 1;
    const RUNS: usize = RUNNING + 1;
    let has_runs = jobs.runs_count() > 0;
    // Each has the youngest of its requests on top, which gives way to an older one.
    let mut groups: [BinaryHeap<(Moment, RequestKey)>; RUNS + 1] = std::array::from_fn(|_| BinaryHeap::new());
    for (request, life) in requests.lives.iter() {
        if waits.branches.contains(request) {
            continue;
        }
        let (group, since) = match life {
            Life::Routed(life) => (QUEUED, life.journey.since()),
            Life::Running(life) => (RUNNING, life.journey.since()),
            Life::Parked(life) => (life.watch.kind() as usize, life.journey.since()),
            Life::Accepted(_) | Life::Done | Life::Cancelled => continue,
        };
        let is_run = has_runs && jobs.is_run(request);
        let group = &mut groups[if is_run { RUNS } else { group }];
        let key = (since, RequestKey(request.slot, request.generation));
        if group.len() < count_max {
            group.push(key);
        } else if let Some(mut youngest) = group.peek_mut().filter(|youngest| key < **youngest) {
            *youngest = key;
        }
    }
    let sorted = groups.into_iter().flat_map(BinaryHeap::into_sorted_vec);
    sorted
        .filter_map(|(since, RequestKey(slot, generation))| {
            let request = RequestId { slot, generation };
            let stage = match requests.lives.life(request)? {
                Life::Running(life) => RequestStage::Running { worker: life.worker },
                Life::Parked(life) => {
                    RequestStage::Parked { kind: life.watch.kind(), target: target(requests, waits, (request, life)) }
                }
                Life::Routed(_) | Life::Accepted(_) | Life::Done | Life::Cancelled => RequestStage::Queued,
            };
            Some(RequestStatus { request, is_run: has_runs && jobs.is_run(request), stage, age: now - since })
        })
        .collect()
}

/// What exactly it waits for: of several things, the first that has a name.
fn target(requests: &Requests, waits: &Waits, (request, life): (RequestId, &Parked)) -> Option<WaitTarget> {
    waits.target(request, life.watch).or_else(|| {
        waits.branches.of(request).iter().find_map(|branch| match requests.lives.life(*branch)? {
            Life::Parked(life) => waits.target(*branch, life.watch),
            Life::Accepted(_) | Life::Routed(_) | Life::Running(_) | Life::Done | Life::Cancelled => None,
        })
    })
}

/// A request in an order: two that began at the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RequestKey(u32, u32);

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

/// Of requests alone. One that waits for several things is counted for each.
fn by_kind(requests: &Requests, waits: &Waits, jobs: &Jobs, now: Moment) -> Vec<WaitStatus> {
    let branches = &waits.branches;
    let mut waits = WaitKind::ALL.map(|kind| WaitStatus { kind, count: 0, oldest: None });
    for (request, life) in requests.lives.iter() {
        let Life::Parked(life) = life else { continue };
        if jobs.is_run(branches.owner_of(request)) {
            continue;
        }
        let wait = &mut waits[life.watch.kind() as usize];
        wait.count += 1;
        wait.oldest = wait.oldest.max(Some(now - life.journey.since()));
    }
    waits.into()
}
