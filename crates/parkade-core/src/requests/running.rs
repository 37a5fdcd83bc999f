//! A request, or a run of a job, that a worker holds.

use super::journey::Journey;
use super::life::{Life, Parked, Running, Sequel, Unmoved};
use super::queue::Turn;
use super::reply::Reply;
use super::step::{Step, refusal_of};
use super::work::Work;
use super::{parked, routed};
use crate::effect::{Effect, HttpEffect, StatementSource, WorkerEffect};
use crate::event::{Extent, WorkerError};
use crate::fleet::Abandonment;
use crate::refused::Refused;
use crate::waits::{self, Waits};
use parkade_model::{PayloadId, Reason, Refusal, RequestId, Then, Wait};

/// Its worker is gone and had not touched it, so it is next in line for another worker. If the server stops, a job is left to another server.
pub fn take_back(step: &mut Step<'_>, life: Running) -> Life {
    let journey = step.ran(life.journey);
    step.waits.barrier.drop_held(step.request);
    if matches!(life.work, Work::Job { .. }) && !step.fleet.is_open() {
        return step.cancelled(journey, Reason::Stopping);
    }
    routed::enter(step, journey, life.work, Turn::Next)
}

/// A `RESPONSE`, of which there is one at most; or hints, which promise nothing, so they wait for no write.
pub fn answer(step: &mut Step<'_>, life: Running, payload: PayloadId, extent: Extent) -> Result<Life, Unmoved> {
    let (request, whole) = (step.request, extent == Extent::Whole);
    let Some(reply) = life.reply.answered(extent).filter(|_| extent != Extent::Hints || !step.is_unheard()) else {
        return Err(Unmoved { life: Life::Running(life), refused: Refused::OutOfTurn });
    };
    if extent == Extent::Hints {
        step.cx.effects.push(Effect::Http(HttpEffect::EarlyHints { request, payload }));
        return Ok(Life::Running(life));
    }
    if step.is_run() {
        step.jobs.run_refused(request, Refusal::BadAnswer);
        return Ok(if whole { finish(step, life) } else { Life::Running(Running { reply, ..life }) });
    }
    if extent == Extent::Socket && !step.has_client() {
        return Ok(refuse_begun(step, life, Refusal::BadAnswer));
    }
    if step.is_end() {
        return Ok(match whole {
            true if must_be_held(step.waits, request) => hold_answer(step, life, None),
            true => finish(step, life),
            false => Life::Running(Running { reply, ..life }),
        });
    }
    match step.waits.fault_of(request) {
        unkept if whole && (unkept.is_some() || step.waits.barrier.is_pending(request)) => {
            return Ok(hold_answer(step, life, Some(payload)));
        }
        Some(refusal) => return Ok(refuse_begun(step, life, refusal)),
        None => {}
    }
    step.cx.effects.push(Effect::Http(match extent {
        Extent::Socket => HttpEffect::OpenSocket { request, payload },
        Extent::Hints | Extent::Whole | Extent::Begun => HttpEffect::Relay { request, payload, whole },
    }));
    if reply == Reply::Ended {
        return Ok(finish(step, life));
    }
    let mut life = Running { reply, ..life };
    if is_endless(step, &life) {
        life.journey.silence(step.cx);
    }
    if reply == Reply::Socket {
        step.fleet.workers.open_socket(life.worker, life.place);
    }
    Ok(Life::Running(life))
}

/// Whether its deadline was only for the beginning of its response. A WebSocket lasts as long as its two ends like, and so do the streams of
/// coroutines, which hold up nobody.
fn is_endless(step: &Step<'_>, life: &Running) -> bool {
    life.reply == Reply::Socket || !life.work.has_plain() && step.fleet.workers.is_concurrent(life.worker)
}

/// The last `DATA` of a response that has begun, its trailers, or `CLOSE`. What it published or enqueued on its way may be lost: then it is not whole.
pub fn end_answer(step: &mut Step<'_>, life: Running, trailers: Option<PayloadId>) -> Result<Life, Unmoved> {
    if life.reply.ended().is_none() {
        return Err(Unmoved { life: Life::Running(life), refused: Refused::OutOfTurn });
    }
    match step.waits.fault_of(step.request) {
        _ if step.is_unheard() => {}
        Some(refusal) => break_off(step, &life, refusal),
        // The code and the text of its `CLOSE` have gone to the client.
        None if matches!(life.reply, Reply::Socket | Reply::Closed) => {}
        None => step.cx.effects.push(Effect::Http(HttpEffect::End { request: step.request, trailers })),
    }
    Ok(finish(step, life))
}

