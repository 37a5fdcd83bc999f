//! From the queue to a worker.

use super::Components;
use super::Requests;
use super::happening::Happening;
use super::life::{Life, State};
use super::queue::{Lane, Turn};
use crate::fleet::DueWork;
use parkade_model::{AppId, RequestId, Role};

/// Workers of requests are given what is queued for their application. Workers of jobs are given what runs go on with, then the runs that wait. Each
/// line keeps its order.
pub fn dispatch(requests: &mut Requests, with: &mut Components<'_>) {
    for app in with.fleet.apps() {
        while dispatch_first(requests, with, (app, Role::Requests), Lane::Requests) {}
        if !requests.queue.is_without_runs(app) {
            dispatch_runs(requests, with, app);
        }
    }
}

fn dispatch_runs(requests: &mut Requests, with: &mut Components<'_>, app: AppId) {
    if !with.fleet.jobs(app).are_run(&with.cx.config) {
        // The code that serves has no jobs any more: what is left is another server's, or the next reload's.
        requests.hand_back(with, app, Lane::Resuming);
        return requests.hand_back(with, app, Lane::Waiting);
    }
    if with.fleet.jobs(app).put_off(with.cx.now).is_some() {
        // Other servers may begin them meanwhile, and have their places in queues. While this one claims for another application, they would only
        // come again at once.
        let is_claiming = with.fleet.apps().any(|other| with.fleet.jobs(other).room(with.cx.now).is_some());
        if !is_claiming {
            requests.hand_back(with, app, Lane::Waiting);
        }
        return;
    }
    while dispatch_first(requests, with, (app, Role::Jobs), Lane::Resuming)
        || dispatch_first(requests, with, (app, Role::Jobs), Lane::Waiting)
    {}
}

/// Whether a request left the lane: of the first of both lines the one that has waited longer, if there is a worker for it, or else the other.
fn dispatch_first(requests: &mut Requests, with: &mut Components<'_>, workers: (AppId, Role), lane: Lane) -> bool {
    let [one, other] = in_order(requests, requests.queue.lane(workers.0, lane).firsts());
    dispatch_one(requests, with, workers, one) || dispatch_one(requests, with, workers, other)
}

fn in_order(requests: &Requests, firsts: [Option<RequestId>; 2]) -> [Option<RequestId>; 2] {
    let since = |request| requests.lives.queued_since(request);
    match firsts {
        [Some(one), Some(other)] if since(other) < since(one) => [Some(other), Some(one)],
        _ => firsts,
    }
}

fn dispatch_one(
    requests: &mut Requests,
    with: &mut Components<'_>,
    (app, role): (AppId, Role),
    request: Option<RequestId>,
) -> bool {
    let Some(request) = request.filter(|_| may_run_another(requests, with, app, role)) else { return false };
    let Some(Life::Routed(life)) = requests.lives.life(request) else { return false };
    let table = life.work.table();
    let queued = DueWork { work: &life.work, was_rerouted: life.turn == Turn::Next };
    let Some(candidate) = with.fleet.pick(with.cx.now, app, role, queued) else { return false };
    let happening = match candidate.table {
        Some(other) if table.is_some_and(|table| table != other) => {
            Happening::Unrouted { table: other, turn: Turn::Next }
        }
        Some(_) | None => Happening::Given(candidate.worker),
    };
    requests.turn(with, request, happening);
    true
}

/// The bound holds for each application, and for its requests and its runs of jobs separately. They are counted separately only when all together
/// have reached it.
fn may_run_another(requests: &Requests, with: &Components<'_>, app: AppId, role: Role) -> bool {
    let most = with.cx.config.running_count_max;
    requests.lives.count_of(State::Running) < most || with.fleet.workers.running_count(app, role) < most
}
