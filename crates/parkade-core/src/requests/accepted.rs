//! A request that waits to be told where it goes.

use std::time::Duration;

use super::journey::Journey;
use super::life::{Accepted, Life, Sequel};
use super::step::Step;
use super::work::Work;
use super::{parked, routed};
use crate::effect::{Effect, HttpEffect, ServerEffect, StatementSource};
use crate::routes::{Destination, RouteId};
use parkade_model::{Reason, Refusal, Then, Wait};

pub fn route(step: &mut Step<'_>, life: Accepted, destination: Destination) -> Life {
    match destination {
        Destination::Handler { route, concurrent, deadline } => {
            enqueue(step, life, Work::Handler { route, concurrent }, deadline)
        }
        Destination::Fallback { table, concurrent } => {
            let deadline = step.cx.config.deadline;
            enqueue(step, life, Work::Fallback { table, concurrent }, deadline)
        }
        Destination::Wait { route, wait, then, deadline } => {
            let mut journey = end_queueing(step, life);
            journey.set_patience(deadline.into());
            journey.silence(step.cx);
            park(step, journey, route, wait, then)
        }
        Destination::Constant { route } => {
            let journey = end_queueing(step, life);
            step.cx.effects.push(Effect::Http(HttpEffect::Constant { request: step.request, route }));
            step.done(journey)
        }
        Destination::Preflight => {
            let journey = end_queueing(step, life);
            step.cx.effects.push(Effect::Http(HttpEffect::Preflight { request: step.request }));
            step.done(journey)
        }
        Destination::NotFound => refuse(step, life, Refusal::NotFound),
        Destination::MethodNotAllowed => refuse(step, life, Refusal::MethodNotAllowed),
        Destination::DotSegment => refuse(step, life, Refusal::DotSegment),
        Destination::Unknown => await_routes(step, life),
    }
}

pub fn refuse(step: &mut Step<'_>, life: Accepted, refusal: Refusal) -> Life {
    let journey = leave(step, life);
    step.refuse(refusal);
    step.done(journey)
}

/// Its deadline has passed.
pub fn expire(step: &mut Step<'_>, mut life: Accepted) -> Life {
    life.journey.note_alarm();
    cancel(step, life, Reason::Deadline)
}

pub fn cancel(step: &mut Step<'_>, life: Accepted, reason: Reason) -> Life {
    let journey = end_queueing(step, life);
    step.tell_client(reason, Refusal::QueuedTooLong);
    step.cancelled(journey, reason)
}

fn enqueue(step: &mut Step<'_>, mut life: Accepted, work: Work, deadline: Option<Duration>) -> Life {
    life.journey.bound_spell(step.cx, step.request, deadline.into());
    let turn = life.turn;
    let journey = leave(step, life);
    routed::enter(step, journey, work, turn)
}

/// No worker has said its routes: they are looked up when one does.
fn await_routes(step: &mut Step<'_>, mut life: Accepted) -> Life {
    if !life.journey.has_alarm() {
        life.journey.bound_spell(step.cx, step.request, life.journey.patience());
        let request = step.request;
        let look_up = |table| Effect::Server(ServerEffect::LookUpRoute { request, table });
        step.cx.effects.extend(step.fleet.table(step.app()).map(look_up));
    }
    Life::Accepted(life)
}

fn leave(step: &mut Step<'_>, life: Accepted) -> Journey {
    let app = step.app();
    step.requests.queue.leave_unrouted(app, life.place);
    life.journey
}

/// It leaves, and no worker is needed: the time in the queue is over.
fn end_queueing(step: &mut Step<'_>, life: Accepted) -> Journey {
    let journey = leave(step, life);
    step.queued(journey)
}

/// A route that is only a wait: there is no worker and no coroutine.
fn park(step: &mut Step<'_>, journey: Journey, route: RouteId, wait: Wait, then: Then) -> Life {
    let Some(sequel) = Sequel::without_worker(then) else {
        step.refuse(Refusal::BadAnswer);
        return step.done(journey);
    };
    parked::begin(step, journey, sequel, wait, StatementSource::Route(route))
}
