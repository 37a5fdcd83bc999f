//! A request that waits, from the beginning of its wait to the end. What it waits for is known to [`waits`](crate::waits) alone.

use super::journey::Journey;
use super::life::{Life, Parked, Sequel, State, Unmoved};
use super::queue::Turn;
use super::sequel::{ends_query_alone, follow};
use super::step::{Step, refusal_of};
use super::work::Work;
use super::{admission, branch_end, routed, scripts, socket_end};
use crate::effect::{Effect, HttpEffect, Outcome, StatementSource, WorkerEffect};
use crate::fleet::QueueLine;
use crate::queries::fate_unknown;
use crate::refused::Refused;
use crate::routes::RouteId;
use crate::waits::{Begun, Continuation, NewWait, WaitChange, Waits, Watch};
use parkade_model::{Ending, PayloadId, Reason, Refusal, Then, Wait};

/// A wait begins. The journey has no alarm, and nobody watches for the request yet. `source`: where the statement of a query is found.
pub fn begin(step: &mut Step<'_>, journey: Journey, sequel: Sequel, wait: Wait, source: StatementSource) -> Life {
    // A wait for branches asks for nothing more than what has begun. If it were refused, its worker could only ask again.
    let is_for_branches = matches!(wait, Wait::Branches);
    if step.requests.lives.count_of(State::Parked) >= step.cx.config.parked_count_max && !is_for_branches {
        return go_on(step, journey, sequel, Outcome::Refused { refusal: Refusal::ParkedFull });
    }
    let is_first = !is_for_branches && !sequel.is_branch() && !matches!(sequel, Sequel::Tell);
    step.cx.counts.parked += u64::from(is_first && !step.is_run());
    let new = new_wait(step, &journey, sequel);
    let begun = step.waits.begin(step.cx, new, wait, source);
    park(step, journey, sequel, begun)
}

fn new_wait(step: &Step<'_>, journey: &Journey, sequel: Sequel) -> NewWait {
    let (request, is_open) = (step.request, step.fleet.is_open());
    let owner = step.waits.branches.owner_of(request);
    NewWait { request, owner, then: sequel.then(), patience: journey.patience(), is_open }
}

fn park(step: &mut Step<'_>, mut journey: Journey, sequel: Sequel, begun: Begun) -> Life {
    match begun {
        Begun::Waits(watch, until) => {
            journey.wait_until(step.cx, step.request, until);
            Life::Parked(Parked { journey, watch, sequel })
        }
        Begun::Over(outcome) => go_on(step, journey, sequel, outcome),
        Begun::Cancelled(watch, reason) => cancel(step, Parked { journey, watch, sequel }, reason),
    }
}

/// The wait is over before it began.
fn go_on(step: &mut Step<'_>, journey: Journey, sequel: Sequel, outcome: Outcome) -> Life {
    sequel.leave(step.fleet);
    follow(step, journey, sequel, outcome)
}

/// A script asks for something: now it waits for that.
pub fn ask(step: &mut Step<'_>, life: Parked, wait: Wait, payload: PayloadId) -> Result<Life, Unmoved> {
    if !matches!(life.watch, Watch::Script) {
        return Err(Unmoved { life: Life::Parked(life), refused: Refused::OutOfTurn });
    }
    let (journey, sequel) = unpark(step, life);
    Ok(begin(step, journey, sequel, wait, StatementSource::Payload(payload)))
}

/// Its wait is over. A message that is the answer has been sent already.
pub fn wake(step: &mut Step<'_>, life: Parked, outcome: Outcome) -> Life {
    if matches!(life.watch, Watch::Group) {
        // Nobody needs the others.
        step.end_branches(Reason::ClientLeft);
    }
    let on_close = life.watch.on_close();
    let continuation = step.waits.end(step.cx, (step.request, life.sequel.then()), life.watch, outcome);
    let (journey, sequel) = unpark(step, life);
    match continuation {
        Continuation::Outcome(outcome) => follow(step, journey, sequel, outcome),
        Continuation::Sent => socket_end::end(step, journey, on_close, Ending::Done),
        Continuation::Follows(channel, since) => {
            let new = new_wait(step, &journey, sequel);
            let begun = step.waits.stream(step.cx, new, &channel, since);
            park(step, journey, sequel, begun)
        }
    }
}

