//! How a branch of a request ends: its wait is over, or it is cancelled.

use super::happening::Happening;
use super::journey::Journey;
use super::life::{Life, Parked};
use super::step::{Step, refusal_of};
use crate::effect::{Effect, Outcome, ServerEffect};
use crate::waits::Watch;
use parkade_model::{Ending, Reason, Refusal, WorkerId};

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
        step.turn_other(owner, Happening::Woken(Outcome::Elapsed));
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
