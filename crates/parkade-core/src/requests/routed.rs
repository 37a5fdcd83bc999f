//! A request, or a run of a job, that is queued for a worker.

use super::journey::Journey;
use super::life::{Accepted, Life, Routed, Running};
use super::queue::Turn;
use super::step::Step;
use super::work::Work;
use crate::effect::{Effect, ServerEffect, WorkerEffect};
use crate::fleet::QueueLine;
use parkade_model::{Reason, Refusal, TableId, WorkerId};

/// Enters the queue.
pub fn enter(step: &mut Step<'_>, journey: Journey, work: Work, turn: Turn) -> Life {
    let place = step.enter_queue(&work, turn);
    Life::Routed(Routed { journey, place, work, turn })
}

/// The routes it was found in are not those it will be run by.
pub fn unroute(step: &mut Step<'_>, life: Routed, table: TableId, turn: Turn) -> Life {
    let request = step.request;
    step.leave_queue(&life.work, life.place);
    // A request for a job begins again, by the routes and the jobs of the other code.
    step.waits.jobs.forget(request);
    step.cx.effects.push(Effect::Server(ServerEffect::LookUpRoute { request, table }));
    let app = step.app();
    let place = step.requests.queue.enter_unrouted(app, request);
    Life::Accepted(Accepted { journey: life.journey, place, turn })
}

pub fn give(step: &mut Step<'_>, mut life: Routed, worker: WorkerId) -> Life {
    let request = step.request;
    step.leave_queue(&life.work, life.place);
    step.waits.ends.leave(request);
    let is_run = step.is_run();
    if !is_run {
        let (app, concurrent) = (step.app(), life.work.is_coroutine());
        step.fleet.note_start(step.cx.now, QueueLine { app, concurrent });
    }
    step.cx.effects.push(match &life.work {
        Work::Call { outcome, .. } => {
            Effect::Worker(WorkerEffect::Call { request, worker, outcome: outcome.outcome() })
        }
        Work::Job { .. } => Effect::Worker(WorkerEffect::RunJob { request, worker }),
        work @ (Work::Handler { .. } | Work::Fallback { .. } | Work::Coroutine { .. }) => {
            Effect::Worker(WorkerEffect::Assign { request, worker, route: work.route() })
        }
    });
    let assignment = step.fleet.workers.assign(step.cx.now, worker, request, &life.work);
    if is_run && assignment.has_begun || step.is_end() {
        life.journey.start_spell(step.cx, request);
    }
    let journey = step.queued(life.journey);
    Life::Running(Running::new(journey, worker, assignment.place, life.work))
}

pub fn refuse(step: &mut Step<'_>, life: Routed, refusal: Refusal) -> Life {
    step.leave_queue(&life.work, life.place);
    life.work.release(step.waits);
    step.refuse(refusal);
    step.done(life.journey)
}

/// Its deadline has passed.
pub fn expire(step: &mut Step<'_>, mut life: Routed) -> Life {
    life.journey.note_alarm();
    cancel(step, life, Reason::Deadline)
}

pub fn cancel(step: &mut Step<'_>, life: Routed, reason: Reason) -> Life {
    step.leave_queue(&life.work, life.place);
    life.work.release(step.waits);
    step.tell_client(reason, Refusal::QueuedTooLong);
    let journey = step.queued(life.journey);
    step.cancelled(journey, reason)
}