/// The application says whether its client may have what it waits for. It is queued as if it had just come: the time that the store took does
/// not count.
pub fn ask_the_application(step: &mut Step<'_>, life: Parked, route: RouteId, concurrent: bool) -> Life {
    let request = step.request;
    step.waits.leave(step.cx, request, life.watch);
    let (mut journey, _) = unpark(step, life);
    let work = Work::Handler { route, concurrent };
    let queue_line = QueueLine { app: step.app(), concurrent: work.is_coroutine() };
    let queue = &step.requests.queue;
    let queued_before = queue.requests_count(queue_line.app);
    let patience = journey.patience().duration();
    let no_room = admission::no_room(step.cx, (queue, step.fleet), queued_before, queue_line, patience);
    if let Some(refusal) = no_room {
        step.refuse(refusal);
        return step.done(journey);
    }
    step.waits.jobs.ask(request);
    journey.start_spell(step.cx, request);
    routed::enter(step, journey, work, Turn::Last)
}

/// The first rows of its query, or bytes of its file, have come.
pub fn begin_content(step: &mut Step<'_>, life: Parked) -> Life {
    let watch = step.waits.content_began(step.cx, (step.request, life.sequel.then()), life.watch);
    Life::Parked(Parked { watch, ..life })
}

/// Its alarm rang.
pub fn expire(step: &mut Step<'_>, mut life: Parked) -> Life {
    life.journey.note_alarm();
    let change = step.waits.expire(step.cx, step.request, life.watch);
    apply(step, life, change)
}

/// The server stops.
pub fn stop(step: &mut Step<'_>, life: Parked) -> Life {
    let change = Waits::stop(step.cx.now, life.watch);
    apply(step, life, change)
}

/// Its query is given up; the request still gets the outcome.
pub fn give_query_up(step: &mut Step<'_>, life: Parked, reason: Reason) -> Life {
    let change = step.waits.give_up(step.cx, life.watch, reason);
    apply(step, life, change)
}

/// Its WebSocket is closed: by its client, or by the server, for this reason.
pub fn close_socket(step: &mut Step<'_>, life: Parked, by_server: Option<Refusal>) -> Result<Life, Unmoved> {
    let Watch::Socket(_, on_close) = life.watch else {
        return Err(Unmoved { life: Life::Parked(life), refused: Refused::OutOfTurn });
    };
    let request = step.request;
    step.waits.leave(step.cx, request, life.watch);
    if let Some(refusal) = by_server {
        step.cx.effects.push(Effect::Http(HttpEffect::CloseSocket { request, refusal }));
    }
    let journey = step.waited(life.journey);
    Ok(socket_end::end(step, journey, on_close, Ending::Done))
}

/// Ends the wait, and with it the request.
pub fn cancel(step: &mut Step<'_>, life: Parked, reason: Reason) -> Life {
    if life.sequel.is_branch() {
        return branch_end::cancel(step, life, reason);
    }
    if matches!(life.sequel, Sequel::Tell) {
        return scripts::cancel(step, life, reason);
    }
    let request = step.request;
    // A branch may have ended in this very event: the worker must hear of that first.
    step.requests.resumed.tell(step.cx);
    let usual = refusal_of(reason, Refusal::DeadlinePassed);
    let refusal = step.waits.cancel(step.cx, request, life.watch, reason, usual);
    life.sequel.leave(step.fleet);
    if let Some(refusal) = refusal {
        step.refuse(refusal);
    }
    if let Some(worker) = life.sequel.awaiting_worker()
        && reason != Reason::WorkerDied
    {
        step.cx.effects.push(Effect::Worker(WorkerEffect::Cancel { request, worker, reason }));
    }
    let journey = step.waited(life.journey);
    socket_end::end(step, journey, life.watch.on_close(), Ending::Cancelled(reason))
}

fn apply(step: &mut Step<'_>, mut life: Parked, change: WaitChange) -> Life {
    match change {
        WaitChange::AsBefore => Life::Parked(life),
        WaitChange::Waits(watch, until) => {
            life.journey.wait_until(step.cx, step.request, Some(until));
            Life::Parked(Parked { watch, ..life })
        }
        WaitChange::Over(outcome) => wake(step, life, outcome),
        WaitChange::Cancelled(reason) => cancel(step, life, reason),
        WaitChange::QueryUnknown(reason) => {
            let is_told = matches!(life.sequel.then(), Then::Await) || life.sequel.is_branch();
            if is_told || ends_query_alone(step, reason) {
                return wake(step, life, Outcome::Refused { refusal: fate_unknown(reason) });
            }
            cancel(step, life, reason)
        }
    }
}

/// The wait is over, and watched for no longer.
fn unpark(step: &mut Step<'_>, life: Parked) -> (Journey, Sequel) {
    life.sequel.leave(step.fleet);
    let mut journey = step.waited(life.journey);
    journey.silence(step.cx);
    (journey, life.sequel)
}
