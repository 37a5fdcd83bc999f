//! How a branch of a request ends: its wait is over, or it is cancelled.

use super::happening::Happening;
use super::journey::Journey;
use super::life::{Life, Parked, Sequel};
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

/// The same, of a member of a group. If that is over now, its request goes on.
pub fn end_member(step: &mut Step<'_>, journey: Journey, outcome: Outcome) -> Life {
    let (request, ending, times) = (step.request, Ending::Done, journey.end(step.cx));
    let owner = step.waits.branches.owner_of(request);
    step.waits.branches.end(request);
    let over = step.waits.end_member(owner, request, outcome);
    step.cx.effects.push(Effect::Server(ServerEffect::Forget { request, ending, times }));
    step.fleet.note_end();
    if let Some(outcome) = over {
        step.turn_other(owner, Happening::Woken(outcome));
    }
    Life::Done
}

/// It is cancelled with its request, or alone; then the worker or the group learns it.
pub fn cancel(step: &mut Step<'_>, life: Parked, reason: Reason) -> Life {
    step.waits.cancel(step.cx, step.request, life.watch, reason, None);
    life.sequel.leave(step.fleet);
    let journey = step.waited(life.journey);
    if step.waits.branches.contains(step.request) {
        let refusal = refusal_of(reason, Refusal::DeadlinePassed).unwrap_or(Refusal::CancelledByOperator);
        return follow_alone(step, journey, life.sequel, Outcome::Refused { refusal });
    }
    let (request, ending, times) = (step.request, Ending::Cancelled(reason), journey.end(step.cx));
    step.cx.effects.push(Effect::Server(ServerEffect::Forget { request, ending, times }));
    step.fleet.note_end();
    Life::Cancelled
}

fn follow_alone(step: &mut Step<'_>, journey: Journey, sequel: Sequel, outcome: Outcome) -> Life {
    match sequel.awaiting_worker() {
        Some(worker) => end(step, journey, worker, outcome),
        None => end_member(step, journey, outcome),
    }
}