/// The WebSocket is closed: by the server, for this reason, or by its client, of which the worker hears after the messages that came before. The code
/// may go on for as long as that of any request.
pub fn close_socket(step: &mut Step<'_>, mut life: Running, by_server: Option<Refusal>) -> Result<Life, Unmoved> {
    let Some(reply) = life.reply.closed() else {
        return Err(Unmoved { life: Life::Running(life), refused: Refused::OutOfTurn });
    };
    let (request, worker) = (step.request, life.worker);
    if let Some(refusal) = by_server {
        step.cx.effects.push(Effect::Http(HttpEffect::CloseSocket { request, refusal }));
        step.cx.effects.push(Effect::Worker(WorkerEffect::CloseSocket { request, worker, refusal }));
    }
    step.fleet.workers.close_socket(worker, life.place);
    life.journey.start_spell(step.cx, request);
    Ok(Life::Running(Running { reply, ..life }))
}

/// `RESULT`. What the run has enqueued is stored before the store hears that it is done.
pub fn return_result(step: &mut Step<'_>, life: Running) -> Life {
    if !step.is_run() {
        return give_up(step, life, WorkerError::BadAnswer);
    }
    if must_be_held(step.waits, step.request) {
        return hold_answer(step, life, None);
    }
    step.jobs.run_returned(step.request);
    finish(step, life)
}

/// `ERROR`: the worker gave it up, or its answer was broken.
pub fn give_up(step: &mut Step<'_>, life: Running, error: WorkerError) -> Life {
    if step.is_run() {
        step.jobs.run_errored(step.request, error);
        return finish(step, life);
    }
    let refusal = match error {
        WorkerError::Application
        | WorkerError::Cancelled
        | WorkerError::Retry { .. }
        | WorkerError::Discarded
        | WorkerError::UnknownJob => Refusal::ApplicationFailed,
        // Workers cancel what still runs shortly before they are stopped.
        WorkerError::Overloaded if !step.fleet.is_open() => Refusal::Stopping,
        WorkerError::Overloaded => Refusal::WorkerOverloaded,
        WorkerError::BadAnswer => Refusal::BadAnswer,
    };
    break_off(step, &life, refusal);
    finish(step, life)
}

/// `PARK`.
pub fn park(step: &mut Step<'_>, life: Running, wait: Wait, then: Then, payload: PayloadId) -> Life {
    let request = step.request;
    if let Some(refusal) = unparkable(step, &life, &wait, then) {
        break_off(step, &life, refusal);
        return finish(step, life);
    }
    let (worker, has_plain) = (life.worker, life.work.has_plain());
    if then != Then::Await {
        step.end_branches(Reason::ClientLeft);
    }
    let mut journey = close(step, life);
    journey.silence(step.cx);
    if waits::brings_something(&wait, then) {
        step.cx.effects.push(Effect::Http(HttpEffect::Keep { request, payload }));
    }
    let sequel = Sequel::of(then, step.fleet, worker, request, has_plain);
    parked::begin(step, journey, sequel, wait, StatementSource::Payload(payload))
}

/// Its deadline has passed.
pub fn expire(step: &mut Step<'_>, mut life: Running) -> Life {
    life.journey.note_alarm();
    cancel(step, life, Reason::Deadline)
}

/// The client is told. The worker is told too, unless it is gone; it holds the stream until its closing frame.
pub fn cancel(step: &mut Step<'_>, mut life: Running, reason: Reason) -> Life {
    // Its coroutine may have been resumed in this very event: the worker must hear of that first.
    step.requests.resumed.tell(step.cx);
    if let Some(refusal) = refusal_of(reason, Refusal::DeadlinePassed) {
        break_off(step, &life, refusal);
    }
    if reason != Reason::WorkerDied {
        abandon(step, &mut life, reason);
    }
    life.work.release(step.waits);
    let journey = step.ran(life.journey);
    step.cancelled(journey, reason)
}

