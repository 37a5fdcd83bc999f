//! Which requests are accepted: those for which there is room in the queue, and a worker in time.

use std::time::Duration;

use super::journey::Patience;
use super::queue::{Lane, Queue};
use crate::context::Context;
use crate::fleet::{Fleet, QueueLine};
use crate::moment::Moment;
use crate::routes::Destination;
use parkade_model::{AppId, Refusal};

/// Why a request that has just arrived is refused. One that needs no worker is not bounded by the queue.
pub fn refusal(
    cx: &Context,
    (queue, fleet): (&Queue, &Fleet),
    app: AppId,
    destination: &Destination,
) -> Option<Refusal> {
    if let Some(refusal) = fleet.refusal() {
        return Some(refusal);
    }
    // The request itself stands among the unrouted already.
    let queued_before = queue.requests_count(app) - 1;
    match destination {
        Destination::Handler { concurrent, deadline, .. } => {
            let line = QueueLine { app, concurrent: *concurrent };
            no_room(cx, (queue, fleet), queued_before, line, *deadline)
        }
        Destination::Fallback { concurrent, .. } => {
            let line = QueueLine { app, concurrent: *concurrent };
            no_room(cx, (queue, fleet), queued_before, line, cx.config.deadline)
        }
        Destination::Unknown => no_place(cx, fleet, app, queued_before),
        Destination::Wait { .. }
        | Destination::Constant { .. }
        | Destination::Preflight
        | Destination::NotFound
        | Destination::MethodNotAllowed
        | Destination::DotSegment => None,
    }
}

/// Why no worker can have another request now.
pub fn no_room(
    cx: &Context,
    (queue, fleet): (&Queue, &Fleet),
    queued_before: usize,
    line: QueueLine,
    deadline: Option<Duration>,
) -> Option<Refusal> {
    let is_too_late = || {
        let patience = Patience::from(deadline).duration();
        patience.is_some_and(|patience| fleet.is_too_slow(patience, cx.now, line, ahead(queue, line)))
    };
    no_place(cx, fleet, line.app, queued_before).or_else(|| is_too_late().then_some(Refusal::QueueTooSlow))
}

/// How long a request that joins this line now waits, at the soonest. A line is empty as long as a worker would take its first request, so a request
/// that a worker would take now has none ahead.
pub fn soonest((queue, fleet): (&Queue, &Fleet), now: Moment, line: QueueLine) -> Option<Duration> {
    fleet.soonest(now, line, ahead(queue, line))
}

fn ahead(queue: &Queue, line: QueueLine) -> usize {
    queue.lane(line.app, Lane::Requests).count_of(line.concurrent)
}

/// Why nothing can be queued for the application now, whatever it is.
fn no_place(cx: &Context, fleet: &Fleet, app: AppId, queued_before: usize) -> Option<Refusal> {
    if fleet.lacks_application(app) {
        Some(Refusal::NoApplication)
    } else if queued_before >= cx.config.queued_count_max.max(1) {
        Some(Refusal::QueueFull)
    } else {
        None
    }
}
