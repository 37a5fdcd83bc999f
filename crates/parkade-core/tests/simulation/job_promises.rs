//! What must hold of jobs after every step. Promise 9: what was acknowledged is stored, and runs.

use std::collections::BTreeSet;

use parkade_core::limits::BACK_OFF_MAX;
use parkade_core::{AppId, Moment, Output, Role, Status, Wait, WorkerState, WorkerStatus};

use crate::model::{Place, Request};
use crate::promises::serves;
use crate::store::State;
use crate::world::World;

pub fn check(world: &mut World, status: &Status) {
    runs_are_as_told(world, status);
    a_job_has_one_attempt_at_a_time(world);
    queues_keep_their_bounds(world);
    what_waits_for_the_store_is_known(world, status);
    who_waits_for_jobs_is_known(world, status);
    no_job_waits_beside_an_idle_worker(world, status);
    both_roles_are_filled(world, status);
    jobs_are_not_put_off_for_ever(world, status);
    assert_eq!(status.runs_unnoted_count, world.model.ends_under_way(), "ends are forgotten, or not");
}

fn runs_are_as_told(world: &World, status: &Status) {
    let runs = world.model.requests.values().filter(|request| request.run.is_some()).count();
    let waiting = world.model.requests.values().filter(|request| request.is_claimed_only()).count();
    assert_eq!((status.jobs_waiting, status.jobs_running), (waiting, runs - waiting));
    assert!(!world.model.drains || waiting == 0, "claimed jobs wait though the server stops");
    let mut claimed = world.model.requests.values().filter(|request| request.is_claimed_only());
    let runs_jobs = |app: AppId| status.apps[usize::from(app.0)].runs_jobs;
    assert!(claimed.all(|request| runs_jobs(request.app)), "a claimed job waits for an application that has none");
}

/// At most one attempt is the present one, and the store knows which.
fn a_job_has_one_attempt_at_a_time(world: &World) {
    let mut jobs = BTreeSet::new();
    for run in world.model.requests.values().filter_map(|request| request.run.as_ref()) {
        assert!(jobs.insert(run.job), "two attempts at a time: {run:?}");
        assert!(run.verdict.is_none() && world.core.runs_job(run.job), "ended, and still there: {run:?}");
        let stored = &world.model.jobs.store.jobs[&run.job];
        assert_eq!((stored.state, stored.attempt), (State::Running, run.attempt), "{run:?}");
    }
}

fn queues_keep_their_bounds(world: &World) {
    for (queue, (concurrency, rate)) in &world.model.jobs.bounds {
        let running = world.model.running(*queue) + world.model.haunting(*queue);
        assert!(concurrency.is_none_or(|most| running <= most), "{running} run of {queue:?}");
        let (Some(rate), Some(begun)) = (rate, world.model.jobs.begun.get(queue)) else { continue };
        let most = |since: Moment| rate.max(1.0) + rate * (world.now - since).as_secs_f64();
        for (since, count) in begun.iter().rev().zip(1..) {
            assert!(f64::from(count) <= most(*since) + 1e-6, "{count} of {queue:?} have begun since {since:?}");
        }
    }
}

fn what_waits_for_the_store_is_known(world: &World, status: &Status) {
    let all = || world.model.requests.iter();
    let unstored = all().filter(|(_, request)| request.is_unstored() || request.has_failed_to_store()).count();
    assert_eq!(status.jobs_unstored, unstored, "requests wait for the store, or nobody does");
    for (id, request) in all() {
        if let Place::Worker(worker) = request.place {
            assert_eq!(world.core.holds_output(worker, *id, Output::End), request.is_unstored());
        }
        let waits = request.waiting().is_some_and(|waiting| waiting.wait == Wait::Stored);
        assert!(!waits || request.is_unstored(), "everything is stored, and {id:?} waits");
    }
    for (id, held) in &world.model.jobs.outputs {
        let is_there = world.model.requests[id].place == Place::Worker(held.worker);
        assert!(
            !is_there || world.model.is_unstored(*id),
            "{held:?} of {id:?} is held, and nothing waits for the store"
        );
    }
    assert_eq!(status.claims_count, usize::from(world.model.jobs.claim.is_some()));
}

