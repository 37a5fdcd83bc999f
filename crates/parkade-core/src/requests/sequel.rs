//! What follows a wait: an answer, a call, or the same coroutine.

use super::journey::Journey;
use super::life::{Life, Running, Sequel};
use super::queue::Turn;
use super::step::Step;
use super::work::{CallOutcome, Work};
use super::{branch_end, routed, scripts};
use crate::effect::{Effect, HttpEffect, Outcome};
use crate::waits::{self, WaitAnswer};
use parkade_model::{QueryId, Reason, Refusal, WorkerId};

/// A wait has ended with this outcome, and the request goes on.
pub fn follow(step: &mut Step<'_>, journey: Journey, sequel: Sequel, outcome: Outcome) -> Life {
    if let Outcome::Message { gap, .. } = outcome {
        step.cx.counts.delivered += 1;
        step.cx.counts.gaps += u64::from(gap);
    }
    match sequel {
        Sequel::Await { worker, has_plain, .. } => resume(step, journey, worker, has_plain, outcome),
        Sequel::Branch { worker, .. } => branch_end::end(step, journey, worker, outcome),
        Sequel::Tell => scripts::tell(step, journey, outcome),
        Sequel::Member => branch_end::end_member(step, journey, outcome),
        Sequel::Call { concurrent } if !waits::is_failure(outcome) => call(step, journey, concurrent, outcome),
        Sequel::Call { .. } | Sequel::Answer => answer(step, journey, outcome),
    }
}

fn answer(step: &mut Step<'_>, journey: Journey, outcome: Outcome) -> Life {
    if step.is_end() {
        return fail_end(step, journey, outcome);
    }
    match waits::answer(step.request, outcome) {
        WaitAnswer::Query(query, late) => return answer_query(step, journey, query, late),
        WaitAnswer::Refused(refusal) => step.refuse(refusal),
        WaitAnswer::Held => step.release_held(),
        WaitAnswer::Effect(effect) => step.cx.effects.push(Effect::Http(effect)),
        WaitAnswer::Sent => {}
    }
    step.done(journey)
}

/// The function for the end of a WebSocket waited for something, and does not go on. Nobody gets the answer of one that was held.
fn fail_end(step: &mut Step<'_>, journey: Journey, outcome: Outcome) -> Life {
    match waits::answer(step.request, outcome) {
        WaitAnswer::Refused(refusal) => step.refuse(refusal),
        WaitAnswer::Query(..) => step.refuse(Refusal::ApplicationFailed),
        WaitAnswer::Held => step.release_held(),
        WaitAnswer::Effect(_) | WaitAnswer::Sent => {}
    }
    step.done(journey)
}

fn answer_query(step: &mut Step<'_>, journey: Journey, query: QueryId, late: Option<Reason>) -> Life {
    step.jobs.run_failed(step.request);
    step.cx.effects.push(Effect::Http(HttpEffect::AnswerQuery { request: step.request, query, late }));
    match late {
        Some(reason) if !ends_query_alone(step, reason) => step.cancelled(journey, reason),
        Some(_) | None => step.done(journey),
    }
}

/// Whether a query is cancelled for this reason without the request. An operator who ends a query of a job does not end the job: that attempt has
/// failed, as for a coroutine that is told of it.
pub fn ends_query_alone(step: &Step<'_>, reason: Reason) -> bool {
    reason == Reason::Operator && step.is_run()
}

pub fn call(step: &mut Step<'_>, mut journey: Journey, concurrent: bool, outcome: Outcome) -> Life {
    step.waits.hold(outcome);
    // The time of a run begins with its code, and so does that of what no client waits for.
    if !step.is_unheard() {
        journey.start_spell(step.cx, step.request);
    }
    routed::enter(step, journey, Work::Call { outcome: CallOutcome::new(outcome), concurrent }, Turn::Last)
}

fn resume(step: &mut Step<'_>, mut journey: Journey, worker: WorkerId, has_plain: bool, outcome: Outcome) -> Life {
    let work = Work::Coroutine { has_plain };
    journey.start_spell(step.cx, step.request);
    step.requests.resumed.add(worker, outcome, step.request);
    let place = step.fleet.workers.assign(step.cx.now, worker, step.request, &work).place;
    Life::Running(Running::new(journey, worker, place, work))
}