/// The client has gone with all that its response announced. The code may have more to do, and is told as by any client that leaves; but the request
/// was served.
pub fn end_served(step: &mut Step<'_>, mut life: Running) -> Life {
    if life.reply != Reply::Begun || step.is_run() {
        return cancel(step, life, Reason::ClientLeft);
    }
    step.requests.resumed.tell(step.cx);
    abandon(step, &mut life, Reason::ClientLeft);
    life.work.release(step.waits);
    let journey = step.ran(life.journey);
    step.done(journey)
}

/// Why the request may not wait. After a head, a wait makes no sense. A run has no client that a wait could answer, nor has the end of a
/// WebSocket; what is said on one is answered with one message. If a message was not published,
/// or a job was not stored, only a coroutine can still do something about it.
fn unparkable(step: &Step<'_>, life: &Running, wait: &Wait, then: Then) -> Option<Refusal> {
    let is_no_message = step.waits.sockets.is_call(step.request) && waits::is_more_than_a_message(wait);
    let unkept = step.waits.fault_of(step.request).filter(|_| then != Then::Await);
    let is_senseless = life.reply != Reply::Awaited || then == Then::Answer && step.is_unheard() || is_no_message;
    if is_senseless { Some(Refusal::BadAnswer) } else { unkept }
}

/// The answer has come before all that it reports is stored, or something of it is lost. The client waits for the store; the worker is free.
/// The result of a run is no payload: the server keeps it with the run.
fn hold_answer(step: &mut Step<'_>, life: Running, payload: Option<PayloadId>) -> Life {
    let request = step.request;
    step.end_branches(Reason::ClientLeft);
    let journey = close(step, life);
    if let Some(watch) = step.waits.before_answer(request) {
        step.cx.effects.extend(payload.map(|payload| Effect::Http(HttpEffect::Keep { request, payload })));
        return Life::Parked(Parked { journey, watch, sequel: Sequel::Answer });
    }
    step.release_held();
    step.done(journey)
}

/// An answer in pieces begins, and something that it reports is lost. The worker is told that nobody gets the rest.
fn refuse_begun(step: &mut Step<'_>, mut life: Running, refusal: Refusal) -> Life {
    step.refuse(refusal);
    abandon(step, &mut life, Reason::ClientLeft);
    life.work.release(step.waits);
    let journey = step.ran(life.journey);
    step.done(journey)
}

/// The client gets an error if nothing was sent, and a broken connection otherwise. One with a WebSocket is told.
fn break_off(step: &mut Step<'_>, life: &Running, refusal: Refusal) {
    match life.reply {
        // What a client of a WebSocket has said is answered with one message: none of it has gone out.
        Reply::Begun | Reply::Ended if step.has_client() => {
            step.cx.effects.push(Effect::Http(HttpEffect::Abort { request: step.request }));
        }
        Reply::Socket => {
            step.cx.effects.push(Effect::Http(HttpEffect::CloseSocket { request: step.request, refusal }));
        }
        Reply::Closed => {}
        Reply::Awaited | Reply::Begun | Reply::Ended => step.refuse(refusal),
    }
}

/// Nobody waits any more for what the worker holds, and it is told so. The deadline still counts, and a run keeps its place in its queue, until the
/// worker closes the stream.
fn abandon(step: &mut Step<'_>, life: &mut Running, reason: Reason) {
    let request = step.request;
    step.waits.sockets.leave_stream(request);
    step.cx.effects.push(Effect::Worker(WorkerEffect::Cancel { request, worker: life.worker, reason }));
    let queue = step.jobs.keep_place(request);
    let (alarm, patience) = (life.journey.take_alarm(), life.journey.patience().duration());
    step.fleet.workers.abandon(step.cx, life.worker, life.place, &Abandonment { reason, alarm, patience, queue });
}

/// The closing frame has come, and with it the end.
fn finish(step: &mut Step<'_>, life: Running) -> Life {
    let journey = close(step, life);
    step.done(journey)
}

/// The closing frame has come: the worker no longer holds the stream.
fn close(step: &mut Step<'_>, life: Running) -> Journey {
    step.release(life.worker, life.place);
    life.work.release(step.waits);
    step.ran(life.journey)
}

/// Whether something that the answer reports is not stored yet, or is lost.
fn must_be_held(waits: &Waits, request: RequestId) -> bool {
    waits.barrier.is_pending(request) || waits.fault_of(request).is_some()
}