fn who_waits_for_jobs_is_known(world: &World, status: &Status) {
    let waiting = |request: &Request| match request.waiting().map(|waiting| &waiting.wait) {
        Some(Wait::Job { job, .. } | Wait::Visit { job, .. }) => Some(*job),
        _ => None,
    };
    let watched: Vec<_> = world.model.requests.values().filter_map(waiting).collect();
    assert_eq!(status.jobs_watched, watched.len());
    assert!(watched.iter().all(|job| world.core.is_watched(*job)));
    assert_eq!(status.job_results_held, world.model.jobs.results.len(), "results that nobody needs are kept");
    let lacking = world.model.requests.values().filter_map(|request| request.holds_job);
    let lacking = lacking.filter(|job| !world.model.jobs.results.contains(job)).count();
    assert_eq!(lacking, 0, "called with what is no longer kept");
    assert_eq!(status.jobs_looked_up, world.model.jobs.looked_up.len());
    assert_eq!(status.jobs_visited, world.model.undecided_visits(), "visits are forgotten, or not");
}

/// Promise 4, for jobs.
fn no_job_waits_beside_an_idle_worker(world: &World, status: &Status) {
    let app = |id: &AppId| {
        let runs = world.model.requests.values().filter(|request| request.run.is_some() && request.app == *id);
        let (queued, running) = (
            runs.clone().filter(|run| run.place == Place::Queue).count(),
            runs.filter(|run| matches!(run.place, Place::Worker(_))).count(),
        );
        queued > 0 && running < status.limits.running_count_max
    };
    let is_idle = |worker: &&WorkerStatus| {
        let process = &world.model.processes[&worker.worker];
        let is_ready = matches!(worker.state, WorkerState::Ready | WorkerState::Busy)
            || worker.state == WorkerState::Draining && world.model.drains && !process.replaced;
        is_ready
            && worker.role == Role::Jobs
            && serves(status, worker)
            && app(&worker.app)
            && process.streams.is_empty()
            && process.credit > 0
            && process.ping.is_none()
    };
    let idle = status.workers.iter().find(is_idle);
    assert!(idle.is_none(), "a run waits beside an idle worker: {idle:?}");
}

/// Unless workers keep dying, and nobody waits for the others of their role.
fn both_roles_are_filled(world: &World, status: &Status) {
    let config = world.core.config();
    let apps = (0..).map(AppId).zip(&config.apps);
    let wanted =
        apps.flat_map(|(app, workers)| [(app, Role::Requests, workers.requests), (app, Role::Jobs, workers.jobs)]);
    for (app, role, wanted) in wanted {
        let is_serving = |worker: &&WorkerStatus| {
            let is_there = matches!(worker.state, WorkerState::Ready | WorkerState::Busy | WorkerState::Starting);
            worker.role == role && worker.app == app && serves(status, worker) && is_there
        };
        let there = status.workers.iter().filter(is_serving).count();
        assert!(there <= wanted as usize + 1, "{there} workers of {role:?}, and one may be replaced");
    }
}

/// Workers may die of jobs as often as they like.
fn jobs_are_not_put_off_for_ever(world: &mut World, status: &Status) {
    let Some(left) = status.jobs_put_off else { return };
    world.model.seen.insert("jobs put off");
    assert!(left <= BACK_OFF_MAX, "put off for {left:?}");
    let is_looked_at = world.core.next_due().is_some_and(|due| due <= world.now + left);
    assert!(is_looked_at || world.model.drains, "put off, and nobody looks whether that is over");
}

/// Nothing is left of jobs.
pub fn check_the_end(world: &World, status: &Status) {
    let counts = (status.jobs_running, status.jobs_waiting, status.jobs_watched, status.jobs_unstored);
    assert_eq!(counts, (0, 0, 0, 0));
    assert_eq!((status.job_results_held, status.jobs_looked_up, status.claims_count), (0, 0, 0));
    assert_eq!((status.jobs_visited, status.jobs_cancelled_count, status.runs_unnoted_count), (0, 0, 0));
    let counts = world.core.counts();
    let ended = counts.jobs_completed
        + counts.jobs_retried
        + counts.jobs_dead
        + counts.jobs_cancelled
        + counts.jobs_handed_back
        + counts.jobs_unknown;
    assert_eq!(counts.jobs_claimed, ended, "every run has one verdict");
    assert!(!world.model.requests.values().any(|request| request.place != Place::Queue));
}
