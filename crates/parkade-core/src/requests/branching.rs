//! Branches of requests: other waits of a coroutine that waits already. Each is a life that is parked from its beginning to its end.

use super::happening::Happening;
use super::journey::Journey;
use super::life::{Life, Parked, Sequel};
use super::step::{Step, refusal_of};
use super::{Components, Requests, parked};
use crate::effect::{Effect, Outcome, ServerEffect, StatementSource};
use crate::refused::Refused;
use crate::waits::Watch;
use parkade_model::{Ending, PayloadId, Reason, Refusal, RequestId, Wait, WorkerId};

use super::times::Times;

/// The coroutine of a request in this worker waits for one more thing.
pub fn begin(
    requests: &mut Requests,
    with: &mut Components<'_>,
    (worker, owner): (WorkerId, RequestId),
    branch: RequestId,
    (wait, payload): (Wait, PayloadId),
) {
    let vacant = requests.lives.vacant(branch);
    let is_owners = requests.is_held_by(worker, owner) || requests.is_awaited_by(worker, owner);
    let patience = match requests.lives.life(owner) {
        Some(Life::Running(life)) => life.journey.patience(),
        Some(Life::Parked(life)) => life.journey.patience(),
        Some(Life::Accepted(_) | Life::Routed(_) | Life::Done | Life::Cancelled) | None => None.into(),
    };
    if let Some(refused) = vacant.err().or((!is_owners).then_some(Refused::NotHeld)) {
        with.cx.counts.refused_events.add(refused);
        if requests.lives.state(branch).is_none() {
            let (ending, times) = (Ending::Done, Times::default());
            with.cx.effects.push(Effect::Server(ServerEffect::Forget { request: branch, ending, times }));
        }
        return;
    }
    let is_within_bounds = with.waits.branches.begin(owner, branch).is_ok();
    let sequel = Sequel::Branch { worker, place: with.fleet.workers.park(worker, branch) };
    let journey = Journey::new(with.cx.now, patience);
    let step = &mut requests.step(with, branch);
    let life = if is_within_bounds {
        parked::begin(step, journey, sequel, wait, StatementSource::Payload(payload))
    } else {
        sequel.leave(step.fleet);
        end(step, journey, worker, Outcome::Refused { refusal: Refusal::TooManyWaits })
    };
    requests.lives.begin(branch, life);
}

/// Its wait is over. Nothing names it after its worker has been told.
pub fn end(step: &mut Step<'_>, journey: Journey, worker: WorkerId, outcome: Outcome) -> Life {
    let times = journey.end(step.cx);
    step.requests.resumed.add(worker, outcome, step.request);
    step.requests.resumed.forget(step.request, times);
    step.fleet.note_end();
    let owner = step.waits.branches.end(step.request);
    if let Some(owner) = owner
        && matches!(step.requests.lives.life(owner), Some(Life::Parked(Parked { watch: Watch::Branches, .. })))
    {
        turn(step, owner, Happening::Woken(Outcome::Elapsed));
    }
    Life::Done
}

/// It is cancelled with its request, which the worker is told, or else alone.
pub fn cancel(step: &mut Step<'_>, life: Parked, reason: Reason) -> Life {
    step.waits.cancel(step.cx, step.request, life.watch, reason, None);
    life.sequel.leave(step.fleet);
    let journey = life.journey.waited(step.cx.now);
    if let Some(worker) = life.sequel.awaiting_worker().filter(|_| step.waits.branches.contains(step.request)) {
        let refusal = refusal_of(reason, Refusal::DeadlinePassed).unwrap_or(Refusal::CancelledByOperator);
        return end(step, journey, worker, Outcome::Refused { refusal });
    }
    let (request, ending, times) = (step.request, Ending::Cancelled(reason), journey.end(step.cx));
    step.cx.effects.push(Effect::Server(ServerEffect::Forget { request, ending, times }));
    step.fleet.note_end();
    Life::Cancelled
}

/// The request has ended, or its worker is done with it: its branches end with it.
pub fn end_all(step: &mut Step<'_>, reason: Reason) {
    for branch in step.waits.branches.take(step.request) {
        turn(step, branch, Happening::Cancelled(reason));
    }
}

fn turn(step: &mut Step<'_>, request: RequestId, happening: Happening) {
    let with = &mut Components { cx: step.cx, waits: step.waits, jobs: step.jobs, fleet: step.fleet };
    step.requests.turn(with, request, happening);
}
