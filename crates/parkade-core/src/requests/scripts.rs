//! Scripts: programs that are no workers, and have transactions. Each is a life that is parked from its beginning to its end: for what the script
//! says next, or for what it has asked for. When the script leaves, or is silent for too long, its statement is cancelled and its transaction rolled
//! back, by the same path as those of a request.

use super::journey::Journey;
use super::life::{Life, Parked, Sequel};
use super::step::Step;
use super::times::Times;
use super::{Components, Requests};
use crate::effect::{Effect, Outcome, ServerEffect};
use crate::limits::SCRIPT_SILENT_MAX;
use crate::waits::Watch;
use parkade_model::{AppId, Ending, Reason, Refusal, RequestId};

/// A script is there. It belongs to no application; to be counted, it is one of the first.
pub fn begin(requests: &mut Requests, with: &mut Components<'_>, script: RequestId) {
    if let Err(refused) = requests.lives.vacant(script) {
        with.cx.counts.refused_events.add(refused);
        if requests.lives.state(script).is_none() {
            refuse(with, script, Refusal::ParkedFull);
        }
        return;
    }
    if !with.fleet.is_open() {
        return refuse(with, script, Refusal::Stopping);
    }
    if requests.lives.count_of(super::State::Parked) >= with.cx.config.parked_count_max {
        return refuse(with, script, Refusal::ParkedFull);
    }
    with.waits.scripts.begin(script);
    let journey = Journey::new(with.cx.now, with.cx.config.deadline.into());
    requests.lives.open(script, AppId::default());
    let life = listen(&mut requests.step(with, script), journey);
    requests.lives.put(script, life);
}

/// What it has asked for is over: it may ask for the next thing.
pub fn tell(step: &mut Step<'_>, journey: Journey, outcome: Outcome) -> Life {
    step.cx.effects.push(Effect::Server(ServerEffect::TellScript { script: step.request, outcome }));
    listen(step, journey)
}

/// It has left, has been silent for too long, or the server or an operator ends it.
pub fn cancel(step: &mut Step<'_>, life: Parked, reason: Reason) -> Life {
    let request = step.request;
    let is_over = matches!(life.watch, Watch::Script) && !step.waits.queries.has_transaction(request);
    step.waits.leave(step.cx, request, life.watch);
    let journey = step.waited(life.journey);
    if is_over && reason == Reason::ClientLeft {
        step.forget(journey, Ending::Done);
        return Life::Done;
    }
    step.forget(journey, Ending::Cancelled(reason));
    Life::Cancelled
}

fn listen(step: &mut Step<'_>, mut journey: Journey) -> Life {
    let silent_max = journey.patience().duration().unwrap_or(SCRIPT_SILENT_MAX);
    journey.wait_until(step.cx, step.request, Some(step.cx.now + silent_max));
    Life::Parked(Parked { journey, watch: Watch::Script, sequel: Sequel::Tell })
}

fn refuse(with: &mut Components<'_>, script: RequestId, refusal: Refusal) {
    let (request, ending, times) = (script, Ending::Done, Times::default());
    let outcome = Outcome::Refused { refusal };
    with.cx.effects.push(Effect::Server(ServerEffect::TellScript { script, outcome }));
    with.cx.effects.push(Effect::Server(ServerEffect::Forget { request, ending, times }));
}
