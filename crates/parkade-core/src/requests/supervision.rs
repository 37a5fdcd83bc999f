//! What workers mean for requests: a worker that dies, new code, the end of the server.

use std::time::Duration;

use super::happening::Happening;
use super::{Components, Requests, runs, waking};
use crate::effect::{Effect, ExitReason, ServerEffect};
use crate::fleet::{AppDemand, Consequence, Demand, Orphans, PerRole};
use parkade_model::{AppId, Reason, Refusal, WorkerId};

pub fn worker_exited(requests: &mut Requests, with: &mut Components<'_>, worker: WorkerId) {
    let orphans = with.fleet.worker_exited(with.cx, worker);
    resolve(requests, with, orphans);
}

pub fn worker_violated(requests: &mut Requests, with: &mut Components<'_>, worker: WorkerId) {
    let orphans = with.fleet.worker_violated(with.cx, worker);
    resolve(requests, with, orphans);
}

/// A worker is gone: what it may have begun is lost, what it did not touch goes to another one.
fn resolve(requests: &mut Requests, with: &mut Components<'_>, orphans: Orphans) {
    for queue in orphans.queues {
        with.jobs.leave(queue);
    }
    for request in orphans.abandoned {
        with.waits.end_stream(request);
    }
    requests.cancel_each(with, orphans.lost, Reason::WorkerDied);
    for request in orphans.untouched.into_iter().rev() {
        requests.turn(with, request, Happening::Returned);
    }
}

/// Reviews the workers, and carries out what follows for requests.
pub fn supervise(requests: &mut Requests, with: &mut Components<'_>) {
    let taken = with.fleet.review_workers(with.cx);
    for socket in taken.sockets {
        requests.turn(with, socket, Happening::SocketClosed(Some(Refusal::Stopping)));
    }
    requests.cancel_each(with, taken.runs, Reason::Stopping);
    let demand = demand(requests, with);
    for consequence in with.fleet.reconcile(with.cx, &demand) {
        match consequence {
            Consequence::NewCode(app, Some(table)) => requests.reroute(with, app, table),
            Consequence::NewCode(_, None) => {}
            Consequence::NoApplication(app) => requests.refuse_queued(with, app),
            Consequence::GraceOver => end_by_force(requests, with),
        }
    }
    let are_all_in = requests.arriving == 0 || with.fleet.refusal().is_some();
    if requests.count() == 0
        && are_all_in
        && with.waits.queries.have_ended(with.cx.now)
        && let Some(reason) = with.fleet.exit()
    {
        exit(requests, with, reason);
    }
    let demand = self::demand(requests, with);
    with.fleet.schedule(with.cx, &demand);
}

/// The server stops: politely within its grace, then at once.
pub fn drain(requests: &mut Requests, with: &mut Components<'_>, grace: Duration) {
    if !with.fleet.drain(with.cx, grace) {
        return;
    }
    waking::drain(requests, with);
    requests.hand_back_waiting(with);
    let over = with.cx.now + grace.min(with.cx.config.query_grace);
    with.waits.queries.stop_at(with.cx, over);
}

pub fn note_arriving(requests: &mut Requests, with: &mut Components<'_>, count: usize) {
    requests.arriving = count;
    with.fleet.note_end();
}

/// What the number of workers depends on.
fn demand(requests: &Requests, with: &Components<'_>) -> Demand {
    // No worker is needed for branches, which wait, and for scripts.
    let others = with.waits.branches.count() + with.waits.scripts.count();
    let (all, runs) = (requests.count() - others, with.jobs.runs_count());
    // What runs is in its worker.
    let outside = all - requests.running_count();
    let of_all = PerRole { requests: all.saturating_sub(runs).min(outside), jobs: runs.min(outside) };
    let queue = requests.queue();
    let of_app = |app: AppId| {
        let most = requests.count_of_app(app);
        // Nobody knows yet which applications those are for that are arriving.
        let to_come = of_all.requests.min(most) + requests.arriving;
        AppDemand {
            to_come: PerRole { requests: to_come, jobs: of_all.jobs.min(most) },
            is_queued: PerRole { requests: queue.requests_count(app) > 0, jobs: !queue.resuming(app).is_empty() },
        }
    };
    let apps = with.fleet.apps().map(of_app).collect();
    Demand { apps, queries_end: with.waits.queries.end_due(with.cx.now) }
}

/// The grace is over.
fn end_by_force(requests: &mut Requests, with: &mut Components<'_>) {
    let mut last = with.fleet.stop_runs(with.cx);
    requests.cancel_each(with, std::mem::take(&mut last.runs), Reason::Stopping);
    let were_left = requests.cancel_all(with, Reason::Stopping) || requests.arriving > 0;
    // WebSockets that this has closed: no worker is left for the calls of their ends.
    requests.cancel_all(with, Reason::Stopping);
    with.fleet.end_workers(with.cx, &last, were_left);
    with.waits.queries.bound_the_end(with.cx.now);
}

/// Nothing is left.
fn exit(requests: &mut Requests, with: &mut Components<'_>, reason: ExitReason) {
    with.waits.queries.forget_all(with.cx);
    with.jobs.pull.silence(with.cx);
    let decided = with.jobs.stop(with.cx);
    runs::carry_out(requests, with, decided);
    requests.tell_resumed(with.cx);
    with.waits.drop_unheld(with.cx);
    with.cx.effects.push(Effect::Server(ServerEffect::Exit { reason }));
}
