//! From the queue to a worker.

use super::Components;
use super::Requests;
use super::happening::Happening;
use super::life::{Life, State};
use super::queue::{Lane, Turn};
use parkade_model::{RequestId, Role};

/// Workers of requests are given what is queued. Workers of jobs are given what runs go on with, then the runs that wait. Each line keeps its order.
pub fn dispatch(requests: &mut Requests, with: &mut Components<'_>) {
    while dispatch_first(requests, with, Role::Requests, Lane::Requests) {}
    if !requests.queue.is_without_runs() {
        dispatch_runs(requests, with);
    }
}

fn dispatch_runs(requests: &mut Requests, with: &mut Components<'_>) {
    if !with.fleet.runs_jobs(&with.cx.config) {
        // The code that serves has no jobs any more: what is left is another server's, or the next reload's.
        requests.hand_back(with, Lane::Resuming);
        return requests.hand_back(with, Lane::Waiting);
    }
    if with.fleet.jobs_put_off(with.cx.now).is_some() {
        // Others may begin them meanwhile, and have their places in queues.
        return requests.hand_back(with, Lane::Waiting);
    }
    while dispatch_first(requests, with, Role::Jobs, Lane::Resuming)
        || dispatch_first(requests, with, Role::Jobs, Lane::Waiting)
    {}
}

/// Whether a request left the lane: of the first of both lines the one that has waited longer, if there is a worker for it, or else the other.
fn dispatch_first(requests: &mut Requests, with: &mut Components<'_>, role: Role, lane: Lane) -> bool {
    let [one, other] = in_order(requests, requests.queue.lane(lane).firsts());
    dispatch_one(requests, with, role, one) || dispatch_one(requests, with, role, other)
}

fn in_order(requests: &Requests, firsts: [Option<RequestId>; 2]) -> [Option<RequestId>; 2] {
    let since = |request| requests.lives.queued_since(request);
    match firsts {
        [Some(one), Some(other)] if since(other) < since(one) => [Some(other), Some(one)],
        _ => firsts,
    }
}

fn dispatch_one(requests: &mut Requests, with: &mut Components<'_>, role: Role, request: Option<RequestId>) -> bool {
    let Some(request) = request.filter(|_| may_run_another(requests, with, role)) else { return false };
    let Some(Life::Routed(life)) = requests.lives.life(request) else { return false };
    let table = life.work.table();
    let Some(candidate) = with.fleet.pick(with.cx.now, role, &life.work) else { return false };
    let happening = match candidate.table {
        Some(other) if table.is_some_and(|table| table != other) => {
            Happening::Unrouted { table: other, turn: Turn::Next }
        }
        Some(_) | None => Happening::Given(candidate.worker),
    };
    requests.turn(with, request, happening);
    true
}

/// The bound holds for requests and for runs of jobs separately. They are counted separately only when both together have reached it.
fn may_run_another(requests: &Requests, with: &Components<'_>, role: Role) -> bool {
    let (running, most) = (requests.lives.count_of(State::Running), with.cx.config.running_count_max);
    if running < most {
        return true;
    }
    let is_running = |request: &RequestId| requests.lives.state(*request) == Some(State::Running);
    let runs = with.jobs.runs().filter(is_running).count();
    match role {
        Role::Requests => running - runs < most,
        Role::Jobs => runs < most,
    }
}
